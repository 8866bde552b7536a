"""Ask how many heads a set of lags needs: the paper's bound, the least that mixes nothing, the least that is exact.

Run with: python examples/06_how_many_heads.py
"""

import sih

print("lags          paper's bound  nothing mixed  exact, lags mixed")
for lags in ((1, 2), (1, 2, 3), (1, 3, 4), (3, 5, 7), (1, 2, 4, 8)):
    unmixed, exact = sih.least_heads(lags), sih.exact_heads(lags)
    bracket = f"{exact.upper}" if exact.exact else f"{exact.lower} to {exact.upper}"
    print(f"{lags!s:<12}  {lags[-1] - lags[0] + 1:>13}  {unmixed.heads:>13}  {bracket:>17}")

pattern = sih.least_heads((1, 3, 4))
print("\n(1, 3, 4): which head takes which offset, one period:", pattern.colours)
print("why not fewer:", pattern.certificate)

task = sih.Task(sih.random_transition_matrix(4, rng=0), lags=(1, 2, 3), length=32)
batch = sih.sample(task, size=256, rng=1)
best = sih.mean_kl(sih.kl_to_truth(sih.bma(batch.tokens, task), batch, task), task).mean()
print("\n(1, 2, 3): KL over that of Bayes")
for words, model in {
    "the paper's form, 1 head": sih.construct(task, heads=1),
    "the paper's form, 3 heads": sih.construct(task, heads=3),
    "mixed, 2 heads": sih.construct(task, target="bayes", heads=2),
    "mixed, 1 head, read at query and key": sih.construct(
        task, target="bayes", heads=1, reading="both"
    ),
}.items():
    kl = sih.mean_kl(sih.kl_to_truth(model.predict(batch.tokens), batch, task), task).mean()
    print(f"{words:>38}: {kl / best:.3f}")
