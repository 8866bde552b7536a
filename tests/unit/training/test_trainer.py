from __future__ import annotations

import dataclasses
import itertools
import json
import math

import pytest
import torch
from torch import Tensor

import sih
from sih.training.presets import PRESETS
from sih.training.recipes.harmonic_positions import harmonics
from sih.training.trainer import DivergedError, Model, TrainConfig, Trainer, train

SMALL = TrainConfig(
    lags=(1, 2), states=3, length=12, heads=(1, 2), dim=8, qk_dim=4, steps=6, batch=5, evaluate_every=4, held_out=7
)


def small(**changes: object) -> TrainConfig:
    return dataclasses.replace(SMALL, **changes)  # type: ignore[arg-type]


def test_the_defaults_are_the_papers() -> None:
    config = PRESETS["paper"]()
    assert (config.batch, config.length, config.states, config.learning_rate) == (256, 128, 5, 1e-3)
    assert (config.schedule, config.warmup, config.betas) == ("constant", 0, (0.9, 0.999))
    assert (config.model, config.dim, config.qk_dim) == ("standard", 64, 32)
    assert PRESETS["paper-disentangled"]().build().config.temperature == math.sqrt(32)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_takes_what_it_is_given(name: str) -> None:
    config = PRESETS[name](lags=(1, 3), steps=17, seed=5)
    assert (config.lags, config.steps, config.seed) == ((1, 3), 17, 5)


def test_the_harmonic_recipe_fits_either_model() -> None:
    for model in ("standard", "disentangled"):
        config = PRESETS["harmonic"](model=model)
        assert (config.model, config.init, config.length) == (model, "harmonic", 128)
        assert [length for _, length in config.shorter] == [32, 64]
        assert 0 < config.held < config.shorter[0][0] < config.shorter[1][0] < config.steps
        assert PRESETS["harmonic"](model=model, length=32, steps=3).shorter == ()


def plain_adam(config: TrainConfig) -> tuple[list[float], dict[str, Tensor]]:
    """The paper's loop in the open: Kingma and Ba's Algorithm 1, cross-entropy by the definition."""
    rng = torch.Generator().manual_seed(config.seed)
    model = config.build(rng)
    task = config.task()
    weights = dict(model.named_parameters())
    first = {name: torch.zeros_like(weight) for name, weight in weights.items()}
    second = {name: torch.zeros_like(weight) for name, weight in weights.items()}
    losses = []
    for step in range(1, config.steps + 1):
        tokens = sih.sample(task, config.batch, rng=rng).tokens
        laws = model.predict(tokens)
        total = torch.zeros(())
        for row in range(config.batch):
            for i in range(config.length - 1):
                total = total - laws[row, i, tokens[row, i + 1]].log()
        loss = total / (config.batch * (config.length - 1))
        grads = torch.autograd.grad(loss, list(weights.values()))
        losses.append(loss.item())
        b1, b2 = config.betas
        with torch.no_grad():
            for (name, weight), grad in zip(weights.items(), grads, strict=True):
                first[name] = b1 * first[name] + (1 - b1) * grad
                second[name] = b2 * second[name] + (1 - b2) * grad**2
                m, v = first[name] / (1 - b1**step), second[name] / (1 - b2**step)
                weight.sub_(config.learning_rate * m / (v.sqrt() + 1e-8))
    return losses, {name: weight.detach() for name, weight in weights.items()}


@pytest.mark.parametrize("model", ["standard", "disentangled"])
def test_training_is_adam_on_the_cross_entropy_of_fresh_batches(model: str) -> None:
    config = small(model=model, seed=4)
    losses, weights = plain_adam(config)
    *_, last = steps = list(train(config))
    assert [step.loss for step in steps[1:]] == pytest.approx(losses, rel=1e-5)
    for name, weight in last.model.named_parameters():
        assert (weight - weights[name]).abs().max() < 2e-5, name


