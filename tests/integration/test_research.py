"""The instruments of `research/` at tiny sizes: what they train, how they go on, and what they refuse."""

from __future__ import annotations

import csv
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from support.small_runs import SHORT, make

import sih
from research import given, plain_runs, time_to_circuit
from research.given import AUTO, Donor, Settings
from research.plain_runs import Planned, StopRule, read_plan
from sih.attention.circuit_signs import CircuitSigns, circuit_signs
from sih.base.files import read_json, write_json
from sih.base.stats import Estimate
from sih.training.presets import preset
from sih.training.runs.evaluation import digest_of_weights
from sih.training.runs.formation import Checkpoint, Formation, write_formation
from sih.training.runs.run import Run, kept_path
from sih.training.runs.run_writer import RunWriter
from sih.training.trainer import Step

ROOT = Path(__file__).parents[2]
ALWAYS, NEVER = (
    StopRule(at=8, correlation=9.0, selected=9.0),
    StopRule(at=8, correlation=0.0, selected=0.0),
)
BASE = """
[base]
lags = [1, 2]
states = 3
length = 12
heads = [1, 2]
dim = 8
qk_dim = 4
batch = 5
steps = 24
evaluate_every = 8
held_out = 7
"""


def same_bytes(one: Path, other: Path) -> None:
    for name in ("config.json", "metrics.jsonl", "weights.safetensors"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


@pytest.mark.parametrize(("rule", "steps"), [(ALWAYS, 8), (NEVER, 24)])
def test_a_run_that_is_looked_at_has_the_bytes_of_one_never_stopped(
    rule: StopRule, steps: int, tmp_path: Path
) -> None:
    planned = Planned("a", SHORT, keep_every=4, stop=rule)
    plain_runs.train_planned(planned, tmp_path)
    make(tmp_path / "whole", SHORT.replace(steps=steps))
    same_bytes(tmp_path / "a", tmp_path / "whole")
    assert Run(tmp_path / "a").kept == tuple(range(4, steps + 1, 4))
    seen = read_json(tmp_path / "a.json")
    assert seen["stopped"] == (steps == 8)
    assert seen["words"].startswith(
        "stopped at step 8 of 24" if steps == 8 else "went on at step 8 of 24"
    )
    assert (seen["step"], seen["sequences"], seen["rule"]) == (8, 512, dataclasses.asdict(rule))
    task = SHORT.task.build()
    assert isinstance(task, sih.Task)
    signs = circuit_signs(
        Run(tmp_path / "a").model_at(8), sih.sample(task, 512, rng=4321), task
    )  # in half precision
    assert seen["selected"] == pytest.approx(signs.selected, rel=1e-2)
    before = (tmp_path / "a.json").read_bytes()
    plain_runs.train_planned(planned, tmp_path)  # nothing is left to do
    assert (tmp_path / "a.json").read_bytes() == before


@pytest.mark.parametrize("rule", [ALWAYS, NEVER])
def test_killed_before_or_after_the_look_it_goes_on_to_the_same_bytes(
    rule: StopRule, tmp_path: Path
) -> None:
    planned = Planned("whole", SHORT, keep_every=4, stop=rule)
    plain_runs.train_planned(planned, tmp_path)
    for name, until in (("early", 3), ("at", 8)):
        plain_runs._train(SHORT, tmp_path / name, 4, until=until)
        plain_runs.train_planned(dataclasses.replace(planned, name=name), tmp_path)
        same_bytes(tmp_path / name, tmp_path / "whole")
        assert (tmp_path / f"{name}.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    plain_runs._train(SHORT, tmp_path / "late", 4, until=8)
    shutil.copy(tmp_path / "whole.json", tmp_path / "late.json")
    plain_runs.train_planned(dataclasses.replace(planned, name="late"), tmp_path)
    same_bytes(tmp_path / "late", tmp_path / "whole")
    for step in Run(tmp_path / "whole").kept:
        assert (
            kept_path(tmp_path / "late", step).read_bytes()
            == kept_path(tmp_path / "whole", step).read_bytes()
        )


def test_both_numbers_must_be_small_for_a_run_to_stop() -> None:
    rule, signs = StopRule(at=20000), CircuitSigns(0.05, 0.5, 0.9, (0.1, 0.1), (1, 2))
    assert rule.ends(signs)
    assert rule.ends(dataclasses.replace(signs, correlation=-0.05))
    assert not rule.ends(dataclasses.replace(signs, correlation=-0.2))
    assert not rule.ends(dataclasses.replace(signs, selected=0.7))


def test_a_plan_is_trained_in_its_order_and_not_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'{BASE}[[runs]]\nname = "a"\nseed = 3\nkeep_every = 6\n[[runs]]\nname = "b"\nsteps = 8\n'
    )
    words = [str(plan), "--out", str(tmp_path / "out")]
    assert plain_runs.main(words) == 0
    said = capsys.readouterr().out
    assert said.index("a: step 24 of 24") < said.index("b: step 8 of 8")
    make(tmp_path / "a", SHORT.replace(seed=3))
    same_bytes(tmp_path / "out" / "a", tmp_path / "a")
    assert Run(tmp_path / "out" / "a").kept == (6, 12, 18, 24)
    assert plain_runs.main(words) == 0
    assert capsys.readouterr().out == "a: finished already\nb: finished already\n"
    plan.write_text(plan.read_text().replace("seed = 3", "seed = 4"))
    assert plain_runs.main(words) == 2
    assert "holds another run, which is finished" in capsys.readouterr().err


def test_asked_to_stop_it_saves_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(f'{BASE}stop = {{at = 8, correlation = 0.0}}\n[[runs]]\nname = "a"\n')
    words = [str(plan), "--out", str(tmp_path)]

    def ask(name: str, step: Step, total: int) -> None:
        if step.step == 11:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(plain_runs, "_report", ask)
        assert plain_runs.main(words) == 130
    assert "is saved at step 11; the same command goes on" in capsys.readouterr().err
    assert plain_runs.main(words) == 0
    make(tmp_path / "whole")
    same_bytes(tmp_path / "a", tmp_path / "whole")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[base", "is no plan in TOML"),
        (BASE, r"a plan has a table \[base\] and tables \[\[runs\]\]"),
        ("[grid]\nseed = [1]", "there is no table 'grid'"),
        (f"{BASE}[[runs]]\nseed = 1", "run 1: name"),
        (
            f'{BASE}[[runs]]\nname = "../a"',
            "run 1: name is that of a folder, e.g. 'mine'; got '../a'",
        ),
        (f'{BASE}[[runs]]\nname = "a"\n[[runs]]\nname = "a"', "two runs of the name 'a'"),
        (
            f'{BASE}[[runs]]\nname = "a"\nsedd = 1',
            "run 1: a training configuration has no field 'sedd'",
        ),
        (f'{BASE}[[runs]]\nname = "a"\nstop = 3', "run 1: stop must be a table"),
        (
            f'{BASE}[[runs]]\nname = "a"\nstop = {{at = 9}}',
            "stop.at is a multiple of evaluate_every, 8; got 9",
        ),
        (f'{BASE}[[runs]]\nname = "a"\nstop = {{at = 8, when = 1}}', "run 1: .*when"),
        (
            f'{BASE}[[runs]]\nname = "a"\nstop = {{at = 8}}\nschedule = "cosine"',
            "a constant learning rate",
        ),
        (
            f'{BASE}[[runs]]\nname = "a"\nstop = {{at = 8}}\nfresh = true',
            "one matrix and one lag a sequence",
        ),
        (f'{BASE}[[runs]]\nname = "a"\nkeep_every = 0', "keep_every"),
    ],
)
def test_wrong_plans_are_refused_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        read_plan(tmp_path / "plan.toml")
    assert "\n" not in str(error.value)
    assert str(tmp_path) in str(error.value)


