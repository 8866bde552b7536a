"""Shares of the evidence: against sums over the definition, on circuits whose channel is known, and with one cut."""

import itertools
import math
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

import sih
from sih.beyond.evidence_paths.score_shares import evidence_flow
from sih.models.base import Model
from sih.models.sites import Site
from sih.task import Batch, Task


@pytest.fixture
def short(rng: torch.Generator) -> Task:
    return Task(sih.random_transition_matrix(3, rng=rng), (1, 2, 3), 12)


def trained_like(kind: str, heads: tuple[int, ...], rng: torch.Generator) -> Model:
    """Weights at random, large enough that every layer looks at the data."""
    if kind == "disentangled":
        model: Model = sih.DisentangledTransformer(3, 12, heads, temperature=1.0, rng=rng)
    else:
        mlp_dim = 8 if kind == "mlp" else None
        model = sih.Transformer(3, 12, dim=16, qk_dim=4, heads=heads, mlp_dim=mlp_dim, rng=rng)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2.0)
    return model.double()


def evidence(scores: Tensor, task: Task) -> Tensor:
    """x_{i,k} minus its mean over candidates and over sequences, by the definition."""
    rows = range(task.max_lag, scores.shape[1] - 1)
    x = torch.stack(
        [torch.stack([scores[:, i, i - k + 1] for k in task.lags], -1) for i in rows], 1
    )
    x = x - x.mean(-1, keepdim=True)
    return x - x.mean(0)


def test_shares_of_blocks_against_the_definition(short: Task, rng: torch.Generator) -> None:
    model = trained_like("disentangled", (1, 2, 1), rng)
    assert isinstance(model, sih.DisentangledTransformer)
    batch = sih.sample(short, 20, rng=rng)
    h, stream = model.run(batch.tokens)["2/stream"].detach(), model.stream(2)
    whole = evidence(h @ model.A[2][0].detach() @ h.mT, short)
    found = sih.evidence_flow(model, short, batch)
    assert found.shares.keys() == set(itertools.product(stream.names, stream.names))
    for a, b in [
        ("position", "2.1/position"),
        ("2.2/1.1/position", "token"),
        ("1.1/token", "2.1/1.1/token"),
    ]:
        part = evidence(h[..., stream[a]] @ model.block("3.1", a, b) @ h[..., stream[b]].mT, short)
        assert found.shares[a, b] == pytest.approx(
            ((part * whole).sum() / whole.square().sum()).item(), abs=1e-10
        )
    assert found.spread == pytest.approx(whole.square().mean().sqrt().item())
    assert sum(found.shares.values()) == pytest.approx(1)
    assert sum(found.channels.values()) == pytest.approx(1)
    assert found.mismatch < 1e-9
    assert found.table()[1][1] == f"{max(found.shares.values(), key=abs):.3f}"


def test_errors_are_how_far_groups_of_sequences_are_apart(
    short: Task, rng: torch.Generator
) -> None:
    """The ratio's error by the delta method, over groups of 3 of 20 sequences, the last one of 2."""
    model = trained_like("disentangled", (1, 2, 1), rng)
    assert isinstance(model, sih.DisentangledTransformer)
    batch = sih.sample(short, 20, rng=rng)
    h, stream = model.run(batch.tokens)["2/stream"].detach(), model.stream(2)
    whole = evidence(h @ model.A[2][0].detach() @ h.mT, short)
    found = sih.evidence_flow(model, short, batch)
    for a, b in [("position", "2.1/position"), ("2.2/1.1/position", "token")]:
        part = evidence(h[..., stream[a]] @ model.block("3.1", a, b) @ h[..., stream[b]].mT, short)
        sums = [
            (
                (part[n : n + 3] * whole[n : n + 3]).sum().item(),
                whole[n : n + 3].square().sum().item(),
            )
            for n in range(0, 20, 3)
        ]
        share, total = sum(p for p, _ in sums) / sum(w for _, w in sums), sum(w for _, w in sums)
        error = math.sqrt(sum((p - share * w) ** 2 for p, w in sums) * 7 / 6) / total
        assert found.errors[a, b] == pytest.approx(error)


