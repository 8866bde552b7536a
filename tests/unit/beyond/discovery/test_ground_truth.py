from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import sih
from sih.beyond.discovery.ground_truth import CIRCUITS, Discovery, discover, save_circuits


@pytest.mark.parametrize("name", CIRCUITS)
def test_a_circuit_has_the_lags_of_its_name(name: str) -> None:
    circuit = sih.known_circuit(name, seed=1)
    written = re.match(r"[\d.]+\d", name)
    assert written is not None
    assert circuit.task.lags == tuple(map(int, written[0].split(".")))


def test_circuits_are_kept_with_their_edges(tmp_path: Path) -> None:
    made = [sih.known_circuit(name, seed=1) for name in ("1.2-two-lags", "1.2.3-one-head")]
    save_circuits(tmp_path, made)
    loaded = sih.load_circuits(tmp_path)
    assert list(loaded) == [circuit.name for circuit in made]
    for circuit in made:
        again = loaded[circuit.name]
        tokens = sih.sample(circuit.task, 4, rng=0).tokens
        assert (again.edges, again.task) == (circuit.edges, circuit.task)
        assert torch.equal(again.model(tokens), circuit.model(tokens))
        assert again.model.notes["edges"] == [
            [edge.source, edge.reader, edge.role] for edge in circuit.edges
        ]
    with pytest.raises(ValueError, match="there are no circuits in"):
        sih.load_circuits(tmp_path / "none")
    with pytest.raises(ValueError, match=f"name must be one of {', '.join(CIRCUITS)}; got 'best'"):
        sih.known_circuit("best")


@pytest.mark.slow
def test_a_table_and_a_figure_of_every_method() -> None:
    circuit = sih.known_circuit("1.2-two-lags", seed=2)
    found = Discovery(tuple(discover(circuit, pairs=1)))
    head, *rows = found.table()
    assert [row[1] for row in rows] == ["exact", "eap", "eap-ig", "atp*", "attribution"]
    assert all(len(row) == len(head) for row in rows)
    assert found.measured[0].judged.area > 0.9
    figure = found.plot()
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == [circuit.name]
    assert len(figure.axes[0].collections) == 5
