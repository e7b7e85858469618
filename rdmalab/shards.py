"""An ingest in pieces, for job arrays: each job reads a share of the logs into a folder, one commits the folder.

A share is chosen by the names of the files, so that jobs need not talk to each other. A job is done when its receipt
(``shard-2-of-8.json``) stands in the folder; it may be run again.
"""

import json
import os
import re
import zlib
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import rdmalab
from rdmalab import sources
from rdmalab.errors import UsageError
from rdmalab.ingest import Part, Progress, Receipt, list_files, load_campaigns, map_files, plan, store_parts
from rdmalab.store import Store


@dataclass(frozen=True)
class Shard:
    """The share *number* of *count*, counted from 1."""

    number: int
    count: int

    @classmethod
    def of(cls, words: str) -> "Shard":
        """
        Reads ``2/8``.

        Raises:
            UsageError: That is no share.
        """
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", words)
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise UsageError(f"'{words}' is no shard; write 2/8 for the second of eight")
        return cls(int(found[1]), int(found[2]))

    def has(self, path: str) -> bool:
        """Whether a file belongs to this share."""
        return zlib.crc32(os.fsencode(path)) % self.count == self.number - 1


def read_shard(
    paths: Sequence[str | Path],
    shard: Shard,
    folder: str | Path,
    store: Store,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> int:
    """
    Reads a share of the logs into Parquet parts; the store is asked what it knows, and not changed.

    Returns:
        The number of files read.

    Raises:
        UsageError: A path does not exist, or the folder cannot be written.
        CampaignError: A campaign file beside the logs is wrong.
    """
    files, skipped = list_files(paths)
    load_campaigns(f.path for f in files)
    files = [f for f in files if shard.has(f.path)]
    skipped = [s for s in skipped if shard.has(s.path)]
    fresh = plan(files, store)
    folder = Path(folder).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        parts = list(map_files([f.path for f in fresh], str(folder), executor, progress))
        receipt = {
            "reader": rdmalab.__version__, "files": files, "fresh": fresh, "skipped": [asdict(s) for s in skipped],
            "parts": [asdict(part) for part in parts],
        }  # fmt: skip
        unfinished = folder / f".shard-{shard.number}-of-{shard.count}.{os.getpid()}"
        unfinished.write_text(json.dumps(receipt), encoding="utf-8")
        unfinished.replace(folder / f"shard-{shard.number}-of-{shard.count}.json")
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written ({(error.strerror or str(error)).lower()})") from None
    return len(fresh)


def commit_shards(folder: str | Path, store: Store, *, campaign: str | None = None) -> Receipt:
    """
    Stores what all shards of an ingest left in *folder*, in one transaction. Done twice, it changes nothing.

    Raises:
        UsageError: A shard is missing, or was read by another version.
        CampaignError: A campaign file beside the logs is wrong.
        StoreError: The store is locked, foreign, newer or damaged.
    """
    folder = Path(folder).absolute()
    shards = [_loaded(path) for path in _receipts(folder)]
    files = [sources.File(*f) for shard in shards for f in shard["files"]]
    loaded = load_campaigns(f.path for f in files)
    fresh = [sources.File(*f) for shard in shards for f in shard["fresh"]]
    skipped = [sources.Skipped(**s) for shard in shards for s in shard["skipped"]]
    parts = [_part(part, folder) for shard in shards for part in shard["parts"]]
    return store_parts(store, files, fresh, skipped, parts, loaded, campaign)


def _receipts(folder: Path) -> list[Path]:
    """The receipts of all shards of a folder."""
    found = {m[0]: (int(m[1]), int(m[2])) for p in folder.glob("shard-*.json") if (m := _RECEIPT.fullmatch(p.name))}
    counts = {count for _, count in found.values()}
    if len(counts) != 1:
        what = f"shards of {' and of '.join(map(str, sorted(counts)))}" if counts else "no shard"
        raise UsageError(f"{folder}: {what} there; read with --shard 1/N to N/N into an empty folder first")
    count = counts.pop()
    numbers = {number for number, _ in found.values()}
    if missing := [f"{n}/{count}" for n in range(1, count + 1) if n not in numbers]:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise UsageError(f"{folder}: not read yet: shard {', '.join(missing[:5])}{more}")
    return [folder / name for name, _ in sorted(found.items(), key=lambda item: item[1])]


_RECEIPT = re.compile(r"shard-(\d+)-of-(\d+)\.json")


def _loaded(path: Path) -> dict[str, Any]:
    try:
        shard: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UsageError(f"{path}: cannot be read; read this shard again") from None
    if shard["reader"] != rdmalab.__version__:
        raise UsageError(f"{path}: read by rdmalab {shard['reader']}, this is {rdmalab.__version__}; read it again")
    return shard


def _part(part: dict[str, Any], folder: Path) -> Part:
    """A part, wherever the folder is seen from here."""
    return Part(
        {table: str(folder / Path(file).name) for table, file in part["tables"].items()},
        tuple((path, file, log_id) for path, file, log_id in part["read"]),
        tuple(part["whole"]),
        tuple(sources.Skipped(**s) for s in part["skipped"]),
    )
