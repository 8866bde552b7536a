from __future__ import annotations

import dataclasses
import itertools

import pytest
from support.oracles_heads import SMALL, some_assignment

from sih.heads import LowerBoundProof, least_heads, verify_colouring, verify_lower_bound


def test_all_kinds_of_proof_occur_and_broken_ones_fail() -> None:
    kinds = {}
    for lags in ((1, 2, 4, 8), (1, 2, 5, 12), (1, 2, 7, 9, 10), (1, 4, 9)):
        proof = least_heads(lags).certificate
        kinds[proof.kind] = proof
        assert verify_lower_bound(lags, proof)
        assert not verify_lower_bound(lags, dataclasses.replace(proof, heads=proof.heads + 1))
        assert not verify_lower_bound(lags, dataclasses.replace(proof, points=proof.points[:-1]))
        assert not verify_lower_bound(
            lags, dataclasses.replace(proof, points=proof.points[:-1] * 2)
        )
        assert not verify_lower_bound((lags[0], lags[-1]), proof)
    assert set(kinds) == {"clique", "count", "exhaustion"}
    assert not verify_lower_bound((1, 2, 5, 12), dataclasses.replace(kinds["count"], largest=None))
    smaller = dataclasses.replace(kinds["count"], largest=(kinds["count"].largest or 0) - 1)
    assert not verify_lower_bound((1, 2, 5, 12), smaller)
    assert not verify_lower_bound((1, 2), LowerBoundProof("clique", 1, ()))


def test_a_wrong_colouring_is_refused() -> None:
    assert verify_colouring((1, 3), (0, 0, 1, 1))
    assert not verify_colouring((1, 3), (0, 1))
    assert not verify_colouring((1, 3), (0, 0, 1))
    assert verify_colouring((1, 3), (0, -1, -1, -1))
    assert not verify_colouring((1, 3), ())


@pytest.mark.parametrize("lags", [lags for lags in SMALL if lags[0] == 1])
def test_checker_of_exhaustion_agrees_with_brute_force(lags: tuple[int, ...]) -> None:
    for length, heads in itertools.product((5, 9), (1, 2, 3, 4)):
        proof = LowerBoundProof("exhaustion", heads + 1, tuple(range(length)))
        assert verify_lower_bound(lags, proof) == (some_assignment(lags, length, heads) is None)