def test_steps_and_evaluations() -> None:
    steps = list(train(SMALL))
    assert [step.step for step in steps] == list(range(7))
    assert [step.step for step in steps if step.evaluation] == [0, 4, 6]
    assert steps[0].loss is None
    last = steps[-1].evaluation
    assert last is not None
    task = SMALL.task()
    batch = SMALL.held_out_batch(task)
    for found, law in (
        (last.mean_kl, steps[-1].model.predict(batch.tokens)),
        (last.ml_kl, sih.maximum_likelihood(batch.tokens, task)),
        (last.bma_kl, sih.bma(batch.tokens, task)),
    ):
        kl = sih.kl_to_truth(law.detach().double(), batch, task)
        assert found == pytest.approx(sih.mean_kl(kl, task).mean().item(), rel=1e-6)


def test_training_learns() -> None:
    config = small(steps=150, learning_rate=1e-2, batch=32, held_out=64)
    found = [step.evaluation.mean_kl for step in train(config) if step.evaluation]
    assert found[-1] < 0.5 * found[0]


def test_same_seed_same_bits_and_another_seed_others() -> None:
    def final(config: TrainConfig) -> Tensor:
        *_, last = train(config)
        return torch.cat([weight.detach().flatten() for weight in last.model.parameters()])

    assert torch.equal(final(SMALL), final(SMALL))
    assert not torch.equal(final(SMALL), final(small(seed=1)))
    assert torch.equal(small(seed=1).task().P, SMALL.task().P)  # the matrix has a seed of its own
    assert not torch.equal(small(matrix_seed=1).task().P, SMALL.task().P)


@pytest.mark.parametrize(
    ("model", "init"), [("standard", "uniform"), ("disentangled", "uniform"), ("disentangled", "harmonic")]
)
def test_a_restored_trainer_goes_on_bit_for_bit(model: str, init: str) -> None:
    config = small(model=model, init=init, schedule="cosine", warmup=2)
    whole = Trainer(config)
    for _ in range(3):
        whole.advance()
    state = whole.state()
    other = Trainer(config)
    other.restore(state)
    for _ in range(3):
        assert whole.advance().loss == other.advance().loss
    for (name, a), b in zip(whole.state().items(), other.state().values(), strict=True):
        assert torch.equal(a, b), name


def test_a_state_is_a_copy_and_must_fit() -> None:
    trainer = Trainer(SMALL)
    state = trainer.state()
    trainer.advance()
    assert not torch.equal(state["model/readout"], trainer.state()["model/readout"])
    with pytest.raises(ValueError, match="does not fit"):
        Trainer(small(dim=10)).restore(state)


def test_schedules() -> None:
    assert [small(learning_rate=2.0).rate(n) for n in range(3)] == [2.0, 2.0, 2.0]
    falling = small(learning_rate=2.0, schedule="cosine", steps=4)
    assert [falling.rate(n) for n in range(5)] == pytest.approx([2, 1 + math.sqrt(0.5), 1, 1 - math.sqrt(0.5), 0])
    assert [small(learning_rate=2.0, warmup=4).rate(n) for n in range(5)] == [0.5, 1.0, 1.5, 2.0, 2.0]


def test_shorter_sequences_come_first_and_leave_harmonic_positions_alone() -> None:
    config = small(init="harmonic", max_period=4, dim=12, shorter=((2, 4), (4, 6)))
    assert [config.length_at(n) for n in range(6)] == [4, 4, 6, 6, 12, 12]
    trainer = Trainer(config)
    before = trainer.state()["model/position"]
    for _ in range(4):
        assert trainer.advance().loss is not None
    assert torch.equal(trainer.state()["model/position"], before)
    trainer.advance()
    assert not torch.equal(trainer.state()["model/position"], before)


def test_harmonics_know_residues() -> None:
    """1[i - j = 0 mod n] - 1/n is a bilinear form of the rows: its projection on such forms is itself."""
    F = harmonics(30, 5)
    assert F.square().sum(dim=1).tolist() == pytest.approx([9.0] * 30)
    i = torch.arange(30)
    inverse = torch.linalg.pinv(F)
    for n in (2, 3, 4, 5):
        wanted = ((i[:, None] - i) % n == 0).double() - 1 / n
        assert (F @ (inverse @ wanted @ inverse.T) @ F.T - wanted).abs().max() < 1e-9
    wanted = ((i[:, None] - i) % 7 == 0).double()
    assert (F @ (inverse @ wanted @ inverse.T) @ F.T - wanted).abs().max() > 0.1


