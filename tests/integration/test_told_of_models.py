"""What the documents tell of shipped models: one number for each, how they were trained, and which of them select."""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from support.tutorials import TUTORIALS, notebook

import sih
from sih.attention.circuit_signs import circuit_signs
from sih.beyond.evidence_paths import channels as channel_account
from sih.beyond.shared_heads import few_heads
from sih.beyond.switching_lags import switching as switching_lags
from sih.paper import agreement, scaling, trained
from sih.predictors.averaged_kl import averaged_kl
from sih.results.figure import shown
from sih.training.runs.evaluate import fresh_batches, fresh_sequences
from sih.training.runs.run_store import SHIPPED, RunStore

ROOT = Path(__file__).parents[2]
NAMES = RunStore().names()
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *TUTORIALS]
NUMBER = r"(\d+\.\d+(?: ± \d+\.\d+)?)"
AFTER = re.compile(
    rf"`([\w.-]+)`[^|`]{{0,60}}?\b(?:is|are|ends|end|stands|comes|come) (?:at|to) {NUMBER}"
)
"""`NAME` is at 1.08, and what is said like it."""
TIMES = re.compile(
    rf"`([\w.-]+)`[^|`]*?(?<![\d.]){NUMBER} ?(?:x|×|times) (?:ML|maximum likelihood)"
)
RATIO = re.compile(rf"`([\w.-]+)`[^|`]*?KL/ML of {NUMBER}")
"""`NAME` has a KL/ML of 1.08."""
"""`NAME` ... 1.08 × ML."""
BEFORE = re.compile(rf"{NUMBER} ?(?:x|×|times) (?:ML|maximum likelihood) \(`([\w.-]+)`")
"""1.09 × ML (`NAME`."""
COLUMNS = {
    "KL": "kl",
    "ML": "ml",
    "BMA": "bma",
    "KL/ML": "kl_over_ml",
    "x ML": "kl_over_ml",
    "fresh": "kl_over_ml",
}
"""Headings of tables, and what they are in an evaluation. A heading with "held-out" is none of them."""
DATA = ROOT / "docs" / "results" / "data"


def text_of(path: Path) -> str:
    if path.suffix == ".md":
        return path.read_text()
    return "\n\n".join(
        "".join(cell["source"])
        for cell in notebook(path)["cells"]
        if cell["cell_type"] == "markdown"
    )


def sentences(text: str) -> Iterator[str]:
    """Yield what ends with a full stop, a colon or an empty line; a row of a table is one too."""
    for block in re.split(r"\n\s*\n|\n(?=\s*[-|#])", text):
        yield from re.split(r"(?<=[.:]) (?=[A-Z`*(])", " ".join(block.split()))


