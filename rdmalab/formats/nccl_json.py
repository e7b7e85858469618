"""JSON documents that nccl-tests and rccl-tests write with ``-J FILE``, finished or not.

``{version, start_time, args[], env[], nccl_version, config{devices[]}, results[], out_of_bounds{}, ...}``

It is not quite JSON: infinity is a bare ``inf``, a crash leaves the document open, 2.17.3 to 2.17.8 spell
``average_bus_bandwidith``. ``env`` holds the environment with all its secrets: it is skipped, never kept.
"""

import json
import math
import re
import shlex
from collections.abc import Iterator
from typing import Any

from rdmalab.formats import _collectives as arithmetic
from rdmalab.formats._collectives import Printed
from rdmalab.model import Note, Parsed, Run, Sample
from rdmalab.sources import Text

NAME = "nccl-tests-json"
EXAMPLE = '{"version":3,"start_time":"2026-01-02 03:04:05","args":[".\\/all_reduce_perf","-J","out.json"],"env":['
HINTS = (b"start_time", b"average_bus_bandwid", b"aggregated_iterations")
SIGNATURE = re.compile(rb'"start_time"\s*:\s*"[^"]*"\s*,\s*"args"|"average_bus_bandwid|"aggregated_iterations"\s*:')
_START = re.compile(r'\{\s*"version"\s*:\s*\d+\s*,\s*"start_time"\s*:')
_NO_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|-?\b(?:inf|nan)\b')
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[\s,]*")
_PER_ITERATION = {"min_us": "iter_min_us", "max_us": "iter_max_us", "p99_us": "iter_p99_us", "cv_pct": "iter_cv_pct"}


def parse(text: Text) -> Parsed:
    """Reads every document of *text*; samples carry no line, a run that of the beginning of its document."""
    content = b"".join(chunk for _, chunk in text.chunks()).decode("utf-8", errors="replace")
    starts = [m.start() for m in _START.finditer(content)]
    runs: list[Run] = []
    notes: list[Note] = []
    for start, end in zip(starts, [*starts[1:], len(content)], strict=False):
        line = content.count("\n", 0, start) + 1
        document, cut = _document(_NO_NUMBER.sub(_null, content[start:end]))
        run, found = _run(document, cut, line)
        runs.append(run)
        notes += found
    return Parsed(runs=tuple(runs), notes=tuple(notes))


def _null(found: re.Match[str]) -> str:
    return found[0] if found[0][0] == '"' else "null"


def _document(text: str) -> tuple[dict[str, Any], str | None]:
    """The members that are there whole, and the name of the one inside which the document ends, if it does."""
    members: dict[str, Any] = {}
    key = "the document"
    try:
        at = _SPACE.match(text, 1).end()  # type: ignore[union-attr]
        while text[at] != "}":
            name, at = _DECODER.raw_decode(text, at)
            key = str(name)
            at = text.index(":", at) + 1
            value, at = _value(text, at)
            if key != "env":
                members[key] = value
            else:
                members["env"] = bool(value)
            at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
    except (ValueError, IndexError, RecursionError):
        if key == "results" and "results" not in members:
            members[key] = list(_whole_elements(text, at))
        return members, key
    return members, None


def _value(text: str, at: int) -> tuple[Any, int]:
    """One value. A bare number at the very end of the text may have lost digits."""
    at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
    value, end = _DECODER.raw_decode(text, at)
    if end >= len(text):
        raise ValueError("the document ends here")
    return value, end


def _whole_elements(text: str, at: int) -> Iterator[Any]:
    """The elements of an array that is not closed."""
    at = text.find("[", at) + 1
    while at:
        try:
            element, at = _value(text, at)
        except (ValueError, RecursionError):
            return
        yield element


def _run(document: dict[str, Any], cut: str | None, line: int) -> tuple[Run, list[Note]]:
    config = _dict(document.get("config"))
    devices = [d for d in _list(config.get("devices")) if isinstance(d, dict) and _whole(d.get("rank")) is not None]
    args = [str(a) for a in _list(document.get("args"))]
    results = _list(document.get("results"))
    samples, odd = _samples(results)
    printed = [_printed(s) for s in samples]
    operation = arithmetic.operation_of(args[0]) if args else None
    ranks = _ranks(config, devices)
    hosts = tuple(dict.fromkeys(str(d["hostname"]) for d in devices if d.get("hostname")))
    groups = {d.get("group", 0) for d in devices}
    communicator = ranks // len(groups) if ranks and len(groups) > 1 and ranks % len(groups) == 0 else None
    average = _average(document)
    version = document.get("nccl_version")
    run = Run(
        tool=_tool(document, devices, results), kind="collective", status=_status(document, bool(samples), odd, cut),
        line=line, samples=tuple(samples), operation=operation, operation_evidence="args" if operation else None,
        program=args[0].rsplit("/", 1)[-1] if args else None, command=shlex.join(args) or None, ranks=ranks,
        ranks_evidence="device list" if ranks else None, communicator_ranks=communicator, hosts=hosts,
        nodes=len(hosts) if ranks and len(devices) * _per_process(config) == ranks else None,
        gpu_model=" + ".join(dict.fromkeys(str(d["device_info"]) for d in devices if d.get("device_info"))) or None,
        average_busbw_gbyte_s=average, out_of_bounds=_whole(_dict(document.get("out_of_bounds")).get("count")),
        iterations=_whole(config.get("iterations")), warmup_iterations=_whole(config.get("warmup_iters")),
        aggregated_iterations=_whole(config.get("aggregated_iterations")), validation=_whole(config.get("validation")),
        library_version=arithmetic.library_version(version) if isinstance(version, int) else None,
    )  # fmt: skip
    checks = arithmetic.check(
        samples, printed, operation=operation, ranks=communicator or ranks, ranks_evidence=run.ranks_evidence,
        average=None if average is None else f"{average:.6f}",
    )  # fmt: skip
    return run, [*_remarks(document, run, odd, cut), *checks]


