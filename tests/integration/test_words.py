"""Documents are in plain words: each check finds its case and nothing else, and pages pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from sih.attention.head_reading import ROLES
from website import words

ROOT = Path(__file__).parents[2]


def kinds(text: str, name: str = "docs/page.md") -> list[str]:
    return [finding.kind for finding in words.check_page(words.read(name, text))]


@pytest.mark.parametrize(
    "path", words.documents(), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_a_document_is_in_plain_words(path: Path) -> None:
    page = words.read(path.relative_to(ROOT).as_posix(), path.read_text())
    assert [str(finding) for finding in words.check_page(page)] == []


def test_a_plain_sentence_passes() -> None:
    assert (
        kinds("Head 3.1 attends to the token of the true lag. Its KL is 0.87, as in Fig. 4.") == []
    )


def test_banned_words_are_found_in_prose_and_tables_but_not_in_code() -> None:
    assert kinds("The law of the next token.") == ["word"]
    assert kinds("Pass `law` to it.\n\n```python\nlaw = 1\n```") == []
    assert kinds("| a | b |\n|---|---|\n| where it looked | x |") == ["word"]
    assert kinds("Held-out sequences are used, and the law of large numbers holds.") == []
    assert kinds("The law of the next token. <!-- words: ok -->") == []


def test_long_sentences_end_at_full_stops_and_not_at_abbreviations() -> None:
    assert kinds("word " * 36 + ".") == ["long"]
    assert kinds("Word" + " word" * 24 + ". Word" + " word" * 29 + ".") == ["mean"]
    assert len(words.read("x", "See Eq. (2) and Fig. 4, e.g. for lag 2. Next one.").sentences) == 2


def test_wrapped_lines_are_one_sentence_and_list_items_are_several() -> None:
    text = "One sentence over\ntwo lines.\n\n- an item\n- another"
    assert len(words.read("x", text).sentences) == 3


def test_numbers_need_a_leading_zero_and_at_most_two_are_in_a_sentence() -> None:
    assert kinds("It falls to .87 at the end of the whole long run of training.") == ["number"]
    assert kinds("The values are 0.1, 0.2 and 0.3 in these runs.") == ["numbers"]
    assert kinds("In layers 1, 2 and 3 the heads attend to one key, with lags {1,2,3}.") == []


def test_wide_and_tall_tables_are_found() -> None:
    assert kinds("|" + " a |" * 8 + "\n|" + "---|" * 8) == ["table"]
    assert kinds("| a |\n|---|\n" + "| b |\n" * 13) == ["table"]
    assert kinds("| a |\n|---|\n" + "| b |\n" * 12) == []


def test_formulas_and_code_are_one_word_without_digits() -> None:
    page = words.read("x", "Here $x_1 + 2$ and `a.b(3)` count.")
    assert words.count_words(page.sentences[0][1]) == 5
    assert page.number_words == 0


def test_how_to_pages_follow_the_template_and_are_short() -> None:
    assert "template" in kinds("Some text.", "docs/how-to/x.md")
    assert "size" in kinds("A few short words. " * 180, "docs/how-to/x.md")
    assert "size" not in kinds("A few short words. " * 180, "docs/x.md")


def test_a_page_that_is_a_record_is_spared_some_checks() -> None:
    assert kinds("The law of the next token.", "docs/glossary.md") == []
    assert all(reason for _, reason in words.GENTLE.values())


def test_of_docstrings_the_first_sentence_is_read() -> None:
    source = '"""Return what was found. The rest is free: the law."""\n'
    assert [finding.kind for finding in words.check_docstrings("x.py", source)] == ["word"]
    assert words.check_docstrings("x.py", '"""Return the matrix. The law is what it is."""') == []
    assert words.first_sentence("Return p.\n\n>>> 1\n1") == "Return p."


def test_the_command_says_how_much_it_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("The law of the next token.\n")
    assert words.main([str(page)]) == 1
    assert capsys.readouterr().out == 'page.md:1: word: "law": distribution\n'
    page.write_text("The distribution over the next token.\n")
    assert words.main([str(page)]) == 0
    assert words.main(["--table", str(page)]) == 0


def test_the_page_of_roles_has_every_role_in_order() -> None:
    text = (ROOT / "docs" / "roles.md").read_text()
    shown = [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines()]
    assert [role for role in shown if role in ROLES] == list(ROLES)
