"""perftest --out_json: one report an object, valid JSON only since 24.01 and not in every mode.

    {"test_info": {"test": "RDMA_Write_BW_Test", ...}, "results": {"MsgSize": 65536, ..., "MsgRate": 0.061639}}

Older versions leave out the quotes and put a comma after every item; ``--output`` still puts one before the brace. So
keys and values are read one by one. The report names no unit: it is inferred from size and message rate, or not known.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from rdmalab.formats._lines import unprefixed
from rdmalab.formats._perftest import (
    OPERATIONS,
    Remarks,
    bandwidth_sample,
    convention_of,
    facts_to_fields,
    latency_sample,
    measured,
    program_of,
    side_by_depth,
    title_of,
)
from rdmalab.model import Note, Parsed, Run, Sample
from rdmalab.sources import Text

NAME = "perftest-json"
EXAMPLE = '"results": {"MsgSize": 65536, "n_iterations": 5000, "BW_average": 32.32, "MsgRate": 0.061639}'
HINTS = (b"test_info",)
SIGNATURE = re.compile(rb'test_info"?[ \t]*:')

_ANCHOR = re.compile(r'(?:\{[ \t]*)?"?test_info"?[ \t]*:')
_ITEM = re.compile(
    r'"?(?P<key>[A-Za-z][\w.]*(?: \w+)*)"?\s*:(?:\s*"(?P<quoted>[^"]*)"|\s*(?P<bare>[^\s,{}"]+)|)|(?P<brace>[{}])'
)
_NUMBER = re.compile(r"-?(?:[0-9]{1,20}(?:\.[0-9]+)?|nan|inf)")
_WHOLE = re.compile(r"[0-9]{1,20}")

_COUNTS = {"MsgSize": "size_bytes", "n_iterations": "iterations"}
_BANDWIDTH = {
    "BW_peak": "peak", "BW_average": "average", "bw_avg": "average", "MsgRate": "rate", "msgRate_avg": "rate",
    "CPU_util": "cpu",
}  # fmt: skip
_LATENCY = {
    "t_min": "lat_min_us", "t_max": "lat_max_us", "t_typical": "lat_typical_us", "t_avg": "lat_avg_us",
    "avg_lat": "lat_avg_us", "t_stdev": "lat_stdev_us", "percentile_99": "lat_p99_us",
    "percentile_99.9": "lat_p999_us", "tps_average": "tps", "CPU_util": "cpu_util_pct",
}  # fmt: skip


@dataclass(slots=True)
class _Report:
    """One report being read. Only a section whose brace is closed has whole values."""

    line: int
    info: dict[str, str] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    section: str = "test_info"
    have_results: bool = False
    closed: bool = False
    torn: bool = False


def parse(text: Text) -> Parsed:
    """Reads all reports of a log; each becomes a run of at most one sample."""
    runs: list[Run] = []
    notes: list[Note] = []
    for report in _reports(text):
        remarks = Remarks()
        runs.append(_run(report, remarks))
        notes += remarks.notes()
    return Parsed(runs=tuple(runs), notes=tuple(notes))


def _reports(text: Text) -> Iterator[_Report]:
    """Finds the reports; streams of a launcher are kept apart."""
    open_reports: dict[str, _Report] = {}
    for number, tag, line in unprefixed(text, _ANCHOR):
        if tag not in open_reports and "test_info" not in line:
            continue
        for found in _ITEM.finditer(line):
            if found["key"] == "test_info":
                if tag in open_reports:
                    yield open_reports.pop(tag)
                open_reports[tag] = _Report(number)
            elif tag in open_reports and _closes(open_reports[tag], found):
                yield open_reports.pop(tag)
        if tag in open_reports and _ITEM.sub("", line).strip(" \t,"):
            open_reports[tag].torn = True
            yield open_reports.pop(tag)
    yield from open_reports.values()


def _closes(report: _Report, found: re.Match[str]) -> bool:
    """Takes one item or brace; True when it ends the report."""
    key, value = found["key"], found["quoted"] or found["bare"]
    if key == "results":
        report.section = key
    elif key and value:
        (report.results if report.section == "results" else report.info).setdefault(key, value)
    elif found["brace"] == "}":
        report.closed = not report.section
        report.have_results = report.have_results or report.section == "results"
        report.section = ""
    return report.closed


def _run(report: _Report, remarks: Remarks) -> Run:
    title = title_of(report.info.get("test", ""))
    kind = title.kind if title else "latency" if _LATENCY.keys() & report.results.keys() - {"CPU_util"} else "bandwidth"
    sample = _sample(report, kind, remarks)
    status = "no_data" if report.have_results or not report.results else "truncated"
    if sample:
        status = "complete" if report.closed else "truncated"
    return Run(
        tool="perftest", kind=kind, status=status, line=report.line, samples=(sample,) if sample else (),
        operation=title.operation if title else None, operation_evidence="test" if title else None,
        operation_candidates=() if title else OPERATIONS,
        program=program_of(title, report.info.get("Connection_type") == "RawEth") if title else None,
        bidirectional=title.bidirectional if title else None,
        side=side_by_depth(report.info) if title and not title.bidirectional else None,
        latency_convention=convention_of(title) if title else None,
        unit_printed=None, memory=_memory(report.info), **facts_to_fields(report.info),
    )  # fmt: skip


def _memory(info: dict[str, str]) -> str:
    """Devices of CUDA and MUSA are named from 24.10 on, ROCm and MUSA have a switch."""
    for name in ("cuda", "musa"):
        if f"{name}_device" in info:
            return name
    for name in ("ROCm", "MUSA"):
        if info.get(f"Use_{name}_memory") == "ON":
            return name.lower()
    return "host"


def _sample(report: _Report, kind: str, remarks: Remarks) -> Sample | None:
    """The row of the report, or None with a remark where it is cut or refused."""
    if not report.results:
        return None
    columns = _COUNTS | (_BANDWIDTH if kind == "bandwidth" else _LATENCY)
    row = {columns[k]: v for k, v in report.results.items() if k in columns}
    whole = all((_WHOLE if k in _COUNTS.values() else _NUMBER).fullmatch(v) for k, v in row.items())
    if not report.have_results or not whole or not row:
        remarks.add("torn_row", report.line)
        return None
    if kind == "latency":
        return latency_sample(None, row, remarks)
    if "average" not in row:  # --output=message_rate
        rate, cpu = (measured(row[k], None, remarks) if k in row else None for k in ("rate", "cpu"))
        return Sample(msg_rate_mpps=rate, cpu_util_pct=cpu)
    return bandwidth_sample(None, row, None, remarks)
