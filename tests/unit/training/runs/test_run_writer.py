from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from support.small_runs import SHORT, WORDS, make

import sih
from sih.base.files import read_tensors, tensor_bytes
from sih.cli import main
from sih.models.fast.threads import limited_threads
from sih.training.config import TrainConfig
from sih.training.config_file import to_version_1
from sih.training.runs.run import Run
from sih.training.runs.run_store import open_run
from sih.training.runs.run_writer import RunWriter
from sih.training.trainer import DivergedError, Trainer

TABLES = SHORT.replace(
    model="disentangled",
    init="harmonic",
    max_period=3,
    held=6,
    shorter=((10, 8),),
    stored="float16",
)

DISENTANGLED = SHORT.replace(model="disentangled")
STARTS = (
    *(SHORT.replace(init=init, target="distribution") for init in ("gpt2", "embed")),
    *(DISENTANGLED.replace(init=init, target="distribution") for init in ("small", "factors")),
)


@pytest.mark.parametrize(
    ("config", "stop"),
    [
        *((SHORT, stop) for stop in (0, 1, 8, 13, 23)),
        *((TABLES, stop) for stop in (0, 5, 17)),
        *((config, stop) for config in STARTS for stop in (0, 11)),
    ],
)
def test_stopped_anywhere_and_started_again_the_bytes_are_the_same(
    config: TrainConfig, stop: int, tmp_path: Path
) -> None:
    make(tmp_path / "whole", config)
    make(tmp_path / "stopped", config, stop_after=stop)
    assert not Run(tmp_path / "stopped").finished
    assert open_run(tmp_path / "stopped").model.config == Trainer(config).model.config
    with open(tmp_path / "stopped" / "metrics.jsonl", "ab") as file:
        file.write(b'{"step": 23, "lo')  # what a killed process wrote after the checkpoint
    (tmp_path / "stopped" / ".weights.safetensors.0123abcd.part").write_bytes(b"half")
    make(tmp_path / "stopped", config)
    for name in ("config.json", "metrics.jsonl", "weights.safetensors"):
        assert (tmp_path / "stopped" / name).read_bytes() == (
            tmp_path / "whole" / name
        ).read_bytes()
    assert len(list((tmp_path / "stopped").iterdir())) == 5


def test_core_seconds_go_on_with_the_run_and_are_not_made_up_for_one_that_began_without(
    tmp_path: Path,
) -> None:
    place, burnt = tmp_path / "run" / "environment.json", 0.2
    writer = RunWriter(SHORT, tmp_path / "run", threads=1)
    for step in writer:
        if step.step == 1:
            until = time.process_time() + burnt
            while time.process_time() < until:
                pass
            time.sleep(0.3)  # by the clock, not of a core
            writer.save()
            break
    first = Run(tmp_path / "run").environment
    assert burnt - 0.05 <= first["core_seconds"] <= first["seconds"] - 0.2
    make(tmp_path / "run", stop_after=9)
    second = Run(tmp_path / "run").environment
    assert second["core_seconds"] >= first["core_seconds"]
    place.write_text(
        json.dumps({key: value for key, value in second.items() if key != "core_seconds"})
    )
    make(tmp_path / "run")
    last = Run(tmp_path / "run").environment
    assert "core_seconds" not in last
    assert last["seconds"] >= second["seconds"]


def test_stopped_before_the_first_checkpoint(tmp_path: Path) -> None:
    RunWriter(SHORT, tmp_path / "run", threads=1)  # writes the configuration and is gone
    make(tmp_path / "run")
    assert Run(tmp_path / "run").finished


def test_killed_at_the_first_write(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".config.json.0123abcd.part").write_text("{")
    make(tmp_path / "run")
    assert Run(tmp_path / "run").finished
    assert not list((tmp_path / "run").glob(".*"))


