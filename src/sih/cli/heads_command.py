"""`sih heads`: the least number of second-layer heads for a set of lags."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from sih.base.files import atomic_write, write_json
from sih.beyond.shared_heads.brackets import LENGTH, STARTS
from sih.beyond.shared_heads.exact import ExactHeads, exact_heads
from sih.cli.printing import plain_console
from sih.heads import Pattern, head_offsets, least_heads, verify_colouring, verify_lower_bound
from sih.heads.least import LeastHeads
from sih.heads.mixing import exact_profile

if TYPE_CHECKING:
    from rich.text import Text

SHOWN = 4096
"""Offsets of a pattern that are printed."""
PALETTE = (
    "blue",
    "green",
    "red",
    "magenta",
    "cyan",
    "yellow",
    "bright_blue",
    "bright_green",
    "bright_red",
)
CHECKED, TOLERATED = 120, 1e-9
"""Offsets at which --check evaluates a closed form, and the tolerance for rounding."""
RELATIVE = (
    "relative positions: 1 head in every layer is exact, for any lags at any length (sih construct --kind relative)",
    "why they differ: a key that says where it stands keeps what the first layer found at the parent's position, where "
    "transitions of two lags meet; a key that says how far away it is keeps it at the lag, and they never meet",
)
"""Remark on relative positions, the same for all lags."""
SEARCHED = f"{STARTS} starts, {LENGTH} tokens"


def heads(
    lags: tuple[int, ...] = (),
    heads: Annotated[int | None, tyro.conf.arg(metavar="N")] = None,
    time_limit: float = 10.0,
    check: bool = False,
    draw: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
) -> int:
    """Count the second-layer heads that a lag set needs: in the paper's form, without
    mixing lags, and with mixing.

    These numbers are for absolute positions. The output also has the number for
    relative positions, with the reason.

    Example: sih heads --lags 1 2 4 8 --draw pattern.png

    Args:
        lags: The set of lags, increasing.
        heads: Show the fullest pattern found for this many heads too, if that is fewer
            than needed.
        time_limit: Seconds to search; when they run out, the answer is a bracket.
        check: Check the pattern and the proof again by separate code; exit code 1 if
            that fails.
        draw: Draw the pattern to this file: .png, .svg or .pdf.
        out: Write the answer to this file as JSON.
    """

    if draw is not None and draw.suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"--draw takes a file that ends in .png, .svg or .pdf; got {draw}")
    answer = least_heads(lags, time_limit=time_limit)
    mixed = exact_heads(lags, time_limit=time_limit)
    fewer = None if heads is None else head_offsets(lags, heads, time_limit=time_limit)
    pattern = answer if fewer is None else fewer
    console = plain_console()
    console.print(
        f"lags {_listed(answer.lags)}, absolute positions: {_number(answer)}, if nothing mixes"
    )
    console.print(_why(answer))
    console.print(
        f"pattern of period {answer.period}: the head of offset o is number o mod {answer.period} of"
    )
    console.print(strip(answer, console.width))
    if fewer is not None and fewer.heads < answer.heads:
        bound = "the most possible" if fewer.optimal else f"at most {fewer.most} is possible"
        console.print(
            f"with {_heads(fewer.heads)}: {fewer.used} of the transitions are used, {bound}"
        )
        console.print(strip(fewer, console.width))
    for line in (*_mixed(mixed), *RELATIVE):
        console.print(line)
    if out is not None:
        relative = {"heads": 1, "layers": (1, 1, 1), "reach": answer.lags[-1] + 1}
        found = {**_record(answer, pattern), "mixed": _mixed_record(mixed), "relative": relative}
        write_json(out, found)
    if draw is not None:
        from sih.results.plots.heads import draw_pattern

        with atomic_write(draw) as file:
            draw_pattern(pattern).savefig(file, format=draw.suffix[1:])
    if check:
        right = verify_colouring(lags, pattern.colours) and verify_colouring(lags, answer.colours)
        proved = verify_lower_bound(lags, answer.certificate)
        console.print(
            f"checked again: pattern {'holds' if right else 'FAILS'}, proof {'holds' if proved else 'FAILS'}"
        )
        closed = exact_profile(mixed.lags, mixed.lags[-1] + CHECKED, mixed.upper)
        off = 0.0 if closed is None else closed.residual.max().item()
        if closed is not None:
            console.print(
                f"closed form: {_heads(closed.heads)} off by {off:.1e} at most at {CHECKED} offsets"
            )
        return 0 if right and proved and off < TOLERATED else 1
    return 0


def strip(pattern: Pattern, width: int) -> "Text":
    """Print one period as coloured cells, `width` columns wide, with a dot for an
    offset without a head.
    """
    from rich.text import Text

    cell = len(str(pattern.heads - 1)) + 1
    cells = max(1, (width - 8) // cell)
    text = Text()
    for start in range(0, pattern.period, cells):
        if start >= SHOWN:
            text.append(f"... {pattern.period - start:,} more (--out writes them all)")
            break
        text.append(f"{start:>6}  ")
        for k in pattern.colours[start : start + cells]:
            style = "" if k < 0 else f"black on {PALETTE[k % len(PALETTE)]}"
            text.append(f"{'.' if k < 0 else k:>{cell - 1}} ", style)
        text.append("\n" if start + cells < pattern.period else "")
    return text


def _number(answer: LeastHeads) -> str:
    if answer.exact:
        return f"{_heads(answer.heads)}, and no fewer"
    allowed = f"the {answer.time_limit:g} s allowed (--time-limit)"
    return f"between {answer.lower} and {answer.upper} heads, not settled in {allowed}"


def _mixed(answer: ExactHeads) -> list[str]:
    """Return the known results on heads that mix lags, one line per number."""
    span = answer.lags[-1] - answer.lags[0]
    lines = [
        f"the paper's form takes at most {span + 1}, a head for each residue",
        f"exact though lags mix, query's side: at most {answer.upper} ({answer.upper_by}), "
        f"at least {answer.lower} ({answer.lower_by})",
    ]
    if answer.searched is None:
        return lines
    same = (
        answer.searched.lags == answer.lags
    )  # numbers for both sides are for that set, not for its images
    for side, found, best in (
        ("query's side", answer.searched.query, answer.searched.query_heads),
        ("both sides", answer.searched.both if same else {}, answer.searched.both_heads),
    ):
        tried = ", ".join(
            f"{_heads(heads)} off by {off:.1e}"
            for heads, off in sorted(found.items(), reverse=True)
        )
        if tried:
            lines.append(f"searched for, {side}, {SEARCHED}: {best} exact; {tried}")
    return lines


def _mixed_record(answer: ExactHeads) -> dict[str, object]:
    searched = answer.searched
    return {
        "upper": answer.upper,
        "lower": answer.lower,
        "upper_by": answer.upper_by,
        "lower_by": answer.lower_by,
        "offsets": answer.certificate.offsets,
        "searched": None if searched is None else {"query": searched.query, "both": searched.both},
    }


def _why(answer: LeastHeads) -> str:
    """Return the line that says why one head less will not do, from the certificate."""
    proof = answer.certificate
    if proof.heads == 1:
        return "a single lag has nothing to mix with"
    number, fewer = len(proof.points), proof.heads - 1
    if proof.kind == "clique":
        reason = (
            f"the offsets {_listed(proof.points)} differ by differences of two lags, "
            "so that no two can share a head"
        )
    elif proof.kind == "count":
        reason = (
            f"of the {number} offsets {_span(proof.points)} one head can take "
            f"at most {proof.largest} without mixing, and {fewer} x {proof.largest} < {number}"
        )
    else:
        reason = (
            f"every way to give the {number} offsets {_span(proof.points)} "
            f"to {_heads(fewer)} was tried, and mixes"
        )
    return f"why {_heads(fewer)} will not do: {reason}"


def _record(answer: LeastHeads, pattern: Pattern) -> dict[str, object]:
    names = ("lags", "heads", "lower", "upper", "exact", "time_limit", "colours", "preferred")
    record: dict[str, object] = {name: getattr(answer, name) for name in names}
    record["certificate"] = dataclasses.asdict(answer.certificate)
    if pattern.heads < answer.heads:
        used, most = str(pattern.used), str(pattern.most)
        record["fewer"] = {
            "heads": pattern.heads,
            "colours": pattern.colours,
            "used": used,
            "most": most,
        }
    return record


def _heads(number: int) -> str:
    return f"{number} head" if number == 1 else f"{number} heads"


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))


def _span(points: tuple[int, ...]) -> str:
    step = points[1] - points[0]
    return (
        f"{points[0]}, {points[1]}, .., {points[-1]}"
        if step > 1
        else f"{points[0]} to {points[-1]}"
    )
