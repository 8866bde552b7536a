"""Which function draws which data: the one whose argument is of its type. A form is a file of this folder."""

from collections.abc import Callable
from typing import Any, get_type_hints

from matplotlib.figure import Figure

from sih.experiments.table import EXPERIMENTS
from sih.figures.batch_panels import draw_batch
from sih.figures.beta_panels import draw_beta
from sih.figures.channel_bars import draw_channels
from sih.figures.channel_courses import draw_channel_courses
from sih.figures.claim_panels import draw_claim_cumulative, draw_claim_expectations, draw_claim_histogram
from sih.figures.class_chains import draw_theorem
from sih.figures.course_panels import draw_courses
from sih.figures.diagnosis_panels import draw_diagnosis
from sih.figures.discovery_points import draw_discovery
from sih.figures.error_points import draw_certificates
from sih.figures.head_cells import draw_head_counts
from sih.figures.head_points import draw_few_heads
from sih.figures.heat_maps import draw_attention_maps
from sih.figures.kl_curves import draw_constructions, draw_predictors, draw_trained
from sih.figures.matrix_pairs import draw_errata
from sih.figures.profile_panels import draw_profile
from sih.figures.rate_points import draw_wrong_lag
from sih.figures.scaling_panels import draw_scaling
from sih.figures.sequence_arrows import draw_teaser
from sih.figures.share_curves import draw_agreement
from sih.figures.stored_cells import draw_mechanism
from sih.figures.task_panels import draw_task
from sih.figures.trace_maps import draw_trace

Draw = Callable[..., Figure]
FORMS: tuple[Draw, ...] = (
    *(draw_teaser, draw_mechanism, draw_certificates, draw_beta, draw_wrong_lag, draw_head_counts, draw_errata),
    *(draw_claim_histogram, draw_claim_expectations, draw_claim_cumulative, draw_theorem),
    *(draw_predictors, draw_constructions, draw_trained, draw_scaling, draw_courses),
    *(draw_attention_maps, draw_agreement, draw_diagnosis, draw_channels, draw_channel_courses, draw_discovery),
    *(draw_few_heads, draw_profile, draw_task, draw_batch, draw_trace),
)
_BY_TYPE: dict[type, Draw] = {get_type_hints(draw)["data"]: draw for draw in FORMS}
FIGURES: dict[str, Draw] = {name: _BY_TYPE[experiment.data] for name, experiment in EXPERIMENTS.items()}
"""What draws each experiment's data, by the experiment's name and in its order."""


def draw(data: Any, **options: Any) -> Figure:
    """Draw data of a type that one of the forms is for, or of a kind of it."""
    form = next((_BY_TYPE[kind] for kind in type(data).__mro__ if kind in _BY_TYPE), None)
    if form is None:
        raise ValueError(f"there is no figure of a {type(data).__name__}")
    return form(data, **options)
