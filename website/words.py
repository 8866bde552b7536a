"""Checks that documents, and first sentences of docstrings, are in plain words.

    python -m website.words                     every document of the repository
    python -m website.words --table PAGE.md     one row of counts per page
    python -m website.words --docstrings src    first sentences of docstrings

Exit code 1 if something was found. A line that ends with `<!-- words: ok -->` is exempt.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[1]

LONGEST_SENTENCE = 35
LONGEST_MEAN = 20
NUMBERS_PER_SENTENCE = 2
WIDEST, TALLEST = 7, 12
SMALLEST_PAGE = 50
"""Words below which the mean sentence and the share of number-words say nothing."""
NUMBER_WORDS = {"docs/results/*": 0.10, "*": 0.08}
"""The largest share of words with a digit; prose on results must name lengths and seeds."""
LONGEST_PAGE = {"docs/how-to/*": 700, "docs/concepts/*": 1200}
HOW_TO = ["What this is for", "Real output", "How to read it", "Limits", "Related"]
"""Headings of every how-to, in this order, beside its own."""

ALL = frozenset({"word", "number", "long", "numbers", "table", "mean", "share", "size", "template"})
GENTLE: dict[str, tuple[frozenset[str], str]] = {
    "CHANGELOG.md": (ALL, "a record of what changed, in the words of its time"),
    "docs/glossary.md": (frozenset({"word", "table"}), "explains words, in one table per subject"),
    "docs/roles.md": (frozenset({"word"}), "quotes the roles that a diagnosis prints"),
    "docs/paper_map.md": (frozenset({"table", "mean", "share"}), "one table of the paper"),
    "docs/errata.md": (frozenset({"table", "mean", "numbers"}), "one table of the errata"),
    "docs/proofs/*": (frozenset({"numbers", "share", "table"}), "mathematics"),
    "docs/how-to/index.md": (frozenset({"template"}), "lists the others"),
}
"""Pages from which less is asked: which checks they are spared, and why."""
NOT_YET = {"docs/architecture.md", "docs/report.md", "docs/errata.md", "docs/paper_map.md"}
"""Pages that still have to be rewritten. All others fail the build."""

BANNED = {
    r"laws?(?! of large numbers)": "distribution",
    r"looked|looks? (?:at|to|back|over|away|alike|\d)|looking": "attends to; attention pattern",
    r"carried|carries|carrying": "values; passes through the values",
    r"at (?:its|their) (?:means?|average)": "mean-ablated",
    r"donors?": "patch source",
    r"named values?": "activation",
    r"moved by": "optimised with",
    r"keeps? to (?:its|their) parts|parts steps": "role-restricted steps",
    r"st(?:an|oo)d(?:s|ing)? still|at rest": "frozen; converged",
    r"(?:the|by|fast|faster|slow|which) path (?:is|of|by|from|in)|paths? `": "backend",
    r"rooms?|seams?|this house|house style": "package; interface",
    r"whosever|whatever it is made of": "of any model",
    r"told|(?<!that )said|unless asked": "given; reported; requested",
    r"(?<!is )held(?![- ]out)": "stores; frozen",
    r"an? (?:row|run|model|number) an? \w+": "one ... per ...",
    r"so many": "a number",
    r"[x×] ML": "KL/ML",
    r"(?<!your )own lags?": "true lag",
    r"(?:our )?own recipes?|our recipes?": "the preset's name",
    r"plain(?:ly)? train(?:ed|ing)": "unaided Adam, with the length",
    r"(?:goes|go|went|gone) on with": "resume; continue",
    r"what is nowhere|and nowhere else": "missing; and to no other position",
    r"past a quarter": "at offsets beyond a quarter of the sequence",
    r"comes? along|came along": "ships with",
    r"makes it again": "recomputes",
}
"""Words of our dialect, and the field's. `docs/how-to/find-evidence-paths.md` has the keys of
`EvidenceFlow.channels` in code font, which is not read."""
IN_DOCSTRINGS = {
    r"what": "name the thing",
    r"that which": "name the thing",
    r"whose": "a shorter sentence",
}
"""What a docstring's first sentence does without, too."""

FENCE = re.compile(r"^\s*(```|~~~)")
SPLIT = re.compile(r"(?<=[.!?])[\"')*]*\s+(?=[\"'(*_`]*[A-Z0-9])")
SHORT = re.compile(
    r"\b(?:e\.g|i\.e|cf|vs|al|Fig|Figs|Eq|Eqs|Sec|App|Prop|Props|Thm|No|approx)\.(?=\s)"
)
WORD = re.compile(r"[^\s]*\w[^\s]*")
DIGITS = re.compile(r"\d")
BARE_POINT = re.compile(r"(?<![\w.)\]}])[-−+±]?\.\d")
NAMED_NUMBER = re.compile(
    r"\b(?:layers?|heads?|lags?|positions?|offsets?|lengths?|seeds?|matri(?:x|ces)|Eqs?\.|Secs?\."
    r"|Figs?\.|App\.|Props?\.|Claims?|Tables?|versions?|Python|TransformerLens|ICLR"
    r"|errat(?:um|a)|tutorials?|steps?|tokens?|slots?|keys?|order|of)"
    r"\s+(?:v?\d[\d.,]*(?: and | or | to | )?)+"
)
"""Numbers that are names: layer 3, lags 1 and 2, Python 3.11. They may be as many as they are."""
SETS = re.compile(r"\{[\d, ]+\}|\[[\d, ]+\]|\bfloat(?:16|32|64)\b")
"""Sets of lags, lists of heads and types, {1,2,3}, [1,3,1] and float32, which are names, too."""


