"""Rivals outside the true lag's class: Lemma D.

Y and Z are f at the tokens of the true lag k and of the rival r, Y_1 .. Y_n at the other lags of c(k), Z' at the
other lag of c(r) if there is one (β = 1, else 0), R >= 0 at all others. The classes are independent and all
tokens have one law, so (Y, Z), (Y_j, Z), (Y, Z') have the same law, and Y has the law of Z. Nothing else is used.

**Lemma D.** E[Y(Y-Z)/(Y+Z+sum_j Y_j+βZ'+R)] >= 0 if n <= 2, or if n <= 4 and β = 0.

Notation. Σ = y+z+sum_j y_j+βz', F = y(y-z)/Σ, κ = 2+n+β. Two potentials, each convex in t
with minimum 0, at t = y and at t = z:

- h_y(t) = (t-y)^2/2y for t <= 2y, and t - 3y/2 beyond;
- g_z(t) = t - z - z log(t/z) for t >= z/2, and z(log 2 - ½)+(z/2-t)+(2/z)(z/2-t)^2 below. The two
  parts join with two derivatives; g_z'' = z/t^2 above z/2 and 4/z below.

At 0 they are defined by continuity: h_0(t) = g_0(t) = t.

**R = 0, pointwise.** For y, z, y_j, z' >= 0, y + z > 0:

- (D1) if y >= z, κ^2F >= κ(y-z)+β[h_y(z)-h_y(z')]+sum_j g_z'(y)(y-y_j), where g_z'(y) = 1-z/y;
- (D2) if y < z, κ^2F >= κ(y-z)+β[h_y(z)-h_y(z')]+sum_j[g_z(y)-g_z(y_j)].

The bound of (D1) is at least that of (D2), because g is convex; so the bound of (D2) holds in both cases, and its mean
is 0. (At y = z = 0 its right side is -βz' - sum_j y_j <= 0.) This is the lemma for R = 0.

*Proof.* Let I be left minus right. Put u = y-z = -d, v = y-z', w_j = y-y_j, ρ = u+sum_j w_j+βv =
κy-Σ. As κy/Σ = 1+ρ/Σ, applied twice,

    κ^2 F = κ u + u ρ/y + u ρ^2/(y Σ).                                                        (*)

*(i) y >= z*, so 0 <= u <= y. Drop the last term of (*), which is >= 0. The terms in w_j cancel, h_y(z) = u^2/2y,
and yI >= (1-β)u^2+β[½u^2+uv+y h_y(z')]. The bracket is ½(u+v)^2 if v >= -y (z' <= 2y), and
(y-u)(|v|-½(y+u)) >= 0 if v <= -y.

For y < z, that is d > 0: I increases with z' for z' >= y (F and h do), so let z' <= y. F depends on the y_j by their
sum alone and g is convex, so I does not increase if each is replaced by their mean t. Let w = y-t and
B = g(t)-g(y)-g'(y)(t-y) >= 0, g = g_z. The inequality is homogeneous, so let z = 1, d = 1-y.

*(ii) 1/2 <= y < 1.* Here h_y(1) = d^2/2y and g'(y) = -d/y. With q = v-d, (*) gives

    y I = (1-β) d^2 + β q^2/2 + n y B - d ρ^2/Σ,      ρ = -(1-β) d + β q + n w.

By Cauchy-Schwarz ρ^2 <= [(1-β)d^2+½βq^2+nyB] [1+β+n w^2/yB] (no last term if w = 0), so that
I >= 0 as soon as

    Σ >= d (1 + β + n w^2/(y B)).                                                                      (CS)

 t >= y: B = x-1-log x with x = t/y, at least (x-1)^2/2x for x >= 1 (the derivative of the difference is
  (1-1/x)^2/2), so w^2/yB <= 2t and, as 2d <= 1, d(1+β+2nt) <= 1+nt <= Σ.
 t <= y: g'' >= 1/y^2 on [t, y] (below 1/2 because 4 >= 1/y^2), so yB >= w^2/2y and w^2/yB <= 2y.
  β = 0. Σ >= 1+y, so it is enough that (d^2+nw^2/2y)(1+y) >= d(nw-d)^2 for 0 <= w <= y. The difference is
   nw^2[(1+y)/2y-nd]+2nwd^2+d^2(1+y-d). If the bracket is >= 0 we are done: n <= 2 since 4y^2-3y+1 > 0; n = 3 since
   (3y-1)(2y-1) >= 0. If n = 4 and the bracket is negative, the difference is concave in w, >= 0 at w = 0 and
   2y(13y^2-17y+6) > 0 at w = y.
  β = 1, n <= 1. d(2+2y) = 2(1-y)(1+y) <= 1+y <= Σ: (CS).
  β = 1, n = 2. Here ρ = q+2w, Σ = 5y-ρ, y-1 <= q = 2y-1-z' <= 2y-1, and it is enough that
   Q := ½q^2+w^2/y-dρ^2/Σ >= 0.
   q <= 0, ρ >= 0: ρ^2 <= 4w^2 and Σ >= 1 >= 4yd. q <= 0, ρ < 0: ρ^2 <= q^2 and Σ >= 1 >= 2d.
   q > 0, w <= y/2: Σ >= 1+2y = 1+y+2(y/2) >= d(2+4y): (CS). q > 0, y >= .65: Σ >= 1+y >= d(2+4y), as
   4y^2-y-1 >= 0: (CS).
   q > 0, w >= y/2, y < .65: Σ >= 5y-(2y-1)-2y = 1+y, so ΣQ >= A q^2-4dqw+Cw^2 with A = (3y-1)/2 and
   C = (1-3y+4y^2)/y > 0. Its derivative in w is at least -4d(2y-1)+Cy = 12y^2-15y+5 > 0, so take w = y/2; then its
   derivative in q is at most (3y-1)(2y-1)-2dy = 8y^2-7y+1 < 0, so take q = 2y-1. Four times the value there is
   44y^3-59y^2+23y-2 = 44(y-3/5)^2(y-31/220)+(29-35y)/125 > 0.

*(iii) y <= 1/2 and t <= y (or n = 0).* Now h_y(1) = 1-3y/2 and g' = 4t-3 on [0, 1/2], so

    I = κ(1-y) - β(1-3y/2) + β h_y(z') + n[g(t)-g(y)] - κ^2 y(1-y)/Σ.

 Its derivative in t is n[4t-3+κ^2y(1-y)/Σ^2], convex in t, and <= 0 at t = y, where Σ >= 1+(n+1)y:
 (3-4y)(1+(n+1)y)^2-κ^2y(1-y) is (1-2y)(3-2y+8y^2) for n = 1, (1-2y)(3-5y+18y^2) for n = 2 (both β = 1, and
 larger for β = 0), no less than the latter for n = 3, and 3-10y+71y^2-100y^3 >= 3-10y+21y^2 > 0 for n = 4. So as t
 falls from y to 0, I first rises and then perhaps falls: its least value is at t = y or at t = 0.
 t = y, β = 0: Σ I = κ(1-y)^2. t = y, β = 1: with a = (n+1)y+z', Σ = 1+a,
  ΣI = (2+n-a+z'^2/2y)(1+a)-(3+n)^2y(1-y); as (1+a)/2y >= 1 and z' = a-(n+1)y this is at least
  2+n+(n+1)a(1-2y)+(n+1)^2y^2-(3+n)^2y(1-y) >= (2+n)(1-2y)^2, by a >= (n+1)y.
 t = 0: n[g(0)-g(y)] = n(3y-2y^2). β = 0: Σ I = (n+2)-(n^2+n+4)y+(n^2+4n+2)y^2-2ny^3. β = 1:
  Σ I increases with z' (its derivative is at least n+1+(2n-4)y-2ny^2 > 0), and at z' = 0 it is
  (n+2)-(n^2+3n+8)y+(n^2+6n+8)y^2-2ny^3. With 2ny^3 <= ny^2 both are quadratics of negative discriminant.

*(iv) y <= 1/2, n >= 1, t >= y.* I increases with t for t >= 1, so let t <= 1: 1+(n+1)y <= Σ <= 1+n+(1+β)y. With
 t and z' fixed, and as ∂h_y(z')/∂y = ½-z'^2/2y^2 <= ½, ∂I/∂y  <=
 -T(1/Σ), where T(s) = 4ny-2(n-1)-β+κ^2[(1-2y)s-y(1-y)s^2] is concave in s and >= 0 at both ends:

    n β   T at 1/(1+(n+1)y), times (1+(n+1)y)^2   T at the other end, times Σ^2
    1  0     9-5y-11y^2+16y^3                        18-20y+7y^2+4y^3                 Σ = 2+y
    1  1     (1-2y)(5-2y)(3+4y)                      4(7-10y-5y^2+4y^3)               Σ = 2+2y
    2  0     2(7-2y-25y^2+36y^3)                     2(15-18y+15y^2+4y^3)             Σ = 3+y
    2  1     2(1-2y)(11+17y-18y^2)                   (1-y)(48-41y-32y^2)              Σ = 3+2y
    3  0     21+5y-143y^2+192y^3                     36-40y+67y^2+12y^3               Σ = 4+y
    4  0     30+28y-314y^2+400y^3                    30-20y+118y^2+16y^3              Σ = 5+y

 So I falls as y rises to min(t, 1/2), where it is >= 0: by (iii) if y = t, by (ii) if y = 1/2. ∎

**R > 0.** Add m = R/κ to each variable: all are now at least m, Σ is the whole denominator, and the integrand is
ξ(y)F with ξ(t) = 1-m/t, >= 0, increasing and concave. Let A' = ξ; G_z = ξ(z)g_z on [m, z] and
G_z' = ξg_z' beyond z, so that G_z is convex with minimum 0 at z. We claim

    κ^2 ξ(y) F >= κ[A(y)-A(z)] + β ξ(y)[h_y(z)-h_y(z')] + sum_j [G_z(y)-G_z(y_j)],

whose right side has mean 0. If y >= z multiply (D1) by ξ(y): ξ(y)(y-z) >= A(y)-A(z) because ξ increases, and
ξ(y)g_z'(y)(y-y_j) = G_z'(y)(y-y_j) >= G_z(y)-G_z(y_j) by convexity. If y < z multiply (D2) by ξ(y). With x = y/z
and δ = ξ(z)-ξ(y) = md/yz >= 0, exactly, ξ(y)(y-z) = A(y)-A(z)+δzφ(x), where
φ(x) = 1 - x log(1/x)/(1-x); and ξ(y)[g_z(y)-g_z(y_j)] >= G_z(y)-G_z(y_j)-δg_z(y), because
ξ(y) g_z <= ξ(z)g_z <= G_z. As g_z(y) = z g_1(x), what is left is κφ(x) >= n g_1(x), and
n/κ <= 2/3 in all cases of the lemma. So we show 3φ >= 2g_1 on (0, 1].
 x <= 1/2: φ >= 1-√x, since 2 log u <= u-1/u for u = x^(-1/2) >= 1. With s = √x,
  3(1-s)-2(log 2+½-3s^2+2s^4) > .6136-3s+4s^2 > 0, by 4s^4 <= 2s^2 and 9 < 16 * .6136.
 x >= 1/2: φ >= (1-x)/2, since ξ is concave; and g_1(x) <= 2g_1(½)(1-x) < .39(1-x), by convexity. ∎

Why no further: with these potentials (D2) fails at n = 3, β = 1 (y = .41, t = z' = 0) and at n = 6, β = 0 (for n = 5
it holds wherever we tried, but part (ii) does not prove it). The lemma itself is false for n = 8, β = 0, and for n = 0
and five companions of r (`coverage.py`, "Sharpness"). In between it is open.
"""

CASES = ((0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (0, 1), (1, 1), (2, 1))
"""(companions of the true lag, companions of the rival) for which Lemma D is proved."""
