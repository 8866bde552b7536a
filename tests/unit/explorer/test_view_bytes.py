from __future__ import annotations

import json

import numpy as np
from support.views import unpack

from sih.explorer.view import View
from sih.explorer.view_bytes import ALIGN, pack


def test_arrays_of_every_type_come_back_from_aligned_bytes() -> None:
    arrays: dict[str, np.ndarray] = {
        "a": np.arange(5, dtype=np.uint8),
        "b/c": np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3),
        "none": np.zeros((0, 4), dtype=np.uint16),
        "last": np.array([[1.5]]),
    }
    data = pack(View({"lag": 3, "word": "λ"}, arrays))
    found = unpack(data)
    assert found.header == {"lag": 3, "word": "λ"}
    assert list(found.arrays) == list(arrays)
    for name, array in arrays.items():
        assert (found.arrays[name].dtype, found.arrays[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(found.arrays[name], array)
    size = int.from_bytes(data[:4], "little")
    assert (4 + size) % ALIGN == 0
    assert all(entry["offset"] % ALIGN == 0 for entry in json.loads(data[4 : 4 + size])["arrays"])
