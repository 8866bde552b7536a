r"""The circuit whose second layer tells which lag it found by *where it looks*, as trained models do.

Colour the integers with c as for the paper's circuit: no two of one colour differ by a difference of two lags. With
$\chi$ colours take the corners $v_0 .. v_{\chi-1}$ of a simplex, $v_a \cdot v_b = [a=b] - 1/\chi$, which have $\chi -
1$ coordinates, one for each second-layer head: one head fewer than colours. K is the number of lags, positions count
from 0.

- Layer 1 stores $\tilde p_{m,k}$, with exponent $\gamma$, at index m - k. Rows before max_lag rest on position 0.
- Head h at row j scores key m with $s_h = \epsilon \sum_k \tilde p_{m,k}\, v_{c(j-m+k)}[h]$: it looks where the
  parent that layer 1 found is in phase with itself. A sink at 0 brings the total weight to about C.
- The third layer reads the *key's* row, $\frac{CK}{\epsilon\gamma} \sum_{h,m} a_h[j,m]\, v_{c(i-m+1)}[h]$, less what
  it reads where all $\tilde p$ are 1/K, a function of positions alone.

**Proof.** At the key of lag $k_0$, $j = i - k_0 + 1$, transition m has o = i - m and $j-m+k = (o+1) + (k-k_0)$, which
has the colour of o + 1 only for $k = k_0$. With $\tilde p = 1/K + \gamma \tilde q / K$, $\sum_k \tilde q_k = 0$, the
part of $C a_h$ that is linear in $\tilde q$ is $t_h = \frac{\epsilon\gamma}{K} \sum_k \tilde q_k
v_{c(o+1+k-k_0)}[h]$, and $\frac{K}{\epsilon\gamma}\, v_{c(o+1)} \cdot t = \tilde q_{k_0}$. So the score is the sum of
$\tilde q_{m,k_0}$, the evidence, over the transitions that every candidate key has seen: $o \ge \hat k - 1$. Offset 0
is read straight from what layer 1 wrote at the query. **Offsets 1 .. max_lag - 2 go unused.**

**Error.** The lags at one key have different colours, so $|t| = \frac{\epsilon\gamma}{K} |\tilde q| \le \tau =
\epsilon\gamma \tilde R / 2\sqrt K$ for $\tilde q$ of spread $\tilde R \le R e^{\gamma R}$ (R as in `bayes.py`), and
the scores at $\tilde q = 0$ have norm $\sigma = \epsilon \sqrt{(1 - K/\chi)/K}$, 0 if $\chi = K$. With $\eta =
e^{\sigma+\tau} - 1$, n transitions and $\zeta = n\eta/C$, the softmax gives $|C(a_h - a^0_h) - t_h| \le |t_h|\,(\eta
+ \frac{(1+\eta)\zeta}{1-\zeta}) + \frac{(1+\eta)^2 n \tau}{C(1-\zeta)^2}$, so a transition's share of a lag's score
is off by at most $\frac{\sqrt K \tilde R}{2} \kappa$, $\kappa$ the bracket plus $\sqrt{\chi-1} \frac{(1+\eta)^2
n}{C(1-\zeta)^2}$, beside the tempering's own error of `bayes.py`.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sih.construction.bayes import LOG_ZERO, ROUNDING, Tempering
from sih.construction.circuit import Circuit, log_probabilities, normalised
from sih.construction.layers import Blocks, mask_levels, write_first_layer, write_readout
from sih.evidence import log_probabilities as transition_logs
from sih.task import Task


def simplex(count: int) -> Float[Tensor, "corner coordinate"]:
    """Give the corners of a simplex, v_a . v_b = [a = b] - 1 / count, in the coordinates of Helmert's matrix."""
    corners = torch.zeros(count, max(count - 1, 1), dtype=torch.float64)
    for h in range(1, count):
        corners[:h, h - 1] = 1 / math.sqrt(h * (h + 1))
        corners[h, h - 1] = -h / math.sqrt(h * (h + 1))
    return corners


