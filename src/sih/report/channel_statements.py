"""States by causal evidence what attention maps state by likeness (Sec. 6): that layer 2 carries what layer 3 reads.

In the construction layer 3 chooses by what the heads of layer 2 carried. The other channel is where they looked.
"""

from collections.abc import Iterable

from sih.analysis.channels import Channels
from sih.experiments import channel_account, channel_course
from sih.experiments.channel_account import Accounts
from sih.experiments.channel_course import ChannelCourses
from sih.experiments.compared import usual_heads
from sih.report.rules import BEYOND, Measured, Rule, Statement, median_and_range, require

CARRIED = Rule("at least", 0.75, 0.5)
QUANTITY = (
    "what is carried, as a share of what is carried and what is looked, of the evidence in layer 3's scores "
    "(sih.evidence_flow); 1 for the construction, 0 for the looking circuit; the median model, and the range"
)
REMARK = "Part of the evidence is in where layer 2 looked: see figure channels and docs/mechanism.md."


def carried(found: Channels) -> float:
    """Give the carried share of what came through the layers between."""
    (looked, _), (held, _) = found.shares["looked"], found.shares["carried"]
    return held / (looked + held)


def _of_recipe(data: Accounts) -> Measured:
    wanted = {name: one for name, one in data.models.items() if not one.plain and one.heads == usual_heads(one.lags)}
    return _median(Measured(carried(one.channels), None, name, models=(name,)) for name, one in wanted.items())


def _of_plain(data: ChannelCourses) -> Measured:
    found = []
    for course in (one for one in data.courses if one.plain and one.points):
        last = course.points[-1]
        open_end = "" if course.settled else f"at {last.step:,} steps of {course.name}"
        label = f"{course.name} at {last.step:,} steps"
        found.append(Measured(carried(last.channels), None, label, models=(course.name,), unsettled=open_end))
    return _median(found)


def _median(found: Iterable[Measured]) -> Measured:
    each = require(list(found), "no such trained model is there")
    middle = median_and_range(each)
    open_end = "; ".join(one.unsettled for one in each if one.unsettled)
    return Measured(middle.value, middle.interval, parts=middle.parts, models=middle.models, unsettled=open_end)


PLAIN_CARRIES = Statement(
    "plain-layer-2-carries", BEYOND,
    "Trained as the paper trains, the third layer chooses by what the second carried, as in the construction.",
    channel_course.EXPERIMENT, _of_plain, CARRIED, "share", QUANTITY, REMARK,
)  # fmt: skip
RECIPE_CARRIES = Statement(
    "recipe-layer-2-carries", BEYOND,
    "Trained with our recipe, the third layer chooses by what the second carried, as in the construction.",
    channel_account.EXPERIMENT, _of_recipe, CARRIED, "share", QUANTITY, REMARK,
)  # fmt: skip
