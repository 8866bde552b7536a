"""Relative positions from end to end: trained, resumed, swept, listed, read, and refused where they cannot be read."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import sih
from sih.attention.circuit_signs import circuit_signs
from sih.attention.distances import selection
from sih.beyond.evidence_paths.channel_shares import read_channels
from sih.beyond.evidence_paths.channels import AccountConfig, account
from sih.beyond.evidence_paths.phases import has_phases, read_phases
from sih.beyond.transformer_lens.lens import export_transformer_lens
from sih.cli import main
from sih.training.presets import preset
from sih.training.runs.run_names import named
from sih.training.trainer import Trainer

SMALL = [
    "--length",
    "20",
    "--dim",
    "8",
    "--qk-dim",
    "4",
    "--batch",
    "8",
    "--steps",
    "6",
    "--held-out",
    "16",
]


@pytest.fixture
def batch(task: sih.Task) -> sih.Batch:
    return sih.sample(task, 12, rng=0)


def test_it_is_trained_resumed_listed_and_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", "--model", "relative", *SMALL, "--evaluate-every", "3", "--threads", "1"]
    further = [
        "--matrix-law",
        "uniform",
        "--offsets",
        "both",
        "none",
        "keys",
        "--start",
        "--reach",
        "7",
    ]
    folder = tmp_path / "runs" / "mine"
    assert main([*command, *further, "--out", str(folder)]) == 0
    run = sih.open_run(folder)
    assert run.config.model.kind == "relative"
    model = sih.load(folder)
    assert isinstance(model, sih.RelativeTransformer)
    assert (model.config.reach, model.config.offsets, model.first) == (
        7,
        ("both", "none", "keys"),
        1,
    )
    tokens = run.config.held_out_batch(run.task).tokens
    with torch.no_grad():
        law = model.predict(tokens).double()
    kl = sih.mean_kl(sih.kl_to_truth(law, run.config.held_out_batch(run.task), run.task), run.task)
    assert kl.mean().item() == pytest.approx(run.evaluations[-1]["kl"], rel=1e-5)
    capsys.readouterr()
    assert main(["runs", str(tmp_path / "runs")]) == 0
    assert "relative" in capsys.readouterr().out
    assert main(["runs", "show", str(folder), "--out", str(tmp_path / "figure")]) == 0
    shown = capsys.readouterr().out
    assert "--offsets both none keys" in shown
    assert shown.splitlines()[-4].startswith("3.1 ")

    found = account(model, run, AccountConfig(sequences=16, reference=16))
    assert found.phases is None
    assert sum(share for share, _ in found.channels.shares.values()) == pytest.approx(1)
    assert found.layer_1.keys() == {"log P", "p"}
    assert all(math.isfinite(value) for value, _ in found.layer_1.values())


def test_a_run_that_goes_on_ends_with_the_same_weights() -> None:
    sizes = {
        "lags": (1, 2),
        "length": 12,
        "dim": 8,
        "qk_dim": 4,
        "batch": 4,
        "steps": 6,
        "held_out": 8,
    }
    config = preset("paper-relative", **sizes, start=True, reach=4)
    whole, part, rest = (Trainer(config) for _ in range(3))
    for _ in range(6):
        whole.advance()
    for _ in range(3):
        part.advance()
    rest.restore(part.state())
    for _ in range(3):
        rest.advance()
    for ours, theirs in zip(rest.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_it_is_swept(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(
        '[base]\npreset = "paper-relative"\nlength = 12\ndim = 8\nqk_dim = 4\nbatch = 4\nsteps = 2\nheld_out = 8\n'
        '[grid]\noffsets = [["both"], ["both", "none", "keys"]]\n'
    )
    assert (
        main(
            ["sweep", str(tmp_path / "grid.toml"), "--out", str(tmp_path / "sweep"), "--jobs", "1"]
        )
        == 0
    )
    rows = (tmp_path / "sweep" / "results.csv").read_text().splitlines()
    assert len(rows) == 3
    assert all("finished" in row for row in rows[1:])


def test_names_stand_for_the_papers_setting() -> None:
    usual = named("relative-1.2.3")
    assert usual == preset("paper", model="relative", lags=(1, 2, 3))
    assert usual.heads == (1, 1, 1)
    assert named("relative-1.3.4-1.2.1-reach16-length64-seed3").flat().items() >= {
        ("lags", (1, 3, 4)), ("heads", (1, 2, 1)), ("reach", 16), ("length", 64), ("seed", 3),
    }  # fmt: skip
    by_preset = preset("paper-relative", length=32)
    assert by_preset == named("relative-1.2.3-length32-uniform0")
    assert (by_preset.optimiser.batch, by_preset.optimiser.learning_rate) == (256, 1e-3)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            ["--model", "relative", "--reach", "0"],
            "reach must be a whole number, at least 1; got 0",
        ),
        (["--model", "relative", "--reach", "2.5"], "--reach"),
        (
            ["--model", "standard", "--reach", "3"],
            "sih: --reach is for --model relative, relative-disentangled; got --model standard",
        ),
        (
            ["--reach=3"],
            "sih: --reach is for --model relative, relative-disentangled; got --model standard",
        ),
        (
            ["--model", "disentangled", "--start"],
            "sih: --start is for --model relative; got --model disentangled",
        ),
        (["--no-start"], "sih: --start is for --model relative; got --model standard"),
        (["--offsets", "keys"], "sih: --offsets is for --model relative; got --model standard"),
        (
            ["--model", "relative", "--offsets", "values"],
            "offsets.0 must be one of both, keys, none, rotary",
        ),
        (
            ["--model", "relative", "--offsets", "both", "keys"],
            "such a word for each of the 3 layers",
        ),
        (
            ["--model", "relative", "--init", "harmonic"],
            "the recipe harmonic is for standard, disentangled; a relative model has uniform, normal",
        ),
        (
            ["--model", "relative", "--preset", "auto"],
            "the recipe harmonic is for standard, disentangled; a relative model has uniform, normal",
        ),
        (
            ["--model", "relative", "--qk-dim", "5", "--offsets", "rotary"],
            "qk_dim is even, e.g. 32; got 5",
        ),
    ],
)
def test_bad_flags_are_one_line(
    flags: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *flags, "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_a_model_that_ignores_its_start_token_is_read_like_one_without(
    task: sih.Task, batch: sih.Batch
) -> None:
    without = sih.RelativeTransformer(5, reach=32, dim=8, qk_dim=4, dtype=torch.float64, rng=1)
    model = sih.RelativeTransformer(5, reach=32, dim=8, qk_dim=4, dtype=torch.float64, start=True)
    weights = dict(without.named_parameters())
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name == "token":
                weight[:5, :7], weight[5] = weights[name][:, :7], 0
                weight[:5, 7], weight[5, 7] = (
                    1,
                    -1,
                )  # the last coordinate tells the start token from the others
                weights[name][:, 7] = 1
            else:
                weight.copy_(weights[name])
        for each in (*model.each_layer(), *without.each_layer()):
            assert each.aK is not None
            assert each.aV is not None
            each.V[..., 7] = each.aV[..., 7] = 0
            each.Q[:, :, 3], each.K[:, :, 3], each.aK[..., 3] = 0, 0, 0
            each.Q[:, 7, 3], each.K[:, 7, 3] = (
                50,
                50,
            )  # scores of 2500 / 2 for tokens, as much less for the start
    law = model.predict(batch.tokens)
    torch.testing.assert_close(law, without.predict(batch.tokens), rtol=0, atol=1e-12)
    ours, theirs = model.trace(batch.tokens), without.trace(batch.tokens)
    assert ours["1.1/attention"][:, 1:, 0].max() < 1e-12
    for x, y in zip(ours.between_tokens, theirs.between_tokens, strict=True):
        torch.testing.assert_close(x, y, rtol=0, atol=1e-12)
    found, wanted = (sih.diagnose(task, batch, model=each) for each in (model, without))
    for head, other in zip(found.heads, wanted.heads, strict=True):
        assert head.parents == pytest.approx(other.parents, abs=1e-9)
        assert head.copies == pytest.approx(other.copies, abs=1e-9)
        assert head.offsets == pytest.approx(other.offsets, abs=1e-9)
        assert (head.role, head.period) == (other.role, other.period)
        assert head.start == pytest.approx(0, abs=1e-9)
        assert head.from_uniform == pytest.approx(other.from_uniform, abs=1e-9)
    for near, far in zip(found.circuits, wanted.circuits, strict=True):
        assert near.layers == pytest.approx(far.layers, abs=1e-9)
    pairs = sih.counterfactual_pairs(task, 1)
    both = (model, without)
    flows = [sih.evidence_flow(each, task, batch) for each in both]
    edges = [sih.edge_scores(each, pairs, "eap") for each in both]
    channels = [
        read_channels(each, task, batch, batch, torch.Generator().manual_seed(0)) for each in both
    ]
    assert flows[0].shares == pytest.approx(flows[1].shares, abs=1e-9)
    assert edges[0] == pytest.approx(edges[1], abs=1e-9)
    for what in ("kl", "picks", "shares", "by_head"):
        one, other = (getattr(each, what) for each in channels)
        for name, value in one.items():
            assert value == pytest.approx(other[name], abs=1e-9), (what, name)
    signs, others = (
        dataclasses.asdict(circuit_signs(each, batch, task)) for each in (model, without)
    )
    assert signs == {name: pytest.approx(value, abs=1e-9) for name, value in others.items()}
    shares, others = (dataclasses.asdict(selection(each, task, batch)) for each in (model, without))
    assert shares == {name: pytest.approx(value, abs=1e-9) for name, value in others.items()}


def test_what_rests_on_the_start_token_is_said(task: sih.Task, batch: sih.Batch) -> None:
    model = sih.RelativeTransformer(
        5, reach=3, dim=8, qk_dim=4, start=True, init="zeros", dtype=torch.float64
    )
    with torch.no_grad():
        model.token[:, 0] = 1
        model.token[5, 1] = 1
        for layer in model.each_layer():
            layer.Q[:, 0, 0], layer.K[:, 1, 0] = 10, 10
    heads = sih.diagnose(task, batch, model=model).heads
    assert all(head.start > 0.99 for head in heads)
    assert all(head.role == "sink at the start token" for head in heads)
    assert all(head.from_uniform > 0.9 for head in heads)


def test_what_cannot_read_it_says_so_in_one_line(
    task: sih.Task, batch: sih.Batch, tmp_path: Path
) -> None:
    model = sih.RelativeTransformer(5, reach=7, dim=8, qk_dim=4)
    calls: dict[str, Callable[[], object]] = {
        "phases are read of": lambda: read_phases(model, task),
        "circuit": lambda: sih.circuit_edges(model),
        "only standard and disentangled models": lambda: export_transformer_lens(
            model, tmp_path / "lens"
        ),
        "whose positions TransformerLens knows": lambda: sih.to_transformer_lens(model),
        "construct": lambda: sih.verify(model),
    }
    for said, call in calls.items():
        with pytest.raises(ValueError, match=said) as raised:
            call()
        assert len(str(raised.value).splitlines()) == 1
    assert not (tmp_path / "lens").exists()
    assert not has_phases(model, task)