def test_while_held_each_layer_keeps_to_its_part() -> None:
    config = small(init="harmonic", max_period=4, heads=(1, 2, 1), held=3, dim=12)  # 5 + 3 + 4 coordinates
    trainer = Trainer(config)
    begin = trainer.state()
    assert begin["model/token"][:, :8].abs().max() == 0
    assert begin["model/position"][:, 5:].abs().max() == 0
    assert begin["model/position"].norm(dim=1).tolist() == pytest.approx([math.sqrt(12)] * 12, rel=1e-5)
    for _ in range(3):
        trainer.advance()
    held = trainer.state()
    assert held["model/token"][:, :8].abs().max() == 0
    for outside in (slice(5), slice(8, 12)):
        assert held["model/readout"][:, outside].abs().max() == 0
    for name in ("Q", "K"):
        assert held[f"model/layers.0.{name}"][:, :5].abs().max() == 0
        assert (held[f"model/layers.0.{name}"] != begin[f"model/layers.0.{name}"]).any()
    assert held["model/layers.0.V"][:, 5:].abs().max() == 0
    for name in ("Q", "K", "V"):
        assert torch.equal(held[f"model/layers.1.{name}"], begin[f"model/layers.1.{name}"])
        assert not torch.equal(held[f"model/layers.2.{name}"], begin[f"model/layers.2.{name}"])
    trainer.advance()
    free = trainer.state()
    assert free["model/layers.0.V"][:, 5:].abs().max() > 0
    assert not torch.equal(free["model/layers.1.Q"], begin["model/layers.1.Q"])


