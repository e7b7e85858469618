"""
Several reports at once: worker processes that run notebooks, one browser that prints.

    orders ─▶ workers (two) ─▶ a fork and a kernel for each report ─▶ pages ─▶ one browser ─▶ files

A report that fails costs itself alone.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue

from rdmalab import errors
from rdmalab.errors import MissingProgram, RdmalabError, ReportError
from rdmalab.pdf import Printer
from rdmalab.report import Delivered, Made, Order, deliver

WORKERS = 2
_WAITING = 4  # pages of 5 MB each that may wait for the browser

Outcome = Delivered | RdmalabError


class Worker:
    """A process that makes one report after the other; see :mod:`rdmalab.worker`."""

    def __init__(self) -> None:
        self._process = self._start()

    @staticmethod
    def _start() -> "subprocess.Popen[str]":
        # With the very packages of this process: "-m" would look into the working folder first.
        code = f"import sys; sys.path[:] = {sys.path!r}; from rdmalab.worker import main; main()"
        return subprocess.Popen(
            [sys.executable, "-P", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
            start_new_session=True, env={**os.environ, "PYDEVD_DISABLE_FILE_VALIDATION": "1"},
        )  # fmt: skip

    def make(self, order: Order) -> Made:
        """
        Makes a report, as :func:`rdmalab.report.make`.

        Raises:
            RdmalabError: What went wrong with the report, or ReportError: its process died.
        """
        if self._process.poll() is not None:
            self.close()
            self._process = self._start()
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin
        assert stdout
        with tempfile.TemporaryDirectory(prefix="rdmalab-") as folder:
            line = ""
            with contextlib.suppress(BrokenPipeError):
                stdin.write(json.dumps({"order": order.to_json(), "folder": folder}) + "\n")
                stdin.flush()
                line = stdout.readline()
            if not line:
                raise ReportError(f"{order.notebook.name}: a worker process died")
            answer = json.loads(line)
            if "error" in answer:
                raise _error(order, answer["error"], answer["message"])
            return Made.load(Path(folder))

    def close(self) -> None:
        """Ends the process."""
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()


def _error(order: Order, name: str, message: str) -> RdmalabError:
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, RdmalabError):
        return kind(message)
    return ReportError(f"{order.notebook.name}: {name}: {message}")


def _as_outcome(order: Order, error: Exception) -> RdmalabError:
    return error if isinstance(error, RdmalabError) else _error(order, type(error).__name__, str(error))


def make_reports(
    orders: Sequence[Order], *, workers: int = WORKERS, progress: Callable[[int, int], None] | None = None
) -> list[Outcome]:
    """
    Makes and delivers all reports, several at a time.

    Args:
        orders: What to make; no two may write the same files.
        workers: Worker processes.
        progress: Called with (reports ended, of all).

    Returns:
        For each order, in their order, what was delivered or the error that it ended with.
    """
    with contextlib.ExitStack() as stack:
        line = _Line(stack, min(workers, len(orders)), any(set(order.formats) - {"html"} for order in orders))
        ends = [line.submit(order) for order in orders]
        for done, _ in enumerate(as_completed(ends), 1):
            if progress:
                progress(done, len(orders))
        return [end.result() for end in ends]


class _Line:
    """The assembly line of a batch: workers make pages, two threads bring them to the one browser and deliver."""

    def __init__(self, stack: contextlib.ExitStack, workers: int, pdf: bool) -> None:
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        for _ in range(workers):
            worker = Worker()
            stack.callback(worker.close)
            self._idle.put(worker)
        self._printer: Printer | None = None
        if pdf:
            with contextlib.suppress(MissingProgram):  # then each report says so
                self._printer = stack.enter_context(Printer())
        self._deliverers = ThreadPoolExecutor(2)
        self._makers = ThreadPoolExecutor(workers)
        for pool in (self._deliverers, self._makers):
            stack.callback(pool.shutdown, cancel_futures=True)
        self._room = threading.Semaphore(workers + _WAITING)

    def submit(self, order: Order) -> "Future[Outcome]":
        """The end of an order, as a promise."""
        end: Future[Outcome] = Future()
        self._makers.submit(self._make, order, end)
        return end

    def _make(self, order: Order, end: "Future[Outcome]") -> None:
        self._room.acquire()
        worker = self._idle.get()
        try:
            made = worker.make(order)
        except Exception as error:
            self._finish(end, _as_outcome(order, error))
        else:
            self._deliverers.submit(self._deliver, order, made, end)
        finally:
            self._idle.put(worker)

    def _deliver(self, order: Order, made: Made, end: "Future[Outcome]") -> None:
        try:
            self._finish(end, deliver(order, made, self._printer))
        except Exception as error:
            self._finish(end, _as_outcome(order, error))

    def _finish(self, end: "Future[Outcome]", outcome: Outcome) -> None:
        self._room.release()
        end.set_result(outcome)
