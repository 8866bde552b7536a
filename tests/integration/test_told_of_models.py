"""What the documents tell of shipped models: one number for each, how they were trained, and which of them select."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
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
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *TUTORIALS]
NUMBER = r"(\d+\.\d+(?: ± \d+\.\d+)?)"
AFTER = re.compile(
    rf"`([\w.-]+)`[^|`]{{0,60}}?\b(?:is|are|ends|end|stands|comes|come) (?:at|to) {NUMBER}"
)
"""`NAME` is at 1.08, and what is said like it."""
TIMES = re.compile(
    rf"`([\w.-]+)`[^|`]*?(?<![\d.]){NUMBER} ?(?:x|×|times) (?:ML|maximum likelihood)"
)
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
SELECTIVE = "| run | candidates | true lag | posterior | of it | selective | head 1.1 with p̃ |"


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
        if "held-out" in sentence.partition(" × ML")[0] or sentence.startswith("|"):
            continue
        found = [*AFTER.findall(sentence), *TIMES.findall(sentence)]
        found += [(name, number) for number, name in BEFORE.findall(sentence)]
        yield from ((name, "kl_over_ml", number) for name, number in found if name in NAMES)


def told_in_tables(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the same of tables: a shipped model in the first column, and columns of `COLUMNS`."""
    for table in re.findall(r"(?:^\|.*\|\n)+", text + "\n", flags=re.M):
        heads, _, *rows = (
            [cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()
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
    of_training = told((ROOT / "docs" / "training.md").read_text())
    assert len([each for each in of_training if each[1] == "kl_over_ml"]) >= 46 + 16 + 16
    assert {name for name, *_ in of_training} >= set(RunStore().names(papers_task=True))
    of_mechanism = told((ROOT / "docs" / "mechanism.md").read_text())
    assert {name for name, *_ in of_mechanism} == {"paper-1.2.3", "paper-1.2.3-length32"}


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


def table_of_selective_heads() -> dict[str, list[str]]:
    table = (ROOT / "docs" / "training.md").read_text().partition(SELECTIVE)[2].split("\n\n")[0]
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    return {name: cells for name, *cells in rows}


def test_the_table_of_selective_heads_has_every_plain_run() -> None:
    table = table_of_selective_heads()
    assert sorted(table) == [name for name in NAMES if name.startswith("paper-")]
    three_or_five = [name for name in table if len(sih.open_run(name).task.lags) > 2]
    said = " ".join((ROOT / "docs" / "training.md").read_text().split())
    assert (len(three_or_five), sum(table[name][4] == "yes" for name in three_or_five)) == (14, 6)
    assert (
        "in six of fourteen runs with three or five lags, and in neither of two with two lags"
        in said
    )
    seeds = [name for name in table if re.fullmatch(r"paper-1\.2\.3(-length\d+)?(-seed1)?", name)]
    assert (len(seeds), sum(table[name][4] == "yes" for name in seeds)) == (5, 2)
    assert "there two of five runs are selective" in said


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if "length32" in name else pytest.mark.slow)
        for name in sorted(table_of_selective_heads())
    ],
)
def test_the_table_of_selective_heads(name: str) -> None:
    run = sih.open_run(name)
    heads = sih.diagnose(run.task, sih.sample(run.task, size=512, rng=0), model=run.model).heads
    last, first = heads[-1], heads[0]
    share = last.selected / last.exact
    numbers = [last.selected, last.exact, share]
    assert table_of_selective_heads()[name] == [
        " ".join(f"{each:.2f}" for each in last.copies.values()),
        *(f"{each:.2f}" for each in numbers),
        "yes" if share >= 0.8 else "no",
        f"{first.correlation:.2f}".replace("-0.00", "0.00"),
    ]


