"""The page in a real browser: Debian's Chromium, driven by Playwright, against `sih explore` as a person starts it."""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.addresses import from_fragment

import sih
from sih.explorer.channels_view import make_channels
from sih.explorer.parse_state import fragment, read_state
from sih.explorer.state import Matrix, ModelChoice, State
from sih.explorer.trained_models import all_runs
from sih.explorer.view import draw_sequence
from sih.training.runs.run_store import RunStore

playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here; on Debian: apt-get install chromium"
)
PANELS = ("sequence", "race", "next", "circuit", "channels", "mixed", "stream")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    command = [sys.executable, "-m", "sih.cli", "explore", "--no-browser", "--port", "0"]
    own = {
        **os.environ,
        "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")),
    }  # nothing is fitted yet
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own) as server:
        assert server.stdout is not None
        found = re.search(r"http://\S+/", server.stdout.readline())
        assert found
        body = json.dumps({"models": [{"kind": "trained", "name": "standard-1.2.3"}]}).encode()
        first = urllib.request.Request(
            f"{found[0]}api/view", body, {"Content-Type": "application/json"}
        )
        urllib.request.urlopen(
            first, timeout=180
        ).close()  # a new cache folder: the kernel is compiled and timed
        yield found[0]
        server.terminate()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as p:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        launched = p.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield launched
        launched.close()


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Opens the page at a fragment; at the end, nothing may have gone wrong in it, nor come from elsewhere."""
    wrong: list[str] = []
    contexts = []

    def open_page(
        at: str = "", width: int = 1280, height: int = 800, base: str = address, **options: Any
    ) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "console",
            lambda message: (
                wrong.append(message.text) if "Content Security" in message.text else None
            ),
        )
        page.on(
            "request",
            lambda r: None if r.url.startswith((base, "blob:", "data:")) else wrong.append(r.url),
        )
        page.goto(f"{base}#{at}" if at else base)
        until(page, "Number(document.body.dataset.views) > 0")
        until(
            page, "!document.getElementById('channels').textContent.includes('Working')"
        )  # drawn when they come
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def until(page: Any, condition: str, seconds: float = 20) -> None:
    """Wait for a condition. Playwright's own waiting evaluates strings in the page, which the page's policy forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, f"never came true: {condition}"
        page.wait_for_timeout(15)


def after(page: Any, act: Callable[[], object]) -> None:
    """Do something that asks for a new view, and wait until it is drawn."""
    before = page.evaluate("document.body.dataset.views")
    page.evaluate("delete document.body.dataset.latency")
    act()
    until(
        page,
        f"document.body.dataset.views !== '{before}' && document.body.dataset.latency !== undefined",
    )


def state_of(page: Any) -> State:
    page.wait_for_timeout(250)  # the address follows a little later than the drawing
    return from_fragment(page.evaluate("location.hash"))


def tokens_of(page: Any) -> list[str]:
    found: list[str] = page.eval_on_selector_all(
        "#sequence svg > rect[rx]", "all => all.map((r) => r.getAttribute('fill'))"
    )
    return found


def test_first_visit_is_drawn_and_says_what_to_try(visit: Callable[..., Any]) -> None:
    page = visit()
    assert "space" in page.inner_text("#hint")
    assert page.locator("#maps canvas").count() == 5
    blank = page.evaluate(
        "[...document.querySelectorAll('#maps canvas, #stream canvas')].filter((c) => new Set("
        "c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size < 3).map((c) => c.ariaLabel)"
    )
    assert blank == []
    assert page.locator("#race svg path").count() == 2 * 3 * 3
    assert "made with lag 3" in page.text_content("#guess")
    page.wait_for_selector(".verdict.ok")
    assert "Certificate holds" in page.inner_text(".verdict")
    assert page.evaluate("document.documentElement.scrollWidth") == 1280


