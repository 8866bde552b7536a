"""A state of the page as a few lines of Python that compute the same numbers."""

from sih.explorer.state import PRESETS, Matrix, ModelChoice, State


def snippet(state: State) -> str:
    """Return Python for the same matrix, sequence, models and numbers, with the public
    names of `sih` alone.
    """
    query = state.query if state.query is not None else state.length // 3
    lines = [
        "import torch, sih",
        "",
        *_matrix(state.matrix, state.states),
        f"task = sih.Task(P, lags={state.lags!r}, length={state.length})",
        f"batch = sih.sample(task, size=1, rng=torch.Generator().manual_seed({state.seed}))",
        *(f"batch.tokens[0, {position}] = {token}" for position, token in state.edits),
        f"query = {query}",
        "",
        "posterior = sih.lag_posterior(batch.tokens, task)  # (1, time, lag)",
        'print("lag", batch.lags.item(), "posterior", posterior[0, query].tolist())',
    ]
    for number, choice in enumerate(state.models, 1):
        name = f"model_{number}"
        lines += [
            "",
            f"{name} = {_model(choice)}",
            f"attention_{number} = {name}.trace(batch.tokens).{_attention(choice)}",
            f"law_{number} = {name}.predict(batch.tokens)",
            f"kl_{number} = sih.kl_to_truth(law_{number}.double(), batch, task)",
            f'print("{name}:", law_{number}[0, query].tolist(), "KL to the truth", kl_{number}[0, query].item())',
        ]
    return "\n".join(lines) + "\n"


def _matrix(matrix: Matrix, states: int) -> list[str]:
    if matrix.kind == "rows":
        rows = [f"    {list(row)}," for row in matrix.rows or ()]
        return ["P = sih.as_transition_matrix([", *rows, "])"]
    if matrix.kind in PRESETS:
        return [
            f"P = torch.full(({states}, {states}), 0.2 / {states - 1}, dtype=torch.float64)",
            f"P[torch.arange({states}), (torch.arange({states}) + {PRESETS[matrix.kind]}) % {states}] = 0.8",
        ]
    options = f", concentration={matrix.concentration}" if matrix.concentration != 1.0 else ""
    options += f", law={matrix.kind!r}" if matrix.kind != "dirichlet" else ""
    return [
        f"P = sih.random_transition_matrix({states}, rng=torch.Generator().manual_seed({matrix.seed}){options})"
    ]


def _attention(choice: ModelChoice) -> str:
    """Return what a trace calls the attention of tokens to tokens."""
    if choice.relative or choice.trained:
        return "between_tokens  # a layer each: (1, head, query, key), without a start token"
    return "attention  # a layer each: (1, head, query, key)"


def _model(choice: ModelChoice) -> str:
    if choice.trained:
        return f"sih.load({choice.name!r})"
    options = "".join(f", {name}={value!r}" for name, value in choice.options().items())
    return f"sih.construct(task{options})"
