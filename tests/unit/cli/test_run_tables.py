from __future__ import annotations

import io

from rich.console import Console

from sih.cli.run_tables import print_fitting

ROWS = [
    {
        "run": "one-of-a-long-name",
        "lags": "1 2 3",
        "length": "128",
        "trained": "Adam only",
        "seconds": "7",
        "±": "0.01",
    },
    {
        "run": "two",
        "lags": "1 2",
        "length": "32",
        "trained": "SOAP, roles",
        "seconds": "12345",
        "±": "0.02",
    },
]


def printed(width: int) -> list[str]:
    stream = io.StringIO()
    print_fitting(ROWS, "Runs", Console(file=stream, width=width, highlight=False, markup=False))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_all_columns_where_there_is_room() -> None:
    assert printed(61) == [
        "Runs",
        "run                 lags   length  trained      seconds     ±",
        "one-of-a-long-name  1 2 3     128  Adam only          7  0.01",
        "two                 1 2        32  SOAP, roles    12345  0.02",
    ]


def test_columns_go_one_by_one_and_are_named() -> None:
    for width, shown, gone in (
        (60, "run lags length trained ±", "seconds"),
        (51, "run length trained ±", "lags, seconds"),
        (44, "run length trained", "±, lags, seconds"),
        (38, "run trained", "length, ±, lags, seconds"),
        (30, "run", "trained, length, ±, lags, seconds"),
    ):
        lines = printed(width)
        assert lines[1].split() == shown.split(), width
        assert " ".join(lines[4:]).startswith(f"no room for: {gone}"), width
        assert [line.split()[0] for line in lines[2:4]] == ["one-of-a-long-name", "two"]


def test_only_a_name_longer_than_the_line_is_broken() -> None:
    assert printed(12)[2:5] == ["one-of-a-lon", "g-name", "two"]


def test_no_runs_are_a_table_without_rows() -> None:
    stream = io.StringIO()
    print_fitting([], "Runs", Console(file=stream, width=80))
    assert stream.getvalue().split() == ["Runs", "run"]
