r"""The cases of Claim 1 that the paper proves (App. A), and two that ask nothing of the chain.

What is proven for which lags is in `coverage.py`; further lemmas are in the files that it names.

Write a and b for the rows $P_{X_{i-k},\cdot}$ and $P_{X_{i-r},\cdot}$, and $\Sigma$ for the sum of the rows of all K
lags. The gap is $E_k - E_r = \mathbb E \sum_s a(a-b)/\Sigma$, the normaliser $N = \mathbb E \sum_s (a-b)^2/\Sigma$.

Two lags (Lemma 1). $\Sigma = a + b$, so $\sum_s (a^2 - b^2)/\Sigma = 0$ and the gap is N/2, window by window.

Exchangeable lags. If swapping X_{i-k} and X_{i-r} leaves the law of the window unchanged, the gap is N/2, since
$a(a-b) + b(b-a) = (a-b)^2$. So for independent lags, as the paper shows. For a symmetric P, of which the paper says
that similar techniques apply, the swap alone does it only where reversing the chain of X_i maps its lags to
themselves and k to r, as 1 and 3 in (1, 2, 3).

Two rows. If each row is a (m of the lags) or b (the other n = K - m), then $a = \Sigma/K + (n/K)(a - b)$, so
$\sum_s a(a-b)/\Sigma = (n/K) \sum_s (a-b)^2/\Sigma$: each window alone has a gap of at least N/K. So Claim 1 holds
for two states, whatever the lags and whatever the law of the window, stationary or not.

Average. By Cauchy-Schwarz $(\mathbb E\sum_s a)^2 \le \mathbb E\sum_s (a^2/\Sigma) \cdot \mathbb E\sum_s \Sigma$, so
$E_k \ge 1/K$, while the $E_r$ sum to 1: the true lag is never below the average of all lags, again for any law.

What is left. As $\mathbb E\sum_s(a - b) = 0$, K times the gap is $\mathbb E\sum_s (a-b)(Ka - \Sigma)/\Sigma$, that is

$$K(E_k - E_r) = N + \sum_{l \ne k, r} \mathbb E\sum_s (p_k - p_r)(p_k - p_l)/\Sigma .$$

So Claim 1, and a gap of at least N/K, would follow if each term of this sum, a *betweenness*, were at least 0: if, in
mean square weighted by $1/\Sigma$, the true lag's row were never strictly between two others'. For three lags the two
are one. Lemma B (`inside_class.py`) proves it where c(k) = {k, l} and r is outside; where k and r are alone in their
classes exchange does, as (a-b)(a-c) + (b-a)(b-c) = (a-b)^2.
"""
