r"""`two_sided(lags, length, heads)`: the best known use of second-layer heads.

The third layer reads them at query and key. If a closed form is exact, it is the result
(`mixing.py`). Otherwise weights and reads are fitted to $J F_o J = J$ by least squares
(`read_fit.py`) from seeded starts: the closed form's waves, alone or at random phases,
and noise. The newest offsets have the largest weights, $w_o \propto 0.1 + 22 e^{-o/5}$.
Every row sees them, and in late rows the posterior is so sharp that errors no longer
matter.

Unless that is near Bayes, descent on the expected loss itself follows, over fresh
matrices and their sequences (`lag_loss.py`). It starts from the fit and from other
points. These are the unmixed circuit, and heads that see one offset in every p, for
every p in reach, read by spikes there on a parabola. Where spikes are nearer than lags,
they raise the shared term of distant lags at an offset, and the parabola lowers it
again. Five lags and one head reach a period of 7 with two transitions, where the
unmixed circuit has one in 5. The best after some steps continue. The result is the best
by that loss, and never worse than the unmixed circuit.

A fit takes seconds, up to 45 with descent. It is kept in the user's cache folder, under
a digest of everything it depends on.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.errors import FieldError, check_sizes
from sih.base.files import read_json, write_json
from sih.heads import lag_loss, mixing, read_fit
from sih.heads.fewer import head_offsets
from sih.heads.mixing import angles, exact_profile, parabola_and_waves, progression
from sih.heads.profiles import Profile, centring
from sih.models.fast import compiled
from sih.models.fast.threads import limited_threads
from sih.task import check_lags

STAGES = ((12, 15, 1e-8), (4, 40, 1e-8), (1, 300, 1e-10))
"""How many of the best continue, for how many steps, with which pull."""
POLISH = (1e-2, 100, 1e-14)
"""Cost below which a fit counts as exact, and further steps and pull for it."""
DRAWS, DRAWN = 1000, 10000
"""Sequences that judge fits, and sequences for the descent."""
ROUNDS = ((3, 150), (1, 300), (1, 1500))
"""How many of the best continue, and for how many steps of descent."""
PERIODS = 16
"""Largest number of periods to start from."""
BENT, FAINT = 0.6, 0.2
"""The parabola to start from, relative to the closed form's, and the weight of offsets
between the periods."""
ENOUGH = 1.2
"""KL relative to Bayes below which descent is not tried. It gains nothing there, and
its residuals are larger."""
UNUSED = 1e-12
"""Weight of an offset that a head of the unmixed circuit leaves out."""


def two_sided(lags: Sequence[int], length: int, heads: int) -> Profile:
    """Return weights and reads of heads, the nearest known to the posterior.

    The heads are read at query and key. `residual` is the defect at each offset,
    whatever P is.

    Args:
        lags: the task's lags, increasing.
        length: tokens in a sequence.
        heads: number of second-layer heads.

    Returns:
        The profile: weights (head, offset), and reads of query and key.

    >>> float(two_sided((1, 2), length=32, heads=1).residual.max()) < 1e-10
    True
    """
    lags = check_lags(lags)
    if isinstance(heads, bool) or not isinstance(heads, int) or heads < 1:
        raise FieldError(
            "heads", f"heads is a number of second-layer heads, at least 1; got {heads!r}"
        )
    check_sizes(length=length)
    if length <= lags[-1]:
        raise FieldError(
            "length",
            f"length is a number of tokens above the largest lag, {lags[-1]}; got {length!r}",
        )
    return _two_sided(lags, length, heads)


@lru_cache(maxsize=32)
def _two_sided(lags: tuple[int, ...], length: int, heads: int) -> Profile:
    found = quick_two_sided(lags, length, heads)
    if found is None:
        found = best_fit(lags, length, heads)
        with suppress(ValueError, OSError):  # without a writable cache, every process fits again
            write_json(_kept_file(lags, length, heads), found.to_dict())
    return found


def quick_two_sided(lags: tuple[int, ...], length: int, heads: int) -> Profile | None:
    """Return the result of `two_sided` if it needs no fit, or None.

    It may be a closed form, an unmixed circuit, or an earlier fit.
    """
    closed = exact_profile(lags, length, heads)
    if closed is not None:
        return replace(closed, key=torch.zeros(closed.heads, length, dtype=torch.float64))
    if -1 not in head_offsets(lags, heads).colours:
        return unmixed_profile(lags, length, heads)
    try:
        return Profile.from_dict(read_json(_kept_file(lags, length, heads)))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


@limited_threads(1)
def best_fit(lags: tuple[int, ...], length: int, heads: int) -> Profile:
    """Return the best profile of least squares and of descent, or the unmixed one.

    Descent starts from the fit and from other points. The expected loss decides.
    """
    problem, unmixed = (
        read_fit.ReadProblem(lags, heads, importance(length - lags[-1])),
        unmixed_profile(lags, length, heads),
    )
    judges = lag_loss.draw_fresh(lags, length, DRAWS, torch.Generator().manual_seed(1))
    J = centring(len(lags))

    def loss(profile: Profile) -> float:
        return lag_loss.fresh_kl(J @ profile.matrices @ J, judges).item()

    start = least_squares(problem)
    found = _profile(problem, *start)
    if loss(found) < ENOUGH:
        return found
    fresh = lag_loss.draw_fresh(
        lags, length, DRAWN, torch.Generator().manual_seed(0), torch.float32
    )
    pairs = [start, _unmixed_start(problem, unmixed), *periodic_starts(problem)]
    for count, steps in ROUNDS:
        pairs = [lag_loss.descended(problem, *pair, fresh, steps) for pair in pairs]
        pairs = sorted(pairs, key=lambda pair: loss(_profile(problem, *pair)))[:count]
    return min([unmixed, found, _profile(problem, *pairs[0])], key=loss)


def least_squares(
    problem: read_fit.ReadProblem,
) -> tuple[Float[Tensor, "head offset"], Float[Tensor, "side head place"]]:
    """Return weights and reads of the best fit from all starts."""
    weights, reads = starts(problem.lags, problem.heads, problem.offsets), None
    for count, iterations, ridge in STAGES:
        start = None if reads is None else reads[:count]
        weights, reads, cost = read_fit.fitted(problem, weights[:count], start, iterations, ridge)
    assert reads is not None
    below, iterations, ridge = POLISH
    if cost[0] < below:
        weights, reads, _ = read_fit.fitted(problem, weights[:1], reads[:1], iterations, ridge)
    return weights[0], reads[0]


def unmixed_profile(lags: tuple[int, ...], length: int, heads: int) -> Profile:
    """Return the circuit in which nothing mixes, as a profile.

    It leaves offsets out if there are few heads.
    """
    colours = head_offsets(lags, heads).colours
    heads = max(colours) + 1
    offsets, span = length - lags[-1], lags[-1] - lags[0]
    pattern = torch.tensor(colours)[torch.arange(offsets) % len(colours)]
    taken = pattern == torch.arange(heads)[:, None]
    query = torch.nn.functional.pad(taken.to(torch.float64), (span, span))
    weights = torch.where(taken, 1.0, UNUSED).to(torch.float64)
    return Profile(lags, length, weights, query, torch.zeros(heads, length, dtype=torch.float64))


def _unmixed_start(
    problem: read_fit.ReadProblem, unmixed: Profile
) -> tuple[Float[Tensor, "head offset"], Float[Tensor, "side head place"]]:
    """Return weights and reads of the unmixed circuit.

    The offsets that it leaves out remain within reach.
    """
    g = torch.zeros(2, problem.heads, problem.size, dtype=torch.float64)
    g[0, :, problem.here] = (unmixed.weights > 0.5).to(torch.float64)
    return unmixed.weights.clamp_min(0.02), g


def periodic_starts(
    problem: read_fit.ReadProblem,
) -> Iterator[tuple[Float[Tensor, "head offset"], Float[Tensor, "side head place"]]]:
    """Yield a start for every period.

    Each head sees one offset of the period most, and is read by spikes there on a
    parabola.
    """
    step, count = progression(problem.lags)
    c = BENT * parabola_and_waves(count)[0]
    n = (torch.arange(problem.size) - problem.pad).div(step, rounding_mode="floor")
    middle = len(n) // (2 * step)
    for period in range(2, 2 + min(2 * count, PERIODS)):
        shift = torch.arange(problem.heads)[:, None] * period // problem.heads
        taken = ((n - shift) % period == 0).to(torch.float64)
        read = taken - c * (n - middle).to(torch.float64) ** 2
        yield (
            FAINT + (1 - FAINT) * taken[:, problem.here],
            torch.stack([read, torch.zeros_like(read)]),
        )


def importance(offsets: int) -> Float[Tensor, " offset"]:
    """Return the weight of each offset's residual."""
    return 0.1 + 22 * torch.exp(-torch.arange(offsets, dtype=torch.float64) / 5)


