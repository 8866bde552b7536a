"""Write the paper's circuit as weights, check it, see each of its three layers work, and make it Bayes-optimal.

Run with: python examples/02_build_a_circuit.py
"""

import sih

task = sih.Task(sih.random_transition_matrix(5, rng=0), lags=(1, 2, 3), length=48)
batch = sih.sample(task, size=128, rng=1)

model = sih.construct(task)
found = sih.verify(model, task)
print(
    f"the paper's circuit: heads {model.circuit.model_heads}, within {found.max_error:.0e} of its closed form"
)

here, lag = 40, int(batch.lags[0])
trace = model.trace(batch.tokens[:1])
first, second, third = (trace[f"{layer}.1/attention"][0, here].tolist() for layer in (1, 2, 3))
print(f"a sequence of lag {lag}, seen from position {here}:")
print(
    "  layer 1 compares with the possible parents:",
    {k: round(first[here - k], 2) for k in task.lags},
)
print(
    "  layer 2, head 1, gathers from positions",
    [key for key, weight in enumerate(second) if weight > 0.01],
)
print(
    "  layer 3 copies the token that each lag says:",
    {k: round(third[here - k + 1], 2) for k in task.lags},
)

bayes = sih.construct(task, target="bayes")
print(
    f"Bayes-optimal: heads {bayes.circuit.model_heads}, certified within {sih.verify(bayes, task).bound:.0e}"
)
laws = {
    "paper's circuit": model.predict(batch.tokens),
    "Bayes circuit": bayes.predict(batch.tokens),
}
for name, law in {**laws, "BMA": sih.bma(batch.tokens, task)}.items():
    print(f"{name:>16}: KL {sih.mean_kl(sih.kl_to_truth(law, batch, task), task).mean():.4f}")
