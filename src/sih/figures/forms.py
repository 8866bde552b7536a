"""Which function draws which object: one for each class, and its file is loaded alone.

Figures of the paper are not here: a subject's `contents.py` names who draws each.
"""

from __future__ import annotations

import importlib
from typing import Any

FORMS = {
    "Batch": "sih.figures.batch_panels:draw_batch",
    "ShownTask": "sih.figures.task_panels:draw_task",
    "Model": "sih.figures.model_maps:draw_model",
    "Trace": "sih.figures.trace_maps:draw_trace",
    "Circuit": "sih.figures.head_cells:draw_circuit",
    "Pattern": "sih.figures.head_cells:draw_pattern",
    "Profile": "sih.figures.profile_panels:draw_profile",
    "Verification": "sih.figures.verification_points:draw_verification",
    "Run": "sih.figures.course_panels:draw_training",
    "Diagnosis": "sih.figures.diagnosis_panels:draw_diagnosis",
    "EvidenceFlow": "sih.figures.flow_bars:draw_evidence_flow",
    "Discovery": "sih.figures.discovery_points:draw_discovery",
    "Inference": "sih.figures.inference_panels:draw_inference",
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