def told_in_sentences(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield each KL/ML that a sentence tells of a shipped model: its name, what it is, the number as printed."""
    for sentence in sentences(text):
        if "held-out" in re.split(" × ML|KL/ML", sentence)[0] or sentence.startswith("|"):
            continue
        found = [each for said in (AFTER, TIMES, RATIO) for each in said.findall(sentence)]
        found += [(name, number) for number, name in BEFORE.findall(sentence)]
        yield from ((name, "kl_over_ml", number) for name, number in found if name in NAMES)


def told_in_tables(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the same of tables: a shipped model in the first column, and columns of `COLUMNS`."""
    for table in re.findall(r"(?:^\|.*\|\n)+", text + "\n", flags=re.M):
        heads, _, *rows = (
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in table.splitlines()
        )
        for row in rows:
            name = row[0].partition(" (")[0].strip("`")
            for head, cell in zip(heads, row, strict=True):
                if name in NAMES and head in COLUMNS:
                    yield name, COLUMNS[head], cell


def told(text: str) -> list[tuple[str, str, str]]:
    return [*told_in_sentences(text), *told_in_tables(text)]


def wrong(text: str) -> list[tuple[str, str, str]]:
    """List what is told and differs from the evaluation that is kept beside the model, its error too if it is told."""
    return [each for each in told(text) if each[2] != _evaluated(*each)]


def _evaluated(name: str, what: str, said: str) -> str:
    """Write it as it is said: with as many digits, and with two standard errors if they are said."""
    kept: dict[str, Any] = json.loads((SHIPPED / name / "evaluation.json").read_text())
    mean, error = kept[what]
    digits = len(said.partition(" ")[0].partition(".")[2])
    return f"{mean:.{digits}f}" + (f" ± {2 * error:.{digits}f}" if " ± " in said else "")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_a_model_has_the_numbers_of_its_evaluation(path: Path) -> None:
    assert wrong(text_of(path)) == []


def test_enough_is_read_to_mean_something() -> None:
    of_training = told((ROOT / "docs" / "results" / "training-runs.md").read_text())
    assert len([each for each in of_training if each[1] == "kl_over_ml"]) >= 16 + 8 + 6
    assert {name for name, *_ in of_training} >= {
        *(name for name in NAMES if name.startswith("paper-")),
        *("standard-1.2.3", "standard-1.2.3.4.5", "disentangled-1.2.3", "disentangled-3.5.7"),
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("So `paper-1.2.3` is at 1.16.", 1),
        ("So `paper-1.2.3` is at 1.08.", 0),
        ("`paper-1.2.3`, at its end,\nhas 1.2 × ML.", 1),
        ("It ends at 1.10 x ML (`paper-1.2.3`).", 1),
        ("The held-out KL of `paper-1.2.3` is at 1.16 × ML.", 0),
        ("| run | KL/ML |\n|---|---|\n| `paper-1.2.3` | 1.16 ± 0.01 |\n", 1),
        ("| run | KL/ML |\n|---|---|\n| `paper-1.2.3` | 1.08 ± 0.05 |\n", 1),
        ("| run | KL/ML |\n|---|---|\n| `paper-1.2.3` | 1.076 ± 0.014 |\n", 0),
        ("`paper-1.2.3` is at 1.08 ± 0.03.", 1),
        ("| run | held-out KL/ML |\n|---|---|\n| `paper-1.2.3` | 1.16 |\n", 0),
        ("`no-such-model` is at 1.16.", 0),
        ("`paper-1.2.3` ends with a KL/ML of 1.16.", 1),
        ("`paper-1.2.3` has a KL/ML of 1.08.", 0),
        ("On held-out sequences `paper-1.2.3` has a KL/ML of 1.16.", 0),
    ],
)
def test_a_wrong_number_is_found(text: str, found: int) -> None:
    assert len(wrong(text)) == found


def other_lengths(text: str) -> list[str]:
    """List the sentences that say "the paper's setting" of a model at another length than the paper's."""
    said = (
        each
        for each in sentences(text)
        if re.search(r"the paper's (own )?setting", each, flags=re.I)
    )
    return [each for each in said if re.search(r"length-?s? ?(32|64)|\bpaper-\*", each)]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_the_papers_setting_is_at_the_papers_length(path: Path) -> None:
    assert other_lengths(text_of(path)) == [
        each for each in other_lengths(text_of(path)) if "were said" in each
    ]


def test_another_length_is_found() -> None:
    assert other_lengths("At length 32\nthe paper's own setting ends at 0.73.")
    assert other_lengths("`paper-1.2.3-length64` is the paper's setting.")
    assert not other_lengths("The paper's setting has length 128. At length 32 it is another.")


def rows_of(name: str) -> list[dict[str, str]]:
    with open(DATA / f"{name}.csv", newline="") as file:
        return list(csv.DictReader(file))


def last_heads() -> dict[str, dict[str, str]]:
    """Return the row of head 3.1 of every model of three layers."""
    return {row["run"]: row for row in rows_of("training-heads") if row["head"] == "3.1"}