def test_what_the_page_works_out_by_itself_is_what_the_library_says(
    visit: Callable[..., Any],
) -> None:
    page = visit("seed=14")
    state = State(seed=14)
    task, query = state.task(), state.length // 3
    batch = draw_sequence(state, task)
    sure = sih.lag_posterior(batch.tokens, task)[0, : query + 1].max(dim=-1)
    since = max(i for i in range(query + 1) if sure.values[i] < 0.9) + 1
    assert len(set(sure.indices[since:].tolist())) == 1
    assert f"lag {batch.lags.item()} from {since}" in page.text_content("#race")
    assert page.text_content("#race-note").endswith("its β of 100 counts as 300 in the estimator.")
    trace = sih.construct(task).trace(batch.tokens)
    for name in ("1.1/token", "1.1/position", "2.1/1.1/position", "2.3/1.1/position", "3.1/token"):
        said = page.get_attribute(f"#stream canvas[aria-label^='{name}:']", "aria-label")
        numbers = re.findall(r"([\d.]+) (?:at|for) (\d+)", said)
        assert numbers
        for value, index in numbers:
            assert abs(float(value) - trace.stream(name)[0, query, int(index)].item()) < 0.0051, (
                said
            )


def test_a_click_changes_a_token_and_everything_answers(visit: Callable[..., Any]) -> None:
    page = visit("zoom=2")
    before, race = tokens_of(page), page.inner_html("#race")
    box = page.locator("#sequence svg > rect").nth(20).bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.locator("#token-menu").is_visible()
    free = page.locator("#token-menu button[aria-pressed=false]").first
    chosen = int(free.inner_text())
    after(page, free.click)
    state = state_of(page)
    assert state.edits == ((state.query, chosen),)
    changed = [n for n, (a, b) in enumerate(zip(before, tokens_of(page), strict=True)) if a != b]
    assert len(changed) == 1
    assert page.inner_html("#race") != race


def test_models_are_switched_tuned_and_compared(visit: Callable[..., Any]) -> None:
    page = visit()
    choose = page.locator("select[aria-label='Model A']")
    after(page, lambda: choose.select_option("bayes"))
    page.wait_for_selector(".verdict.ok:has-text('certified')")
    after(page, lambda: choose.select_option("trained:standard-1.2.3"))
    assert "1.1/output" in page.inner_text("#stream")
    assert "no closed form" in page.inner_text(".verdict")
    after(page, lambda: choose.select_option("fewer"))
    assert page.locator("#maps canvas").count() == 3
    after(
        page,
        lambda: page.locator("input[aria-label='Model A: number of second-layer heads']").fill("2"),
    )
    assert page.locator("#maps canvas").count() == 4
    after(page, lambda: page.locator("input[aria-label^='Model A: beta']").fill("1"))
    assert state_of(page).models[0] == ModelChoice("fewer", heads=2, beta=10.0)
    after(page, page.locator("#compare").click)
    assert page.locator("#maps canvas").count() == 4 + 5
    assert "Model B" in page.inner_text("#race")
    after(page, page.get_by_role("button", name="Remove").click)
    assert page.locator(".model").count() == 1


