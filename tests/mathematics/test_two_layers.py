"""Theorem R4: two attention-only layers with relative positions are not Bayes, step by step."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
import sympy
from mathematics.relative_kind import Array, Lags, RelativeKind, log_of, softmax

pytestmark = pytest.mark.slow

Q = Fraction
A, B = 0, 1
P = np.array([[0.8, 0.2], [0.35, 0.65]])
CHI = math.log(P[A, A] * P[B, B] / (P[A, B] * P[B, A]))
REACH = 4


def words(lags: Lags, k: int) -> dict[int, list[int]]:
    """Return the two words of a slot, by its bit: two letters b, further apart than all lags or k."""
    last = max(lags)
    return {bit: [B if n in (0, far) else A for n in range(last + 2)] for bit, far in
            ((0, last + 1), (1, k))}  # fmt: skip


def sequence(bits: tuple[int, ...], lags: Lags, k: int) -> list[int]:
    """Return letters a, the slots with a gap after each, and an end with b as candidate of lag k."""
    last = max(lags)
    gap = max(REACH, last)
    two = words(lags, k)
    end = [B if n == gap - k else A for n in range(gap)]
    slots = [letter for bit in bits for letter in two[bit] + [A] * gap]
    return [A] * (2 * last + 2) + slots + end


def log_likelihoods(tokens: Array, lags: Lags) -> Array:
    last, time = max(lags), tokens.shape[1]
    steps = [log_of(P)[tokens[:, last - k : time - k], tokens[:, last:]] for k in lags]
    return np.stack([x.sum(axis=1) for x in steps], axis=-1)


LAGS: list[Lags] = [(1, 2), (1, 2, 3), (1, 3, 4), (2, 5)]


@pytest.mark.parametrize("lags", LAGS)
def test_a_slot_adds_chi_to_one_lag(lags: Lags) -> None:
    """Both words have the same letters; each slot B adds chi to the evidence of lag k alone."""
    for n, k in enumerate(lags):
        two = words(lags, k)
        assert sorted(two[0]) == sorted(two[1])
        assert len(two[0]) == len(two[1]) == max(lags) + 2
        cube = list(product((0, 1), repeat=4))
        evidence = log_likelihoods(np.array([sequence(t, lags, k) for t in cube]), lags)
        counts = np.array([sum(t) for t in cube])
        own = np.arange(len(lags)) == n
        assert evidence - evidence[0] == pytest.approx(CHI * counts[:, None] * own, abs=1e-10)


@pytest.mark.parametrize("lags", LAGS)
def test_the_length_is_the_printed_one(lags: Lags) -> None:
    """Slots, letters before the first and the end fit in (n + 2) slots' length."""
    for heads in (1, 2, 5):
        slots = 2 * heads + 1
        made = len(sequence((0,) * slots, lags, lags[0]))
        assert made <= (2 * heads + 3) * (max(lags) + 2 + max(REACH, max(lags)))


def random_model(rng: np.random.Generator, heads: tuple[int, ...], size: float) -> RelativeKind:
    model = RelativeKind(2, REACH, heads)
    for layer, count in enumerate(heads, start=1):
        before = model.blocks(layer - 1)
        for h, query, key in product(range(1, count + 1), before, (*before, "offset")):
            block = model.block(f"{layer}.{h}", query, key)
            block[:] = size * rng.normal(size=block.shape)
    for name in model.blocks(len(heads)):
        model.read(name)[:] = rng.normal(size=model.read(name).shape)
    return model


def last_row_sums(model: RelativeKind, tokens: Array) -> tuple[Array, Array]:
    """Return denominators (head, sequence) and numerators of the second layer's last row."""
    stream = model.run(tokens).stream
    time = tokens.shape[1] + 1
    bucket = np.clip(np.arange(time)[:, None] - np.arange(time), 0, REACH)
    below, sums = [], []
    for h in range(1, model.heads[1] + 1):
        grown = np.exp(model.score(f"2.{h}", stream, bucket)[:, -1])
        below.append(grown.sum(axis=1))
        for name in model.blocks(1):
            sums.extend((grown[:, :, None] * stream[name]).sum(axis=1).T)
    return np.array(below), np.array(sums)


@pytest.mark.parametrize("heads", [(1, 1), (3, 2), (2, 3)])
def test_numerators_and_denominators_are_affine_in_the_bits(heads: tuple[int, int]) -> None:
    """Parts (i) and (ii), on random models: nothing of a slot depends on another slot's bit."""
    lags = (1, 2)
    cube = np.array(list(product((0, 1), repeat=5)))
    tokens = np.array([sequence(tuple(t), lags, 1) for t in cube])
    design = np.column_stack([np.ones(len(cube)), cube])
    for seed in range(4):
        model = random_model(np.random.default_rng(seed), heads, 0.6)
        below, sums = last_row_sums(model, tokens)
        assert below.min() > 0
        for values in (*below, *sums):
            fit, *_ = np.linalg.lstsq(design, values, rcond=None)
            assert abs(values - design @ fit).max() <= 1e-12 * max(1.0, abs(values).max())


