"""A true lag alone in its class against a rival with two companions: Lemma M, whose potentials know the mean.

**Lemma M.** Let Y be independent of (Z, Z', Z''), all four >= 0 with the same law, in any coupling of the last three,
and R >= 0. Then E[Y(Y-Z)/(Y+Z+Z'+Z''+R)] >= 0.

Potentials of pairs, as in Lemma D, do not exist here: near equal values they fail at second order. But Y is
independent of the others, so (Y - EY) g(Z, Z', Z'') has mean 0 for every g, and that is enough.

*Proof.* If EY = 0 all is 0. Else scale so that EY = 1. Let κ = 4+R, ω = κ-1, q = E[(Y-1)^2/(Y+ω)], and

    b = Z-1,  c = (Z'+Z'')/2 - 1,  W = Z+Z'+Z''+R,  S = 1+W = κ+b+2c.

*Averaging over Y.* For fixed z, z', z'' the integrand F = y(y-z)/(y+W) = y - W - z + W(W+z)/(y+W) is convex in y. It
is its tangent at y = 1 and a remainder,

    F = (1-z)/(1+W) + (slope)(y-1) + W(W+z)(y-1)^2/((1+W)^2 (y+W)).

The tangent's second term has mean 0. In the remainder W/(y+W) >= min(W, ω)/(y+ω): if W <= ω because y+W <= y+ω, else
because (y+ω)/(y+W) >= ω/W. So E[F | Z's] >= (1-z)/S + q (W+z) min(W, ω)/S^2.

*Terms of mean 0.* Add to κ^2 times this -κ(1-Z), which turns κ^2(1-Z)/S into κb(b+2c)/S; then (5κ/4)[b^2/(κ+b) - q],
of mean 0 as Z has the law of Y and κ+b = Z+ω; then h(Z')+h(Z'')-2h(Z), h(t) = (κ/2)(t-1)^2/(t+ω), of mean 0 as well
and at least κc^2/(κ+c) - κb^2/(κ+b), as h is convex. So κ times the mean in question is at least the mean of E + q(B -
5/4),

    E = b(b+2c)/S + b^2/4(κ+b) + c^2/(κ+c),        B = κ(W+z) min(W, ω)/S^2.

Since (y-1)^2 <= (y+ω)(y+1/ω) we have 0 <= q <= 1+1/ω = κ/(κ-1). The bound is linear in q, so it is enough that it is
>= 0 at both ends: E >= 0, and (1-1/κ)E + B >= 5/4, for all b, c >= -1 and κ >= 4.

*E >= 0.* Clear if b(b+2c) >= 0. Else b and c have different signs.

- c = -γ < 0 < b < 2γ, γ <= 1. As b(2γ-b) = γ^2-(γ-b)^2, E = γ^2[1/(κ-γ) - 1/(κ+b-2γ)] + (γ-b)^2/(κ+b-2γ) + b^2/4(κ+b).
  If b >= γ the bracket is >= 0. If δ = γ-b > 0, multiply by κ+b-2γ = κ-γ-δ, which is at least (κ+b)/2: it is enough
  that -γ^2δ/(κ-γ) + δ^2 + b^2/8 >= 0, and with x = δ/γ, κ-γ >= 3, γ <= 1 it is at least γ^2 (27x^2 - 14x + 3)/24 > 0.
- b = -β < 0 < β/2 < c, β <= 1. As β(2c-β) = c^2-(c-β)^2, E = c^2[1/(κ+c) - 1/(κ-β+2c)] + (c-β)^2/(κ-β+2c) +
  β^2/4(κ-β). If c >= β the bracket is >= 0. Else times κ-β+2c it is at least -c^2(β-c)/(κ+c) + β^2/4 >= -β^2/8 +
  β^2/4.

*The other end.* W <= ω: the first term of E is (1-z)(κ-1-W)/(1+W).

- z >= 1: W >= z >= 1, so B >= 4(W+1)W/(1+W)^2 >= 2, and E >= 0.
- z <= 1: as 1-1/κ >= 3/4, κ >= 4, κ-1 >= 3 it is enough that 3/4 (1-z)(3-W)/(1+W) + 4(W+z)W/(1+W)^2 >= 5/4 for
  0 <= z <= W. This is linear in z; times (1+W)^2 the difference is 1-W+2W^2 > 0 at z = 0, (4-13W+18W^2+3W^3)/4 > 0 at
  z = W <= 1, and (1+W)(11W-5)/4 > 0 at z = 1 <= W.

W >= ω: let u = b+2c = S-κ >= 0, so B = κ(κ-1)(κ+u+b)/(κ+u)^2.

- u <= κ: b >= -1, and (S-1)/S^2 decreases, so B >= (κ-1)(2κ-1)/4κ >= 21/16 > 5/4, and E >= 0.
- u >= κ: drop b^2/4(κ+b). With u fixed and b = u-2c, (1-1/κ)E + B falls as c rises: its derivative is at most
  (1-1/κ)[-2u/(κ+u) + 1 - κ^2/(κ+c)^2] < 0. So take the largest c, b = -1: E = -u/(κ+u) + (u+1)^2/(4κ+2u+2). By 4 <= κ
  <= u and since κ(κ-1)(κ+u-1)/(κ+u)^2 increases with κ, it is enough that 3/4 [(u+1)^2/(6u+2) - u/(u+4)] +
  12(u+3)/(u+4)^2 >= 5/4; with u = 4+t, t >= 0, and cleared of denominators the difference is
  (3t^4+30t^3+131t^2+872t+2720)/4. ∎

Two in c(k) against three: the same kind of potentials, with one more in the companion's value, pass on every grid we
tried (`docs/claim.md`); there is no proof.
"""