def test_paths_against_the_definition(short: Task, rng: torch.Generator) -> None:
    """One second-layer head, its four products written out."""
    model, batch = trained_like("standard", (1, 1, 1), rng), sih.sample(short, 30, rng=rng)
    assert isinstance(model, sih.Transformer)
    Q, K, V = (
        getattr(model.each_layer()[n], w)[0].detach() for n, w in ((2, "Q"), (2, "K"), (1, "V"))
    )
    trace = model.run(batch.tokens)
    h0, o1, h1, h = (
        trace[name].detach() for name in ("0/stream", "1.1/output", "1/stream", "2/stream")
    )
    a, v = trace["2.1/attention"].detach(), h1 @ V
    looked = (a - a.mean(0)) @ (v + v.mean(0)) / 2
    carried = (a + a.mean(0)) / 2 @ (v - v.mean(0))
    u = (h + h0.mean(0) + o1.mean(0) + a.mean(0) @ v.mean(0)) / 2
    paths = {
        "embedding": h0 - h0.mean(0),
        "1.1": o1 - o1.mean(0),
        "2.1:attention": looked,
        "2.1:values": carried,
    }
    whole = evidence(h @ Q @ (h @ K).mT, short)
    found = sih.evidence_flow(model, short, batch)
    assert found.shares.keys() == paths.keys()
    for name, d in paths.items():
        part = evidence(d @ Q @ (u @ K).mT + u @ Q @ (d @ K).mT, short)
        assert found.shares[name] == pytest.approx(
            ((part * whole).sum() / whole.square().sum()).item(), abs=1e-9
        )


@pytest.mark.parametrize("start", [False, True])
def test_paths_of_a_relative_model_against_the_definition(
    start: bool, short: Task, rng: torch.Generator
) -> None:
    """Keys and values know the offset: loops over queries and keys, from the weights alone."""
    first, reach = int(start), 3
    sizes = {"dim": 10, "qk_dim": 4, "heads": (1, 1, 1), "start": start}
    model = sih.RelativeTransformer(3, reach, **sizes, dtype=torch.float64, rng=rng)  # type: ignore[arg-type]
    batch = sih.sample(short, 12, rng=rng)
    rows, layers = range(12 + first), model.each_layer()
    trace = {name: value.detach() for name, value in model.run(batch.tokens).values.items()}
    h0, o1, h1, h = (trace[name] for name in ("0/stream", "1.1/output", "1/stream", "2/stream"))
    v, a = h1 @ layers[1].V[0].detach(), trace["2.1/attention"]
    by_offset = layers[1].aV[0].detach()  # type: ignore[index]
    base, looked, carried = h0.mean(0) + o1.mean(0), torch.zeros_like(h0), torch.zeros_like(h0)
    for i in rows:
        for j in range(i + 1):
            own, mean = (x + by_offset[min(i - j, reach)] for x in (v[:, j], v[:, j].mean(0)))
            pay, usual = a[:, i, j, None], a[:, i, j].mean()
            looked[:, i] += (pay - usual) * (own + mean) / 2
            carried[:, i] += (pay + usual) / 2 * (own - mean)
            base[i] += usual * mean
    torch.testing.assert_close(base + h0 - h0.mean(0) + o1 - o1.mean(0) + looked + carried, h)
    ways = {"embedding": h0 - h0.mean(0), "1.1": o1 - o1.mean(0)}
    ways |= {"2.1:attention": looked, "2.1:values": carried}
    u, (Q, K) = (h + base) / 2, (w[0].detach() for w in (layers[2].Q, layers[2].K))

    def scores(query: Tensor, key: Tensor, known: bool) -> Tensor:
        """What the head gives token j from token i, and the vector of the offset if known."""
        found = torch.zeros(len(query), 12, 12, dtype=torch.float64)
        for i in range(12):
            for j in range(i + 1):
                read = key[:, first + j] @ K
                if known:
                    read = read + layers[2].aK[0, min(i - j, reach)].detach()  # type: ignore[index]
                found[:, i, j] = (query[:, first + i] @ Q * read).sum(-1)
        return found

    whole, found = evidence(scores(h, h, True), short), sih.evidence_flow(model, short, batch)
    assert found.shares.keys() == ways.keys()
    assert found.mismatch < 1e-12
    assert found.spread == pytest.approx(whole.square().mean().sqrt().item())
    for name, d in ways.items():
        part = evidence(scores(d, u, True) + scores(u, d, False), short)
        share = ((part * whole).sum() / whole.square().sum()).item()
        assert found.shares[name] == pytest.approx(share, abs=1e-9), name