COPIES = {
    "paper-1.2.3-length32-seed1": "previous token (1.1@1 of its attention), head 2.3 the one two back (2.3@2)",
    "paper-1.3.4-length32": "one head has its largest part two back (2.4@2)",
    "paper-1.2.3.4.5-length32": "head 1.1 copies the previous token (1.1@1)",
    "paper-1.2.3.4.5-1.1.1-length32": "the token two back (1.1@2), head 2.1 the previous one (2.1@1)",
    "paper-1.2.3.4.5-1.2.1-length32": "2.1 the one two back (2.1@2), 2.2 the previous one (2.2@1)",
    "paper-1.2.3.4.5-1.3.1-length32": "1.1 from 1 (1.1@1), 2.1 from 3 (2.1@3), 2.2 from 2 (2.2@2), 2.3 from 4 (2.3@4)",
    "paper-1.3-length32": "Head 1.1 copies the previous token (1.1@1). `auto`",
    "paper-1.2-length32": "Head 1.1 copies the token two back (1.1@2), head 2.1 the previous one (2.1@1)",
    "paper-1.2.3": "heads 1.1 and 2.2 copy the previous token (1.1@1 and 2.2@1)",
}
"""What docs/training.md says of heads that copy: HEAD@OFFSET stands for the head's attention so many back."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if "length32" in name else pytest.mark.slow) for name in COPIES],
)
def test_heads_that_copy_have_the_numbers_that_runs_show_prints(name: str) -> None:
    run = sih.open_run(name)
    heads = {
        head.name: head
        for head in sih.diagnose(run.task, sih.sample(run.task, 512, rng=0), model=run.model).heads
    }

    def number(found: re.Match[str]) -> str:
        head, offset = heads[found[1]], int(found[2])
        return f"{head.parents[offset] if offset in head.parents else head.copies[offset + 1]:.2f}"

    said = re.sub(r"(\d\.\d)@(\d)", number, COPIES[name])
    assert said in " ".join((ROOT / "docs" / "training.md").read_text().split())


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


def test_the_trained_rows_of_few_heads_on_fresh_sequences() -> None:
    """Docs/beyond.md has them on the figure's own sequences, and KL over that of BMA from the evaluations beside."""
    said = " ".join((ROOT / "docs" / "beyond.md").read_text().split())
    models = {
        "standard-1.2.3": ("1.1.1", "1.2.1", ""),
        "standard-1.3.4": ("1.1.1", "1.2.1", "1.3.1", ""),
        "standard-1.2.3.4.5": ("1.1.1", "1.2.1", "1.3.1", ""),
    }
    for lags, heads in models.items():
        kept = [
            json.loads(
                (SHIPPED / "-".join(filter(None, (lags, each))) / "evaluation.json").read_text()
            )
            for each in heads
        ]
        assert ", ".join(f"{each['kl'][0] / each['bma'][0]:.2f}" for each in kept) in said, lags


@pytest.mark.parametrize(
    ("said", "models"),
    [
        (
            "heads for {1,2,3} end at #, #, #,",
            "standard-1.2.3-1.1.1 standard-1.2.3-1.2.1 standard-1.2.3",
        ),
        (
            "one, two, three, four for {1,3,4} at #, #, #, #,",
            "standard-1.3.4-1.1.1 standard-1.3.4-1.2.1 standard-1.3.4-1.3.1 standard-1.3.4",
        ),
        ("For two lags one head ends at # ({1,2}) and # ({1,3})", "standard-1.2 standard-1.3"),
        ("three heads (#, #, #)", "standard-1.2.3 standard-1.2.3-seed1 standard-1.2.3-seed2"),
        (
            "four layers end at # (by `harmonic`) and five at #",
            "standard-1.2.3-1.3.1.1 standard-1.2.3-1.3.1.1.1",
        ),
        (
            "where three end at #, #, # (by",
            "standard-1.2.3 standard-1.2.3-seed1 standard-1.2.3-seed2",
        ),
        ("the width of three at #.", "standard-1.2.3-dim128"),
        (
            "0.73 to # with three lags (# with seed 1)",
            "paper-3.5.7-length32 paper-1.2.3-length32-seed1",
        ),
        (
            "three heads end at # and # (two seeds)",
            "paper-1.2.3-length32 paper-1.2.3-length32-seed1",
        ),
        ("(`standard-1.2.3-1.1.1`), is at #.", "standard-1.2.3-1.1.1"),
        ("`auto` gets to # at length 128 (`standard-1.3`)", "standard-1.3"),
        ("`auto` gets to # at length 128 (`standard-1.2`)", "standard-1.2"),
    ],
)
def test_sentences_without_names_have_the_same_numbers(said: str, models: str) -> None:
    for name in models.split():
        said = said.replace("#", _evaluated(name, "kl_over_ml", "0.00"), 1)
    assert said in " ".join((ROOT / "docs" / "training.md").read_text().split())


def test_no_error_is_printed_as_none() -> None:
    for path in DOCUMENTS:
        assert not re.findall(r".*± 0?\.0+\b(?!\d).*", text_of(path)), path.name


def test_the_model_of_unknown_matrices_has_the_numbers_of_its_evaluation() -> None:
    """And the rivals beside it are as on the first of the same sequences, of eight such parts."""
    said = " ".join((ROOT / "docs" / "family.md").read_text().split())
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
        "paper-1.2.3": f"`paper-1.2.3` has {carried} carried and {looked} looked",
        "standard-1.2.3": f"`standard-1.2.3`, which differs in training only, {carried} and {looked}",
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
    helped = [name for name in opened if name in NAMES and not name.startswith("paper-")]
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
        assert "our recipe" in shown(experiment.EXPERIMENT).caption
        assert not [
            name
            for name in experiment.EXPERIMENT.reads(experiment.EXPERIMENT.config, RunStore())
            if "paper-" in name
        ]
    for experiment in (channel_account, scaling, agreement, trained):
        caption = shown(experiment.EXPERIMENT).caption
        assert "our recipe" in caption
        assert re.search("as in the paper|as the paper trains", caption)


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
    for document in ("README.md", "docs/explorer.md"):
        assert (
            "written by hand](" in (ROOT / document).read_text()
            or "written by hand:" in (ROOT / document).read_text()
        )
