r"""Rivals in the true lag's own class: Lemmas E and T, and Lemma B, by which the true lag is not between two others.

Every lemma here and in `outside_class.py` is proved the same way. A *potential* is a function of one variable, or of
a pair, whose mean is the same at two places of the window; the integrand is at least a difference of potentials at
every single point, so its mean is at least 0. (This is linear programming duality.) Nothing is asked of the variables
but that the laws named are equal: f need not be a column of P, and Y, Z ... are f at the tokens that the lags point at.

`rest`, R >= 0 in formulas, is the sum of f over the lags that a lemma does not name. They lie in other classes, so R
is independent of the variables named, and every lemma is for a fixed R. A quotient 0/0 counts as 0 throughout.

**Lemma E** (two in a class: r in c(k) = {k, r}). If Y, Z >= 0 have the same law, in any coupling, then
$\mathbb E[Y(Y-Z)/(Y+Z+R)] \ge 0$.

Proof. Let $G(0) = 0$, $G'(t) = t/(2t+R)$, which does not decrease (1/2 throughout if R = 0). At every point

$$\frac{y(y-z)}{y+z+R} \ge G(y) - G(z).$$

For z < t < y: $G'(t) \le G'(y) = y/(2y+R) \le y/(y+z+R)$; integrate over t from z to y. For y < t < z:
$G'(t) \ge G'(y) = y/(2y+R) \ge y/(y+z+R)$; integrate over t from y to z and change the sign. The right side has mean
0 because Y and Z have the same law. ∎

**Lemma B** (betweenness: c(k) = {k, l}, any r outside). If Y, Y' >= 0 have the same law and (Z, R) is independent of
(Y, Y'), then $\mathbb E[(Y-Z)(Y-Y')/(Y+Y'+Z+R)] \ge 0$.

Proof. Fix Z = z and R; add R/3 to y, y', z, which changes no difference and makes the sum of the three the
denominator. So R = 0. Let $G'(t) = (t-z)/(2t+z) = \tfrac12 - \tfrac{3z}2/(2t+z)$. We show, with t = y',

$$\frac{(y-z)(y-t)}{y+t+z} \ge G(y) - G(t),$$

and may take z > 0 (z = 0: $y(y-t)/(y+t) \ge (y-t)/2$). Write p = 2y + z, q = 2t + z, so that p + q = 2(y+t+z), both
at least z. The mean of G' between y and t is $\tfrac12 - \tfrac{3z}{2}\,\log(q/p)/(q-p)$.

t < y: we need that this mean is at most (y-z)/(y+t+z). As 1/x is convex its mean over [q, p] is at least its value at
the middle, $2/(p+q) = 1/(y+t+z)$, so the mean of G' is at most (y+t-2z)/2(y+t+z) <= (2y-2z)/2(y+t+z).

t > y: we need that it is at least (y-z)/(y+t+z) = (p-3z)/(p+q). With x = q/p > 1, and a = p/z >= 1, this reads
$(a(x-1)+6)(x-1)/(x+1) \ge 3\log x$, which is hardest at a = 1: $u(x) = (x-1)(x+5)/(x+1) - 3\log x \ge 0$. Indeed
u(1) = 0 and $u'(x) = (x-1)(x^2+3)/(x(x+1)^2) \ge 0$. ∎

**Lemma T** (three in a row: c(k) = {k, k+j, k+2j}, r = k+j its middle). If (A, B) and (B, C) have the same law, then
$\mathbb E[A(A-B)/(A+B+C+R)] \ge 0$.

Proof. Add m = R/3 to a, b, c; now they are at least m, the integrand is $\xi(a)\,a(a-b)/(a+b+c)$ with
$\xi(t) = 1 - m/t$, and with $A' = \xi$ and $V(a,b) = \tfrac32(a-b)^2(a+b-2m)/(a+b)^2$ (V(0,0) = 0) we show

$$9\,\xi(a)\frac{a(a-b)}{a+b+c} \ge 3[A(a)-A(b)] + V(a,b) - V(b,c),$$

whose right side has mean 0. Since $9a/(a+b+c) = 3 + 3(2a-b-c)/(a+b+c)$, and since
$\xi(a)(a-b) \ge A(a)-A(b) + 1_{a<b}\,m(b-a)^2/2ab$ (for a >= b because $\xi$ increases; for a < b because it is
concave, so that $\int_a^b\xi \ge (b-a)(\xi(a)+\xi(b))/2$), it is enough that

$$3\,\xi(a)\frac{(a-b)(2a-b-c)}{a+b+c} - V(a,b) + V(b,c) + 1_{a<b}\frac{3m(b-a)^2}{2ab} \ge 0.$$

Times $ab(a+b+c)(a+b)^2(b+c)^2$ this is a polynomial. In each of the six orders of a, b, c write the least of them as
m + t, the others by their increments x, w >= 0: all its coefficients in m, t, x, w are positive, 737 of them in all.
This last step is done by computer algebra, exactly (`test_lemma_t_has_positive_coefficients`). ∎

For r = k+2j, the end of the class, no such lemma can be true: `coverage.py`, "Sharpness".
"""