class Tilted(sih.DisentangledTransformer):
    """Adds to every score what the query's token says of the offset, a number times i - j."""

    paths = ("dense",)  # type: ignore[assignment]
    tilt = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)

    def equations(self, tokens: Tensor, site: Site) -> Tensor:
        tilt = self.tilt

        class Tilting(Site):
            def __call__(self, name: str, value: Tensor) -> Tensor:
                if name.endswith("/scores"):
                    place = torch.arange(tokens.shape[1])
                    value = value + tilt[tokens][..., None] * (place[:, None] - place)
                return site(name, value)

            def parts(self, name: str, value: Tensor, columns: Mapping[str, slice]) -> Tensor:
                return site.parts(name, value, columns)

        return super().equations(tokens, Tilting())

    def scores(self, head: str, query: Tensor, key: Tensor, offset: int) -> Tensor:
        return (
            super().scores(head, query, key, offset) + (query[:, :3] @ self.tilt)[:, None] * offset
        )


def test_a_block_is_read_against_the_offset(short: Task, rng: torch.Generator) -> None:
    """Kinds with blocks whose keys know the offset have a part of its own for what a block says of it."""
    model = Tilted(3, 12, (1, 2, 1), temperature=1.0, rng=rng, dtype=torch.float64)
    batch = sih.sample(short, 20, rng=rng)
    place, stream = torch.arange(12), model.stream(2)
    tilted = model.tilt[batch.tokens][..., None] * (place[:, None] - place)
    h = model.run(batch.tokens)["2/stream"].detach()
    plain = h @ model.A[2][0].detach() @ h.mT
    whole, found = evidence(plain + tilted, short), evidence_flow(model, short, batch)
    names = [*stream.names, "offset"]
    assert found.shares.keys() == set(itertools.product(names, names))
    token = h[..., stream["token"]] @ model.block("3.1", "token", "2.1/1.1/token")
    wanted = {
        ("token", "offset"): tilted,
        ("token", "2.1/1.1/token"): token @ h[..., stream["2.1/1.1/token"]].mT,
        ("offset", "token"): torch.zeros_like(tilted),
    }
    for pair, part in wanted.items():
        share = (evidence(part, short) * whole).sum() / whole.square().sum()
        assert found.shares[pair] == pytest.approx(share.item(), abs=1e-9)
    assert sum(found.shares.values()) == pytest.approx(1)
    assert evidence_flow(model, short, batch, by="paths").spread == pytest.approx(found.spread)


@pytest.mark.parametrize(
    ("kind", "heads"),
    [
        *(
            ("standard", (1, 3, 1)),
            ("standard", (2, 2)),
            ("standard", (1, 2, 2, 2)),
            ("standard", (1,)),
            ("mlp", (1, 2, 1)),
        ),
        *(("disentangled", (1, 2, 1)), ("disentangled", (2, 1)), ("disentangled", (1, 1, 1, 2))),
    ],
)
def test_paths_add_up_to_the_scores(
    kind: str, heads: tuple[int, ...], short: Task, rng: torch.Generator
) -> None:
    model, batch = trained_like(kind, heads, rng), sih.sample(short, 24, rng=rng)
    found = evidence_flow(model, short, batch, by="paths")
    assert sum(found.shares.values()) == pytest.approx(1)
    assert found.mismatch < 1e-9
    late = {f"{n}.{h}" for n, count in enumerate(heads[1:-1], 2) for h in range(1, count + 1)}
    early = {f"1.{h}" for h in range(1, heads[0] + 1)} if len(heads) > 1 else set()
    mlps = {"1/mlp", "2/mlp"} if kind == "mlp" else set()
    halves = {f"{name}:{half}" for name in late for half in ("attention", "values")}
    assert found.shares.keys() == {"embedding", *early, *mlps, *halves}


