"""Selective induction heads (D'Angelo, Croce, Flammarion, ICLR 2025), the paper in one file.

Each part begins with the paper's equation. Positions count from 0, the paper's from 1.
Run it with: python examples/paper_in_one_file.py
It trains for a few minutes and writes paper_in_one_file.png.
"""

import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

STATES, LAGS, LENGTH = 5, (1, 2, 3), 32
LAMBDA, BETA = 500.0, 100.0
STEPS, BATCH, RATE = 3000, 256, 1e-3


# 1. The task (Sec. 4, "Data"; Algorithm 1)
#     P(X_1 .. X_T | k) = prod_{i <= K^} pi(X_i)  prod_{i > K^} P[X_{i-k}, X_i],  K^ = max(lags)
#
# A sequence has a lag k, the same for all its tokens and not shown to the model. Each token
# is drawn from the row of P that belongs to the token k places before it.


def random_matrix(states, rng):
    """Return uniform numbers, each row divided by its sum."""
    numbers = torch.rand(states, states, generator=rng, dtype=torch.float64)
    return numbers / numbers.sum(dim=-1, keepdim=True)


def stationary(P):
    """Return pi with pi P = pi: each row of a high power of P."""
    return torch.linalg.matrix_power(P, 1024)[0]


def sample(P, lags, length, size, rng):
    """Return tokens (size, length) and the lag of each sequence (size,)."""
    uniform = torch.rand(size, generator=rng, dtype=torch.float64)
    lag = torch.tensor(lags)[(uniform * len(lags)).long()]
    tokens = torch.empty(size, length, dtype=torch.int64)
    for k in lags:
        chosen = (lag == k).nonzero().flatten()
        uniform = torch.rand(length, len(chosen), generator=rng, dtype=torch.float64)
        for i in range(length):
            row = P[tokens[chosen, i - k]] if i >= max(lags) else stationary(P)
            below = row.cumsum(dim=-1) <= uniform[i, :, None]
            tokens[chosen, i] = below.sum(dim=-1).clamp_max(len(P) - 1)
    return tokens, lag


# 2. The best predictors (Sec. 4, "Task"; Eq. 2)
#     P(X_{T+1} | X_1 .. X_T) = sum_k w_k P[X_{T-k+1}, :],   w_k = P(k | X_1 .. X_T)
# If the lag were k, the next token would follow the token k - 1 places back. The Bayes
# average weighs these rows by the posterior of the lag, maximum likelihood takes one.


def log_likelihood(tokens, P, lags):
    """Return log P(X_1 .. X_i | k) but for what all lags share (batch, time, lag)."""
    log_p = torch.stack([P[tokens.roll(k, dims=1), tokens].log() for k in lags], dim=-1)
    log_p[:, : max(lags)] = 0  # the first tokens come from pi, whatever the lag
    return log_p.cumsum(dim=1)


def mixture(weights, tokens, P, lags):
    """Return sum_k w_k P[X_{i-k+1}, :] at each position i (batch, time, state)."""
    law = torch.zeros(*tokens.shape, len(P), dtype=torch.float64)
    for n, k in enumerate(lags):
        copied = tokens.roll(k - 1, dims=1)
        law += weights[..., n, None] * P[copied]
    law[:, : max(lags) - 1] = stationary(P)  # where the next token, too, comes from pi
    return law


def bayes_average(tokens, P, lags):
    return mixture(log_likelihood(tokens, P, lags).softmax(dim=-1), tokens, P, lags)


def maximum_likelihood(tokens, P, lags):
    likelihood = log_likelihood(tokens, P, lags)
    equal = likelihood >= likelihood.amax(dim=-1, keepdim=True) - 1e-9  # of equals the first
    return mixture(F.one_hot(equal.int().argmax(dim=-1), len(lags)), tokens, P, lags)


def truth(tokens, lag, P, lags):
    known = lag[:, None] == torch.tensor(lags)
    return mixture(known[:, None].expand(-1, tokens.shape[1], -1), tokens, P, lags)


