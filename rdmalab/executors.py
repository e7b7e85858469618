"""Where the map of an ingest runs: in this process, in worker processes, or on the workers of a dask cluster."""

import re
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from rdmalab.errors import MissingProgram, UsageError
from rdmalab.ingest import worker_processes

_RETRIES = 3  # of a task whose worker was lost


@contextmanager
def executor_of(words: str) -> Iterator[Executor | None]:
    """
    The executor that *words* name: ``serial`` (None), ``process``, ``process:N`` or ``dask:ADDRESS``.

    Raises:
        UsageError: They name none, or no cluster answers at the address.
        MissingProgram: distributed is not installed.
    """
    if words == "serial":
        yield None
    elif found := re.fullmatch(r"process(?::([1-9]\d*))?", words):
        with worker_processes(int(found[1]) if found[1] else None) as executor:
            yield executor
    elif words.startswith("dask:") and (address := words.removeprefix("dask:")):
        with _cluster(address) as client, client.get_executor(retries=_RETRIES, pure=False) as executor:
            yield executor
    else:
        raise UsageError(f"'{words}' is no executor; there are: serial, process, process:N, dask:ADDRESS")


def _cluster(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise MissingProgram("a dask cluster needs distributed: pip install 'rdmalab[cluster]'") from None
    try:
        connect: Any = Client  # which has no types
        return connect(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"no dask scheduler answers at {address} ({type(error).__name__})") from None
