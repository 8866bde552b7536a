"""Views as bytes: the length of a JSON header, the header, then the arrays it lists,
each aligned to 8 bytes.
"""

import json
import struct

import numpy as np

from sih.explorer.view import View

ALIGN = 8


def pack(view: View) -> bytes:
    """Return a view as bytes, which the page's `static/data.js` reads."""
    listed, bodies, offset = [], [], 0
    for name, array in view.arrays.items():
        body = np.ascontiguousarray(array).tobytes()
        listed.append(
            {"name": name, "type": array.dtype.name, "shape": array.shape, "offset": offset}
        )
        bodies.append(body + bytes(-len(body) % ALIGN))
        offset += len(bodies[-1])
    header = json.dumps(
        {**view.header, "arrays": listed}, separators=(",", ":"), allow_nan=False
    ).encode()
    header += b" " * (-(len(header) + 4) % ALIGN)
    return b"".join([struct.pack("<I", len(header)), header, *bodies])
