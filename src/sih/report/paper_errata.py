"""The errata: places where the printed paper is not quite right. docs/errata.md adds
the consequences.

Positions, rows and columns count from 1, as in the paper.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Erratum:
    number: int
    where: str
    printed: str
    corrected: str
    test: str
    """The test in which the printed form fails and the corrected form holds."""


ERRATA: tuple[Erratum, ...] = (
    Erratum(
        1, 'App. "Alternative third layer", B^(3,h); also the {1,3,4} example', "(i − j − h + 1) mod K = 0",
        "(i − j + h) mod K = 0. For h = 1 that is the main text's (i − j) mod K = K − 1 and the printed matrix",
        "integration/test_errata.py::test_1_alternative_third_layer",
    ),
    Erratum(
        2, 'App. "Two lags and single head", B^(3)', "((i − j − 1) mod 2d) < d, d = k̂ − k̄",
        "((i − j + 1 − 2k̄) mod 2d) < d. They agree where 2k̄ ≡ 2 (mod 2d), for instance k̄ = 1; {2,5} shows the "
        "difference. With k̄ > 1 the head misses the newest k̄ − 1 transitions",
        "integration/test_errata.py::test_2_two_lags_single_head",
    ),
    Erratum(
        3, "Apps. on any lags and two lags, A^(1) and A^(3)", "j − i ∈ 𝒦, j − i + 1 ∈ 𝒦",
        "i − j ∈ 𝒦, i − j + 1 ∈ 𝒦, as in the main text and the matrices",
        "integration/test_errata.py::test_3_signs_of_index_differences",
    ),
    Erratum(
        4, "Sec. 5.1, 𝒜^(2,1)", "rows without an allowed key are 0",
        "they are uniform over the past, for every λ; so Prop. 1's identity fails on the first rows after k̂. A sink "
        "at position 1 mends it (docs/concepts/sharing-heads.md)",
        "integration/test_errata.py::test_4_early_rows",
    ),
    Erratum(
        5, "Prop. 1 and Eq. (5)", "weights exp(β/(T − k̂) Σ p̃)",
        "the constructed weights are exp(Σ_h β/n_h(i) Σ_{i' in head h} p̃), n_h(i) the transitions head h sees; the "
        "printed form is the limit of long sequences with Kβ for β (and exact with a sink)",
        "integration/test_errata.py::test_5_proposition_1s_weights",
    ),
    Erratum(
        6, 'App. "any set of lags"', "k̂ − min(𝒦 + 1) heads always do",
        "k̂ − min(𝒦) + 1. The least number is a chromatic number and can be smaller: {1,2,4,8} needs 5, not 8",
        "integration/test_errata.py::test_6_head_count_for_any_lags",
    ),
    Erratum(
        7, "Sec. 4, Eq. (1)", "k ∼ Unif[1, …, k̂]",
        "k ∼ Unif(𝒦), as the text, Algorithm 1 and all figures have it",
        "integration/test_errata.py::test_7_the_lag_is_uniform_over_the_set",
    ),
    Erratum(
        8, 'App. "any set of lags", the printed A^(1) for {1,3} and {1,3,4}', "+λ at (3,1), (3,3), (4,2), (4,4), …",
        "one row lower: +λ where i − j ∈ 𝒦. What is printed is A^(3). The attention 𝒜^(1) beside it belongs to the "
        "right matrix, but for its first k̂ rows, drawn uniform where lag 1 is allowed already",
        "integration/test_errata.py::test_8_the_first_layer_of_the_examples",
    ),
    Erratum(
        9, 'App. "any set of lags", A^(2,4) for {1,3,4}', "row 12 has +λ at 9 only",
        "at 5 and 9 (offsets 7 and 3 are both 3 modulo 4)",
        "integration/test_errata.py::test_9_the_fourth_head_of_the_example",
    ),
    Erratum(
        10, 'Sec. 5.1, end of "First layer"', "p̃_{i,k} is stored in element S + T − k",
        "in element S + i − k, as stated some lines earlier",
        "integration/test_errata.py::test_10_where_layer_1_stores",
    ),
    Erratum(
        11, 'Sec. 5.1, "Second layer", text under A^(2,h)', "i ≥ j ≥ k̂",
        "i ≥ j > k̂, as in the formula: token k̂ was not made by a transition",
        "integration/test_errata.py::test_11_which_positions_layer_2_may_use",
    ),
    Erratum(
        12, 'App. A, end of "Independent lags"', "similar techniques prove Claim 1 for symmetric P",
        "exchanging k and r does it only where reversing the chain exchanges them, as for lags 1 and 3 of {1,2,3}; "
        "for lags 1 and 4 of {1,2,4} the argument does not go through, and the claim is open there (docs/results)",
        "mathematics/test_any_chain.py::test_symmetry_does_not_exchange_other_lags",
    ),
    Erratum(
        13, "Sec. 5.1, Prop. 1", "for any T ≥ k̂",
        "T > k̂: at T = k̂ no transition has been made, and the mean in the weights is 0/0",
        "integration/test_errata.py::test_13_proposition_1_needs_a_transition",
    ),
    Erratum(
        14, "Sec. 5.3, Claim 1; App. A", "i ≥ k̂",
        "i > k̂: token k̂ was not made by a transition, and lag k̂ would need a token 0",
        "integration/test_errata.py::test_14_claim_1_is_about_tokens_that_follow_others",
    ),
    Erratum(
        15, "App. A, second sentence", "the MLE in the high-temperature limit",
        "in the low-temperature limit: β multiplies the evidence, so it is an inverse temperature",
        "integration/test_errata.py::test_15_maximum_likelihood_is_the_limit_of_low_temperature",
    ),
    Erratum(
        16, 'App. "any set of lags", first layer for {1,3,4}', "the 2nd, 3rd and 4th diagonal",
        "the 2nd, 4th and 5th, as in the matrix of 𝒜^(1) beside it; the main diagonal is the 1st",
        "integration/test_errata.py::test_16_the_diagonals_of_the_first_layer",
    ),
    Erratum(
        17, 'App. "Two lags and single head", A^(2)', "0 where i < k̂ or j < k̂, and 0 otherwise",
        "−λ where i ≤ k̂ or j ≤ k̂, and −λ otherwise: token k̂ was not made by a transition. With λ large enough 0 "
        "masks as −λ does",
        "integration/test_errata.py::test_17_the_second_layer_for_two_lags",
    ),
)  # fmt: skip
