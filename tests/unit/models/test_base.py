"""What every kind of model does alike."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
import torch

import sih
from sih.models import CLASSES, KINDS, Model
from sih.models.fast import compiled


@pytest.fixture(params=list(KINDS))
def model(request: pytest.FixtureRequest, rng: torch.Generator) -> Model:
    return KINDS[request.param].Shape().build(3, 4, init="uniform", rng=rng)


def test_a_shape_builds_its_kind(model: Model) -> None:
    assert KINDS[model.Shape.kind] is type(model)
    assert (model.config.num_states, model.config.length) == (
        3,
        None if model.Shape.kind.startswith("relative") else 4,
    )
    empty = model.Shape().build(3, 4)
    assert empty.config == model.config
    assert all(weight.abs().max() == 0 for weight in empty.parameters())
    assert repr(empty) == repr(model)
    assert f"heads={model.config.heads}" in repr(model)


def test_a_configuration_makes_the_model_again(model: Model) -> None:
    again = type(model).from_config(model.config)
    assert again.config == model.config
    again.load_state_dict(model.state_dict())
    tokens = torch.tensor([[0, 1, 2]])
    assert torch.equal(again(tokens), model(tokens))


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_written_constructor_has_the_fields_of_its_configuration(kind: type[Model]) -> None:
    """Sizes stand in the shape, and again where editors see them: by the same names and defaults."""
    arguments = dict(inspect.signature(kind).parameters)
    assert [arguments.pop(name).default for name in ("init", "rng")] == ["uniform", None]
    fields = {field.name: field for field in dataclasses.fields(kind.Config) if field.init}
    assert arguments.keys() == fields.keys()
    for shape in dataclasses.fields(kind.Shape):
        if shape.name in arguments and arguments[shape.name].default is not inspect.Parameter.empty:
            own = arguments[shape.name].default
            assert own == shape.default or (own,) == shape.default, shape.name


def test_all_paths_agree_and_the_usual_one_is_taken(model: Model) -> None:
    tokens = torch.tensor([[0, 1, 2, 1], [2, 2, 0, 1]])
    with torch.no_grad():
        assert torch.equal(model(tokens), model(tokens, path=model.usual_path()))
        for path in model.paths:
            if path == "compiled" and compiled.library() is None:
                continue  # no C compiler on this machine
            torch.testing.assert_close(
                model(tokens, path=path), model(tokens, path=model.paths[-1])
            )
            torch.testing.assert_close(model.trace(tokens, path=path).output, model(tokens))
    for call in (model, model.trace):
        with pytest.raises(
            ValueError, match=f"path must be one of {', '.join(model.paths)}; got 'fast'"
        ):
            call(tokens, path="fast")


def test_predict_is_a_law_whatever_the_readout() -> None:
    tokens = torch.tensor([[0, 1, 2, 1]])
    logit = sih.DisentangledTransformer(3, 4, heads=(1, 1), dtype=torch.float64)
    torch.testing.assert_close(logit.predict(tokens), torch.softmax(logit(tokens), dim=-1))
    law = sih.DisentangledTransformer(
        3, 4, heads=(1,), readout="probability", init="zeros", dtype=torch.float64
    )
    law.readout_block("1.1/token").copy_(torch.full((3, 3), 1 / 3))
    assert torch.equal(law.predict(tokens), law(tokens))
    torch.testing.assert_close(law.predict(tokens).sum(-1), torch.ones(1, 4).double())


def test_bad_tokens_are_one_clear_error(model: Model) -> None:
    too_long = (torch.zeros(1, 5, dtype=torch.int64), r"time 1 to 4; got shape \(1, 5\)")
    empty = (torch.zeros(1, 0, dtype=torch.int64), r"time .*1.*; got shape \(1, 0\)")
    for tokens, message in (
        empty if model.config.length is None else too_long,
        (torch.tensor([[0, 3]]), "states 0 to 2; got 3"),
        (torch.tensor([[0, -1]]), "states 0 to 2; got -1"),
    ):
        for call in (model, model.trace, model.run):
            with pytest.raises(ValueError, match=message):
                call(tokens)


def test_contributions_of_a_sum_add_up_to_the_output(model: Model) -> None:
    trace = model.trace(torch.tensor([[0, 1, 2, 1]]))
    parts = model.contributions(trace)
    if parts:  # of a kind that adds up
        torch.testing.assert_close(sum(parts.values()), trace.output)
    assert bool(parts) == (model.Shape.kind in ("standard", "relative"))


@pytest.mark.parametrize("kind", ["standard", "disentangled"])
@pytest.mark.parametrize(("kept", "other"), [("token", "position"), ("position", "token")])
def test_direct_scores_are_those_of_a_pass_that_has_nothing_else(
    kind: str, kept: str, other: str
) -> None:
    model = KINDS[kind].Shape().build(3, 8, init="uniform", rng=torch.Generator().manual_seed(0))
    tokens = torch.randint(3, (2, 8), generator=torch.Generator().manual_seed(1))
    scores = model.run(tokens, replace={other: 0.0})["1.1/scores"]
    index = tokens if kept == "token" else torch.arange(8).expand(2, -1)
    wanted = model.direct_scores("1.1")[kept][index[:, :, None], index[:, None, :]]
    assert torch.allclose(scores.tril(), wanted.tril(), atol=1e-5)
    attention = model.direct_attention()["1.1"][kept]
    assert torch.allclose(attention.sum(dim=-1), torch.ones(len(attention)))
    assert kept == "token" or not attention.triu(1).any()
