from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from sih.figures import style


def test_a_figure_is_saved_in_all_formats_under_its_whole_name_with_the_same_bytes(tmp_path: Path) -> None:
    def saved(name: str) -> list[Path]:
        with style.paper_style():
            figure = Figure(figsize=(2, 1))
            figure.subplots().plot([1, 2], label="line")
        return style.save(figure, tmp_path / name)

    first, second = saved("standard-1.2.3"), saved("again-1.2.3")
    assert [path.name for path in first] == ["standard-1.2.3.pdf", "standard-1.2.3.svg", "standard-1.2.3.png"]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(first, second, strict=True))
