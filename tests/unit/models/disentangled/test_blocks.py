"""Names of the stream's blocks."""

from __future__ import annotations

import pytest

from sih.models.disentangled.blocks import ResidualStream, parse_head


def test_the_widths_grow_as_the_paper_says() -> None:
    """d_l = (1 + H_l) d_{l-1}, d_0 = S + T."""
    expected = 5 + 128
    for depth, count in enumerate((1, 3, 1), 1):
        expected *= 1 + count
        assert ResidualStream(5, 128, (1, 3, 1)[:depth]).dim == expected


def test_the_order_is_the_papers_concatenation() -> None:
    assert ResidualStream(2, 3, (1, 2)).names == (
        *("token", "position", "1.1/token", "1.1/position"),
        *("2.1/token", "2.1/position", "2.1/1.1/token", "2.1/1.1/position"),
        *("2.2/token", "2.2/position", "2.2/1.1/token", "2.2/1.1/position"),
    )


def test_blocks_tile_the_stream() -> None:
    stream = ResidualStream(3, 7, (2, 1))
    covered = [i for name in stream.names for i in range(stream[name].start, stream[name].stop)]
    assert covered == list(range(stream.dim))


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no block '1/token'.*1\.1/token"):
        ResidualStream(3, 7, (1,))["1/token"]
    for bad in ("3.1", "2.2", "0.1", "1", "2.1/token", ""):
        with pytest.raises(ValueError, match=r"there is no head .*1\.1, 2\.1"):
            parse_head(bad, (1, 1))