def adam_on_tables(config: TrainConfig) -> dict[str, Tensor]:
    """Adam where autograd goes all the way to the tables: A as a sum over indicators, one table entry at a time."""
    rng = torch.Generator().manual_seed(config.seed)
    shared = config.build_shared(rng)
    model, task = shared.model, config.task()
    tables = {name: table.detach().clone().requires_grad_() for name, table in shared.tables.items()}
    effects: dict[str, dict[str, Tensor]] = {}  # what one unit of each entry does to the model's weights
    for name, own in shared.tables.items():
        columns = []
        for entry in itertools.product(*map(range, own.shape)):
            for other in shared.tables.values():
                other.data.zero_()
            own.data[entry] = 1
            shared.spread()
            columns.append({key: weight.detach().clone() for key, weight in model.named_parameters()})
        effects[name] = {key: torch.stack([column[key] for column in columns], dim=-1) for key in columns[0]}
    moments = {name: (torch.zeros_like(table), torch.zeros_like(table)) for name, table in tables.items()}
    weights: dict[str, Tensor] = {}
    for step in range(1, config.steps + 2):
        weights = {key: torch.zeros(weight.shape) for key, weight in model.named_parameters()}
        for name, table in tables.items():
            weights = {key: weight + effects[name][key] @ table.flatten() for key, weight in weights.items()}
        if step > config.steps:
            break
        tokens = sih.sample(task, config.batch, rng=rng).tokens
        output = torch.func.functional_call(model, weights, (tokens,))
        loss = torch.nn.functional.cross_entropy(output[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
        grads = torch.autograd.grad(loss, list(tables.values()))
        b1, b2 = config.betas
        with torch.no_grad():
            for (name, table), grad in zip(tables.items(), grads, strict=True):
                grad = grad * shared.moves(name) if step <= config.held else grad
                m, v = moments[name]
                m.mul_(b1).add_((1 - b1) * grad)
                v.mul_(b2).add_((1 - b2) * grad**2)
                table.sub_(config.learning_rate * (m / (1 - b1**step)) / ((v / (1 - b2**step)).sqrt() + 1e-8))
    return {key: weight.detach() for key, weight in weights.items()}


def test_a_disentangled_models_tables_are_moved_by_adam() -> None:
    config = TrainConfig(
        model="disentangled", lags=(1, 2), states=2, length=5, heads=(1, 1), init="harmonic", max_period=2, steps=5,
        batch=16, learning_rate=0.02, held=2, held_out=4,
    )  # fmt: skip
    *_, last = train(config)
    tokens = config.held_out_batch(config.task()).tokens
    expected = torch.func.functional_call(last.model, adam_on_tables(config), (tokens,)).softmax(-1)
    # By their laws: a constant added to all scores of a row changes none, and Adam turns its rounding into steps.
    assert (last.model.predict(tokens) - expected).abs().max() < 2e-4
    assert (_built(config).predict(tokens) - expected).abs().max() > 0.02


def test_a_disentangled_model_keeps_to_its_parts_while_held_and_to_its_tables_for_ever() -> None:
    config = small(model="disentangled", init="harmonic", max_period=3, heads=(1, 2, 1), held=2, shorter=((3, 6),))
    trainer = Trainer(config)
    assert all(torch.equal(a, b) for a, b in zip(trainer.model.parameters(), _built(config).parameters(), strict=True))
    begin = trainer.state()
    for _ in range(2):
        trainer.advance()
    held = trainer.state()
    assert torch.equal(held["model/A.1"], begin["model/A.1"])
    assert not held["table/1/position/position"].any()
    assert not torch.equal(held["table/1/token/token"], begin["table/1/token/token"])
    trainer.advance()
    trainer.advance()
    free = trainer.state()
    assert not torch.equal(free["model/A.1"], begin["model/A.1"])
    assert free["table/1/position/position"].any()
    assert isinstance(trainer.model, sih.DisentangledTransformer)
    block = trainer.model.block("1.1", "position", "position")
    assert torch.equal(block[1:, 1:], block[:-1, :-1])


def _built(config: TrainConfig) -> Model:
    return config.build(torch.Generator().manual_seed(config.seed))


def test_a_loss_that_is_no_number_stops_the_run() -> None:
    trainer = Trainer(SMALL)
    with torch.no_grad():
        trainer.model.get_parameter("readout")[0, 0] = math.nan
    with pytest.raises(DivergedError, match=r"step 1, learning rate 0\.001"):
        trainer.advance()
    assert trainer.step == 0


def test_a_configuration_survives_json() -> None:
    P = ((0.5, 0.25, 0.25), (0.2, 0.3, 0.5), (1 / 3, 1 / 3, 1 / 3))
    for config in (SMALL, small(matrix=P), small(shorter=((3, 5),))):
        assert TrainConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert small(matrix=P).task().P.tolist() == [list(row) for row in P]
    with pytest.raises(ValueError, match="no field 'colour'"):
        TrainConfig.from_dict({"colour": 1})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "convolution"}, "model must be one of standard, disentangled; got 'convolution'"),
        ({"lags": (2, 1)}, "increasing"),
        ({"heads": ()}, "heads"),
        ({"steps": 0}, "steps must be a whole number, at least 1; got 0"),
        ({"batch": -1}, "batch"),
        ({"learning_rate": math.nan}, "learning_rate is a positive number"),
        ({"betas": (0.9, 1.0)}, "betas"),
        ({"warmup": 7}, "0 to 6; got 7"),
        ({"schedule": "square"}, "schedule"),
        ({"stored": "int8"}, "stored must be one of float32, float16; got 'int8'"),
        ({"init": "magic"}, "init must be one of"),
        ({"init": "harmonic", "max_period": 9}, "takes 27 of dim=8"),
        ({"shorter": ((3, 12),)}, "shorter"),
        ({"shorter": ((3, 5), (2, 6))}, "shorter"),
        ({"seed": -1}, "seed"),
        ({"length": 2}, "above the largest lag"),
        ({"matrix": ((0.5, 0.5), (0.5, 0.5))}, "states=3 does not fit"),
        ({"concentration": -1.0}, "concentration"),
    ],
)
def test_bad_configurations_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        small(**changes)