@pytest.mark.parametrize("kind", ["standard", "disentangled"])
def test_one_name_is_one_thing(kind: str, short: Task, rng: torch.Generator) -> None:
    """A name that both hold has the same number in both, and layer 1's path is the channel "direct"."""
    model, batch = trained_like(kind, (1, 2, 1), rng), sih.sample(short, 24, rng=rng)
    found = evidence_flow(model, short, batch, by="paths")
    assert found.shares.keys() & found.channels.keys() == {"embedding"}
    assert found.channels["embedding"] == pytest.approx(found.shares["embedding"], abs=1e-12)
    assert found.channels["direct"] == pytest.approx(found.shares["1.1"], abs=1e-12)
    assert "embedding" not in evidence_flow(model, short, batch).shares or kind == "standard"


CIRCUITS = {
    "paper, masks": ({}, "carried"),
    "paper, positions": ({"third": "position"}, "carried"),
    "Bayes": ({"target": "bayes"}, "carried"),
    "looking": ({"target": "looking"}, "looked"),
}


@pytest.mark.parametrize("name", CIRCUITS)
@pytest.mark.parametrize("by", ["blocks", "paths"])
def test_a_circuit_gives_all_to_the_channel_that_was_written(
    name: str, by: str, task: Task
) -> None:
    options, channel = CIRCUITS[name]
    model, batch = sih.construct(task, **options), sih.sample(task, 24, rng=1)  # type: ignore[call-overload]
    found = evidence_flow(model, task, batch, by=by)  # type: ignore[arg-type]
    direct = found.channels["direct"]
    assert found.channels[channel] + direct == pytest.approx(1, abs=1e-6)
    assert (
        direct < 0.1 if channel == "looked" else abs(direct) < 1e-6
    )  # the newest transition comes straight from layer 1


def test_a_channel_that_is_cut_gets_nothing(short: Task, rng: torch.Generator) -> None:
    model, batch = trained_like("disentangled", (1, 2, 1), rng), sih.sample(short, 24, rng=rng)
    assert isinstance(model, sih.DisentangledTransformer)
    before = evidence_flow(model, short, batch).channels
    assert min(abs(share) for share in before.values()) > 1e-4
    for head, block in itertools.product((1, 2), ("token", "position")):
        columns = model.stream(2)[f"2.{head}/1.1/{block}"]
        with torch.no_grad():
            model.A[2][:, columns, :] = 0
            model.A[2][:, :, columns] = 0
    after = evidence_flow(model, short, batch)
    assert after.channels["carried"] == after.channels["looked x carried"] == 0
    assert sum(after.channels.values()) == pytest.approx(1)


def test_its_errors_are_those_of_fresh_sequences(short: Task, rng: torch.Generator) -> None:
    """Two batches agree within 4 errors of their difference: error rate below 1e-3 for 6 shares, seed fixed."""
    model = trained_like("standard", (1, 2, 1), rng)
    one, two = (evidence_flow(model, short, sih.sample(short, 256, rng=rng)) for _ in range(2))
    for part, share in one.shares.items():
        assert (
            abs(share - two.shares[part])
            < 4 * (one.errors[part] ** 2 + two.errors[part] ** 2) ** 0.5 + 1e-9
        )


def test_what_it_cannot_do_is_said_in_a_line(short: Task, rng: torch.Generator) -> None:
    standard, batch = trained_like("standard", (1, 1, 1), rng), sih.sample(short, 4, rng=rng)
    with pytest.raises(
        ValueError, match="by is 'paths', or 'blocks' for a disentangled model; got 'blocks'"
    ):
        evidence_flow(standard, short, batch, by="blocks")
    with pytest.raises(ValueError, match="needs two lags, two sequences and 5 positions"):
        evidence_flow(standard, short, Batch(batch.tokens[:1], batch.lags[:1]))
    with pytest.raises(ValueError, match="there is no evidence"):
        evidence_flow(sih.Transformer(3, 12, init="zeros"), short, batch)