def test_absolute_and_relative_positions_side_by_side(visit: Callable[..., Any]) -> None:
    """The constructed pair: what the page draws of B is the model's own pass, in the rows of the tokens."""
    page = visit("models=[{},{%22kind%22:%22relative%22}]&length=48&query=30&zoom=1")
    state = read_state({"models": [{}, {"kind": "relative"}], "length": 48, "query": 30, "zoom": 1})
    assert state_of(page) == state
    assert page.locator("#maps-0 canvas").count() == 5
    assert page.locator("#maps-1 canvas").count() == 3
    assert "Heads [1, 1, 1]: the same weights at any length." in page.inner_text("#models")
    until(page, "document.querySelectorAll('.verdict.ok').length === 2")
    until(page, CHANNELS)
    task = state.task()
    tokens = draw_sequence(state, task).tokens
    trace = sih.construct(task, kind="relative").trace(tokens)
    for name in ("1.1/offset", "2.1/1.1/offset"):
        said = page.get_attribute(f"#stream canvas[aria-label^='{name}:']", "aria-label")
        numbers = re.findall(r"([\d.]+) at offset (\d)", said)
        assert [int(offset) for _, offset in numbers] == [1, 2, 3]
        for value, offset in numbers:
            assert abs(float(value) - trace[name][0, 31, int(offset)].item()) < 0.0051, said
    (said,) = (
        label
        for label in page.eval_on_selector_all(
            "#stream canvas", "all => all.map((c) => c.ariaLabel)"
        )
        if label.startswith("3.1/token:") and "start" in label
    )
    numbers = [float(value) for value in re.findall(r"([\d.]+) for", said)]
    assert len(numbers) == 6
    for value, wanted in zip(numbers, trace["3.1/token"][0, 31].tolist(), strict=True):
        assert abs(value - wanted) < 0.0051

    def starts(of: str) -> list[str]:
        found: list[str] = page.eval_on_selector_all(of, "all => all.map((s) => s.textContent)")
        return found

    def paid(row: int) -> list[str]:
        heads = ("1.1", "2.1", "3.1")
        return [f"start {trace[f'{head}/attention'][0, row, 0].item():.2f}" for head in heads]

    assert set(starts("#maps-0 .start")) == {""}
    assert starts("#maps-1 .start") == paid(31)
    page.focus("#sequence")
    for _ in range(30):
        page.keyboard.press("ArrowLeft")
    assert state_of(page).query == 0
    assert starts("#maps-1 .start") == paid(1) == ["start 1.00"] * 3


CHANNELS = (
    "document.querySelectorAll('#channels svg').length > 0"
    " && !document.getElementById('channels').innerText.includes('Working')"
    " && !document.querySelector('#channels .stale')"
)


@pytest.mark.parametrize(
    "model", [{"kind": "trained", "name": "standard-1.2.3"}, {"kind": "looking"}, {}], ids=str
)
def test_channels_are_the_librarys_and_colour_layer_2(
    visit: Callable[..., Any], model: dict[str, Any]
) -> None:
    state = read_state({"models": [model], "length": 60, "query": 40})
    page = visit(fragment(state))
    until(page, CHANNELS)
    found = make_channels(state, 0, all_runs(RunStore()))
    said = page.get_attribute("#channels [role=img]", "aria-label")
    for lag, value in zip(state.lags, found.arrays["score"][40], strict=True):
        assert f"lag {lag} {value:.2f}".replace("-", "−") in said
    shown = page.text_content("#channels svg")
    for part in found.header["parts"]:
        for value in found.arrays[f"part/{part}"][40]:
            assert abs(value) < 0.005 or f"{value:.2f}".replace("-", "−") in shown
    coloured = page.evaluate(
        "(() => { const c = document.querySelector('canvas[aria-label^=\"Attention of head 2.1\"]');"
        " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0;"
        " for (let i = 0; i < d.length; i += 4) if (Math.abs(d[i] - d[i + 2]) > 40) n += 1; return n; })()"
    )
    assert coloured > 100
    page.keyboard.press("ArrowRight")
    assert "position 41" in page.get_attribute("#channels [role=img]", "aria-label")


def test_channels_give_nothing_away_before_the_guess(visit: Callable[..., Any]) -> None:
    page = visit("revealed=false")
    page.wait_for_timeout(800)
    assert page.locator("#channels").is_hidden()
    assert page.locator("#channels-panel .veil").is_visible()
    page.locator("#reveal").click()
    until(page, CHANNELS)
    assert page.locator("#channels svg").is_visible()


def test_a_model_without_a_middle_layer_says_that_it_has_no_channels(
    visit: Callable[..., Any],
) -> None:
    page = visit(
        fragment(read_state({"models": [{"kind": "trained", "name": "standard-1.2.3-1.3"}]}))
    )
    until(page, "document.getElementById('channels').innerText.includes('no layer between')")