def _samples(results: list[Any]) -> tuple[list[Sample], int]:
    """The samples of all results, and how many results could not be read."""
    samples: list[Sample] = []
    odd = 0
    for result in results:
        try:
            samples += _row(result)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            odd += 1
    return samples, odd


def _row(result: dict[str, Any]) -> Iterator[Sample]:
    size, count = _whole(result["size"]), _whole(result["count"])
    if size is None or count is None:
        raise ValueError("a size beyond what is exact")
    root, redop = int(result["root"]), str(result["redop"]).strip()
    if abs(root) >= 2**31:
        raise ValueError(root)
    found = []
    for place in ("out_of_place", "in_place"):
        cells = result.get(place)
        if cells is None:
            continue
        wrong = _number(cells["nwrong"])
        per_iteration = _dict(result.get(f"{place}_per_iter"))
        extras: dict[str, Any] = {field: _number(per_iteration.get(key)) for key, field in _PER_ITERATION.items()}
        found.append(Sample(
            None, size, count, str(result["type"]).strip(),
            redop if redop not in ("", "none") else None, root if root >= 0 else None, place, None,
            _number(cells.get("time")), _number(cells.get("cpu_time")), _number(cells["alg_bw"]),
            _number(cells["bus_bw"]), None if wrong is None else _count(wrong), **extras,
        ))  # fmt: skip
    yield from found


def _number(value: object) -> float | None:
    """A finite number; None for null and for the text ``"nan"``."""
    if value is None:
        return None
    if isinstance(value, str) and value.strip().lstrip("-").lower() not in ("nan", "inf"):
        raise ValueError(value)
    number = float(value)  # type: ignore[arg-type]
    return number if math.isfinite(number) else None


def _count(number: float) -> int:
    if abs(number) >= 2**63:
        raise ValueError(number)
    return int(number)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and abs(value) < 2**53 else None


def _printed(sample: Sample) -> Printed:
    """Documents carry six decimals."""
    time, algbw, busbw = (f"{v or 0.0:.6f}" for v in (sample.time_us, sample.algbw_gbyte_s, sample.busbw_gbyte_s))
    return time, algbw, busbw


def _average(document: dict[str, Any]) -> float | None:
    for outer, inner in (("average_bus_bandwidth", "bandwidth"), ("average_bus_bandwidith", "bandwidith")):
        try:
            if (value := _number(_dict(document.get(outer)).get(inner))) is not None:
                return value
        except (TypeError, ValueError, OverflowError):
            continue
    return None


def _per_process(config: dict[str, Any]) -> int:
    return (_whole(config.get("nthreads")) or 1) * (_whole(config.get("ngpus")) or 1)


def _ranks(config: dict[str, Any], devices: list[dict[str, Any]]) -> int | None:
    """Only the first rank of each process is listed: the last process has as many as the others."""
    return max(d["rank"] for d in devices) + _per_process(config) if devices else None


def _tool(document: dict[str, Any], devices: list[dict[str, Any]], results: list[Any]) -> str:
    amd = any(str(d.get("device_info", "")).startswith("AMD") for d in devices)
    first = results[0] if results and isinstance(results[0], dict) else {}
    hip = any("hip_event_time" in _dict(first.get(place)) for place in ("out_of_place", "in_place"))
    return "rccl-tests" if amd or hip or "rccl_version" in document else "nccl-tests"


def _status(document: dict[str, Any], rows: bool, odd: int, cut: str | None) -> str:
    footer = "average_bus_bandwidth" in document or "average_bus_bandwidith" in document
    if document.get("errors") and not footer:
        return "failed"
    if rows and footer:
        return "complete"
    return "truncated" if rows or odd or cut == "results" else "no_data"


def _remarks(document: dict[str, Any], run: Run, odd: int, cut: str | None) -> Iterator[Note]:
    if document.get("env"):
        yield Note(run.line, "env_not_stored", "The document holds the environment of the job, which is not stored.")
    if cut:
        what = "; the result it ends in is left out" if cut == "results" else ""
        yield Note(
            run.line, "cut_row" if cut == "results" else "cut_document", f"The document ends inside {cut}{what}."
        )
    if odd:
        yield Note(run.line, "not_understood", f"{odd} results have a value that is no number and are left out.")
    if errors := [str(e) for e in _list(document.get("errors"))]:
        yield Note(run.line, "failure" if run.status == "failed" else "tool_message", f"The tool reports: {errors[0]}")
    if run.ranks == 1 and run.samples:
        yield Note(run.line, "one_rank", "One rank: no fabric was measured.")
    if run.out_of_bounds or any(s.wrong for s in run.samples):
        yield Note(run.line, "wrong_data", "The benchmark found wrong results; the rows are not fit to be quoted.")


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