def test_other_letter_counts_would_break_it() -> None:
    """With a word of three letters b in place of A the sums are no longer affine."""
    lags = (1, 2)
    cube = np.array(list(product((0, 1), repeat=4)))
    design = np.column_stack([np.ones(len(cube)), cube])
    pair = (words(lags, 1)[0], [B, B, A, B])
    slots = [[letter for bit in t for letter in pair[bit] + [A] * REACH] for t in cube.tolist()]
    tokens = np.array([[A] * 6 + letters for letters in slots])
    below, _ = last_row_sums(random_model(np.random.default_rng(0), (1, 1), 0.6), tokens)
    fit, *_ = np.linalg.lstsq(design, below[0], rcond=None)
    assert abs(below[0] - design @ fit).max() > 1e-6 * abs(below[0]).max()


@pytest.mark.parametrize(("slots", "degree"), [(4, 1), (5, 2), (6, 3), (6, 6)])
def test_the_mean_over_a_count_is_a_polynomial(slots: int, degree: int) -> None:
    """Part (iii): a monomial's mean over the points with s ones, in fractions."""
    for s in range(slots + 1):
        points = [t for t in product((0, 1), repeat=slots) if sum(t) == s]
        mean = Q(sum(all(t[:degree]) for t in points), len(points))
        falling = math.prod(Q(s - j, slots - j) for j in range(degree))
        assert mean == falling


@pytest.mark.parametrize("base", [Q(2), Q(1, 3), Q(7, 5)])
@pytest.mark.parametrize("heads", [1, 2, 3, 4])
def test_no_sum_of_two_exponentials_vanishes_at_that_many_points(heads: int, base: Q) -> None:
    """Part (iv): p(s) base^s + q(s) of degrees H vanishes at 2H + 2 points only if it is 0."""
    for points in (range(2 * heads + 2), range(0, 4 * heads + 4, 2)):
        rows = [
            [x * power for x in (base**s, 1) for power in (Q(s) ** d for d in range(heads + 1))]
            for s in points
        ]
        matrix = sympy.Matrix([[sympy.Rational(x.numerator, x.denominator) for x in map(Q, row)]
                               for row in rows])  # fmt: skip
        assert matrix.det() != 0
        assert matrix[: 2 * heads + 1, :].rank() == 2 * heads + 1  # with one point less it can


def logistic(slots: int, step: float) -> Array:
    s = np.arange(slots + 1)
    return np.asarray(1 / (1 + np.exp(-step * (s - slots / 2 - 0.3))))


def bound_on(points: Array, values: Array, heads: int) -> float:
    """Return the least error of N / Q on 2H + 2 points, by equioscillation; 0 if none is found."""
    scaled = 2 * (points - points[0]) / (points[-1] - points[0]) - 1
    V = np.polynomial.chebyshev.chebvander(scaled, heads)
    rest = np.linalg.svd(V.T)[2][heads + 1 :]
    signs = (-1.0) ** np.arange(len(points))
    levels, vectors = np.linalg.eig(
        np.linalg.solve(rest @ (signs[:, None] * V), rest @ (values[:, None] * V))
    )
    found = 0.0
    for level, q in zip(levels, vectors.T, strict=True):
        below = V @ q.real
        if abs(level.imag) < 1e-12 and (below * np.sign(below[0])).min() > 0:
            found = max(found, abs(level.real))
    return found


@pytest.mark.parametrize("heads", [1, 2])
def test_random_models_err_by_more_than_the_bound(heads: int) -> None:
    """The output of the last row against Bayes, over all sequences of the family."""
    lags, k, slots = (1, 2), 1, 7
    cube = np.array(list(product((0, 1), repeat=slots)))
    tokens = np.array([sequence(tuple(t), lags, k) for t in cube])
    weights = softmax(log_likelihoods(tokens, lags))
    law = weights @ P[[B, A]]
    of_lag = np.array([weights[cube.sum(axis=1) == s, 0][0] for s in range(slots + 1)])
    points = np.unique(np.linspace(0, slots, 2 * heads + 2).round().astype(int))
    bound = abs(P[B, 0] - P[A, 0]) * bound_on(points, of_lag[points], heads)
    assert bound > 1e-5
    for seed in range(3):
        model = random_model(np.random.default_rng(seed), (2, heads), 0.4)
        below, _ = last_row_sums(model, tokens)
        basis = np.column_stack([np.ones(len(cube)), last_row_blocks(model, tokens)])
        fit, *_ = np.linalg.lstsq(basis, law[:, 0], rcond=None)  # the best linear readout
        error = abs(basis @ fit - law[:, 0]).max()
        assert error >= bound - 1e-12
        over = np.prod(below, axis=0)
        mean = [
            (over * (basis @ fit))[cube.sum(axis=1) == s].sum() / over[cube.sum(axis=1) == s].sum()
            for s in range(slots + 1)
        ]
        by_count = [law[cube.sum(axis=1) == s, 0][0] for s in range(slots + 1)]
        assert error >= abs(np.array(mean) - by_count).max() - 1e-12