def test_the_table_of_heads_has_every_model_and_counts_those_that_select() -> None:
    readable = RunStore().names(papers_task=True)
    assert list(dict.fromkeys(row["run"] for row in rows_of("training-heads"))) == readable
    alone = {name: row for name, row in last_heads().items() if name.startswith("paper-")}
    assert sorted(alone) == [name for name in NAMES if name.startswith("paper-")]

    def selective(names: Iterable[str]) -> tuple[int, int]:
        chosen = list(names)
        return len(chosen), sum(alone[name]["selective"] == "yes" for name in chosen)

    number = {name: len(sih.open_run(name).task.lags) for name in alone}
    said = " ".join((ROOT / "docs" / "results" / "training-runs.md").read_text().split())
    assert selective(name for name in alone if number[name] > 2) == (14, 6)
    assert selective(name for name in alone if number[name] == 2) == (2, 0)
    assert (
        "in six of fourteen runs with three or five lags, and in neither of two with two lags"
        in said
    )
    seeds = re.compile(r"paper-1\.2\.3(-length\d+)?(-seed1)?")
    assert selective(name for name in alone if seeds.fullmatch(name)) == (5, 2)
    assert "Two of these five runs are selective" in said
    near = [
        row
        for name, row in alone.items()
        if number[name] > 2
        and row["selective"] == "no"
        and sum(map(float, row["candidates"].split())) >= 0.88
    ]
    assert len(near) == 5
    assert "In five of the other eight, head 3.1 has at least 0.88" in said


def test_the_page_says_which_first_layers_compare_tokens() -> None:
    firsts = {row["run"]: row for row in rows_of("training-heads") if row["head"] == "1.1"}
    alone = [float(row["correlation"]) for name, row in firsts.items() if name.startswith("paper-")]
    assert (len(alone), sum(number < -0.4 for number in alone)) == (16, 5)
    assert max(alone) < 0.4
    said = " ".join((ROOT / "docs" / "results" / "training-runs.md").read_text().split())
    assert (
        "Five of the sixteen runs compare tokens in layer 1, all of them with the opposite" in said
    )


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if "length32" in name else pytest.mark.slow)
        for name in sorted(last_heads())
    ],
)
def test_the_table_of_heads(name: str) -> None:
    run = sih.open_run(name)
    heads = sih.diagnose(run.task, sih.sample(run.task, size=512, rng=0), model=run.model).heads
    rows = [row for row in rows_of("training-heads") if row["run"] == name]
    assert [row["head"] for row in rows] == [head.name for head in heads]
    for row, head in zip(rows, heads, strict=True):
        share = head.selected / head.exact
        offset = int(row["offset"])
        there = head.parents.get(offset, head.copies.get(offset + 1, 0.0))
        assert row["candidates"] == " ".join(f"{each:.2f}" for each in head.copies.values())
        assert row["parents"] == " ".join(f"{each:.2f}" for each in head.parents.values())
        numbers = (head.selected, head.exact, share, head.correlation, there)
        columns = ("true_lag", "posterior", "share", "correlation", "attention")
        wanted = [f"{each:.2f}".replace("-0.00", "0.00") for each in numbers]
        assert [row[column] for column in columns] == wanted, head.name
        assert there >= max(*head.parents.values(), *head.copies.values()) - 1e-6
        assert row["selective"] == ("yes" if share >= 0.8 else "no")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("paper-1.3-length32", "`paper-1.3-length32` has #, and # in the table"),
        pytest.param(
            "paper-1.2.3",
            "head 3.1 of `paper-1.2.3` has # of the posterior here and # there",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_two_readings_of_a_selective_head_stand_beside_each_other(name: str, said: str) -> None:
    run = sih.open_run(name)
    signs = circuit_signs(run.model, next(fresh_batches(run.task))[:128], run.task)
    last = sih.diagnose(run.task, sih.sample(run.task, 512, rng=0), model=run.model).heads[-1]
    for share in (signs.selected, last.selected / last.exact):
        said = said.replace("#", f"{share:.2f}", 1)
    assert said in " ".join((ROOT / "docs" / "training.md").read_text().split())


def test_the_trained_models_of_few_heads_on_fresh_sequences() -> None:
    """KL over that of BMA is from the evaluations beside the weights."""
    rows = rows_of("few-heads-trained")
    assert len(rows) == 11
    for row in rows:
        kept = json.loads((SHIPPED / row["model"] / "evaluation.json").read_text())
        config = sih.open_run(row["model"]).config
        assert row["fresh"] == f"{kept['kl'][0] / kept['bma'][0]:.2f}", row["model"]
        assert (row["lags"], int(row["heads"])) == (
            " ".join(map(str, config.task.lags)),
            config.heads[1],
        )


@pytest.mark.parametrize(
    ("heads", "name"),
    [
        ("[1,1]", "standard-1.2.3-1.1"),
        ("[3,1]", "standard-1.2.3-3.1"),
        ("[1,3]", "standard-1.2.3-1.3"),
        ("[3,3]", "standard-1.2.3-3.3"),
        ("[1,3,1]", "standard-1.2.3"),
        ("[1,3,1], width 128", "standard-1.2.3-dim128"),
        ("[1,3,1,1]", "standard-1.2.3-1.3.1.1"),
        ("[1,3,1,1,1]", "standard-1.2.3-1.3.1.1.1"),
    ],
)
def test_the_table_of_layers_has_the_numbers_of_evaluations(heads: str, name: str) -> None:
    said = (ROOT / "docs" / "results" / "training-runs.md").read_text()
    (row,) = re.findall(rf"^\| {re.escape(heads)} \|.*\| ([^|]*) \|$", said, flags=re.M)
    assert row == _evaluated(name, "kl_over_ml", "0.000 ± ")


def test_no_error_is_printed_as_none() -> None:
    for path in DOCUMENTS:
        assert not re.findall(r".*± 0?\.0+\b(?!\d).*", text_of(path)), path.name


def test_the_model_of_unknown_matrices_has_the_numbers_of_its_evaluation() -> None:
    """And the rivals beside it are as on the first of the same sequences, of eight such parts."""
    said = " ".join((ROOT / "docs" / "results" / "task-variants.md").read_text().split())
    rivals = (
        "exact Bayes",
        "maximum likelihood",
        "`fresh-1.2`",
        "plug-in",
        "in-context trigram",
        "uniform",
    )
    row = (
        said.partition(f"| {' | '.join(rivals)} |")[2]
        .partition("|---|---|---|---|---|---| | ")[2]
        .partition(" |\n")[0]
    )
    told_of = dict(zip(rivals, row.split(" | "), strict=False))
    for name, what in zip(rivals, ("bma", "ml", "kl"), strict=False):
        assert told_of[name] == _evaluated("fresh-1.2", what, "0.0000")
    assert f"`fresh-1.2` has {_evaluated('fresh-1.2', 'kl_over_ml', '0.000 ± ')} × ML" in said
    assert f"past 16 tokens is {sih.evaluate('fresh-1.2').windows[-1].way.mean:.2f}" in said
    task = sih.open_run("fresh-1.2").task
    tokens = next(fresh_sequences(task))
    laws = sih.plug_in(tokens, task), sih.ngram(tokens, task), torch.full((*tokens.shape, 3), 1 / 3)
    for name, law in zip(rivals[3:], laws, strict=True):
        kl = averaged_kl(law, tokens, task)[:, task.max_lag : -1].mean(dim=1)
        assert abs(kl.mean() - float(told_of[name].rstrip(" |"))) < 4 * kl.std() / len(kl) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["paper-1.2.3", "standard-1.2.3"])
