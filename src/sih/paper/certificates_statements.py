"""Statements on the functions that weights compute (Secs. 5.1 and 5.4)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sih.paper import certificates
from sih.paper.certificates import CertificateErrors
from sih.results.judging import BEYOND, Measured, Rule, Statement
from sih.results.tables import braces

EXACT = Rule("at most", 1e-9, 1e-6)
"""Error of float64 in circuits of this size: about 1e-13."""


def _errors(circuit: str, data: CertificateErrors) -> list[Measured]:
    """Return a circuit's error for each lag set that allows it."""
    each = zip(data.config.lag_sets, data.error, strict=True)
    return [
        Measured(error[circuit], None, braces(lags)) for lags, error in each if circuit in error
    ]


def _certified(id: str, section: str, text: str, circuit: str) -> Statement[CertificateErrors]:
    quantity = "largest difference between weights that were run and the closed form, over lag "
    "sets and sequences"
    remark = (
        "The closed form is the corrected one (errata), from the first position where it holds."
    )
    measure = partial(_errors, circuit)
    return Statement(
        id,
        section,
        text,
        certificates.EXPERIMENT,
        measure,
        EXACT,
        "largest error",
        quantity,
        remark,
    )


def _from_equation_3(data: CertificateErrors) -> list[Measured]:
    """Return the error of the circuit with a sink, and the error of the paper's weights
    without one.
    """
    with_sink = [
        replace(one, label=f"{one.label}, with a sink")
        for one in _errors(certificates.PRINTED_SINK, data)
    ]
    each = {
        certificates.PRINTED: "without a sink",
        certificates.PRINTED_LATE: "without a sink, in the last half",
    }
    without = [
        replace(one, label=f"{one.label}, {words}", variant=True)
        for circuit, words in each.items()
        for one in _errors(circuit, data)
    ]
    return with_sink + without


PROPOSITION = Statement(
    "prop-1", "Sec. 5.1, Prop. 1",
    "For contiguous lags a three-layer disentangled transformer with one second-layer head a lag "
    "mixes the rows of P "
    "with weights exponential in the averaged normalised probabilities.",
    certificates.EXPERIMENT, _from_equation_3, EXACT, "largest error",
    "largest difference between the third layer's weights and Eq. (3) itself, at every position "
    "past the largest lag, "
    "over lag sets and sequences",
    "Exact with a sink at the first position. The weights as Sec. 5.1 has them, without one, are "
    "far off in early rows, where a head has nothing to average, and come close in long sequences "
    "(errata 4 and 5).",
)  # fmt: skip

ANY_LAGS = _certified(
    "any-lags", "Sec. 5.4, Apps. F and G",
    "The construction extends to lags that are not contiguous, with a third layer that compares "
    "positions.",
    "third layer by positions",
)  # fmt: skip

TWO_LAGS = _certified(
    "two-lags", "Sec. 5.4, App. H",
    "For two lags, contiguous or not, another third layer lets a single second-layer head use the "
    "whole past.",
    "two lags, 1 head",
)  # fmt: skip

BAYES_WEIGHTS = Statement(
    "ours-bayes-weights", BEYOND,
    "A three-layer attention-only transformer can hold the exact posterior over lags in its last "
    "layer's attention: "
    "temper the first layer, add up in the second, scale the third.",
    certificates.EXPERIMENT, partial(_errors, certificates.POSTERIOR), Rule("at most", 1e-5, 1e-3), "largest error",
    "largest difference of an attention weight from the posterior, over lag sets and sequences, "
    "float64",
)  # fmt: skip

STATEMENTS = (PROPOSITION, ANY_LAGS, TWO_LAGS, BAYES_WEIGHTS)
