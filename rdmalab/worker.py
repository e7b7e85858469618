"""
A process that makes reports, each in a fresh fork of itself.

It imports what reports need once, and then reads one order a line from standard input and answers each with a line on
standard output (`rdmalab.batch` speaks with it). What a report does dies with its processes: customers never share
state. Not imported beforehand is polars, which starts threads, and a process with threads must not be forked.
"""

import contextlib
import json
import os
import select
import signal
import sys
from pathlib import Path
from typing import Any

_BEFORE = (
    "zmq", "IPython", "ipykernel.kernelapp", "ipykernel.ipkernel", "ipykernel.zmqshell", "jupyter_client.manager",
    "papermill", "nbconvert", "duckdb", "scipy.stats", "babel.numbers", "babel.support",
    "rdmalab.report", "rdmalab.kernels", "rdmalab.evidence", "rdmalab.lab", "rdmalab.series", "rdmalab.compare",
)  # fmt: skip


def main() -> None:
    """Serves orders until standard input ends."""
    spare_threads()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import_before()
    while line := sys.stdin.buffer.readline():
        answers.write(json.dumps(_in_a_fork(json.loads(line))) + "\n")
        answers.flush()


def spare_threads() -> None:
    """Keeps numerical libraries from starting threads, which would not survive a fork."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = "1"


def import_before() -> None:
    """Imports, and warms up, what reports need."""
    import gc
    import importlib
    import pkgutil

    from rdmalab._fast_imports import without_grammar

    with without_grammar():
        for name in _BEFORE:
            importlib.import_module(name)
    from rdmalab import export, figures, pages

    for page in pkgutil.iter_modules(pages.__path__, "rdmalab.pages."):
        importlib.import_module(page.name)
    export.warm_up()
    figures.warm_up()
    gc.collect()
    gc.freeze()  # no report looks through the libraries for garbage, and forks go on sharing their memory


def _in_a_fork(order: dict[str, Any]) -> dict[str, Any]:
    """The answer of a fresh process; one that dies without an answer is an error like any other."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reader)
        _child(order, writer)
    os.close(writer)
    text = b""
    while True:
        ready, _, _ = select.select([reader, 0], [], [])
        if reader not in ready:  # whoever ordered is gone
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os._exit(1)
        piece = os.read(reader, 65536)
        if not piece:
            break
        text += piece
    os.close(reader)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if text:
        return dict(json.loads(text))
    return {"error": "ReportError", "message": f"the process of the report died ({_ended(status)})"}


def _ended(status: int) -> str:
    return f"exit {status}" if status >= 0 else signal.Signals(-status).name


def _child(order: dict[str, Any], writer: int) -> None:
    """One report; it never returns."""
    answer: dict[str, Any] = {}
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        answer = _make(order)
    except BaseException as error:
        answer = {"error": type(error).__name__, "message": str(error)}
    finally:
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)


def _make(order: dict[str, Any]) -> dict[str, Any]:
    from rdmalab import report
    from rdmalab.errors import RdmalabError
    from rdmalab.kernels import Spare

    with Spare() as spare:
        try:
            report.make(report.Order.from_json(order["order"]), spare.manager()).save(Path(order["folder"]))
        except RdmalabError as error:
            return {"error": type(error).__name__, "message": str(error)}
    return {}
