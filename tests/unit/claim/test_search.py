"""A search depends on its config and the round's number alone, and goes on where it stopped."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import sih
from sih.claim.exact import claim_table
from sih.claim.falsifier import Descents, SearchedClaim
from sih.claim.search import SearchConfig, SearchState, Worst, rounds

SMALL = SearchConfig(states=(3, 4), sizes=(3,), max_lag=5, starts=4, steps=4)


def run(config: SearchConfig, state: SearchState, count: int) -> SearchState:
    for num_states, found in itertools.islice(rounds(config, state.rounds), count):
        state = state.after(num_states, found)
    return state


def test_stopped_and_resumed_is_the_same(tmp_path: Path) -> None:
    whole = run(SMALL, SearchState(SMALL), 4)
    run(SMALL, SearchState(SMALL), 1).save(tmp_path)
    resumed = run(SMALL, SearchState.load(tmp_path), 3)
    assert resumed == whole
    assert whole.rounds == 4
    assert whole.descents == {"3 states, 3 lags": 8, "4 states, 3 lags": 8}


def test_the_worst_file_is_the_worst_case(tmp_path: Path) -> None:
    state = run(SMALL, SearchState(SMALL), 2)
    state.save(tmp_path)
    worst = state.least
    assert worst is not None
    assert worst.ratio == min(w.ratio for w in state.worst.values())
    table = claim_table(sih.load_transition_matrix(tmp_path / "worst.csv"), worst.lags)
    k, r = worst.lags.index(worst.true_lag), worst.lags.index(worst.rival)
    assert table.gaps[k, r].item() == pytest.approx(worst.gap, abs=1e-11)


def test_false_statements_are_violated() -> None:
    wrong = replace(SMALL, statement="wrong-lag")
    assert run(wrong, SearchState(wrong), 2).violations > 0


@pytest.mark.parametrize("family", ["reversible", "symmetric"])
def test_false_statements_are_violated_in_each_family(family: str) -> None:
    wrong = replace(
        SMALL, statement="wrong-lag", family=family, begin=("rotation", "tree", "blocks")
    )
    assert run(wrong, SearchState(wrong), 6).violations > 0


def test_given_lags_are_the_only_ones() -> None:
    config = SearchConfig(states=(3,), lags=(2, 3, 7), starts=2, steps=1)
    assert {found.claim.lags for _, found in itertools.islice(rounds(config), 3)} == {(2, 3, 7)}


def test_true_lags_vary() -> None:
    config = SearchConfig(states=(2,), lags=(1, 2, 3), starts=1, steps=1)
    assert {found.claim.true_lag for _, found in itertools.islice(rounds(config), 25)} == {1, 2, 3}


def test_open_pairs_only() -> None:
    """Proven rivals are left out, and so are lag sets without an open pair; more is proven of reversible chains."""
    config = SearchConfig(states=(3, 4), sizes=(3,), max_lag=5, starts=1, steps=1, open_only=True)
    for num_states, found in itertools.islice(rounds(config), 12):
        status = sih.claim_status(found.claim.lags, states=num_states)
        assert found.claim.rivals
        assert {status[found.claim.true_lag, r] for r in found.claim.rivals} == {"open"}
    lags = SearchConfig(states=(4,), lags=(1, 2, 3), starts=1, steps=1, open_only=True)
    assert next(rounds(lags))[1].claim.rivals == (3,)
    with pytest.raises(ValueError, match="no pair of lags"):
        replace(lags, states=(3,))
    with pytest.raises(ValueError, match="no pair of lags"):
        replace(lags, family="reversible")


def test_families_and_starts_take_turns() -> None:
    config = replace(SMALL, family="symmetric", begin=("tree", "blocks", "rotation"))
    for _, found in itertools.islice(rounds(config), 6):
        torch.testing.assert_close(found.P, found.P.mT)
    first = [
        found.P
        for _, found in itertools.islice(rounds(replace(SMALL, begin=("random", "tree"))), 4)
    ]
    plain = [found.P for _, found in itertools.islice(rounds(SMALL), 4)]
    assert [torch.equal(a, b) for a, b in zip(first, plain, strict=True)] == [
        True,
        True,
        False,
        False,
    ]


def test_a_search_written_before_families(tmp_path: Path) -> None:
    """Its settings have fewer words and mean what they meant."""
    run(SMALL, SearchState(SMALL), 1).save(tmp_path)
    path = tmp_path / "search.json"
    value = json.loads(path.read_text())
    for word in ("open_only", "family", "begin"):
        del value["config"][word]
    path.write_text(json.dumps(value))
    assert SearchState.load(tmp_path).config == SMALL


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "search.json").write_text(json.dumps({"rounds": 3}))
    with pytest.raises(ValueError, match="not the state of a search"):
        SearchState.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"states": (1,)}, "2 or more"),
        ({"sizes": (3, 20)}, "from 2 to max_lag=12"),
        ({"starts": 0}, "at least 1"),
        ({"statement": "anything"}, "claim, wrong-lag, non-stationary; got 'anything'"),
        ({"lags": (3, 1)}, "increasing"),
        ({"family": "other"}, "any, reversible, symmetric; got 'other'"),
        ({"begin": ("random", "other")}, "random, rotation, tree, blocks"),
        ({"begin": ()}, "one or more of"),
        ({"open_only": True, "statement": "wrong-lag"}, "leave out the statement"),
    ],
)
def test_bad_config(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SearchConfig(**change)  # type: ignore[arg-type]


def test_what_a_round_adds() -> None:
    """The ratios just above and below 1 / (number of lags), and gaps just above and below 0."""
    claim = SearchedClaim((1, 2, 4), 2)
    P = torch.full((4, 3, 3), 1 / 3, dtype=torch.float64)
    P[0] = torch.eye(3).roll(1, 0)
    ratio = torch.tensor([1 / 3 - 1e-3, 1 / 3 - 1e-8, 1 / 3 - 1e-10, 0.6], dtype=torch.float64)
    gap = torch.tensor([-0.3, -1e-12, 0.0, 0.2], dtype=torch.float64)
    found = Descents(claim, P, P[:, 0], torch.tensor([4, 1, 1, 1]), gap, ratio, error=1e-11)
    once = SearchState(SMALL).after(3, found)
    assert (once.rounds, once.violations) == (1, 1)
    assert once.below == {"3 states, 3 lags": 2}
    assert once.descents == {"3 states, 3 lags": 4}
    assert once.least == Worst(3, 3, 1 / 3 - 1e-3, -0.3, (1, 2, 4), 2, 4, P[0].tolist())
    better = once.after(3, replace(found, ratio=ratio + 0.1))
    assert (better.rounds, better.violations, better.least) == (2, 2, once.least)
    assert better.below == {"3 states, 3 lags": 2}
    assert better.descents == {"3 states, 3 lags": 8}
