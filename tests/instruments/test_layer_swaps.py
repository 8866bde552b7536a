"""A layer written anew from the account: of the looking circuit, of which the account is true, nothing is lost."""

import csv
import itertools
import math
import statistics
from pathlib import Path

import pytest
import torch
from support import oracles

import sih
from research import layer_swaps
from research.layer_swaps import WAYS, swap_costs, swapped_layers
from sih.beyond.evidence_paths.channels import AccountConfig, draw
from sih.results.models import Models, shipped_models
from sih.task import Task

pytestmark = pytest.mark.slow


def test_what_the_account_is_true_of_survives_it(rng: torch.Generator) -> None:
    task = Task(sih.random_transition_matrix(3, rng=rng), (1, 2), 40)
    model = sih.construct(task, target="looking", temper=0.5, looking=0.5)
    batch, reference = sih.sample(task, 30, rng=1), sih.sample(task, 60, rng=2)
    found = swap_costs(model, task, batch, reference)
    intact = (
        sih.mean_kl(sih.kl_to_truth(model.predict(batch.tokens), batch, task), task).mean().item()
    )
    for what in ("layer 1", "layer 2", "layer 2 by residues"):
        assert found[what][0] == pytest.approx(intact, rel=1e-6)
    assert found["layer 3"][0] < 1.2 * intact + 0.005  # it leaves the newest transition out


def test_what_it_is_not_true_of_is_lost(task: Task) -> None:
    """The paper's circuit carries: its second layer looks by positions alone, and a filter of phases reads nothing."""
    model = sih.construct(task)
    before = [weight.clone() for weight in model.parameters()]
    batch, reference = sih.sample(task, 20, rng=1), sih.sample(task, 40, rng=2)
    costs = swap_costs(model, task, batch, reference)
    intact = (
        sih.mean_kl(sih.kl_to_truth(model.predict(batch.tokens), batch, task), task).mean().item()
    )
    assert costs["layer 2"][0] == pytest.approx(intact)
    assert costs["layer 3"][0] > intact + 0.05
    assert all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    with pytest.raises(ValueError, match=r"heads \(1, H, 1\); got \(1, 1\)"):
        swapped_layers(sih.DisentangledTransformer(5, 32, (1, 1)), task, batch.tokens)


LAGS, LENGTH, PERIOD = (1, 3), 24, 3


@pytest.fixture
def random_model(rng: torch.Generator) -> sih.DisentangledTransformer:
    """A model with nothing in its place; what layer 2 reads of layer 1 has nearly the period 3."""
    model = sih.DisentangledTransformer(
        3, LENGTH, (1, 2, 1), temperature=1.0, dtype=torch.float64, rng=rng
    )
    for head in ("2.1", "2.2"):
        turn = 2 * torch.pi * (torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)) / PERIOD
        noise = 0.1 * torch.randn(LENGTH, LENGTH, generator=rng, dtype=torch.float64)
        model.block(head, "position", "1.1/position").copy_(torch.cos(turn + int(head[-1])) + noise)
    return model


@pytest.fixture
def lag_task(rng: torch.Generator) -> Task:
    return Task(sih.random_transition_matrix(3, rng=rng), LAGS, LENGTH)


def _fitted_slope(model: sih.DisentangledTransformer, task: Task, tokens: torch.Tensor) -> float:
    """Least squares with a constant for every query, solved as one system."""
    scores, P = model.trace(tokens)["1.1/scores"], task.P.tolist()
    places = [(b, i, k) for b in range(len(tokens)) for i in range(max(LAGS), LENGTH) for k in LAGS]
    queries = {(b, i): n for n, (b, i) in enumerate(dict.fromkeys((b, i) for b, i, _ in places))}
    A = torch.zeros(len(places), 1 + len(queries), dtype=torch.float64)
    for n, (b, i, k) in enumerate(places):
        A[n, 0] = math.log(P[tokens[b, i - k]][tokens[b, i]])
        A[n, 1 + queries[b, i]] = 1.0
    y = torch.tensor([scores[b, i, i - k].item() for b, i, k in places], dtype=torch.float64)
    slope: float = torch.linalg.lstsq(A, y[:, None]).solution[0].item()
    return slope


