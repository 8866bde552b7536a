"""Which function draws which data. A form of drawing is a file of this folder; figures of one type of data share it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure

from sih.experiments.agreement import Agreements
from sih.experiments.attention_maps import AttentionMaps
from sih.experiments.beta import BetaCurves
from sih.experiments.certificates import CertificateErrors
from sih.experiments.claim_cumulative import CumulativePaths
from sih.experiments.claim_expectations import ExpectationBars
from sih.experiments.claim_histogram import ClaimMargins
from sih.experiments.claim_theorem import TheoremCover
from sih.experiments.constructions import ConstructionCurves
from sih.experiments.errata import Errata
from sih.experiments.head_counts import HeadCounts
from sih.experiments.mechanism import Mechanism
from sih.experiments.reference_predictors import PredictorCurves
from sih.experiments.scaling import ScalingCurves
from sih.experiments.table import EXPERIMENTS
from sih.experiments.teaser import Teaser
from sih.experiments.trained import TrainedCurves
from sih.experiments.training_courses import TrainingCourses
from sih.experiments.wrong_lag import WrongLagRates
from sih.figures.beta_panels import draw_beta
from sih.figures.claim_panels import draw_claim_cumulative, draw_claim_expectations, draw_claim_histogram
from sih.figures.class_chains import draw_theorem
from sih.figures.course_panels import draw_courses
from sih.figures.error_points import draw_certificates
from sih.figures.head_cells import draw_head_counts
from sih.figures.heat_maps import draw_attention_maps
from sih.figures.kl_curves import draw_constructions, draw_predictors, draw_trained
from sih.figures.matrix_pairs import draw_errata
from sih.figures.rate_points import draw_wrong_lag
from sih.figures.scaling_panels import draw_scaling
from sih.figures.sequence_arrows import draw_teaser
from sih.figures.share_curves import draw_agreement
from sih.figures.stored_cells import draw_mechanism

FORMS: dict[type, Callable[[Any], Figure]] = {
    Teaser: draw_teaser,
    Mechanism: draw_mechanism,
    CertificateErrors: draw_certificates,
    ClaimMargins: draw_claim_histogram,
    ExpectationBars: draw_claim_expectations,
    CumulativePaths: draw_claim_cumulative,
    TheoremCover: draw_theorem,
    BetaCurves: draw_beta,
    PredictorCurves: draw_predictors,
    ConstructionCurves: draw_constructions,
    TrainedCurves: draw_trained,
    AttentionMaps: draw_attention_maps,
    Agreements: draw_agreement,
    ScalingCurves: draw_scaling,
    WrongLagRates: draw_wrong_lag,
    HeadCounts: draw_head_counts,
    Errata: draw_errata,
    TrainingCourses: draw_courses,
}
FIGURES: dict[str, Callable[[Any], Figure]] = {name: FORMS[experiment.data] for name, experiment in EXPERIMENTS.items()}
"""What draws each experiment's data, by the experiment's name and in its order."""
