"""
Importing the notebook libraries without building a grammar nobody uses.

``nbformat`` validates notebooks with ``jsonschema``, and ``jsonschema`` looks for optional helpers of its ``format``
keyword. One of them, ``rfc3987_syntax``, compiles a large grammar while it is imported: 1.3 of the 1.6 seconds that
``import papermill`` takes. The schema of notebooks has no such format, so the helper is declared absent for the time
of that one import.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_HELPER = "rfc3987_syntax"


@contextmanager
def without_grammar() -> Iterator[None]:
    """
    Import nbformat, nbclient, nbconvert or papermill inside this block, as the first import of any of them.

    The helper can be imported by anybody else afterwards, and a helper that is already there stays.
    """
    if _HELPER in sys.modules:
        yield
        return
    sys.modules[_HELPER] = None  # type: ignore[assignment]  # None makes "import" fail at once
    try:
        yield
    finally:
        sys.modules.pop(_HELPER, None)