@dataclass(frozen=True)
class Finding:
    """A place where a page is not in plain words: its line, the kind of check, and an excerpt."""

    place: str
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}:{self.line}: {self.kind}: {self.text}"


@dataclass
class Table:
    """A table of a page, without its cells."""

    line: int
    columns: int
    rows: int


@dataclass
class Page:
    """The prose of a Markdown page as sentences, apart from its code, formulas and tables."""

    name: str
    sentences: list[tuple[int, str]] = field(default_factory=list)
    cells: list[tuple[int, str]] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)

    @property
    def words(self) -> int:
        return sum(count_words(text) for _, text in self.sentences)

    @property
    def mean(self) -> float:
        return self.words / max(len(self.sentences), 1)

    @property
    def too_long(self) -> int:
        return sum(count_words(text) > LONGEST_SENTENCE for _, text in self.sentences)

    @property
    def number_words(self) -> float:
        found = [word for _, text in self.sentences for word in WORD.findall(text)]
        return sum(bool(DIGITS.search(word)) for word in found) / max(len(found), 1)

    @property
    def widest(self) -> str:
        widest = max(self.tables, key=lambda table: (table.columns, table.rows), default=None)
        return f"{widest.columns} x {widest.rows}" if widest else "-"


def count_words(text: str) -> int:
    return len(WORD.findall(text))


def plain(text: str) -> str:
    """Return a line of Markdown as prose: code and formulas are one word each, without digits."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\]\((?:[^()]|\([^)]*\))*\)", "]", text)  # link targets
    text = re.sub(r"\[([^\]\d][^\]]*)\](?:\[[^\]]*\])?", r"\1", text)
    text = re.sub(r"`[^`]*`", "CODE", text)
    text = re.sub(r"\$[^$]+\$", "FORMULA", text)
    text = re.sub(r"<[^>]*>|https?://\S+", "", text)
    return text.replace("**", "").strip()


def sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph."""
    kept = SHORT.sub(lambda found: found[0].replace(".", "\0"), text)
    return [part.replace("\0", ".").strip() for part in SPLIT.split(kept) if count_words(part)]