def test_the_readmes_channels_are_those_of_evidence_flow(name: str) -> None:
    run = sih.open_run(name)
    channels = sih.evidence_flow(
        run.model, run.task, sih.sample(run.task, size=512, rng=0)
    ).channels
    said = " ".join((ROOT / "README.md").read_text().split())
    carried, looked = (f"{channels[what]:.2f}" for what in ("carried", "looked"))
    wanted = {
        "paper-1.2.3": f"The shares are {carried} and {looked} in `paper-1.2.3`",
        "standard-1.2.3": f"They are {carried} and {looked} in `standard-1.2.3`",
    }
    assert wanted[name] in said


def test_the_two_models_of_the_readme_differ_in_training_only() -> None:
    ours, plain = (sih.open_run(name).config for name in ("standard-1.2.3", "paper-1.2.3"))
    assert (ours.task, ours.model, ours.heads, ours.seed) == (
        plain.task,
        plain.model,
        plain.heads,
        plain.seed,
    )


def test_where_a_helped_model_is_shown_the_page_says_how() -> None:
    third = next(path for path in TUTORIALS if path.stem.startswith("03"))
    shown = {path: text_of(path) for path in (ROOT / "docs" / "quickstart.md", third)}
    for text in shown.values():
        assert "600 of 2,000 steps" in " ".join(text.split())
        assert "`paper-1.2.3`" in text
    assert "trained with Adam alone, in the paper's setting" in (ROOT / "README.md").read_text()
    assert not [
        path for path in DOCUMENTS if "told it how" in text_of(path) and path.stem != "errata"
    ]