def write_looking(blocks: Blocks, task: Task, circuit: Circuit, readout: str) -> None:
    """Write the circuit of this module into blocks that are zero."""
    write_first_layer(blocks, task, circuit)
    allow, forbid = mask_levels(circuit)
    first = blocks.block("1.1", "position", "position")
    first[: circuit.max_lag] = forbid
    first[: circuit.max_lag, 0] = allow
    gap, phase = _gaps(circuit.length), _phases(circuit, circuit.length)
    alike = torch.full((1, circuit.length, len(task.lags)), 1 / len(task.lags), dtype=torch.float64)
    evenly = _stored(alike, circuit)
    direct = circuit.beta * (gap == -1).double()
    candidate = torch.isin(gap + 1, torch.tensor(task.lags))
    scores = _levels(candidate, allow, forbid) - evenly[0] @ direct
    for lag, probability in zip(task.lags, task.lag_prior.tolist(), strict=True):
        scores[gap + 1 == lag] += math.log(probability)
    at_rest = _attention(evenly, circuit)[0]
    for h, (read, rest) in enumerate(zip(_reads(circuit, circuit.length), at_rest, strict=True)):
        blocks.block(f"2.{h + 1}", "position", "1.1/position").copy_(circuit.looking * phase[h])
        blocks.block(f"2.{h + 1}", "position", "position").copy_(_masks(circuit, circuit.length)[h])
        blocks.block("3.1", "position", f"2.{h + 1}/position").copy_(read)
        scores -= read @ rest.T
    blocks.block("3.1", "1.1/position", "position").copy_(direct)
    blocks.block("3.1", "position", "position").copy_(scores)
    write_readout(blocks, task, circuit, readout)


def looking_attention(
    tokens: Int[Tensor, "batch time"], task: Task, circuit: Circuit
) -> Float[Tensor, "batch head query key"]:
    """Return where the second layer looks, by the closed form."""
    return _attention(_stored(normalised(tokens, task, circuit, circuit.temper), circuit), circuit)


def looking_scores(
    tokens: Int[Tensor, "batch time"], task: Task, circuit: Circuit
) -> Float[Tensor, "batch time lag"]:
    """Return the third layer's score of each lag, by the closed form."""
    time, lags = tokens.shape[1], circuit.lags
    p = normalised(tokens, task, circuit, circuit.temper)
    stored = torch.cat(
        [_stored(p, circuit), _stored(torch.full_like(p[:1], 1 / len(lags)), circuit)]
    )
    looked = _attention(stored, circuit)
    looked = looked[:-1] - looked[-1]
    scores = circuit.beta * torch.where(
        torch.arange(time)[:, None] >= circuit.max_lag, p - 1 / len(lags), 0.0
    )
    for index, lag in enumerate(lags):
        rows = slice(lag - 1, time)
        at_key = looked[:, :, : time - lag + 1] * _reads(circuit, time)[:, rows]
        scores[:, rows, index] += at_key.sum(dim=(1, 3))
    return scores + task.lag_prior.log()


def looked_posterior(
    tokens: Int[Tensor, "batch time"], task: Task, circuit: Circuit
) -> Float[Tensor, "batch time lag"]:
    """Return the exact posterior given the transitions that the circuit uses, at offsets 0 and max_lag - 1 on."""
    logs = transition_logs(tokens, task, log_probabilities(task, circuit))
    used, older = logs.clone(), max(circuit.max_lag - 1, 1)
    used[:, older:] += logs.cumsum(dim=1)[:, : tokens.shape[1] - older]
    return torch.softmax(used + task.lag_prior.log(), dim=-1)


def looking_error(
    task: Task, colours: int, temper: float, looking: float, dtype: torch.dtype
) -> Tempering:
    """Bound how far an attention weight may be from `looked_posterior`, as the module's docstring proves it."""
    lags, n = len(task.lags), max(task.length - task.max_lag, 1)
    logs = torch.where(task.P > 0, task.P.log(), LOG_ZERO[dtype])
    spread = (logs.max() - logs.min()).item()
    growth, total = math.exp(min(temper * spread, 300.0)), _total(task.length, temper, looking)
    tau = looking * temper * spread * growth / (2 * math.sqrt(lags))
    sigma = looking * math.sqrt((1 - lags / colours) / lags)
    eta = math.expm1(min(sigma + tau, 300.0))
    zeta = min(n * eta / total, 0.5)
    others = math.sqrt(colours - 1) * (1 + eta) ** 2 * n / (total * (1 - zeta) ** 2)
    kappa = eta + (1 + eta) * zeta / (1 - zeta) + others
    error = (0.625 * temper * spread**2 + math.sqrt(lags) * spread * kappa) * growth
    unit = torch.finfo(dtype).eps / 2  # a key's weight has lost log C units beside the sink's
    size = lags * n * math.sqrt(max(colours - 1, 1)) / (looking * temper)
    return Tempering(temper, (n * error, (ROUNDING + math.log(total)) * unit * size))


