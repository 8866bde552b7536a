"""Bars of the evidence paths, one line per model, with the cost of each in KL."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.beyond.evidence_paths.channel_shares import Channels
from sih.beyond.evidence_paths.channels import (
    Accounts,
)
from sih.results import style
from sih.results.beside import (
    heads_label,
)
from sih.results.tables import Rows, with_error

CAPTION = (
    "How the evidence for a lag reaches the last layer's scores, in every trained model of three layers or more. "
    "Left: share of the evidence by path: the attention patterns of the heads before the last layer, the values that "
    "they copy, layer 1 read directly, and the embedding (token and position); bars are one standard error. Right: "
    "mean KL of the unmodified model (black), and with these heads' patterns (orange), values (blue) or both (grey) "
    "mean-ablated in the last layer's scores only. Models trained by unaided Adam come first, then those of the "
    "presets auto and harmonic. Fresh sequences of each model's task; `sih models` has KL/ML on more sequences."
)

PATHS = {"looked": "patterns", "carried": "values", "direct": "layer 1", "embedding": "embedding"}
"""The readers' names of the evidence paths, by their names in `EvidenceFlow.channels`."""
SHARES = {
    "looked": style.ORANGE,
    "carried": style.BLUE,
    "direct": style.GREEN,
    "embedding": style.PURPLE,
}

COSTS = {
    "intact": (style.BLACK, "o", "unmodified"),
    "attention": (style.ORANGE, "s", "patterns mean-ablated"),
    "values": (style.BLUE, "D", "values mean-ablated"),
    "both": ("#999999", "x", "both mean-ablated"),
}


def draw(data: Accounts) -> Figure:
    """Draw shares on the left and mean KL on the right, models trained as in the paper
    first.
    """
    labels = {
        name: name
        + ("  (unaided)" if one.model.training == "paper" and not name.startswith("paper-") else "")
        for name, one in data.models.items()
    }
    with style.paper_figure(1.25 * style.PAGE, 0.19 * len(labels) + 1.1) as figure:
        left, right = figure.subplots(1, 2, sharey=True, gridspec_kw={"width_ratios": (1.2, 1)})
        draw_rows(left, right, {labels[name]: one.channels for name, one in data.models.items()})
        figure.set_layout_engine("constrained", w_pad=0.12)  # long names
        figure.legend(loc="outside lower center", ncols=4)
    return figure


def draw_rows(left: Axes, right: Axes, rows: Mapping[str, Channels]) -> None:
    """Draw one row per measured model, the first on top."""
    for y, found in enumerate(rows.values()):
        start = 0.0
        for name, colour in SHARES.items():
            share, error = found.shares.get(name, (0.0, 0.0))
            label = PATHS[name] if y == 0 else None
            left.barh(y, max(share, 0.0), left=start, height=0.7, color=colour, label=label, lw=0)
            if name in ("looked", "carried"):
                left.errorbar(start + max(share, 0.0), y, xerr=error, color="black", lw=0.7)
            start += max(share, 0.0)
        for name, (colour, marker, said) in COSTS.items():
            mean, error = found.kl[name]
            said = said if y == 0 else ""
            right.errorbar(
                [mean],
                [y],
                xerr=[error],
                label=said,
                color=colour,
                marker=marker,
                ms=3,
                lw=0.7,
                ls="",
            )
    left.set_yticks(range(len(rows)), list(rows), fontsize=6)
    left.set_ylim(len(rows) - 0.5, -0.5)
    left.set(xlim=(0, 1.02), xlabel="share of the evidence in the last layer's scores")
    right.set(xscale="log", xlabel="mean KL to the truth")
    right.grid(True, axis="x", which="major", lw=0.3, alpha=0.5)


def table(data: Accounts) -> Rows:
    """Return one row per model, and one per circuit."""
    changes = ("attention", "values", "both", "layer 1 at keys")
    ablated = [f"{what}, mean-ablated" for what in changes]
    patched = ["attention of the patch source", "values of the patch source"]
    shares = ["patterns", "values", "layer 1"]
    phases_of = ["periods of layer 2", "votes: key's row", "query's row", "layer 1 with log P"]
    head = ["model", "heads", "recipe", "unmodified", *ablated, *patched, *shares, *phases_of]
    rows = [head]
    for name, one in data.models.items():
        found, phases = one.channels, one.phases
        period = (
            "; ".join(f"{phases.period[h]} ({phases.explained[h]:.2f})" for h in phases.period)
            if phases
            else ""
        )
        votes = [
            f"{phases.votes[row]:.1f} ({phases.cosine[row]:.2f})" if phases else ""
            for row in ("key", "query")
        ]
        kl = [with_error(*found.kl[what]) for what in ("intact", *changes)]
        pairs = [found.picks[what] for what in ("attention", "values")]
        picks = [f"{own:.2f} / {source:.2f}" for own, source in pairs]
        parts = [with_error(*found.shares[what]) for what in ("looked", "carried", "direct")]
        log_p = with_error(*one.layer_1["log P"]) if one.layer_1 else ""
        what_model = [name, heads_label(one.model.heads), one.model.training]
        rows.append([*what_model, *kl, *picks, *parts, period, *votes, log_p])
    for lags, found_kl in data.circuits.items():
        for name, pair in found_kl.items():
            cells = [f"{lags} {name}", "", "", with_error(*pair)]
            rows.append(cells + [""] * (len(head) - len(cells)))
    return rows
