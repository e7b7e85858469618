"""A Log as the JSON of ``rdmalab parse --json``."""

from dataclasses import asdict, fields
from typing import Any

from rdmalab.model import SAMPLE_FIELDS, Log, Run
from rdmalab.recomputed import recomputed

_RUN_BASE = (
    "tool", "kind", "operation", "operation_candidates", "operation_evidence", "status", "line",
)  # fmt: skip
_RUN_COLLECTIVE = ("ranks", "ranks_evidence", "nodes", "gpu_model", "average_busbw_gbyte_s", "out_of_bounds")
_RUN_PERFTEST = (
    "program", "device", "link_layer", "transport", "connection", "mtu_bytes", "queue_pairs", "bidirectional", "side",
    "memory", "fabric", "unit_printed",
)  # fmt: skip


def log_to_dict(log: Log) -> dict[str, Any]:
    """The contract of ``rdmalab parse --json``; the words are those of the store's views."""
    return {
        "path": log.path,
        "sha256": log.sha256,
        "formats": list(log.formats),
        "status": log.status,
        "runs": [_run(r) for r in log.runs],
        "transport": _transport(log),
        "readings": [{**asdict(r), "read_at": r.read_at.isoformat() if r.read_at else None} for r in log.readings],
        "notes": [n._asdict() for n in log.notes],
    }


def _transport(log: Log) -> dict[str, Any] | None:
    if log.transport is None:
        return None
    out = {f.name: getattr(log.transport, f.name) for f in fields(log.transport)}
    out["evidence"] = [e._asdict() for e in log.transport.evidence]
    out["communicators"] = list(log.transport.communicators)
    return out


def _run(run: Run) -> dict[str, Any]:
    always = _RUN_BASE + (_RUN_COLLECTIVE if run.kind == "collective" else ())
    if run.tool == "perftest":
        always += _RUN_PERFTEST
    values = {f.name: getattr(run, f.name) for f in fields(run) if f.name != "samples"}
    out = {k: values[k] for k in always}
    out |= {k: v for k, v in values.items() if v is not None and v != () and k not in out}
    kept = set(SAMPLE_FIELDS[run.kind])
    out["samples"] = [
        {k: v for k, v in s._asdict().items() if k in kept or v is not None} | recomputed(run, s) for s in run.samples
    ]
    return out