def test_heads_are_chosen_by_a_slider_that_says_what_is_built(visit: Callable[..., Any]) -> None:
    page = visit("models=[{%22kind%22:%22bayes%22}]&length=36")
    slider = page.locator("input[aria-label='Model A: number of second-layer heads']")
    assert [slider.get_attribute(name) for name in ("min", "max")] == ["1", "3"]
    assert page.inner_text(".built") == "2 heads: lags mix in a head, exact."
    assert page.locator("#mixed svg").count() == 5
    assert "read by a parabola" in page.inner_text("#mixed")
    page.wait_for_selector(".verdict.ok")
    after(page, lambda: slider.fill("3"))
    assert page.inner_text(".built") == "3 heads: nothing mixed, exact."
    assert page.locator("#mixed-panel").is_hidden()
    after(page, lambda: slider.fill("1"))
    assert page.inner_text(".built") == "1 head: nothing mixed, 2/3 of the past unused."
    assert state_of(page).models == (ModelChoice("bayes", heads=1),)


def test_a_fit_is_announced_and_the_page_stays_alive(visit: Callable[..., Any]) -> None:
    page = visit("length=34&query=20", permissions=["clipboard-read", "clipboard-write"])
    before = page.evaluate("document.body.dataset.views")
    page.locator("select[aria-label='Model A']").select_option("both")
    page.wait_for_selector("#fitting:has-text('Fitting one head')")
    page.focus("#sequence")
    page.keyboard.press("ArrowRight")
    assert page.get_attribute("#sequence", "aria-valuenow") == "21"
    assert page.evaluate("document.body.dataset.views") == before
    until(page, f"document.body.dataset.views !== '{before}'", 120)
    assert page.locator("#fitting").is_hidden()
    assert page.inner_text(".built").startswith(
        "1 head: read from both sides, approximate: residual up to 0.4"
    )
    assert "read at the query and at the key" in page.inner_text("#mixed")
    assert state_of(page).models == (ModelChoice("both"),)
    assert state_of(page).query == 21
    page.locator("#copy-python").click()
    until(
        page,
        "navigator.clipboard.readText().then((text) => text.includes(\"heads=1, reading='both')\"))",
    )
    page.locator("#copy-link").click()
    until(
        page,
        "navigator.clipboard.readText().then((text) => text.includes('both') && text.endsWith('query=21'))",
    )


def test_what_is_too_large_to_fit_is_said_at_the_model(visit: Callable[..., Any]) -> None:
    page = visit("lags=[1,2,3,4,5,6,7]")
    page.locator("select[aria-label='Model A']").select_option("both")
    page.wait_for_selector("[data-error-for='models.0.heads']:has-text('6 lags are the most')")
    assert page.locator("#fitting").is_hidden()
    assert page.locator("#race svg").is_visible()


def test_the_offset_looked_at_is_in_the_address(visit: Callable[..., Any]) -> None:
    page = visit("models=[{%22kind%22:%22bayes%22}]&lags=[1,2]")
    assert "Uniform attention and a parabola" in page.inner_text("#mixed")
    page.locator("#offset").fill("9")
    assert "at o = 9" in page.inner_text("#mixed")
    assert state_of(page).offset == 9
    again = visit(page.evaluate("location.hash").removeprefix("#"))
    assert again.inner_html("#mixed") == page.inner_html("#mixed")


def test_a_trained_model_brings_its_task_and_leaves_with_it(visit: Callable[..., Any]) -> None:
    page = visit()
    after(
        page,
        lambda: page.locator("select[aria-label='Model A']").select_option(
            "trained:standard-3.5.7"
        ),
    )
    assert state_of(page).lags == (3, 5, 7)
    after(page, page.get_by_role("button", name="lag 1", exact=True).click)
    assert state_of(page).models == (ModelChoice(),)
    assert "another task" in page.inner_text("#notice")