def kl(p, q):
    """Return the Kullback-Leibler divergence of Eq. 1 (batch, time)."""
    return (p * (p.log() - q.log())).sum(dim=-1)


# 3. The disentangled transformer (Sec. 3)
#     h^(l) = [h^(l-1), Attn(h^(l-1); A^(l,1)), ..., Attn(h^(l-1); A^(l,H))],   output W_O h^(L)
#     Attn(h; A) = softmax(mask(h A h^T)) h
# Heads append what they read; nothing is added up. So every part of the stream keeps its
# own place, and a name: "2.1/1.1/position" is what head 2.1 read of what head 1.1 had read
# of the positions.


class DisentangledTransformer:
    def __init__(self, states, length, heads):
        self.length = length
        self.sizes = [{"token": states, "position": length}]  # of the blocks, layer by layer
        for layer, count in enumerate(heads, start=1):
            read = self.sizes[-1]
            written = {f"{layer}.{h + 1}/{name}": read[name] for h in range(count) for name in read}
            self.sizes.append(read | written)
        *dims, last = (sum(sizes.values()) for sizes in self.sizes)
        self.A = [torch.zeros(n, d, d).double() for n, d in zip(heads, dims, strict=True)]
        self.W_O = torch.zeros(states, last).double()

    def place(self, layer, name):
        """Return the coordinates of a block in the stream after so many layers."""
        sizes = self.sizes[layer]
        begin = sum(list(sizes.values())[: list(sizes).index(name)])
        return slice(begin, begin + sizes[name])

    def block(self, head, query, key):
        """Return head "2.1"'s weights between two blocks. Write in it to set them."""
        layer, number = map(int, head.split("."))
        A = self.A[layer - 1][number - 1]
        return A[self.place(layer - 1, query), self.place(layer - 1, key)]

    def __call__(self, tokens):
        batch, time = tokens.shape
        token = F.one_hot(tokens, self.sizes[0]["token"]).double()
        position = torch.eye(time, self.length, dtype=torch.float64).expand(batch, -1, -1)
        h = torch.cat([token, position], dim=-1)
        for A in self.A:
            h = torch.cat([h, *(attention(h @ weights @ h.mT) @ h for weights in A)], dim=-1)
        return h @ self.W_O.T


def attention(scores):
    """Return the softmax of each row over its past, mask(scores)."""
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(diagonal=1)
    return scores.masked_fill(future, -math.inf).softmax(dim=-1)


# 4. Proposition 1: the circuit, written by hand (Sec. 5.1; consecutive lags)
#     w_k  proportional to  exp( beta x mean over the past of p~_{i,k} )
#     p~_{i,k} = P[X_{i-k}, X_i] / sum_l P[X_{i-l}, X_i]
# Layer 1 puts p~_{i,k} on token i - k. Layer 2 gathers the p~ of the past, one head for
# each residue, so that none mix. Layer 3 attends to the token that each lag would copy.


def proposition_1(P, lags, length):
    """Return a disentangled transformer that computes the paper's predictor."""
    K, first = len(lags), max(lags)
    model = DisentangledTransformer(len(P), length, (1, K, 1))
    i, j = torch.arange(length)[:, None], torch.arange(length)[None, :]
    is_parent, is_copied = (torch.isin(i - j + n, torch.tensor(lags)) for n in (0, 1))

    def mask(allowed):
        return torch.where(allowed, LAMBDA, -LAMBDA).double()

    # Layer 1: score log P[X_j, X_i] where i - j is a lag. Its softmax over j is p~.
    model.block("1.1", "token", "token").copy_(P.log().T)
    model.block("1.1", "position", "position").copy_(mask(is_parent))
    for h in range(K):
        # Layer 2, head h: every K-th token from i - h back, past the first tokens.
        gathered = (j >= first) & (i >= j) & ((i - j) % K == h)
        model.block(f"2.{h + 1}", "position", "position").copy_(mask(gathered))
        # Layer 3: B adds up, of what head h gathered, the p~ that speak for the key's lag.
        B = BETA * ((i - j) % K == K - 1).double()
        model.block("3.1", f"2.{h + 1}/1.1/position", f"2.{h + 1}/position").copy_(B)
    # Layer 3: token i - k + 1 is the one that lag k copies.
    model.block("3.1", "position", "position").copy_(mask(is_copied))
    model.W_O[:, model.place(3, "3.1/token")] = P.T  # the copied token becomes its row of P
    return model