def test_a_run_that_passed_the_look_or_was_looked_at_by_another_rule_is_refused(
    tmp_path: Path,
) -> None:
    make(tmp_path / "a", stop_after=11)
    with pytest.raises(ValueError, match="is at step 11, past 8, where it was to be looked at"):
        plain_runs.train_planned(Planned("a", SHORT, stop=NEVER), tmp_path)
    plain_runs.train_planned(Planned("b", SHORT, stop=ALWAYS), tmp_path)
    with pytest.raises(ValueError, match="was looked at by another rule"):
        plain_runs.train_planned(Planned("b", SHORT, stop=NEVER), tmp_path)


@pytest.mark.parametrize("name", ["a", "b", "c", "e"])
def test_the_plans_can_be_read(name: str) -> None:
    from sih.training.runs.run_names import named

    for planned in read_plan(ROOT / "research" / "plans" / f"{name}.toml"):
        assert named(planned.name).replace(steps=planned.config.optimiser.steps) == planned.config


TINY = Settings(batch=3, steps=2, steps_with_last=3, donor_steps=4)
AUTO_16 = Donor(AUTO, "dirichlet", 1, 16)
PLAIN = given.DONORS["plain"]


def test_the_table_has_a_row_of_every_redrawing_and_goes_on(tmp_path: Path) -> None:
    path, whole = tmp_path / "given.csv", tmp_path / "whole.csv"
    given.fill(path, [AUTO_16], ["1", "all"], [0], TINY, tmp_path / "runs")
    given.fill(path, [AUTO_16, PLAIN], ["1", "all"], [0, 1], TINY, tmp_path / "runs")
    given.fill(whole, [AUTO_16, PLAIN], ["1", "all"], [0, 1], TINY, tmp_path / "others")
    rows, others = (list(csv.DictReader(file.read_text().splitlines())) for file in (path, whole))
    assert [list(row.values())[:7] for row in rows] == [
        [*donor.words, what, seed, steps]
        for donor in (AUTO_16, PLAIN)
        for what, seed, steps in [
            ("none", "0", "0"),
            *((what, seed, steps) for seed in "01" for what, steps in (("1", "2"), ("all", "3"))),
        ]
    ]
    drop = {"core_seconds"}
    assert [{k: v for k, v in row.items() if k not in drop} for row in rows] == [
        {k: v for k, v in row.items() if k not in drop} for row in others
    ]
    shipped = next(row for row in rows if row["donor"] == PLAIN.name)
    assert float(shipped["kl_over_ml"]) < 1
    assert float(shipped["selected"]) > 0.9
    assert float(shipped["correlation"]) < -0.8
    before = path.read_bytes()
    given.fill(path, [AUTO_16, PLAIN], ["1", "all"], [0, 1], TINY, tmp_path / "runs")
    assert path.read_bytes() == before