def starts(lags: tuple[int, ...], heads: int, offsets: int) -> Float[Tensor, "start head offset"]:
    """Return the weights to start from, always the same."""
    rng = torch.Generator().manual_seed(0)
    step, count = progression(lags)
    o = torch.arange(offsets, dtype=torch.float64)
    a = o.div(step, rounding_mode="floor")
    theta = torch.tensor(angles(count), dtype=torch.float64)
    order = theta[[(head - 1) // 2 % len(theta) for head in range(1, heads)]]
    sine = torch.tensor([(head - 1) % 2 for head in range(1, heads)]) * math.pi / 2
    waves = torch.cos(order[:, None] * a - sine[:, None])
    found = [1 + 0.5 * torch.cat([torch.cos(math.pi * a)[None], waves])]
    for eta in (0.1, 0.1, 0.1, 0.4, 0.4, 0.8):
        chosen = theta[torch.randint(len(theta), (heads, 1), generator=rng)]
        phase = 2 * math.pi * torch.rand(heads, 1, generator=rng, dtype=torch.float64)
        found.append(1 + eta * torch.cos(chosen * a + phase))
    for noise, period in (
        (0.05, offsets),
        (0.5, offsets),
        (0.5, offsets),
        (0.5, offsets),
        (1.0, 2 * lags[-1]),
    ):
        drawn = torch.randn(heads, period, generator=rng, dtype=torch.float64)
        found.append((noise * drawn).exp()[:, torch.arange(offsets) % period])
    return torch.stack(found)


def _profile(
    problem: read_fit.ReadProblem,
    weights: Float[Tensor, "head offset"],
    g: Float[Tensor, "side head place"],
) -> Profile:
    """Return a fit as a profile, with weights of mean 1."""
    lags, length = problem.lags, problem.offsets + problem.lags[-1]
    scale = weights.mean(dim=-1, keepdim=True)
    first, span = problem.pad - (lags[-1] - lags[0]), lags[-1] - lags[0]
    query, key = (
        g[0, :, first : first + problem.offsets + 2 * span],
        g[1, :, problem.pad : problem.pad + length],
    )
    return Profile(lags, length, weights / scale, query * scale, key * scale)


def _kept_file(lags: tuple[int, ...], length: int, heads: int) -> Path:
    """Return the file of a fit, named by everything it depends on.

    This is the request, the source, torch and the processor.
    """
    sources = [Path(str(module.__file__)).read_text() for module in (lag_loss, mixing, read_fit)]
    told = [
        str((lags, length, heads)),
        Path(__file__).read_text(),
        *sources,
        torch.__version__,
        compiled.processor(),
    ]
    digest = hashlib.sha256("\0".join(told).encode()).hexdigest()[:16]
    return compiled.cache_folder() / f"two-sided-{digest}.json"