def test_it_plays_pauses_and_steps(visit: Callable[..., Any]) -> None:
    page = visit("query=10")
    page.locator("#speed").fill("5")
    page.get_by_role("button", name="Play", exact=True).click()
    until(page, "Number(document.getElementById('sequence').getAttribute('aria-valuenow')) > 14")
    page.get_by_role("button", name="Pause").click()
    at = int(page.get_attribute("#sequence", "aria-valuenow"))
    page.wait_for_timeout(200)
    assert int(page.get_attribute("#sequence", "aria-valuenow")) == at
    page.get_by_role("button", name="One token on").click()
    page.get_by_role("button", name="One token on").click()
    page.get_by_role("button", name="One token back").click()
    assert int(page.get_attribute("#sequence", "aria-valuenow")) == at + 1
    page.get_by_role("button", name="To the beginning").click()
    assert page.get_attribute("#sequence", "aria-valuenow") == "0"


def test_played_to_the_end_it_begins_again(visit: Callable[..., Any]) -> None:
    page = visit("query=125&length=127")
    page.locator("#speed").fill("5")
    page.get_by_role("button", name="Play", exact=True).click()
    until(page, "document.getElementById('sequence').getAttribute('aria-valuenow') === '126'")
    page.wait_for_selector("#play[aria-label=Play]")
    page.locator("#play").click()
    until(page, "Number(document.getElementById('sequence').getAttribute('aria-valuenow')) < 60")


def test_a_sequence_is_drawn_hidden_guessed_and_revealed(visit: Callable[..., Any]) -> None:
    page = visit()
    after(page, page.locator("#draw").click)
    assert page.locator("#race svg").is_hidden()
    assert page.locator("#race-panel .veil").is_visible()
    assert state_of(page).revealed is False
    page.locator("#guess").get_by_role("button", name="lag 2").click()
    assert page.locator("#race svg").is_visible()
    assert re.search(
        r"Right: it was made with|You said lag 2; it was made with", page.text_content("#guess")
    )


def test_every_panel_can_be_saved(visit: Callable[..., Any], tmp_path: Path) -> None:
    page = visit("models=[{%22kind%22:%22bayes%22}]")
    until(page, CHANNELS)
    for panel in PANELS:
        for kind in ("SVG", "PNG"):
            with page.expect_download() as waiting:
                page.locator(f"#{panel}-panel .save").get_by_role("button", name=kind).click()
            file = tmp_path / waiting.value.suggested_filename
            waiting.value.save_as(file)
            if kind == "SVG":
                tree = ET.parse(file).getroot()
                assert tree.tag.endswith("svg")
                assert len(list(tree.iter())) > 10
                assert "var(--" not in file.read_text()
            else:
                assert file.read_bytes().startswith(b"\x89PNG")
                assert file.stat().st_size > 5000


def test_the_whole_state_is_in_the_address(visit: Callable[..., Any]) -> None:
    rows = ((0.5, 0.25, 0.25), (0.1, 0.2, 0.7), (0.3, 0.3, 0.4))
    state = State(
        lags=(1, 4),
        states=3,
        length=77,
        matrix=Matrix("rows", rows=rows),
        seed=8,
        edits=((3, 2), (40, 0)),
        models=(ModelChoice("position", beta=12.5, temper=0.7), ModelChoice("two-lags", lam=800.0)),
        query=50,
        zoom=4,
        arcs="2.1",
        race="evidence",
        speed=4.5,
        offset=6,
    )
    first = visit(fragment(state))
    assert state_of(first) == state
    again = visit(first.evaluate("location.hash").removeprefix("#"))
    assert state_of(again) == state
    assert again.inner_html("#race") == first.inner_html("#race")
    assert again.inner_html("#sequence") == first.inner_html("#sequence")
    assert again.input_value("#length") == "77"
    assert again.input_value("#speed") == "4.5"
    assert again.get_attribute("#race-evidence", "aria-pressed") == "true"
    again.click("#race-weight")
    assert state_of(again).race == "weight"


def test_a_bad_address_is_said_and_the_first_state_shown(visit: Callable[..., Any]) -> None:
    page = visit("lags=[1,")
    assert "no state" in page.inner_text("#notice")
    page = visit("lags=[99]")
    assert "from 1 to 16" in page.inner_text("[data-error-for=lags]")
    assert page.locator("#maps canvas").count() == 5