def last_row_blocks(model: RelativeKind, tokens: Array) -> Array:
    stream = model.run(tokens).stream
    return np.concatenate([stream[name][:, -1] for name in model.blocks(2)], axis=1)


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_no_rational_function_beats_equioscillation(heads: int) -> None:
    """Random N / Q with Q > 0, and those fitted to the logistic function, err by more."""
    rng = np.random.default_rng(heads)
    slots, step = 16, 1.0
    values = logistic(slots, step)
    points = np.unique(np.linspace(0, slots, 2 * heads + 2).round().astype(int))
    bound = bound_on(points, values[points], heads)
    assert bound > 1e-6
    V = np.polynomial.chebyshev.chebvander(2 * np.arange(slots + 1) / slots - 1, heads)
    tried = 0
    for _ in range(400):
        below = V @ rng.normal(size=heads + 1)
        below *= np.sign(below[0])
        if below.min() <= 0:
            continue
        over, *_ = np.linalg.lstsq(V / below[:, None], values, rcond=None)
        assert abs(V @ over / below - values).max() >= bound - 1e-12
        tried += 1
    assert tried > 20


def test_more_heads_and_fewer_slots_lower_the_bound() -> None:
    bounds = [
        bound_on(np.linspace(0, 16, 2 * h + 2).round().astype(int), logistic(16, 1.0)[
            np.linspace(0, 16, 2 * h + 2).round().astype(int)], h)
        for h in (1, 2, 3)
    ]  # fmt: skip
    assert all(before > after > 0 for before, after in pairwise(bounds))


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_the_logits_numerator_has_that_many_terms(heads: int) -> None:
    """Degrees 2H - 2, 2H, 2H - 2: the leading terms of N'Q - NQ' cancel."""
    s, E = sympy.symbols("s E")
    a, b, c, d, chi = sympy.symbols("a b c d chi")
    over, below = (
        sum(sympy.Symbol(f"{name}{n}") * s**n for n in range(heads + 1)) for name in "pq"
    )
    turned = sympy.diff(over, s) * below - over * sympy.diff(below, s)
    numerator = turned * (a + b * E) * (c + d * E) - chi * (b * c - a * d) * E * below**2
    ratio = (a + b * E) / (c + d * E)
    slope = chi * E * sympy.diff(sympy.log(ratio), E)  # of E = e^(chi s)
    difference = sympy.together(turned / below**2 - slope)
    assert sympy.simplify(difference * below**2 * (a + b * E) * (c + d * E) - numerator) == 0
    terms = sympy.Poly(sympy.expand(numerator), E)
    degrees = [sympy.degree(terms.coeff_monomial(E**n), s) for n in range(3)]
    assert degrees == [2 * heads - 2, 2 * heads, 2 * heads - 2]
    assert sum(degrees) + 3 - 1 == 6 * heads - 2


@pytest.mark.parametrize("lags", LAGS)
def test_slopes_of_the_paper_s_estimator(lags: Lags) -> None:
    """The sum of p-tilde is affine in the number of words B; near P = 1/S lag k gains chi / K."""
    last = max(lags)
    for n, k in enumerate(lags):
        cube = list(product((0, 1), repeat=3))
        tokens = np.array([sequence(t, lags, k) for t in cube])
        counts = np.array([sum(t) for t in cube])
        for matrix, chi in ((P, None), (0.5 + 1e-4 * (P - 0.5), "small")):
            matrix = matrix / matrix.sum(axis=1, keepdims=True)
            time = tokens.shape[1]
            p = np.stack([matrix[tokens[:, last - r : time - r], tokens[:, last:]] for r in lags])
            sums = (p / p.sum(axis=0)).sum(axis=2).T
            slopes = sums[counts == 1][0] - sums[counts == 0][0]
            assert sums - sums[0] == pytest.approx(np.outer(counts, slopes), abs=1e-10)
            assert np.ptp(slopes) > 1e-6
            if chi:
                small = math.log(matrix[A, A] * matrix[B, B] / (matrix[A, B] * matrix[B, A]))
                expected = small / len(lags) * ((np.arange(len(lags)) == n) - 1 / len(lags))
                assert slopes == pytest.approx(expected, rel=1e-2)
