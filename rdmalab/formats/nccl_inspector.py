"""nccl-inspector: NCCL's Inspector plugin, one JSON line for each collective of each rank.

    {"header":{"id":"0x7f8c","rank":0,"n_ranks":8,"nnodes":2},"metadata":{"dump_timestamp_us":...,"hostname":"node-1"},
     "coll_perf":{"coll":"AllReduce","coll_sn":7,"coll_msg_size_bytes":4194304,"coll_exec_time_us":150,...}}

The sum of the times is an upper bound of the communication share of a step: what overlaps with compute is in it. The
bandwidths count 10^9 bytes.
"""

import re
from datetime import UTC, datetime
from typing import Any

from rdmalab.formats._json import documents, finite
from rdmalab.formats._lines import clean
from rdmalab.formats._telemetry import Found
from rdmalab.model import Parsed, Reading
from rdmalab.sources import Text

NAME = "nccl-inspector"
EXAMPLE = '{"header":{"rank":0,"n_ranks":8},"coll_perf":{"coll":"AllReduce","coll_exec_time_us":150}}'
HINTS = (b"coll_perf",)
SIGNATURE = re.compile(rb'"coll_perf":\s*\{')

_METRICS = {"coll_exec_time_us": "us", "coll_algobw_gbs": "GB/s", "coll_busbw_gbs": "GB/s"}
_CPU_TIMED = "Collectives timed by the CPU ({source}): launch and waiting are in their times and bandwidths."


def parse(text: Text) -> Parsed:
    """Time and bandwidths of each record; the device names collective, size and rank."""
    found = Found()
    sources: set[str] = set()
    for line, record in documents(clean(text), '"coll_perf"'):
        if record is None:
            found.note(line, "cut_document", "A record ends before its closing brace and is left out.")
        elif isinstance(record, dict) and isinstance(record.get("coll_perf"), dict):
            _record(found, line, record)
            source = str(record["coll_perf"].get("coll_timing_source"))
            if "cpu" in source and source not in sources:
                sources.add(source)
                found.note(line, "cpu_timed", _CPU_TIMED.format(source=source))
    return Parsed(readings=tuple(found.readings), notes=tuple(found.notes))


def _record(found: Found, line: int, record: dict[str, Any]) -> None:
    performance = record["coll_perf"]
    device = _device(record.get("header"), performance)
    if device is None:
        found.note(line, "unknown_collective", "A record names no collective, size or rank and is left out.")
        return
    metadata = record.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    host, at = metadata.get("hostname"), finite(metadata.get("dump_timestamp_us"))
    for metric, unit in _METRICS.items():
        value = finite(performance.get(metric))
        if value is not None:
            found.readings.append(
                Reading(
                    metric=metric, value=value, unit=unit, line=line, device=device,
                    host=host if isinstance(host, str) else None,
                    read_at=datetime.fromtimestamp(at / 1e6, UTC) if at and 0 < at < 1e17 else None,
                )
            )  # fmt: skip


def _device(header: Any, performance: dict[str, Any]) -> str | None:
    """``AllReduce 4194304 bytes, rank 0 of 8``: like is compared with like."""
    name = performance.get("coll")
    if not isinstance(header, dict) or not isinstance(name, str):
        return None
    size, rank, ranks = performance.get("coll_msg_size_bytes"), header.get("rank"), header.get("n_ranks")
    if not all(isinstance(value, int) for value in (size, rank, ranks)):
        return None
    return f"{name} {size} bytes, rank {rank} of {ranks}"