@pytest.mark.parametrize("redrawn", given.REDRAWN)
def test_what_is_not_drawn_anew_is_the_donors(redrawn: str) -> None:
    run = sih.open_run(PLAIN.name)
    donor, trainer = dict(run.model.named_parameters()), given.redraw(run, redrawn, 1, TINY)
    fresh = sih.Transformer(5, 32, heads=(1, 1, 1), init="uniform", rng=101)
    layers = "123" if redrawn == "all" else redrawn
    for name, weight in trainer.model.named_parameters():
        of_layer = name.startswith(tuple(f"layers.{int(layer) - 1}." for layer in layers))
        anew = of_layer or (redrawn == "all" and not name.startswith("layers."))
        assert torch.equal(weight, dict(fresh.named_parameters())[name] if anew else donor[name]), (
            name
        )
    assert trainer.config.optimiser.steps == (3 if "3" in layers else 2)
    assert trainer.config.optimiser.schedule == "constant"


def test_another_table_is_not_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "given.csv").write_text("a,b\n1,2\n")
    words = ["--out", str(tmp_path / "given.csv"), "--runs", str(tmp_path / "runs")]
    assert given.main([*words, "--donors", "plain"]) == 2
    assert (
        "given.csv is no table of this script: its columns are not donor,law"
        in capsys.readouterr().err
    )
    assert (tmp_path / "given.csv").read_text() == "a,b\n1,2\n"
    for flag, value, said in (
        ("--donors", "x", "donors must be one of"),
        ("--redrawn", "4", "redrawn must be one of"),
    ):
        assert given.main([*words, flag, value]) == 2
        assert said in capsys.readouterr().err
    assert given.main([*words, "--seeds", "-1"]) == 2
    assert given.main([*words, "--steps", "0"]) == 2


def test_it_runs_from_its_own_file_alone(tmp_path: Path) -> None:
    shutil.copy(ROOT / "research" / "given.py", tmp_path)
    words = [
        "given.py",
        "--out",
        "given.csv",
        "--runs",
        "runs",
        "--donors",
        "plain",
        "--redrawn",
        "1",
    ]
    words += ["--seeds", "0", "--steps", "1", "--batch", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "given.csv").read_text().splitlines()) == 3