def test_the_keyboard_alone_is_enough(visit: Callable[..., Any]) -> None:
    page = visit("query=30")
    press = page.keyboard.press
    for _ in range(60):
        if page.evaluate("document.activeElement.id") == "sequence":
            break
        press("Tab")
    assert page.evaluate("document.activeElement.id") == "sequence"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    press("ArrowRight")
    press("ArrowRight")
    press("ArrowLeft")
    assert page.get_attribute("#sequence", "aria-valuenow") == "31"
    press("Home")
    assert page.get_attribute("#sequence", "aria-valuenow") == "0"
    after(
        page,
        lambda: press(
            "3" if "token 3" not in page.get_attribute("#sequence", "aria-valuetext") else "2"
        ),
    )
    assert len(state_of(page).edits) == 1
    press("+")
    assert state_of(page).zoom == 4
    press("Space")
    until(page, "Number(document.getElementById('sequence').getAttribute('aria-valuenow')) > 1")
    press("Space")
    press("Enter")
    assert page.locator("#token-menu").is_visible()
    press("Escape")
    assert page.locator("#token-menu").is_hidden()


def test_every_control_has_a_name(visit: Callable[..., Any]) -> None:
    page = visit("models=[{},{%22kind%22:%22bayes%22}]")
    page.locator("#row-editor summary").click()
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, input, select, textarea, [role=slider], [role=img]')].filter((c) =>"
        " !(c.ariaLabel || c.labels?.[0]?.textContent.trim() || c.textContent.trim())).map((c) => c.outerHTML)"
    )
    assert nameless == []


ROW = "#row-text"


def test_nonsense_is_explained_beside_its_control_and_the_last_view_stays(
    visit: Callable[..., Any],
) -> None:
    page = visit()
    race = page.inner_html("#race")

    def typed(selector: str, words: str) -> None:
        page.fill(selector, words)
        page.press(selector, "Enter")

    typed("#length", "3")
    page.wait_for_selector("[data-error-for=length]:has-text('largest lag, 3')")
    assert page.inner_html("#race") == race
    typed("#length", "128")
    page.wait_for_selector("[data-error-for=length]", state="hidden")
    typed("#states", "1")
    page.wait_for_selector("[data-error-for=states]:has-text('from 2 to 10')")
    typed("#states", "5")
    page.wait_for_selector("[data-error-for=states]", state="hidden")
    page.locator("#row-editor summary").click()
    typed(ROW, "0 0 0 0 0")
    page.wait_for_selector("[data-error-for=matrix]:has-text('cannot be made to sum to 1')")
    typed(ROW, "1 -1 1 0 0")
    page.wait_for_selector("[data-error-for=matrix]:has-text('0 or more')")
    assert page.inner_html("#race") == race
    after(page, lambda: typed(ROW, "1 1 2 0 0"))
    assert state_of(page).task().P[0].tolist() == [0.25, 0.25, 0.5, 0, 0]
    for lag in (3, 2):
        after(page, page.get_by_role("button", name=f"lag {lag}", exact=True).click)
    page.get_by_role("button", name="lag 1", exact=True).click()
    page.wait_for_selector("[data-error-for=lags]:has-text('at least one')")
    assert page.locator("#race svg").is_visible()


def test_a_row_stays_a_law_when_a_slider_moves(visit: Callable[..., Any]) -> None:
    page = visit()
    page.locator("#row-editor summary").click()
    after(page, lambda: page.locator("#row-sliders input").nth(1).fill("0.9"))
    row = state_of(page).task().P[0]
    assert row[1] == 0.9
    assert abs(row.sum().item() - 1) < 1e-12


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(visit: Callable[..., Any], scheme: str) -> None:
    page = visit(width=390, height=844, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.locator("#task-group > summary").click()
    page.locator("#model-group > summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", paper))) > 380) == (scheme == "light")


