from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from support.kept_runs import LONG, STEPS, make_kept, with_circuit
from support.small_runs import SHORT, make

import sih
from sih.attention.circuit_formation import follow, formation, keep_formation
from sih.models import Model
from sih.training.runs.evaluate import fresh_sequences
from sih.training.runs.formation import FORMATION
from sih.training.runs.run_store import SHIPPED

ROOT = Path(__file__).parents[3]


def oracle(model: Model, task: sih.Task) -> tuple[list[float], float, float, float]:
    """Copying, selection, `way` and its error at 17 to 19 tokens seen, by loops over 128 sequences.

    The sequences' lags come from `sih.sample` with the generator of `fresh_sequences`.
    """
    seed = np.random.SeedSequence(list(b"sih.evaluate")).generate_state(1, np.uint64)
    batch = sih.sample(task, 1024, rng=torch.Generator().manual_seed(int(seed[0])))[:128]
    assert torch.equal(batch.tokens, next(fresh_sequences(task))[:128])
    P, lags, length = task.P.numpy(), task.lags, task.length
    first = max(length // 3, max(lags))
    rows = range(first, length - 1)
    attention = [layer.detach().double().numpy() for layer in model.trace(batch.tokens).attention]
    law = model.predict(batch.tokens).detach().double().numpy()
    copies = []
    for layer in attention[:-1]:
        masses = [
            np.mean([layer[b, h, i, i - o] for b in range(128) for i in rows])
            for h in range(layer.shape[1])
            for o in range(1, first + 1)
        ]
        copies.append(float(max(masses)))
    selected: list[list[float]] = [[] for _ in range(attention[-1].shape[1])]
    believed, kls = [], np.zeros((128, 3, 3))
    for b, (s, lag) in enumerate(zip(batch.tokens.tolist(), batch.lags.tolist(), strict=True)):
        log_likelihood = np.zeros(len(lags))
        for i in range(max(lags) - 1, length - 1):
            if i >= max(lags):
                log_likelihood += [math.log(P[s[i - k], s[i]]) for k in lags]
            posterior = np.exp(log_likelihood) / np.exp(log_likelihood).sum()
            if lag > 1 and i in rows:
                believed.append(posterior[lags.index(lag)])
                for head, found in enumerate(selected):
                    found.append(attention[-1][b, head, i, i - lag + 1])
            if i >= 16:
                laws = np.array([P[s[i + 1 - k]] for k in lags])
                ml = laws[int(np.argmax(log_likelihood > log_likelihood.max() - 1e-9))]
                for which, q in enumerate((law[b, i], ml, laws.mean(axis=0))):
                    kls[b, which, i - 16] = posterior @ (laws * np.log(laws / q)).sum(axis=1)
    x, y, u = kls.mean(axis=2).T
    way = (u.mean() - x.mean()) / (u.mean() - y.mean())
    residual = ((u - x) - way * (u - y)) / (u.mean() - y.mean())
    share = max(np.mean(found) for found in selected) / np.mean(believed)
    return copies, float(share), float(way), float(residual.std(ddof=1) / 128**0.5)


@pytest.mark.parametrize("model", ["standard", "disentangled"])
def test_a_checkpoint_is_what_loops_find(model: str, tmp_path: Path) -> None:
    config = LONG.replace(model=model, heads=(1, 2, 2), lags=(1, 2, 4), states=4)
    run = make_kept(tmp_path / "run", config)
    found = formation(run)
    assert [each.step for each in found.checkpoints] == list(STEPS)
    for each in found.checkpoints:
        copies, selected, way, error = oracle(run.model_at(each.step), run.task)
        assert each.copies == pytest.approx(copies, rel=1e-6)
        assert each.selected == pytest.approx(selected, rel=1e-6)
        assert list(each.ways) == ["17-19"]
        assert each.ways["17-19"].pair() == pytest.approx((way, error), rel=1e-5)


def test_a_circuit_written_by_hand_is_found_at_the_step_where_it_is(tmp_path: Path) -> None:
    found = formation(with_circuit(tmp_path / "run", (16, 24)))
    assert (found.selective, found.circuit) == (16, 16)
    assert found.checkpoints[1].selected > 0.9
    assert found.checkpoints[2].ways["17-19"].mean > 0.9
    none = formation(make_kept(tmp_path / "none"))
    assert (none.copying, none.selective, none.circuit) == (None, None, None)


def test_a_finished_runs_end_is_measured_too(tmp_path: Path) -> None:
    run = make_kept(tmp_path / "run", keep_every=10)
    assert run.kept == (10, 20)
    assert [each.step for each in formation(run).checkpoints] == [10, 20, 24]
    half = make_kept(tmp_path / "half", keep_every=10, stop_after=21)
    assert [each.step for each in formation(half).checkpoints] == [10, 20]


def test_it_is_computed_once_where_it_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_kept(tmp_path / "run")
    before = formation(run)
    assert not (run.folder / FORMATION).exists()
    found = keep_formation(run)
    assert repr(found.checkpoints) == repr(before.checkpoints)
    kept = (run.folder / FORMATION).read_bytes()

    def never(run: sih.Run) -> None:
        raise AssertionError

    monkeypatch.setattr("sih.attention.circuit_formation.follow", never)
    again = sih.open_run(run.folder)
    assert repr(keep_formation(again)) == repr(formation(again.folder)) == repr(found)
    assert (run.folder / FORMATION).read_bytes() == kept


@pytest.mark.parametrize(
    ("name", "steps"),
    [("paper-1.2.3-length32", (2500, 12500, 12500)), ("paper-1.2.3", (2500, 7500, 10000))],
)
def test_what_docs_training_says_of_plain_runs(
    name: str, steps: tuple[int, int, int], tmp_path: Path
) -> None:
    kept = tmp_path / "run" / "kept"
    shutil.copytree(SHIPPED / name, tmp_path / "run")
    kept.mkdir()
    for step in {steps[0], *(step + back for step in steps[1:] for back in (-2500, 0))}:
        file = f"step-{step:06d}.safetensors"
        shutil.copy(ROOT / "unfinished" / f"{name}-kept" / file, kept / file)
    found = formation(tmp_path / "run")
    assert (found.copying, found.selective, found.circuit) == steps


def test_runs_that_show_no_formation_are_refused_in_a_line(tmp_path: Path) -> None:
    make(tmp_path / "none")
    make_kept(tmp_path / "short", SHORT.replace(length=17))
    assert list(
        follow(make_kept(tmp_path / "long", SHORT.replace(length=18))).checkpoints[0].ways
    ) == ["17-17"]
    make_kept(tmp_path / "fresh", LONG.replace(fresh=True))
    make_kept(tmp_path / "one", LONG.replace(lags=(1,)))
    for name, message in {
        "none": "none kept no weights along the way; `sih train --keep-every N` keeps them",
        "short": "short has length 17; a formation needs length 18 or more",
        "fresh": "fresh: a formation is read on a task of one matrix and one lag a sequence, not on FreshTask",
        "one": "signs of a circuit need .* a true lag above 1",
    }.items():
        with pytest.raises(ValueError, match=message) as error:
            follow(sih.open_run(tmp_path / name))
        assert "\n" not in str(error.value)
