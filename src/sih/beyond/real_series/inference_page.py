"""An inference as one self-contained HTML file."""

import base64
import math
from html import escape

from sih.beyond.real_series.inference import Inference, PermutationTest
from sih.results.html_page import document, html_table

RIVALS = {
    "independent": "independent tokens",
    "markov": "a full Markov chain, of as many tokens as the largest lag",
}


def inference_page(
    name: str, symbols: tuple[str, ...], found: Inference, test: PermutationTest | None, png: bytes
) -> str:
    """Return the HTML page of a series: verdict, figure (`png`) and tables of the lags."""
    verdicts = [found.verdict] if test is None else [found.verdict, test.verdict]
    said = "".join(f"<p>{escape(verdict)}.</p>" for verdict in verdicts)
    picture = base64.b64encode(png).decode()
    source = f'src="data:image/png;base64,{picture}"'
    shown = "Posterior of each lag along the series, and the transition matrix with intervals"
    evidence = zip(found.lags, found.posterior.tolist(), found.log_evidence.tolist(), strict=True)
    lags = [[str(lag), f"{p:.4f}", f"{nats:.2f}"] for lag, p, nats in evidence]
    body = [
        f"<header><h1>Which lag: {escape(name)}</h1>{said}</header>",
        f'<figure><img style="width:100%" {source} alt="{shown}"></figure>',
        "<h2>Lags</h2>",
        html_table(["lag", "posterior", "log evidence (nats)"], lags),
        *_of_the_best(symbols, found),
    ]
    return document(f"Which lag: {name}", body)


def _of_the_best(symbols: tuple[str, ...], found: Inference) -> list[str]:
    """Return the page's part on the best lag, "" if no token counts."""
    if found.lag is None:
        return []
    factors = [
        [RIVALS[rival], f"{nats:.1f}", _odds(nats)] for rival, nats in found.bayes_factors.items()
    ]
    return [
        f"<h2>Lag {found.lag} against other models</h2>",
        html_table(["against", "log Bayes factor (nats)", "odds"], factors),
        f"<h2>Transition matrix under lag {found.lag}</h2>",
        "<p>From row to column: the mean of the posterior, and the middle 95 % of it.</p>",
        html_table(["", *map(escape, symbols), "transitions"], _rows(symbols, found)),
    ]


def _rows(symbols: tuple[str, ...], found: Inference) -> list[list[str]]:
    numbers = found.P.tolist(), found.interval.tolist(), found.transitions.sum(dim=1).tolist()
    rows = []
    for symbol, row, ends, count in zip(symbols, *numbers, strict=True):
        cells = [
            f"{p:.3f} [{low:.3f}, {high:.3f}]" for p, (low, high) in zip(row, ends, strict=True)
        ]
        rows.append([escape(symbol), *cells, f"{count:,}"])
    return rows


def _odds(nats: float) -> str:
    return f"{math.exp(nats):,.3g} : 1" if abs(nats) < 300 else f"10^{nats / math.log(10):.0f} : 1"
