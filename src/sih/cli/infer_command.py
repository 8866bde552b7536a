"""`sih infer`: the lag that explains a real series, with an unknown transition matrix."""

from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.table import Table

from sih.base.errors import FieldError, check_memory
from sih.base.files import atomic_folder, atomic_write, write_json
from sih.base.files.series_file import SeriesFile, read_series
from sih.beyond.real_series.inference import Inference, PermutationTest, infer, permutation_test
from sih.beyond.real_series.inference_figure import draw_inference
from sih.beyond.real_series.inference_page import inference_page
from sih.cli.printing import plain_console
from sih.results import style
from sih.task import check_lags

RESULT, PAGE, FIGURE = "inference.json", "inference.html", "inference"


def infer_lag(
    file: Annotated[Path, tyro.conf.Positional],
    lags: tuple[int, ...] = (1, 2, 3),
    out: Path | None = None,
    format: Literal["text", "csv", "fasta"] | None = None,
    column: str | None = None,
    symbols: tuple[str, ...] = (),
    concentration: float = 1.0,
    permutations: int = 199,
    seed: int = 0,
) -> None:
    """Infer the lag of a series of symbols, with an unknown transition matrix.

    Example: sih infer weather.csv --column weather --lags 1 2 3 7 --out inference

    It compares the lags with each other, with independent tokens and with a full Markov
    chain, by Bayes factors. Lags within 3 nats of the best are reported as a tie. A
    permutation test asks whether order carries information.

    Args:
        file: Text (one series per line, of characters, or of words if there are
            spaces), CSV or FASTA.
        lags: The lags to compare, increasing.
        out: A folder for inference.json, a figure and an HTML page. By default nothing
            is written.
        format: Format of the file: text, csv or fasta. By default from the file's name.
        column: Column of a CSV file, by its name or by its number from 1.
        symbols: Symbols to use, in this order; others count as missing. By default all
            that occur.
        concentration: Concentration of the Dirichlet distribution of the matrix's rows.
        permutations: Number of shuffled series in the permutation test; 0 omits it.
        seed: Random seed for the shuffling.
    """
    lags = check_lags(lags)
    if not 0 <= permutations <= 10**6:
        raise FieldError(
            "permutations",
            f"permutations is a number from 0 to 1,000,000, e.g. 199; got {permutations}",
        )
    series = read_series(file, format=format, symbols=symbols or None, column=column)
    time = sum(map(len, series.parts))
    check_memory(
        8 * time * (4 * len(lags) + 2 * lags[-1] + 8), f"{time:,} tokens and {len(lags)} lags"
    )
    given: dict[str, Any] = {"num_states": len(series.symbols), "concentration": concentration}
    found = infer(series.parts, lags, **given)
    test = (
        permutation_test(series.parts, lags, rng=seed, permutations=permutations, **given)
        if permutations
        else None
    )
    _say(found, test, series)
    if out is not None:
        _write(out, file, found, test, series)
        plain_console().print(f"wrote {out / RESULT}, {out / PAGE}, {out / FIGURE}.pdf, .svg, .png")


def _say(found: Inference, test: PermutationTest | None, series: SeriesFile) -> None:
    console = plain_console()
    time, gaps = sum(map(len, series.parts)), sum(part.count(-1) for part in series.parts)
    parts = f"{len(series.parts)} series, " if len(series.parts) > 1 else ""
    console.print(
        f"{parts}{time:,} tokens, {gaps:,} missing, {found.counted:,} counted; symbols {' '.join(series.symbols[:24])}"
    )
    table = Table()
    for name in ("lag", "posterior", "log evidence, nats"):
        table.add_column(name, justify="right")
    for lag, p, evidence in zip(
        found.lags, found.posterior.tolist(), found.log_evidence.tolist(), strict=True
    ):
        table.add_row(str(lag), f"{p:.4f}", f"{evidence:.2f}")
    console.print(table)
    console.print(found.verdict)
    if test is not None:
        console.print(test.verdict)


def _write(
    out: Path, file: Path, found: Inference, test: PermutationTest | None, series: SeriesFile
) -> None:
    figure = draw_inference(found, series.symbols)
    names = [RESULT, PAGE, *(f"{FIGURE}.{ending}" for ending in style.FORMATS)]
    with atomic_folder(out, names) as folder:
        style.save(figure, folder / FIGURE)
        picture = (folder / f"{FIGURE}.png").read_bytes()
        write_json(folder / RESULT, _record(found, test, series), indent=1, allow_nan=False)
        with atomic_write(folder / PAGE) as page:
            page.write(inference_page(file.name, series.symbols, found, test, picture).encode())


def _record(found: Inference, test: PermutationTest | None, series: SeriesFile) -> dict[str, Any]:
    tested = None if test is None else {"p_value": test.p_value, "permutations": len(test.shuffled)}
    return {
        "lags": list(found.lags),
        "symbols": list(series.symbols),
        "concentration": found.concentration,
        "counted": found.counted,
        "lag": found.lag,
        "tied": list(found.tied),
        "posterior": found.posterior.tolist(),
        "log_evidence": found.log_evidence.tolist(),
        "bayes_factors": found.bayes_factors,
        "verdict": found.verdict,
        "P": found.P.tolist(),
        "interval": found.interval.tolist(),
        "transitions": found.transitions.tolist(),
        "permutation_test": tested,
    }
