"""rdmalab: RDMA benchmark logs in, answers people sign contracts on out.

    import rdmalab
    lab = rdmalab.open()          # the store of this folder
    lab.runs()                    # a polars frame

Everything else is imported where it is needed: ``import rdmalab`` alone is cheap.
"""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rdmalab.lab import Lab

try:
    __version__ = version("rdmalab")
except PackageNotFoundError:  # a source tree that was not installed
    __version__ = "0+unknown"

__all__ = ["__version__", "open"]


def open(db: Any = None) -> "Lab":  # noqa: A001 - reads as rdmalab.open()
    """
    Opens the store for reading.

    Args:
        db: Path of the store. Default: ``RDMALAB_DB``, else the nearest ``data/rdmalab.duckdb`` upwards.

    Raises:
        rdmalab.errors.StoreError: There is no store, or it cannot be used.
    """
    from rdmalab.lab import Lab

    return Lab(db)
