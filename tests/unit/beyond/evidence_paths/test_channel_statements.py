"""Statements on channels, on made-up data whose answer is known."""

from typing import Any

import pytest
from support.findings import MORE

from sih.beyond.evidence_paths.channel_shares import Channels
from sih.beyond.evidence_paths.channels import AccountConfig, Accounts, ModelAccount
from sih.beyond.evidence_paths.channels_statements import PLAIN_CARRIES, RECIPE_CARRIES
from sih.results.models import TrainedModel


def channels(carried: float, looked: float) -> Channels:
    return Channels({}, {}, {}, {"carried": (carried, 0.01), "looked": (looked, 0.01)}, {})


def accounts(
    training: Any = "SOAP", length: int = 128, unsettled: str = "", **carried: float
) -> Accounts:
    models = {}
    for name, share in carried.items():
        model = TrainedModel(
            name, "standard", (1, 2, 3), length, (1, 3, 1), training, 0, None, unsettled=unsettled
        )
        models[name] = ModelAccount(model, channels(0.8 * share, 0.8 * (1 - share)), None, {})
    return Accounts(AccountConfig(), models, {}, ())


def test_the_median_model_of_the_recipe_decides() -> None:
    of_soap, tied, _ = RECIPE_CARRIES
    found = of_soap.judge(accounts(a=0.2, b=0.3, c=0.9))
    assert found.verdict == "does not hold"
    assert found.measured is not None
    assert found.measured.value == pytest.approx(0.3)
    assert found.measured.interval == pytest.approx((0.2, 0.9))
    assert of_soap.judge(accounts(a=0.8, b=0.9)).verdict == "holds"
    assert of_soap.judge(accounts()).verdict == "not measured"
    assert tied.judge(accounts(a=0.8)).verdict == "not measured"


def test_plain_models_at_the_papers_length_decide() -> None:
    assert PLAIN_CARRIES.judge(accounts("paper", a=0.8)).verdict == "holds"
    assert PLAIN_CARRIES.judge(accounts("paper", a=0.6)).verdict == "holds with a remark"
    assert PLAIN_CARRIES.judge(accounts("paper", a=0.1)).verdict == "does not hold"
    assert (
        PLAIN_CARRIES.judge(accounts("paper", length=32, a=0.1)).verdict
        == "not measured at the paper's length"
    )
    unsettled = PLAIN_CARRIES.judge(accounts("paper", unsettled="at 9 steps", a=0.1))
    assert (unsettled.verdict, "at 9 steps" in unsettled.remark) == ("unsettled", True)
    assert PLAIN_CARRIES in MORE