# 5. The standard transformer, and its training (Sec. 3; Sec. 6)
#     h^(l) = h^(l-1) + sum_h softmax(mask(h Q K^T h^T) / sqrt(d_QK)) h V,   output W_O h^(L)
#     loss = - mean log p(X_{i+1} | X_1 .. X_i),  Adam, a fresh batch at every step


class Transformer(nn.Module):
    def __init__(self, states, length, heads, rng, dim=64, qk_dim=32):
        super().__init__()

        def uniform(*shape):
            draw = torch.empty(shape).uniform_(-(dim**-0.5), dim**-0.5, generator=rng)
            return nn.Parameter(draw)

        self.token = nn.Parameter(torch.empty(states, dim).normal_(generator=rng))
        self.position = nn.Parameter(torch.empty(length, dim).normal_(generator=rng))
        self.W_O = uniform(states, dim)
        widths = (qk_dim, qk_dim, dim)
        self.QKV = nn.ParameterList(uniform(n, dim, w) for n in heads for w in widths)

    def forward(self, tokens):
        h = self.token[tokens] + self.position[: tokens.shape[1]]
        for Q, K, V in zip(self.QKV[::3], self.QKV[1::3], self.QKV[2::3], strict=True):
            x = h[:, None]  # (batch, 1, time, dim) times (head, dim, width)
            scores = (x @ Q) @ (x @ K).mT / Q.shape[-1] ** 0.5
            h = h + (attention(scores) @ (x @ V)).sum(dim=1)
        return h @ self.W_O.T


def train(model, P, lags, steps, batch, rate, rng):
    """Train the model and yield its losses, step by step."""
    adam = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(steps):
        tokens, _ = sample(P, lags, len(model.position), batch, rng)
        loss = F.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
        yield loss.item()


# 6. The figure (Fig. 4): how far each predictor is from the truth along the sequence


def main():
    rng = torch.Generator().manual_seed(0)
    P = random_matrix(STATES, rng)
    tokens, lag = sample(P, LAGS, LENGTH, 2048, rng)
    model = Transformer(STATES, LENGTH, (1, 3, 1), rng)
    training = train(model, P, LAGS, STEPS, BATCH, RATE, rng)
    for step, loss in enumerate(training, start=1):
        if step % 500 == 0:
            print(f"step {step:,} of {STEPS:,}: loss {loss:.3f}", flush=True)
    with torch.no_grad():
        trained = model(tokens).double().softmax(dim=-1)
    laws = {
        "Bayes average": bayes_average(tokens, P, LAGS),
        "maximum likelihood": maximum_likelihood(tokens, P, LAGS),
        "Prop. 1, written by hand": proposition_1(P, LAGS, LENGTH)(tokens),
        f"transformer after {STEPS:,} steps": trained,
    }
    shown = slice(max(LAGS), LENGTH - 1)  # where there is something to infer, and a next token
    plt.figure(figsize=(5, 3.2), layout="constrained")
    for name, law in laws.items():
        along = kl(truth(tokens, lag, P, LAGS), law).mean(dim=0)
        print(f"{name}: mean KL {along[shown].mean():.4f}")
        plt.semilogy(range(max(LAGS) + 1, LENGTH), along[shown], label=name)
    plt.xlabel("tokens seen")
    plt.ylabel("KL to the true distribution")
    plt.legend(frameon=False, fontsize=8)
    plt.savefig("paper_in_one_file.png", dpi=200)


if __name__ == "__main__":
    main()
