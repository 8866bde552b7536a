"""Formulas become MathML (run by `make docs`, which has the packages)."""

from __future__ import annotations

import re

import pytest

from website.formulas import FONT, drawn, mathml


def test_a_formula_keeps_its_structure() -> None:
    found = mathml(r"\tilde p_{i,k} = \frac{a}{b}")
    assert re.search(
        r"<msub><mover><mi>p</mi><mo[^>]*>&#x0007E;</mo></mover><mrow><mi>i</mi>.*<mi>k</mi></mrow></msub>",
        found,
    )
    assert "<mfrac><mrow><mi>a</mi></mrow><mrow><mi>b</mi></mrow></mfrac>" in found
    assert 'display="inline"' in found
    assert 'display="block"' in mathml("x", display=True)


def test_what_latex2mathml_lacks_is_mended() -> None:
    assert "arg" in mathml(r"\arg\max_k f(k)")
    assert "\\" not in mathml(r"\arg\max_k f(k)")
    assert 'lspace="0.06em"' in mathml("|x| / y")
    assert mathml(r"\mathcal K") == mathml(r"\mathcal{K}") != mathml("K")


@pytest.mark.parametrize("latex", [r"\nosuchcommand x", r"\left( x"])
def test_what_is_not_understood_is_an_error_that_shows_it(latex: str) -> None:
    with pytest.raises(ValueError, match="cannot read the formula"):
        mathml(latex)


def test_every_formula_of_a_page_is_drawn() -> None:
    page = r'<p><span class="arithmatex">\(a &lt; b\)</span></p><div class="arithmatex">\[c\]</div><code>\(d\)</code>'
    found = drawn(page)
    assert found.count("<math") == 2
    assert "&#x0003C;" in found or "&lt;" in found
    assert r"<code>\(d\)</code>" in found


def test_the_font_is_there() -> None:
    assert FONT.read_bytes()[:4] == b"\x00\x01\x00\x00"