def unsaid(text: str) -> list[str]:
    """List shipped models that a page opens, that were not trained plainly and of which the page does not say so."""
    opened = re.findall(r"(?:open_run|load)\(\\?\"([\w.-]+)\\?\"\)", text)
    said = re.search(
        r"restricted to (their )?roles|roles? that the (paper's )?circuit|frozen at first|a new matrix",
        text,
    )
    helped = [
        name for name in opened if name in NAMES and not name.startswith(("paper-", "relative-"))
    ]
    return [] if said else helped


SHOWING = [*DOCUMENTS, *TUTORIALS, *sorted((ROOT / "examples").rglob("*.py"))]


@pytest.mark.parametrize("path", SHOWING, ids=lambda path: path.name)
def test_a_page_that_opens_a_helped_model_says_that_it_was_helped(path: Path) -> None:
    assert unsaid(" ".join(path.read_text().split())) == []


def test_a_model_of_which_nothing_is_said_is_found() -> None:
    assert unsaid('run = sih.open_run("standard-1.2.3")') == ["standard-1.2.3"]
    assert unsaid('"sih.load(\\"disentangled-1.2\\")"') == ["disentangled-1.2"]
    assert not unsaid('run = sih.open_run("paper-1.2.3")')
    assert not unsaid(
        'run = sih.open_run("standard-1.2.3")  # its layers were restricted to roles at first'
    )


def test_captions_of_trained_models_say_how_they_were_trained() -> None:
    for experiment in (few_heads, switching_lags):
        assert re.search("preset auto|harmonic", shown(experiment.EXPERIMENT).caption)
        assert not [
            name
            for name in experiment.EXPERIMENT.reads(experiment.EXPERIMENT.config, RunStore())
            if "paper-" in name
        ]
    for experiment in (channel_account, scaling, agreement, trained):
        caption = shown(experiment.EXPERIMENT).caption
        assert re.search("preset auto|harmonic|other starts and optimisers are ours", caption)
        assert re.search("as in the paper|as the paper trains|unaided Adam", caption)


@pytest.mark.slow
def test_the_rivals_of_tutorial_4_differ_in_what_it_says_alone() -> None:
    """Its configuration, without the pause of the middle layer, and with the usual start; three seeds each."""
    fourth = next(path for path in TUTORIALS if path.stem.startswith("04"))
    cell = next(
        "".join(c["source"])
        for c in notebook(fourth)["cells"]
        if "sih.TrainConfig(" in "".join(c["source"])
    )
    given = ast.parse(cell).body[0]
    assert isinstance(given, ast.Assign)
    assert isinstance(given.value, ast.Call)
    fields = {each.arg: ast.literal_eval(each.value) for each in given.value.keywords if each.arg}
    said = " ".join(text_of(fourth).split())
    without = {
        name: value for name, value in fields.items() if name not in ("init", "frozen_steps")
    }
    wordings = {
        "seeds 0 to 2 it ends at # to # times": fields,
        "it ends at # to # without the pause of the middle layer": {**fields, "frozen_steps": 0},
        '(`init="uniform"`) at # to #.': {**without, "init": "uniform"},
    }
    for words, own in wordings.items():
        ends = []
        for seed in range(3):
            *_, end = (
                s.evaluation
                for s in sih.train(sih.TrainConfig(**own, seed=seed))
                if s.evaluation is not None
            )
            ends.append(end.kl_over_ml)
        for number in (min(ends), max(ends)):
            words = words.replace("#", f"{number:.2f}", 1)
        assert words in said


def test_the_readme_says_that_the_page_shows_circuits_written_by_hand() -> None:
    for document in ("README.md", "docs/how-to/use-the-explorer.md"):
        assert "two circuits written by hand" in (ROOT / document).read_text()