@pytest.mark.parametrize("damage", ["empty", "truncated", "one bit"])
def test_damaged_weights_are_not_believed_and_the_checkpoint_is_kept(
    damage: str, tmp_path: Path
) -> None:
    make(tmp_path / "whole")
    make(tmp_path / "run", stop_after=9)
    whole = (tmp_path / "whole" / "weights.safetensors").read_bytes()
    flipped = whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:]
    half = {"empty": b"", "truncated": whole[:-9], "one bit": flipped}[damage]
    (tmp_path / "run" / "weights.safetensors").write_bytes(half)
    shutil.copy(tmp_path / "whole" / "weights.sha256", tmp_path / "run")
    if damage == "one bit":
        with pytest.raises(ValueError, match=r"weights\.safetensors is damaged.*checksum"):
            make(tmp_path / "run")
        assert (tmp_path / "run" / "checkpoint.safetensors").exists()
        (tmp_path / "run" / "weights.safetensors").unlink()
    assert not Run(tmp_path / "run").finished
    make(tmp_path / "run")
    assert (tmp_path / "run" / "weights.safetensors").read_bytes() == whole


def test_damaged_weights_without_a_checkpoint_are_named(tmp_path: Path) -> None:
    make(tmp_path / "run")
    (tmp_path / "run" / "weights.safetensors").write_bytes(b"")
    with pytest.raises(
        ValueError, match=r"weights\.safetensors is damaged; remove it to train anew"
    ):
        make(tmp_path / "run")


@pytest.mark.parametrize("place", [0.2, 0.5, 0.9, 0.999])
def test_a_bit_that_flips_in_a_checkpoint_is_noticed(place: float, tmp_path: Path) -> None:
    make(tmp_path / "run", stop_after=9)
    path = tmp_path / "run" / "checkpoint.safetensors"
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 16
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors is damaged"):
        make(tmp_path / "run")


