"""Edges of a constructed circuit, as ground truth for methods of circuit discovery.

An edge goes from a block of the stream to a site that reads it: `1.1/position` into
`2.1/value`, say, or a block of the last stream into the readout (`3/stream`). It
transmits data if the block depends on the tokens. Otherwise (positions, for example) it
makes a mask, which no exchange of tokens can reveal. A token that is read equally for
all states also makes a mask: as a constant 1, or to detect the start token. Offsets are
no part of the stream, and have no edges.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from sih.base.errors import FieldError
from sih.circuits.verification import circuit_and_task
from sih.models.base import Model
from sih.models.disentangled.blocks import head_names
from sih.models.relative.offset_blocks import OFFSET
from sih.models.sites import layer_of


@dataclass(frozen=True, order=True)
class Edge:
    """An edge: the block that is read, and the hook point that reads it.

    The role is "score" (queries and keys), "value", "readout", or "mask" for an edge
    without data; "" for an edge outside the circuit.
    """

    source: str
    reader: str
    role: str = ""


def circuit_edges(model: Model) -> tuple[Edge, ...]:
    """Return the edges of a constructed model's circuit, derived from the circuit
    rather than from the weights.

    Cutting an edge with data, or a mask, changes the output. Every other edge of
    `candidate_edges` has weight 0.

    Args:
        model: A model from `sih.construct`.

    Returns:
        The edges, each with its source, its reader and its role.

    >>> import sih
    >>> model = sih.construct(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16))
    >>> [f"{edge.source} -> {edge.reader}" for edge in sih.circuit_edges(model) if edge.role == "readout"]
    ['3.1/token -> 3/stream']
    """
    circuit, task = circuit_and_task(model)
    blocks = circuit.written(task)
    varies = {"token": True, "position": False, OFFSET: False}
    found: dict[tuple[str, str], str] = {}

    def depends(name: str) -> bool:
        """Return whether a block depends on the tokens, through its values or its
        head's attention pattern.
        """
        if name not in varies:
            head, _, rest = name.partition("/")
            varies[name] = depends(rest) or any(
                depends(block) for pair in blocks.A[head] for block in pair
            )
        return varies[name]

    def need(source: str, reader: str, role: str) -> None:
        role = role if depends(source) else "mask"
        known = found.get((source, reader))
        if source == OFFSET or known == role or (known is not None and role == "mask"):
            return
        found[source, reader] = role
        head, _, rest = source.partition("/")
        if rest:  # a block that a head wrote: it copied `rest`, with attention from its scores
            is_mask = role == "mask"
            need(rest, f"{head}/value", "mask" if is_mask else "value")
            for (query, key), A in blocks.A[head].items():
                for name, use, part in ((query, "query", A), (key, "key", A.T)):
                    is_token = name.endswith("token")
                    blind = is_mask or (is_token and alike(part, task.num_states))
                    need(name, f"{head}/{use}", "mask" if blind else "score")

    for name in blocks.readout:
        need(name, f"{len(circuit.model_heads)}/stream", "readout")
    return tuple(sorted(Edge(*ends, role) for ends, role in found.items()))


def alike(part: Float[Tensor, "block _"], num_states: int) -> bool:
    """Return whether a block of states and a start token is read equally for all
    states.
    """
    return len(part) == num_states + 1 and bool((part[:num_states] == part[0]).all())


def candidate_edges(model: Model) -> tuple[Edge, ...]:
    """Return every edge of a model: from each block (or each writer of a stream that is
    a sum) into each reader.
    """
    if any(name.endswith("/mlp") for name in model.hook_points()):
        raise FieldError("model", "edges are those of models without MLPs")
    if not model.writers(0):
        raise FieldError("model", "an edge needs a model with a stream, named 0/stream and so on")
    return tuple(
        Edge(source, reader)
        for reader in readers(model)
        for source in model.writers(layers_before(model, reader))
    )


def readers(model: Model) -> Iterator[str]:
    """Return the hook points that read the stream: three for each head, and the
    readout's.
    """
    for name in head_names(model.config.heads):
        yield from (f"{name}/{use}" for use in ("query", "key", "value"))
    yield f"{len(model.config.heads)}/stream"


def layers_before(model: Model, reader: str) -> int:
    """Return the number of layers before the hook point that reads."""
    return len(model.config.heads) if reader.endswith("stream") else layer_of(reader) - 1


def by_writer(edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
    """Return the edges of the same circuit as a standard transformer, where a head's
    blocks are one sum.
    """
    found: dict[tuple[str, str], str] = {}
    for edge in edges:
        head, _, rest = edge.source.partition("/")
        ends = (f"{head}/output" if rest else edge.source, edge.reader)
        if found.get(ends, "mask") == "mask":
            found[ends] = edge.role
    return tuple(sorted(Edge(*ends, role) for ends, role in found.items()))
