from __future__ import annotations

import pytest

from sih.cli.printing import plain_console


@pytest.mark.parametrize("text", ["[/red]", "[bold]x[/bold]", ":smile:", "runs/[0, 1]/a" + "b" * 300])
def test_what_is_given_is_printed(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    plain_console().print(f"-> {text}")
    assert capsys.readouterr().out == f"-> {text}\n"