def test_a_checkpoint_from_before_there_were_checksums_goes_on(tmp_path: Path) -> None:
    make(tmp_path / "whole")
    make(tmp_path / "run", stop_after=9)
    path = tmp_path / "run" / "checkpoint.safetensors"
    state, note = read_tensors(path)
    path.write_bytes(
        tensor_bytes(state, {"run": re.sub(', "sha256": "[0-9a-f]+"', "", note["run"])})
    )
    make(tmp_path / "run")
    for name in ("metrics.jsonl", "weights.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_the_number_of_threads_of_a_run_is_kept_and_put_back(tmp_path: Path) -> None:
    make(tmp_path / "run", stop_after=3)
    with limited_threads(2):
        again = RunWriter(SHORT, tmp_path / "run", threads=2)
        assert again.environment["threads"] == 1
        assert {torch.get_num_threads() for _ in again} == {1}
        assert torch.get_num_threads() == 2


UNFINISHED = Path(__file__).parents[3] / "golden" / "unfinished_runs"


@pytest.mark.parametrize("name", ["standard", "disentangled"])
def test_a_run_begun_in_the_form_of_before_goes_on(name: str, tmp_path: Path) -> None:
    """Its first steps were made elsewhere, with other last digits, and by those Adam moves weights that do not matter.

    So laws are compared. With Adam's averages lost they would differ by .02 and .05.
    """
    shutil.copytree(UNFINISHED / name, tmp_path / "old")
    begun = Run(tmp_path / "old")
    assert (begun.config.recipe.name, begun.metrics[-1]["step"]) == ("harmonic", 10)
    make(tmp_path / "old", begun.config)
    make(tmp_path / "new", begun.config)
    ours, theirs = Run(tmp_path / "new"), Run(tmp_path / "old")
    assert theirs.finished
    assert (tmp_path / "old" / "config.json").read_bytes() == (
        UNFINISHED / name / "config.json"
    ).read_bytes()
    tokens = sih.sample(begun.task, 64, rng=0).tokens
    torch.testing.assert_close(
        ours.model.predict(tokens), theirs.model.predict(tokens), rtol=0, atol=1e-4
    )
    for line, other_line in zip(ours.metrics, Run(tmp_path / "old").metrics, strict=True):
        assert line["step"] == other_line["step"]
        if "loss" in line:
            assert line["loss"] == pytest.approx(other_line["loss"], rel=1e-3)
    kind = ("torch", "processor", "path")
    if [ours.environment[key] for key in kind] == [theirs.environment[key] for key in kind]:
        assert (
            ours.metrics == theirs.metrics
        )  # in the file, means of before count the last position too
        assert (tmp_path / "old" / "weights.safetensors").read_bytes() == (
            tmp_path / "new" / "weights.safetensors"
        ).read_bytes()


@pytest.mark.parametrize("config", [SHORT, TABLES])
def test_a_configuration_in_the_form_of_before_changes_no_byte(
    config: TrainConfig, tmp_path: Path
) -> None:
    make(tmp_path / "new", config)
    make(tmp_path / "old", config, stop_after=9)
    (tmp_path / "old" / "config.json").write_text(json.dumps(to_version_1(config)))
    make(tmp_path / "old", config)
    for file in ("metrics.jsonl", "weights.safetensors"):
        assert (tmp_path / "old" / file).read_bytes() == (tmp_path / "new" / file).read_bytes()


def test_another_runs_folder_and_foreign_folders_are_left_alone(tmp_path: Path) -> None:
    make(tmp_path / "run", stop_after=2)
    with pytest.raises(ValueError, match="another run: seed is 0 there and 1 here"):
        RunWriter(SHORT.replace(seed=1), tmp_path / "run")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    with pytest.raises(ValueError, match="not empty and holds no run"):
        RunWriter(SHORT, tmp_path / "mine")
    with pytest.raises(ValueError, match="not empty and holds no run"):
        RunWriter(SHORT, tmp_path / "mine" / "thesis.txt")
    with pytest.raises(ValueError, match="no run 'nowhere'"):
        open_run("nowhere")
    with pytest.raises(ValueError, match=r"has no config\.json"):
        open_run(tmp_path / "mine")


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    first = iter(RunWriter(SHORT, tmp_path / "run", threads=1))
    next(first)
    with pytest.raises(ValueError, match="being trained by another process"):
        next(iter(RunWriter(SHORT, tmp_path / "run", threads=1)))
    assert sum(1 for _ in first) == 24


def test_damage_is_named(tmp_path: Path) -> None:
    make(tmp_path / "run", stop_after=9)
    path = tmp_path / "run" / "checkpoint.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors is damaged"):
        make(tmp_path / "run")
    path.write_bytes(whole)
    (tmp_path / "run" / "metrics.jsonl").write_text("")
    with pytest.raises(ValueError, match="shorter than when the checkpoint was made"):
        make(tmp_path / "run")
    (tmp_path / "run" / "config.json").write_text("[]")
    with pytest.raises(ValueError, match="no run's configuration"):
        open_run(tmp_path / "run")


def test_divergence_keeps_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = make(tmp_path / "run", stop_after=5)
    again = RunWriter(SHORT, tmp_path / "run", threads=1)
    steps = iter(again)
    next(steps)
    good = (tmp_path / "run" / "checkpoint.safetensors").read_bytes()
    again.trainer.model.get_parameter("readout").data.fill_(math.nan)
    with pytest.raises(DivergedError):
        next(steps)
    assert (tmp_path / "run" / "checkpoint.safetensors").read_bytes() == good
    assert writer.trainer.step == 5
    code = main([*WORDS, str(tmp_path / "wild"), "--learning-rate", "1e30"])
    err = capsys.readouterr().err
    assert (code, err.count("\n")) == (1, 1)
    assert "the loss became" in err
    assert (tmp_path / "wild" / "checkpoint.safetensors").exists()


def test_a_full_disk_is_an_error_and_loses_nothing(tmp_path: Path) -> None:
    """The largest file the process may write stands in for the disk."""
    make(tmp_path / "run", stop_after=5)
    good = (tmp_path / "run" / "checkpoint.safetensors").read_bytes()
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); "
        "from sih.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-B", "-c", limited, *WORDS, str(tmp_path / "run")]
    found = subprocess.run(
        words, capture_output=True, text=True, env=dict(os.environ), timeout=120, check=False
    )
    assert found.returncode == 2
    assert "cannot write to" in found.stderr
    assert (tmp_path / "run" / "checkpoint.safetensors").read_bytes() == good
    make(tmp_path / "run")
    assert Run(tmp_path / "run").finished


