"""The benchmark beside other packages gives each of them its best."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch

import benchmarks.__main__
import sih
from benchmarks import peers
from benchmarks.models import sequences
from benchmarks.timing import Clock


@pytest.fixture
def setting() -> peers.Setting:
    return peers.Setting((1, 2, 1), 1, sequences(8))


def test_a_device_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    assert benchmarks.__main__.main(["peers", "--device", "cuda"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("cannot compute on 'cuda': ")
    assert err.count("\n") == 1


def test_flags_go_with_one_benchmark_that_has_them(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["start", "--device", "cuda"],
        ["peers", "start", "--rounds", "1"],
        ["--device", "cuda"],
    ):
        assert benchmarks.__main__.main(words) == 2
        assert capsys.readouterr().err == "flags go with one of peers, e.g. peers --device cuda\n"


def test_both_forms_of_the_peer_are_our_model(setting: peers.Setting) -> None:
    model = sih.Transformer(peers.STATES, peers.TIME, heads=setting.heads, rng=0)
    peers.check_same_model(model, setting)
    with torch.no_grad():
        model.position.mul_(1.5)
    wrong = peers.WithSDPA(setting.heads, padded=True)
    wrong.copy_from(sih.Transformer(peers.STATES, peers.TIME, heads=setting.heads, rng=0))
    assert not torch.allclose(wrong(setting.tokens), model(setting.tokens), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("micro", [3, 8])
def test_a_step_in_micro_batches_has_the_gradient_of_the_whole(
    micro: int, setting: peers.Setting
) -> None:
    model = peers.WithSDPA(setting.heads, padded=False)
    output = model(setting.tokens)[:, :-1].flatten(0, 1)
    torch.nn.functional.cross_entropy(output, setting.tokens[:, 1:].flatten()).backward()
    whole = [weights.grad.clone() for weights in model.parameters() if weights.grad is not None]
    peers.step(model, peers.loss_of(model), setting.tokens, micro)()
    for weights, wanted in zip(model.parameters(), whole, strict=True):
        torch.testing.assert_close(weights.grad, wanted, rtol=1e-4, atol=1e-7)


def played(
    seconds: dict[tuple[bool, int], float | Exception], monkeypatch: pytest.MonkeyPatch
) -> Clock:
    """Let SDPA take the time that is given for each form and size on a clock that is played."""
    passed: list[float] = []

    def make(setting: peers.Setting, padded: bool, micro: int) -> Callable[[], object]:
        found = seconds[padded, micro]

        def call() -> None:
            if isinstance(found, Exception):
                raise found
            passed.append(found)

        return call

    monkeypatch.setitem(peers.PEERS, "SDPA", (make, (False, True)))
    return lambda: sum(passed)


FORMS = [*itertools.product((False, True), peers.MICRO)]


@pytest.mark.parametrize("fastest", FORMS)
def test_a_peer_gets_its_fastest_form_and_size(
    fastest: tuple[bool, int],
    setting: peers.Setting,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = played({form: 1.0 if form == fastest else 2.0 for form in FORMS}, monkeypatch)
    found = peers.best_of("SDPA", setting, 3, clock)
    assert found is not None
    assert found[0] == f"SDPA, {'keys padded, ' if fastest[0] else ''}{fastest[1]} at a time"
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(FORMS)
    assert [line.split(": ")[0].strip() for line in printed if line.endswith(": 1000 ms")] == [
        found[0]
    ]


def test_a_form_that_cannot_run_leaves_the_others(
    setting: peers.Setting, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    short = torch.OutOfMemoryError("out of memory\nmore")
    clock = played(
        {form: short if form[1] == 256 else float(form[1]) for form in FORMS}, monkeypatch
    )
    found = peers.best_of("SDPA", setting, 3, clock)
    assert found is not None
    assert found[0] == "SDPA, 32 at a time"
    assert (
        "      SDPA, keys padded, 256 at a time: skipped: out of memory\n"
        in capsys.readouterr().out
    )
    clock = played(dict.fromkeys(FORMS, ImportError("no module")), monkeypatch)
    assert peers.best_of("SDPA", setting, 3, clock) is None
    assert capsys.readouterr().out == "      SDPA, 32 at a time: skipped: no module\n"
    clock = played(dict.fromkeys(FORMS, short), monkeypatch)
    assert peers.best_of("SDPA", setting, 3, clock) is None


def test_a_gpus_clock_waits_for_it_and_is_no_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    monkeypatch.setattr("time.perf_counter", lambda: 7.0)
    assert peers.clock_of(torch.device("cuda"))() == 7.0
    assert waited == [torch.device("cuda")]