def timed(folder: Path, **changes: object) -> Run:
    """A finished run with kept weights, long enough to have a formation."""
    config = SHORT.replace(length=20, **changes)
    for _ in RunWriter(config, folder, threads=1, keep_every=8):
        pass
    return Run(folder)


def test_tokens_and_time_by_a_step_against_a_loop() -> None:
    config = preset("auto", lags=(1, 2, 3), heads=(1, 3, 1), length=128, steps=600)
    dense = preset(
        "auto", lags=(1, 2, 3), heads=(1, 3, 1), length=128, steps=600, model="disentangled"
    )
    assert len(config.recipe.length_schedule or ()) == 2  # three lengths
    for step in (1, 99, 100, 101, 300, 600):
        for each, power in ((config, 1), (dense, 2)):
            tokens, done, whole = 0, 0, 0
            for n in range(600):
                length = 128
                for until, short in reversed(each.recipe.length_schedule or ()):
                    length = short if n < until else length
                tokens += each.optimiser.batch * length if n < step else 0
                done += length**power if n < step else 0
                whole += length**power
            assert time_to_circuit.tokens_by(step, each) == tokens
            assert time_to_circuit.share_by(step, each) == pytest.approx(done / whole)
    assert time_to_circuit.share_by(100, config) < 0.1
    plain = SHORT.replace(steps=24)
    assert (time_to_circuit.tokens_by(6, plain), time_to_circuit.share_by(6, plain)) == (
        6 * 5 * 12,
        0.25,
    )


def test_the_time_to_the_circuit_of_every_run_that_kept_weights(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, out = tmp_path / "runs", tmp_path / "t.csv"
    for name, seed in (("a", 0), ("b", 1)):
        timed(runs / name, seed=seed)
    make(runs / "none")
    make(runs / "half", stop_after=9)
    alone = timed(tmp_path / "alone", matrix_law="uniform", matrix_seed=3)
    environment = read_json(alone.folder / "environment.json")
    write_json(alone.folder / "environment.json", {**environment, "core_seconds": 60.0})
    ways = {"17-19": Estimate(0.95, 0.01)}
    course = (Checkpoint(8, (0.6,), 0.1, {}), Checkpoint(16, (0.1,), 0.1, ways))
    digest = digest_of_weights(alone.folder / "weights.safetensors")
    write_formation(alone.folder, Formation(course, 128), digest)
    assert time_to_circuit.main([str(runs), str(alone.folder), "--out", str(out)]) == 0
    err = capsys.readouterr().err
    assert "none kept no weights along the way" in err
    assert f"{runs / 'half'} is not finished" in err
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["run"] for row in rows] == ["a", "b", "alone"]
    assert all(Run(runs / name).formation is not None for name in "ab")
    last = rows[-1]
    what = (
        "model",
        "heads",
        "lags",
        "length",
        "law",
        "matrix",
        "seed",
        "optimiser",
        "init",
        "target",
        "batch",
        "steps",
    )
    values = [
        "standard",
        "1 2",
        "1 2",
        "20",
        "uniform",
        "3",
        "0",
        "adam",
        "uniform",
        "sampled",
        "5",
        "24",
    ]
    assert [last[name] for name in what] == values
    assert [last[f"copying{name}"] for name in ("", "_tokens", "_core_seconds")] == [
        "8",
        "800",
        "20.0",
    ]
    assert [last[f"selective{name}"] for name in ("", "_tokens", "_core_seconds")] == ["", "", ""]
    assert [last[f"circuit{name}"] for name in ("", "_tokens", "_core_seconds")] == [
        "16",
        "1600",
        "40.0",
    ]
    (alone.folder / "environment.json").unlink()
    assert time_to_circuit.main([str(alone.folder), "--out", str(out)]) == 0
    (row,) = csv.DictReader(out.read_text().splitlines())
    assert (row["circuit"], row["circuit_core_seconds"]) == ("16", "")


def test_folders_without_such_a_run_give_no_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "none")
    for folder, said in (
        (tmp_path, "there is no finished run with kept weights"),
        (tmp_path / "x", "no folder"),
    ):
        assert time_to_circuit.main([str(folder), "--out", str(tmp_path / "t.csv")]) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "t.csv").exists()