def _unwritten(
    A: torch.Tensor, model: sih.DisentangledTransformer, layer: int, written: set[tuple[str, str]]
) -> bool:
    """Whether a head's matrix is zero outside the blocks written."""
    rest, stream = A.clone(), model.stream(layer - 1)
    for query, key in written:
        rest[stream[query], stream[key]] = 0
    return not rest.any()


def test_the_first_layer_has_the_fitted_slope_on_log_p_at_the_lags(
    random_model: sih.DisentangledTransformer, lag_task: Task
) -> None:
    tokens = sih.sample(lag_task, 6, rng=3).tokens
    first = swapped_layers(random_model, lag_task, tokens)["layer 1"]
    slope, P = _fitted_slope(random_model, lag_task, tokens), lag_task.P.tolist()
    by_token = first.block("1.1", "token", "token").tolist()
    assert by_token == [
        [pytest.approx(slope * math.log(P[key][query])) for key in range(3)] for query in range(3)
    ]
    by_position = first.block("1.1", "position", "position").tolist()
    assert by_position == [
        [0.0 if i - j in LAGS else -1e4 for j in range(LENGTH)] for i in range(LENGTH)
    ]
    assert _unwritten(first.A[0][0], first, 1, {("token", "token"), ("position", "position")})
    assert all(torch.equal(first.A[n], random_model.A[n]) for n in (1, 2))


def test_the_second_layer_keeps_two_blocks_and_then_their_residues(
    random_model: sih.DisentangledTransformer, lag_task: Task
) -> None:
    ways = swapped_layers(random_model, lag_task, sih.sample(lag_task, 6, rng=3).tokens)
    kept = {("position", "position"), ("position", "1.1/position")}
    for number, head in enumerate(("2.1", "2.2")):
        before = random_model.block(head, "position", "1.1/position")
        for name in ("layer 2", "layer 2 by residues"):
            assert _unwritten(ways[name].A[1][number], random_model, 2, kept)
            for same in [("position", "position")] + [("position", "1.1/position")] * (
                name == "layer 2"
            ):
                assert torch.equal(ways[name].block(head, *same), random_model.block(head, *same))
        diagonal = [
            sum(before[i, i - o].item() for i in range(o, LENGTH)) / (LENGTH - o)
            for o in range(LENGTH)
        ]
        after = ways["layer 2 by residues"].block(head, "position", "1.1/position")
        for i, j in itertools.product(range(LENGTH), repeat=2):
            alike = [diagonal[o] for o in range(9, LENGTH) if (o - (i - j)) % PERIOD == 0]
            far = sum(alike) / len(alike)
            expected = before[i, j].item() if i < j else diagonal[i - j] if i - j <= 8 else far
            assert after[i, j].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_third_layer_is_a_matched_filter_of_the_second(
    random_model: sih.DisentangledTransformer, lag_task: Task, sign: float
) -> None:
    """beta times the sum over h and m of a_h[j, m] G_h(i - m + 1), less its mean, at candidates j = i - k + 1 alone."""
    tokens = sih.sample(lag_task, 5, rng=3).tokens
    if _fitted_slope(random_model, lag_task, tokens) * sign < 0:
        random_model.A[0].data.neg_()
    written = swapped_layers(random_model, lag_task, tokens)["layer 3"]
    own, found = random_model.trace(tokens), written.trace(tokens)["3.1/scores"]
    filtered = torch.zeros(len(tokens), LENGTH, len(LAGS), dtype=torch.float64)
    for head in ("2.1", "2.2"):
        block, attention = (
            random_model.block(head, "position", "1.1/position"),
            own[f"{head}/attention"],
        )
        G = [block.diagonal(-o).mean().item() for o in range(LENGTH)]
        for i, (n, k) in itertools.product(range(max(LAGS), LENGTH), enumerate(LAGS)):
            seen = [m for m in range(i - k + 2) if max(LAGS) - 1 <= i - m < LENGTH - 1]
            for m in seen:
                filtered[:, i, n] += attention[:, i - k + 1, m] * G[i - m + 1]
    filtered = filtered - filtered.mean(dim=0)
    rows = range(max(LAGS), LENGTH)
    scores = torch.stack(
        [torch.stack([found[:, i, i - k + 1] for k in LAGS], dim=-1) for i in rows], dim=1
    )
    filtered = filtered[:, max(LAGS) :]
    beta = (scores * filtered).sum() / filtered.square().sum()
    assert beta.sign() == sign
    assert torch.allclose(scores, beta * filtered, atol=1e-8)
    others = [
        found[:, i, j].max().item() for i in rows for j in range(i + 1) if i - j + 1 not in LAGS
    ]
    assert max(others) < -5e3

    def spread(scores: torch.Tensor) -> float:
        """Of the scores' differences between candidates, apart from what all sequences have in common."""
        values = [
            [[row[i][i - k + 1] for k in LAGS] for i in rows if i + 1 < LENGTH]
            for row in scores.tolist()
        ]
        centred = [[[x - sum(at) / len(at) for x in at] for at in row] for row in values]
        common = [
            [sum(x) / len(x) for x in zip(*at, strict=True)] for at in zip(*centred, strict=True)
        ]
        return math.hypot(
            *(
                x - c
                for row in centred
                for at, mean in zip(row, common, strict=True)
                for x, c in zip(at, mean, strict=True)
            )
        )

    assert spread(found) == pytest.approx(spread(own["3.1/scores"]))
    assert torch.equal(written.readout, random_model.readout)
    assert all(torch.equal(written.A[n], random_model.A[n]) for n in (0, 1))


