"""The end of three lags in a row: {1, 2, 3} with true lag 1 and rival 3, where f must be a column of P.

For lags {k, k+j, k+2j}, true lag k, the rival k+2j is the one pair that `coverage.py` leaves open, and for f free of P
it is false. So we sum over s and use that rows sum to 1. Let a, b, c be the rows of X_1, X_2, X_3, consecutive states
X_3 -> X_2 -> X_1 of a stationary chain of transition matrix Q = P^(j/k) (Q = P for {1, 2, 3}), Σ = a+b+c, and, with
sums over s,

    N = E (a-c)^2/Σ,   D = E b(a-c)/Σ,   M = E (a-b)^2/Σ,   M' = E (b-c)^2/Σ.

**(0) Identities.** For every path the sum of a-c is 0, so gap = (N-D)/2, as 2a = (a-c) + Σ - b; D = (M'-M)/3, as
3b = Σ + (2b-a-c) and (a-c)(2b-a-c) = (b-c)^2-(b-a)^2; and N-D is the mean of I = 2/3 (a-c)(2a-b-c)/Σ. With z = b-c and
b-a = xz, I = 4/3 z^2 (x-1)(x-1/2)/Σ >= -(b-c)^2/12Σ. The claim is D <= N, or M' <= M + 3N.

It holds in each of these cases. Nothing ties the rows to the transitions in (1), (2), (4), (5): they hold for any Q.

**(1) M <= N, or M' <= 4N, or N >= 1/2.** By Minkowski's inequality |√M' - √M| <= √N. M <= N: M'-M <= N + 2√(MN) <= 3N.
M' <= 4N: M'-M <= 2√(M'N) - N <= 3N if M' >= N, else M'-M <= N. Last, D <= sum of ab/(a+b) <= sum of (a+b)/4 = 1/2. So
it holds if P is nearly a permutation σ without cycles of length 1 and 2: if P(x, σx) >= 1-e for all x, e <= .15, then
with probability (1-e)^2 X_1 = σ²X_3; at s = σX_1 and at s = σX_3 one of a, c is at least 1-e, the other and b at most
e, and N >= 2(1-e)^2 (1-2e)^2/(1+2e) >= 1/2 (Q = P).

**(2) Chains that stay.** Let F_ij = π_i Q_ij, q_i = Q_ii and Δ_ij = sum of (x_i-x_j)^2/(x_i+x_j) over s, x_i the rows.
Split the paths (X_3, X_2, X_1) = (i, j, l):

- i = j, not l, weight q_i F_il: I = 4/3 (x_l-x_i)^2/(2x_i+x_l) >= 2/3 Δ_il;
- j = l, not i, weight F_ij q_j: I = 2/3 (x_j-x_i)^2/(x_i+2x_j) >= 1/3 Δ_ij;
- i = l: I = 0;
- three different states, weight F_ij(1-q_j-Q_ji) over all l: I >= -Δ_ij/12.

So

    N - D >= sum over i != j of F_ij Δ_ij (8q_i + 5q_j + Q_ji - 1)/12,

which is >= 0 if 8q_i + 5q_j + Q_ji >= 1 on every edge i -> j, for instance if all q_i >= 1/13.

**(3) Rows that overlap** (Q = P). Let P(x, s) >= θ π(s) for all x, s. Then P = θ 1π + (1-θ)R, πR = π, and a path is
one of three:

- independent draws, weight θ². D is 0 by exchange of a and c. N_0 >= Δ_0/2, Δ_0 = E Δ of two independent draws:
  averaged over the three pairs, and with a+b+c = 1, this is 1/3 + 2/3 [ab/(a+b) + bc/(b+c) + ca/(c+a)] >= 2e_2, or
  e_2(1-4e_2) + e_3(1+6e_2) >= 0 in elementary symmetric functions; by Schur 1-4e_2 >= -9e_3, and e_2 <= 1/3.
- one step of R, x -> y, and an independent draw z, before or after, weight θ(1-θ) each. Together I is [2/3 (x-z)^2 +
  4/3 (y-z)^2]/Σ >= 4/9 (x-y)^2/Σ; E 1/(x+y+z) >= 1/(x+y+π) by Jensen.
- two steps of R, x -> y -> a, weight (1-θ)²: I >= -(x-y)^2/12(x+y+a).

Let V = E_R of (x-y)^2/(x+y+a). As x, y, a >= θπ, (x+y+π)/(x+y+a) <= (2θ+1)/3θ. As pq/(p+q) = pq∫exp(-t(p+q))dt is a
positive definite kernel, Δ is a squared distance in a Hilbert space, so V <= E_R Δ <= 4 Var = 2Δ_0. Altogether N-D is
at least V[θ²/4 + 4/3 θ²(1-θ)/(1+2θ) - (1-θ)²/12], which is >= 0 iff 22θ²-12θ³ >= 1: for θ >= .228.

**(4) Three states.** D changes sign when time is reversed, N does not. Let w be a path's weight, w' that of its
reversal. A pair of them contributes (w+w')n - (w-w')d >= (w-w')(n-d) to N-D, if named so that w >= w'. With three
states the current φ = F_01-F_10 = F_12-F_21 = F_20-F_02 is >= 0 in one of the two orientations, and w-w' is φ(1-q_j)
for (j-1, j, j+1), φq_j for (j, j, j+1) and for (j-1, j, j), indices mod 3. So N-D >= φ sum_j [(1-q_j)T_j + q_j U_j],
T_j and U_j the sums of I along these. It is linear in each q_j; at the corners, with D_ij = (x_i-x_j)^2 and
S = x_0+x_1+x_2, summed over s:

- T_0+T_1+T_2 = (D_01+D_12+D_02)/S;
- T_0+T_1 = (4D_12+2D_02)/3S, and U_2 >= 0;
- T_0 = (3D_12+D_01-D_02)/3S and, as x_i+2x_j <= 2S, U_1+U_2 >= (3D_12+D_01+2D_02)/3S: the sum is >= 0; all U_j >= 0.

The other corners are these with the indices moved round. ∎ Two states: `lemmas.py`, "Two rows".

**(5) Reversible chains**: w = w', so D = 0 and the gap is N/2.

What is left are chains of four states or more, near period 2 (M' > 4N) and with a current.
"""