def best_looking(task: Task, colours: int, dtype: torch.dtype) -> tuple[float, float]:
    """Find the exponent and the strength of looking with the least bound, on a grid of powers of ten."""
    pairs = [(10 ** (-i / 5), 10 ** (-j / 5)) for i in range(5, 60) for j in range(40)]
    return min(pairs, key=lambda pair: looking_error(task, colours, pair[0], pair[1], dtype).bound)


def _stored(
    p: Float[Tensor, "batch time lag"], circuit: Circuit
) -> Float[Tensor, "batch time time"]:
    """Return what layer 1 writes of positions: p-tilde at index m - k, and index 0 before max_lag."""
    time = p.shape[1]
    out = torch.zeros(len(p), time, time, dtype=torch.float64)
    rows = torch.arange(circuit.max_lag, time)
    for index, lag in enumerate(circuit.lags):
        out[:, rows, rows - lag] = p[:, rows, index].double()
    out[:, : circuit.max_lag, 0] = 1.0
    return out


def _attention(
    stored: Float[Tensor, "batch time time"], circuit: Circuit
) -> Float[Tensor, "batch head query key"]:
    time = stored.shape[1]
    scores = circuit.looking * _phases(circuit, time) @ stored[:, None].mT + _masks(circuit, time)
    return torch.softmax(scores.masked_fill(_gaps(time) < 0, -math.inf), dim=-1)


def _phases(circuit: Circuit, time: int) -> Float[Tensor, "head query index"]:
    """Return v_{c(j - x)}: how far index x is in phase with row j, head by head."""
    return simplex(max(circuit.head_of_offset) + 1)[circuit.heads_at(_gaps(time))].permute(2, 0, 1)


def _reads(circuit: Circuit, time: int) -> Float[Tensor, "head query key"]:
    """Return the third layer's block between a query's position and the row of head h at the key."""
    strength = (
        circuit.beta * _total(circuit.length, circuit.temper, circuit.looking) / circuit.looking
    )
    gap = _gaps(time)
    used = (gap >= max(circuit.max_lag - 1, 1)) & (torch.arange(time) >= circuit.max_lag)
    phase = simplex(max(circuit.head_of_offset) + 1)[circuit.heads_at(gap + 1)].permute(2, 0, 1)
    return strength * phase * used


def _masks(circuit: Circuit, time: int) -> Float[Tensor, "head query key"]:
    """Return the second layer's block of positions: transitions made are allowed, the sink has the rest of C."""
    allow, forbid = mask_levels(circuit)
    row = torch.arange(time)
    masks = _levels(row >= circuit.max_lag, allow, forbid).repeat(circuit.heads, time, 1)
    made = (row - circuit.max_lag + 1).clamp_min(0)
    left = _total(circuit.length, circuit.temper, circuit.looking) - made.double()
    masks[:, :, 0] = allow + left.log() - circuit.looking * _phases(circuit, time)[:, :, 0]
    return masks


def _levels(
    allowed: Bool[Tensor, "*shape"], allow: float, forbid: float
) -> Float[Tensor, "*shape"]:
    """Return `allow` and `forbid` in float64: `torch.where` of two numbers would round them to float32."""
    return torch.where(
        allowed, torch.tensor(allow, dtype=torch.float64), torch.tensor(forbid, dtype=torch.float64)
    )


def _total(length: int, temper: float, looking: float) -> float:
    """Return C, so large that what one key's weight takes from the others' does not matter."""
    return length**2 / (temper * looking)


def _gaps(length: int) -> Int[Tensor, "query key"]:
    return torch.arange(length)[:, None] - torch.arange(length)