@pytest.mark.parametrize(("length", "limit"), [(128, 100), (256, 300)])
def test_a_change_is_answered_and_drawn_quickly(
    visit: Callable[..., Any], length: int, limit: int
) -> None:
    """Ask, compute, send, draw, up to the next frame: the median of nine changes, in time of a machine that is ours.
    Where others have it for a while, there are three tries, and the limit is stretched by what they take. Beside other
    tests page and server, which take turns on one core then, get three times as long."""
    limit *= 3 if "PYTEST_XDIST_WORKER" in os.environ else 1
    page = visit(f"length={length}&query=60")
    page.focus("#sequence")
    medians = []
    for _ in range(3):
        taken = []
        for n in range(9):
            after(page, lambda n=n: page.keyboard.press(str(n % 5)))  # type: ignore[misc]
            taken.append(float(page.evaluate("document.body.dataset.latency")))
        medians.append(statistics.median(taken))
        if medians[-1] < limit * crowding():
            return
    raise AssertionError(f"medians of {medians} ms; wanted under {limit}")


def crowding() -> float:
    """How much longer a busy process takes than the processor works for it: 1 on a machine of its own."""
    begin, worked = time.perf_counter(), time.process_time()
    while time.process_time() - worked < 0.2:
        pass
    return (time.perf_counter() - begin) / (time.process_time() - worked)


def test_when_the_server_is_gone_the_page_says_so(visit: Callable[..., Any]) -> None:
    page = visit()
    page.route("**/api/view", lambda route: route.abort())
    page.locator("#draw").click()
    page.wait_for_selector("#failure:has-text('does not answer')")
    assert page.locator("#maps canvas").count() == 5
    page.unroute("**/api/view")
    after(page, page.locator("#retry").click)
    assert page.locator("#failure").is_hidden()


def test_python_and_link_are_copied(visit: Callable[..., Any]) -> None:
    page = visit("seed=4", permissions=["clipboard-read", "clipboard-write"])
    page.locator("#copy-python").click()
    page.wait_for_selector("#notice:has-text('Copied')")
    assert "sih.construct(task)" in page.evaluate("navigator.clipboard.readText()")
    page.locator("#copy-link").click()
    until(page, "navigator.clipboard.readText().then((text) => text.endsWith('#seed=4'))")


def test_a_saved_page_works_without_a_server(visit: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    words = ["--export", str(file), "--lags", "1", "2", "3", "--length", "40", "--sequences", "2"]
    subprocess.run([sys.executable, "-m", "sih.cli", "explore", *words], check=True)
    page = visit(base=file.as_uri())
    assert page.locator("#maps canvas").count() == 5
    page.wait_for_selector(".verdict.ok")
    after(page, page.locator("#compare").click)
    assert page.locator("#maps canvas").count() == 5 + 5
    until(page, CHANNELS)
    assert page.locator("#channels svg").count() == 2
    slider = page.locator("input[aria-label='Model B: number of second-layer heads']")
    after(page, lambda: slider.fill("1"))
    assert "nothing mixed, 2/3 of the past unused" in page.inner_text(".built:not(.how) >> nth=1")
    after(page, lambda: slider.fill("3"))
    assert "nothing mixed, exact" in page.inner_text(".built:not(.how) >> nth=1")
    assert page.locator("#mixed-panel").is_hidden()
    after(
        page,
        lambda: page.locator("select[aria-label='Model A']").select_option(
            label="Bayes, few heads, both sides"
        ),
    )
    assert "approximate: residual up to" in page.inner_text(".built >> nth=0")
    assert page.locator("#mixed svg").count() == 5
    after(
        page,
        lambda: page.locator("select[aria-label='Model A']").select_option(label="Fewer heads"),
    )
    after(page, page.locator("#draw").click)
    page.locator("#reveal").click()
    assert "made with lag" in page.text_content("#guess")
    page.focus("#sequence")
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    until(page, "Number(document.getElementById('sequence').getAttribute('aria-valuenow')) > 1")
    assert page.locator("#states").is_disabled()
    with page.expect_download() as waiting:
        page.locator("#race-panel .save").get_by_role("button", name="SVG").click()
    assert waiting.value.suggested_filename == "sih-race.svg"