def test_the_cost_is_that_of_the_last_layers_scores_alone(
    random_model: sih.DisentangledTransformer, lag_task: Task
) -> None:
    """Values and readout are the trained model's: layer 3's attention alone sees what was written."""
    batch, reference = sih.sample(lag_task, 5, rng=1), sih.sample(lag_task, 6, rng=2)
    ways, costs = swapped_layers(random_model, lag_task, reference.tokens), {}
    for name, (mean, error) in swap_costs(random_model, lag_task, batch, reference).items():
        stream = random_model.trace(batch.tokens)["2/stream"]
        attention = torch.softmax(ways[name].trace(batch.tokens)["3.1/scores"], dim=-1)
        output = torch.cat([stream, attention @ stream], dim=-1) @ random_model.readout.T
        laws, P = torch.softmax(output, dim=-1).tolist(), lag_task.P.tolist()
        rows = [
            [oracles.kl(P[tokens[i + 1 - k]], law[i]) for i in range(max(LAGS), LENGTH - 1)]
            for tokens, k, law in zip(batch.tokens.tolist(), batch.lags.tolist(), laws, strict=True)
        ]
        each = [statistics.fmean(row) for row in rows]
        assert mean == pytest.approx(statistics.fmean(each))
        assert error == pytest.approx(statistics.stdev(each) / math.sqrt(5))
        costs[name] = mean
    assert len({round(mean, 9) for mean in costs.values()}) == len(costs) == 4


def test_the_table_has_a_row_for_each_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "swaps.csv"
    monkeypatch.setattr(layer_swaps, "SEQUENCES", 8)
    assert layer_swaps.main(["disentangled-1.2", "--out", str(out)]) == 0
    (row,) = csv.DictReader(out.read_text().splitlines())
    assert list(row) == ["model", "intact", *WAYS]
    run = sih.open_run("disentangled-1.2")
    batch = draw(run.task, AccountConfig(), "sequences")
    tokens, lags = batch.tokens[:8], batch.lags[:8]
    laws, P = run.model.predict(tokens).double().tolist(), run.task.P.tolist()
    each = [
        statistics.fmean(
            oracles.kl(P[x[i + 1 - k]], law[i]) for i in range(run.task.max_lag, len(x) - 1)
        )
        for x, k, law in zip(tokens.tolist(), lags.tolist(), laws, strict=True)
    ]
    assert float(row["intact"].partition("±")[0]) == pytest.approx(statistics.fmean(each), abs=6e-5)
    assert layer_swaps.main(["standard-1.2", "--out", str(out)]) == 2
    assert "standard-1.2 is no disentangled model with heads (1, H, 1)" in capsys.readouterr().err


def test_the_kept_table_is_of_every_shipped_model_that_fits() -> None:
    kept = Path(layer_swaps.__file__).with_suffix(".csv").read_text().splitlines()
    models = [row["model"] for row in csv.DictReader(kept)]
    assert models == list(shipped_models(Models("disentangled")))
