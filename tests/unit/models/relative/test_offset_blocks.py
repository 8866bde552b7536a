"""The blocks of a disentangled stream with relative positions: their names, and where they lie."""

from __future__ import annotations

import pytest

from sih.models.relative.offset_blocks import RelativeStream


def test_blocks_lie_side_by_side_in_the_order_of_writing() -> None:
    stream = RelativeStream(3, 2, heads=(2, 1))
    assert stream.names[:5] == ("token", "1.1/token", "1.1/offset", "1.2/token", "1.2/offset")
    assert stream.names[5:] == tuple(f"2.1/{name}" for name in (*stream.names[:5], "offset"))
    ends = [0, *(stream[name].stop for name in stream.names)]
    assert [stream[name].start for name in stream.names] == ends[:-1]
    widths = {stream[name].stop - stream[name].start for name in stream.names}
    assert (widths, ends[-1]) == ({3, 4}, stream.dim)


def test_widths_are_those_of_section_10_1() -> None:
    dims = [RelativeStream(5, 4, (1, 1, 1)[:layers]).dim for layers in range(4)]
    assert dims == [6, 17, 39, 83]


def test_an_unknown_block_is_named_in_one_line() -> None:
    with pytest.raises(
        ValueError, match=r"there is no block 'position' here; the blocks are token, 1\.1/token"
    ):
        RelativeStream(3, 2, heads=(1,))["position"]
