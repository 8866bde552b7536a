"""`sih explore`: the interactive page, served to this machine or written to a file."""

import json
import threading
import webbrowser
from contextlib import suppress
from pathlib import Path

from sih.base.errors import INSTALL
from sih.cli.matrix_flag import MatrixLaw
from sih.explorer.parse_state import fragment, read_state
from sih.explorer.state import Matrix, State, to_json


def explore(
    lags: tuple[int, ...] = (1, 2, 3),
    states: int = 5,
    length: int = 128,
    seed: int = State.seed,
    matrix_seed: int = 0,
    matrix_law: MatrixLaw = "dirichlet",
    concentration: float = 1.0,
    host: str = "127.0.0.1",
    port: int = 8377,
    names: tuple[str, ...] = (),
    browser: bool = True,
    export: Path | None = None,
    sequences: int = 4,
) -> None:
    """Open a page that shows a sequence, the circuit's attention and the evidence for each lag.

    Example: sih explore --lags 1 2 3

    Example: sih explore --export page.html --lags 1 3 4 --sequences 6

    Args:
        lags: The task's lags, from 1 to 16.
        states: Number of states, 2 to 10.
        length: Tokens in the sequence, up to 256.
        seed: Random seed for the sequence.
        matrix_seed: Random seed for the transition matrix.
        matrix_law: Its distribution; uniform means uniform numbers, each row divided by its sum.
        concentration: Concentration of its Dirichlet rows.
        host: Address to listen on; other machines can reach the page only if you change it.
        port: 0 takes any free one.
        names: Further host names of the page, if other machines are to reach it.
        browser: Open the page in the browser, if there is one.
        export: Write the page to this .html file instead, with a few sequences inside; it needs no server.
        sequences: How many sequences an exported page holds.
    """
    matrix = Matrix(matrix_law, matrix_seed, concentration)
    chosen = State(lags, states, length, matrix, seed)
    state = read_state(json.loads(json.dumps(to_json(chosen))))
    state.task()
    if export is not None:
        from sih.explorer.page_export import export_page
        from sih.models.fast.threads import limited_threads

        with limited_threads(1):  # one sequence at a time is too little work to share
            size = export_page(export, state, sequences)
        print(f"{sequences} sequences, {size / 1e6:.1f} MB -> {export}")
        return
    try:
        from sih.explorer.server import bind, serve
    except ModuleNotFoundError as missing:
        command = INSTALL.format(extra="explorer")
        raise ValueError(f"the explorer needs {missing.name}; in a clone: {command}") from None
    listening = bind(host, port)
    shown, where = f"[{host}]" if ":" in host else host, f"#{fragment(state)}"
    address = f"http://{shown}:{listening.getsockname()[1]}/{where if fragment(state) else ''}"
    print(f"the explorer is at {address} (stop it with Ctrl-C)", flush=True)
    if browser:
        threading.Timer(0.5, _open, [address]).start()
    serve(listening, (host, *names))


def _open(address: str) -> None:
    with suppress(webbrowser.Error):  # there may be no browser here; the address was printed
        webbrowser.get().open(address)
