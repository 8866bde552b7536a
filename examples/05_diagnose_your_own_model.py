"""Ask what a model that is not ours has learnt: hand over its attention and its predictions, whatever it is made of.

Run with: python examples/05_diagnose_your_own_model.py
"""

import torch
from torch import nn

import sih


class Mine(nn.Module):
    """A single attention layer of your own. Any module that gives logits, or a law, will do."""

    def __init__(self, states: int, length: int) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(states, 32), nn.Embedding(length, 32)
        self.attention = nn.MultiheadAttention(32, num_heads=2, batch_first=True)
        self.readout = nn.Linear(32, states)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        time = tokens.shape[1]
        h = self.token(tokens) + self.place.weight[:time]
        later = torch.ones(time, time, dtype=torch.bool).triu(1)
        mixed, weights = self.attention(h, h, h, attn_mask=later, average_attn_weights=False)
        return self.readout(h + mixed), weights  # weights (batch, head, query, key)


task = sih.Task(sih.random_transition_matrix(4, rng=0), lags=(1, 2), length=24)
torch.manual_seed(0)
model = Mine(task.num_states, task.length)
optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
for seed in range(100):
    batch = sih.sample(task, size=64, rng=seed)
    logits, _ = model(batch.tokens)
    loss = nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), batch.tokens[:, 1:])
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()

batch = sih.sample(task, size=256, rng=1000)  # fresh sequences
with torch.no_grad():
    logits, weights = model(batch.tokens)
found = sih.diagnose(task, batch, attention=[weights], law=logits)
print(found)  # a table of its heads, KL beside that of Bayes and maximum likelihood, and a verdict
print("\nin numbers:", {name: round(interval.mean, 3) for name, interval in found.kl.items()})