def read(name: str, text: str) -> Page:
    """Return the prose of a Markdown page."""
    page = Page(name)
    paragraph: list[str] = []
    start = 0
    fenced = display = False
    table: Table | None = None

    def end() -> None:
        whole = plain(" ".join(paragraph))
        page.sentences += [(start, sentence) for sentence in sentences(whole)]
        paragraph.clear()

    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
            end()
            continue
        if fenced:
            continue
        if line.strip().startswith("$$") or (display and line.strip().endswith("$$")):
            display = not display if line.strip().count("$$") == 1 else display
            continue
        if display or "<!-- words: ok -->" in line:
            continue
        if line.lstrip().startswith("|"):
            end()
            cells = [plain(cell) for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
            if table is None:
                table = Table(number, len(cells), -1)
                page.tables.append(table)
            if not all(re.fullmatch(r":?-+:?", cell.strip()) for cell in cells):
                table.rows += 1
                page.cells += [(number, cell) for cell in cells]
            continue
        table = None
        if line.startswith("#"):
            end()
            page.headings.append(plain(line.lstrip("# ")))
        elif not line.strip() or re.match(r"\s*<!--", line):
            end()
        else:
            begins = re.match(r"\s*(?:[-*+]|\d+\.)\s+", line)
            if begins:
                end()
                line = line[begins.end() :]
            if not paragraph:
                start = number
            paragraph.append(line.strip().lstrip("> "))
    end()
    return page


def check_page(page: Page) -> list[Finding]:
    """Return the findings of a page, in the order of its lines."""
    found = [
        finding
        for finding in [*_words(page), *_sentences(page), *_tables(page), *_whole(page)]
        if finding.kind not in spared(page.name)
    ]
    return sorted(found, key=lambda finding: finding.line)


def spared(name: str) -> frozenset[str]:
    """Return the checks that a page is spared.

    >>> sorted(spared("docs/glossary.md")), sorted(spared("docs/help.md"))
    (['table', 'word'], [])
    """
    found = [kinds for pattern, (kinds, _) in GENTLE.items() if fnmatch(name, pattern)]
    return frozenset().union(*found)


def _words(page: Page) -> Iterator[Finding]:
    for line, text in page.sentences + page.cells:
        for pattern, better in BANNED.items():
            for hit in re.finditer(rf"\b(?:{pattern})\b", text, flags=re.I):
                yield Finding(page.name, line, "word", f'"{hit[0]}": {better}')
        for hit in BARE_POINT.finditer(text):
            shown = text[hit.start() : hit.start() + 8].strip()
            yield Finding(page.name, line, "number", f'"{shown}" has no leading zero')


def _sentences(page: Page) -> Iterator[Finding]:
    for line, text in page.sentences:
        length = count_words(text)
        if length > LONGEST_SENTENCE:
            yield Finding(page.name, line, "long", f"{length} words: {text[:60]} ...")
        unnamed = NAMED_NUMBER.sub("", SETS.sub("", text))
        measured = [word for word in WORD.findall(unnamed) if DIGITS.search(word)]
        if len(measured) > NUMBERS_PER_SENTENCE:
            shown = " ".join(measured[:6])
            said = f"{len(measured)} in one sentence ({shown}): use a table"
            yield Finding(page.name, line, "numbers", said)


def _tables(page: Page) -> Iterator[Finding]:
    for table in page.tables:
        if table.columns > WIDEST or table.rows > TALLEST:
            size = f"{table.columns} columns x {table.rows} rows"
            yield Finding(page.name, table.line, "table", f"{size}, above {WIDEST} x {TALLEST}")


def _whole(page: Page) -> Iterator[Finding]:
    if page.words >= SMALLEST_PAGE:
        if page.mean > LONGEST_MEAN:
            said = f"{page.mean:.1f} words per sentence, above {LONGEST_MEAN}"
            yield Finding(page.name, 1, "mean", said)
        share = next(
            share for pattern, share in NUMBER_WORDS.items() if fnmatch(page.name, pattern)
        )
        if page.number_words > share:
            said = f"{page.number_words:.1%} of the words have digits, above {share:.0%}"
            yield Finding(page.name, 1, "share", said)
    for pattern, limit in LONGEST_PAGE.items():
        if fnmatch(page.name, pattern) and page.words > limit:
            yield Finding(page.name, 1, "size", f"{page.words} words, above {limit}")
    if fnmatch(page.name, "docs/how-to/*"):
        kept = [heading for heading in page.headings if heading in HOW_TO]
        if kept != HOW_TO:
            said = f"headings must be {', '.join(HOW_TO)}; found {', '.join(kept) or 'none'}"
            yield Finding(page.name, 1, "template", said)


def check_docstrings(name: str, source: str) -> list[Finding]:
    """Return the findings in the first sentences of a module's docstrings."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = first_sentence(ast.get_docstring(node) or "")
        line = getattr(node, "lineno", 1)
        for pattern, better in (BANNED | IN_DOCSTRINGS).items():
            for hit in re.finditer(rf"\b(?:{pattern})\b", first, flags=re.I):
                said = f'"{hit[0]}" ({better}): {first[:70]}'
                found.append(Finding(name, line, "word", said))
        if count_words(first) > LONGEST_SENTENCE:
            said = f"{count_words(first)} words: {first[:60]} ..."
            found.append(Finding(name, line, "long", said))
    return sorted(found, key=lambda finding: finding.line)


def first_sentence(docstring: str) -> str:
    """Return the first sentence of a docstring, as prose."""
    paragraph = docstring.strip().split("\n\n")[0].split("\n>>>")[0]
    return next(iter(sentences(plain(" ".join(paragraph.split())))), "")


def documents(root: Path = ROOT) -> list[Path]:
    """Return the documents of the repository that have to be in plain words."""
    found = [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]
    return [
        path
        for path in found
        if not any(fnmatch(path.relative_to(root).as_posix(), late) for late in NOT_YET)
    ]


def counts(pages: Sequence[Page]) -> str:
    """Return a table of counts, one row per page."""
    heads = (
        f"{'page':<40} {'words':>6} {'mean':>5} {'>35':>4} {'num':>5} {'widest':>8} {'found':>6}"
    )
    return "\n".join(
        [
            heads,
            *(
                f"{page.name[-40:]:<40} {page.words:>6} {page.mean:>5.1f} {page.too_long:>4}"
                f" {page.number_words:>5.1%} {page.widest:>8} {len(check_page(page)):>6}"
                for page in pages
            ),
        ]
    )


def _named(path: Path) -> str:
    path = path.resolve()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


def main(arguments: Sequence[str]) -> int:
    """Print findings, or counts; return 1 if there are findings."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--docstrings", action="store_true", help="read Python files")
    parser.add_argument("--table", action="store_true", help="print counts, not findings")
    options = parser.parse_args(arguments)
    suffix = ".py" if options.docstrings else ".md"
    files = [
        file
        for path in options.paths
        for file in (sorted(path.rglob(f"*{suffix}")) if path.is_dir() else [path])
    ] or ([] if options.docstrings else documents())
    if options.docstrings:
        found = [
            each for file in files for each in check_docstrings(_named(file), file.read_text())
        ]
    else:
        pages = [read(_named(file), file.read_text()) for file in files]
        if options.table:
            print(counts(pages))
            return 0
        found = [each for page in pages for each in check_page(page)]
    for each in found:
        print(each)
    print(f"{len(found)} findings in {len(files)} files", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