@pytest.mark.parametrize(
    ("begun", "steps", "stop"), [(24, 36, 13), (36, 24, 13), (36, 24, 24), (36, 29, 23)]
)
def test_an_unfinished_run_goes_on_with_another_number_of_steps(
    begun: int, steps: int, stop: int, tmp_path: Path
) -> None:
    make(tmp_path / "whole", SHORT.replace(steps=steps))
    make(tmp_path / "changed", SHORT.replace(steps=begun), stop_after=stop)
    make(tmp_path / "changed", SHORT.replace(steps=steps))
    for name in ("config.json", "metrics.jsonl", "weights.safetensors"):
        assert (tmp_path / "changed" / name).read_bytes() == (
            tmp_path / "whole" / name
        ).read_bytes()


def test_other_steps_are_refused_where_they_would_change_what_is_done(tmp_path: Path) -> None:
    falling = SHORT.replace(schedule="cosine")
    for name, config, stop, steps in (
        ("late", SHORT, 17, 12),
        ("falls", falling, 3, 30),
        ("done", SHORT, None, 30),
    ):
        make(tmp_path / name, config, stop_after=stop)
        before = {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        with pytest.raises(ValueError, match=r"already|steps is 24 there and 30 here"):
            RunWriter(config.replace(steps=steps), tmp_path / name)
        assert {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} == before


def test_weights_are_kept_along_the_way(tmp_path: Path) -> None:
    writer = RunWriter(SHORT, tmp_path / "run", threads=1, keep_every=10)
    seen = {step.step: step.model.state_dict()["readout"].clone() for step in writer}
    run = Run(tmp_path / "run")
    assert run.kept == (10, 20)
    torch.testing.assert_close(
        run.model_at(20).state_dict()["readout"], seen[20], rtol=1e-3, atol=1e-5
    )
    with pytest.raises(ValueError, match=r"kept no weights at step 5; it has \[10, 20\]"):
        run.model_at(5)
    with pytest.raises(ValueError, match="keep_every"):
        RunWriter(SHORT, tmp_path / "other", keep_every=0)


def test_a_new_run_takes_the_path_it_is_given(tmp_path: Path) -> None:
    make(tmp_path / "run", stop_after=3)
    assert RunWriter(SHORT, tmp_path / "new", path="plain").environment["path"] == "plain"
    begun = Run(tmp_path / "run").environment["path"]
    assert RunWriter(SHORT, tmp_path / "run", path="plain").environment["path"] == begun


@pytest.mark.parametrize("optimiser", ["adam", "soap"])
def test_every_optimiser_resumes_to_the_same_bytes(optimiser: str, tmp_path: Path) -> None:
    config = SHORT.replace(optimiser=optimiser)
    make(tmp_path / "whole", config)
    make(tmp_path / "stopped", config, stop_after=13)
    make(tmp_path / "stopped", config)
    for name in ("config.json", "metrics.jsonl", "weights.safetensors"):
        assert (tmp_path / "stopped" / name).read_bytes() == (
            tmp_path / "whole" / name
        ).read_bytes()


def test_a_run_begins_where_there_is_room_for_two_checkpoints_and_goes_on_where_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "run", stop_after=0)
    state, _ = read_tensors(tmp_path / "run" / "checkpoint.safetensors")
    size = sum(value.numel() * value.element_size() for value in state.values())
    for folder, times in (("new", 2), ("run", 1)):
        for missing in (1, 0):
            free = (0, 0, times * size - missing)
            monkeypatch.setattr(
                shutil, "disk_usage", lambda _, free=free: shutil._ntuple_diskusage(*free)
            )
            with (
                pytest.raises(ValueError, match="nearly full")
                if missing
                else contextlib.nullcontext()
            ):
                next(iter(RunWriter(SHORT, tmp_path / folder, threads=1)))
