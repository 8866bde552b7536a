"""Which function draws which object: one for each class, and its file is loaded alone.

Figures of the paper are not here: a subject's `contents.py` names who draws each.
"""

from __future__ import annotations

import importlib
from typing import Any

FORMS = {
    "Batch": "sih.results.plots.batch:draw_batch",
    "ShownTask": "sih.results.plots.task:draw_task",
    "Model": "sih.results.plots.model:draw_model",
    "Trace": "sih.results.plots.trace:draw_trace",
    "Circuit": "sih.results.plots.heads:draw_circuit",
    "Pattern": "sih.results.plots.heads:draw_pattern",
    "Profile": "sih.results.plots.profile:draw_profile",
    "Verification": "sih.results.plots.verification:draw_verification",
    "Run": "sih.results.plots.run:draw_training",
    "Diagnosis": "sih.beyond.diagnosis.diagnosis_figure:draw_diagnosis",
    "EvidenceFlow": "sih.beyond.evidence_paths.evidence_flow_figure:draw_evidence_flow",
    "Discovery": "sih.beyond.discovery.discovery_figure:draw_discovery",
    "Inference": "sih.beyond.real_series.inference_figure:draw_inference",
}
"""The function of each class by the name of the class, as "module:function"."""


def draw(data: Any, **options: Any) -> Any:
    """Return a matplotlib figure of an object of one of these classes, or of a kind of it."""
    form = form_of(type(data))
    if not form:
        raise ValueError(f"there is no figure of a {type(data).__name__}")
    module, _, function = form.partition(":")
    return getattr(importlib.import_module(module), function)(data, **options)


def form_of(kind: type) -> str:
    """Return the name of the function that draws a class, nothing if there is none."""
    ours = (one.__name__ for one in kind.__mro__ if one.__module__.startswith("sih."))
    return next((FORMS[name] for name in ours if name in FORMS), "")
