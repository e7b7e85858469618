"""What the text tables and the JSON reports of perftest share: titles, banner facts, fabric, units, remarks."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from rdmalab.model import Note, Sample, Samples
from rdmalab.units import gbit_s

OPERATIONS = ("write", "read", "send", "atomic")

_TITLE = re.compile(
    r"\s*(?:RDMA_)?(Write|Read|Send|Atomic)(?:_imm)?[ _]+(?:(?:FETCH_AND_ADD|CMP_AND_SWAP)[ _]+)?"
    r"(Bidirectional[ _]+)?(?:Post[ _]+List[ _]+)?(BW|Latency)[ _]+(?:[A-Za-z]+[ _]+){0,3}Test\s*$"
)
_LINK_LAYERS = {"IB": "InfiniBand", "Ethernet": "Ethernet"}
_TRANSPORTS = {"IB": "IB", "IW": "iWARP", "Unknown": "unknown"}
_COUNTS = ("size_bytes", "iterations", "service_level")
_PORTS = {"port1_bw": "bw_port1_gbit_s", "port2_bw": "bw_port2_gbit_s"}
_PORT_RATES = {"port1_rate": "msg_rate_port1_mpps", "port2_rate": "msg_rate_port2_mpps"}
UNITS = ("MB/sec", "MiB/sec", "Gb/sec")  # the first two are the same
_TO_GBIT_S = {unit: gbit_s(1.0, unit) for unit in UNITS}
_NONE_FITS = "none"

# One sentence for each code; the note says how many rows or lines it speaks for.
TEXTS = {
    "torn_row": "A row is cut or damaged and was left out.",
    "not_understood": "A line inside the table was not understood.",
    "stray_row": "A row stands outside any table and was left out.",
    "unknown_header": "The header of a table is not known, so its rows were left out.",
    "not_positive": "The average is not a positive number, so the row was left out.",
    "not_finite": "A value that is not a number (nan, inf) or is negative was read as missing.",
    "unit_conflict": "Size and message rate contradict the unit of the header; the unit they prove was taken.",
    "inconsistent_row": "Average, message rate and size contradict each other in every unit, so the row was left out.",
    "unit_inferred": "The report names no unit; it was inferred from size and message rate.",
    "unit_unknown": "The report names no unit and none can be inferred, so its bandwidth was not taken.",
    "peak_not_measured": "The peak was not measured: the printed 0.00 was read as missing.",
    "clock_not_calibrated": "The clock could not be calibrated (correlation too low): the printed zeros are no values.",
    "iterations_overflow": "The number of iterations does not fit in 64 bits and was read as missing.",
    "percentile_not_meaningful": "Up to 1000 iterations the 99.9 % percentile is the maximum, up to 100 the 99 % too.",
    "cycles": "The values are CPU cycles although the header says usec, so no latency was taken.",
    "cpu_not_measured": "CPU_Util is not measured under --run_infinitely: the printed 0.00 was read as missing.",
    "direction_rows": "A row of one direction of --report-both is no measurement of its own.",
    "cpu_frequency": "The CPU frequency changed or is not at its maximum.",
    "limit_missed": "The result is below the limit that was asked for; the measurement is valid.",
    "not_validated": "Data validation was asked for and no data was validated.",
    "teardown_error": "An error was printed while the connection was closed, after the measurement.",
    "stopped": "The test was stopped by its user.",
    "failed": "The benchmark failed.",
    "one_sided_sum": "Iterations and rate fill the whole window: the other end sent nothing back, though -b was given.",
    "interleaved": "Several programs wrote to one terminal: which row belongs to which cannot be told.",
    "lone_table": "A table without banner, rule or command line is quoted in some text; it is not taken as a run.",
    "never_connected": "A server waited for a client that never connected.",
}


class Title(NamedTuple):
    """What the title of a test says."""

    operation: str
    bidirectional: bool
    kind: str


def title_of(text: str) -> Title | None:
    """Reads ``RDMA_Write Bidirectional BW Test``, or the same with underscores for blanks as in JSON."""
    found = _TITLE.match(text)
    if not found:
        return None
    return Title(found[1].lower(), bool(found[2]), "bandwidth" if found[3] == "BW" else "latency")


def program_of(title: Title, raw_ethernet: bool) -> str:
    """The name of the program that prints this title; raw Ethernet shows only in the connection type."""
    ending = "bw" if title.kind == "bandwidth" else "lat"
    return f"raw_ethernet_{ending}" if raw_ethernet else f"ib_{title.operation}_{ending}"


def convention_of(title: Title) -> str | None:
    """Write and send report half a round trip, read and atomic a whole one (``rtt_factor`` in the source)."""
    if title.kind != "latency":
        return None
    return "one_way" if title.operation in ("write", "send") else "round_trip"


class Remarks:
    """Collects what must be said about one run: one note a code, with the first line and the count."""

    def __init__(self) -> None:
        self._found: dict[str, list[Any]] = {}

    def add(self, code: str, line: int | None, quote: str = "") -> None:
        """Remembers that *code* applies to *line*; *quote* is the text that shows it."""
        entry = self._found.get(code)
        if entry:
            entry[2] += 1
        else:
            self._found[code] = [line, quote, 1]

    def __contains__(self, code: str) -> bool:
        return code in self._found

    def notes(self) -> Iterator[Note]:
        """One note a code."""
        for code, (line, quote, count) in self._found.items():
            more = f" (first of {count})" if count > 1 else ""
            yield Note(line, code, f"{TEXTS[code][:-1]}{quote and ': '}{quote}{more}.")


def facts_to_fields(facts: Mapping[str, str]) -> dict[str, Any]:
    """Fields of a Run from banner facts; keys are the words of the banner with ``_`` for blanks."""
    fabric, evidence = _fabric(facts)
    return {
        "device": facts.get("Device") or None,
        "link_layer": _LINK_LAYERS.get(facts.get("Link_type", "")),
        "transport": _TRANSPORTS.get(facts.get("Transport_type", "")),
        "connection": facts.get("Connection_type") or None,
        "mtu_bytes": _integer(facts.get("Mtu")),
        "queue_pairs": _integer(facts.get("Number_of_qps")),
        "gid_index": _integer(facts.get("GID_index")),
        "fabric": fabric,
        "fabric_evidence": evidence,
    }


def side_by_depth(facts: Mapping[str, str]) -> str | None:
    """The end of a unidirectional test: a TX depth is a client's; RX depth or none, a server's."""
    if "TX_depth" in facts:
        return "client"
    return "server" if "RX_depth" in facts or "Mtu" in facts else None


def _integer(text: str | None) -> int | None:
    """The leading digits: ``4096[B]``, ``2048B`` (until 2013), ``3``."""
    found = re.match(r"[0-9]{1,9}", text or "")
    return int(found[0]) if found else None


def _fabric(facts: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The fabric family and what shows it; the link type may be forced (--force-link) and is the weakest sign."""
    device, link = facts.get("Device", ""), facts.get("Link_type")
    transport, connection = facts.get("Transport_type"), facts.get("Connection_type")
    if transport == "IW" or device.startswith("siw"):
        return "iwarp", "transport type IW" if transport == "IW" else f"device {device}"
    if device.startswith("rxe"):
        return "softroce", f"device {device}"
    if device.startswith(("efa", "rdmap")) and (connection == "SRD" or transport == "Unknown"):
        return "efa", f"device {device}"
    if connection == "SRD":
        return "efa", "connection SRD"
    if connection == "RawEth":
        return "ethernet", "connection RawEth"
    if link == "Ethernet":
        return "roce", "link type Ethernet"
    return _fabric_of_ib_link(facts, device) if link == "IB" else (None, None)


def _fabric_of_ib_link(facts: Mapping[str, str], device: str) -> tuple[str | None, str | None]:
    """Every active InfiniBand port has a LID; one without under link type IB is a RoCE port forced to it."""
    if device.startswith("roce"):
        return "roce", f"device {device}"
    lid = facts.get("LID")
    if not lid:
        return (None, None) if "GID_index" in facts else ("infiniband", "link type IB without a GID")
    if lid.strip("0x"):
        return "infiniband", f"LID {lid}"
    return ("roce", f"LID {lid} with a GID") if "GID_index" in facts else (None, None)


def _agrees(size: int, average: float, rate: float, unit: str) -> bool:
    """
    Whether an average in *unit* agrees with size and message rate.

    They agree within 1 % besides what the printed decimals hide: half of 0.01 and of 0.000001.

    Args:
        rate: 10^6 messages a second.
    """
    expected, factor = rate * size * 0.008, _TO_GBIT_S[unit]
    return abs(average * factor - expected) <= 0.01 * expected + size * 0.00801 * 5e-7 + 0.00501 * factor


def bandwidth_sample(
    line: int | None, row: Mapping[str, str], unit: str | None, remarks: Remarks, *, calibrated: bool = True
) -> Sample | None:
    """
    One row of a bandwidth table; None where it is refused.

    Args:
        row: Printed numbers; ``average``, and ``size_bytes``, ``iterations``, ``peak``, ``rate``, ``cpu`` as far as
            there are.
        unit: As printed, None where it must be inferred.
        calibrated: False after a warning that the clock is not to be trusted: then zeros are no values.
    """
    size, iterations = _count(row, "size_bytes", line, remarks), _count(row, "iterations", line, remarks)
    cpu = measured(row["cpu"], line, remarks) if "cpu" in row else None
    average = float(row["average"])
    if not 0 < average < math.inf:
        if not calibrated and average == 0 == float(row.get("rate", 0)):
            remarks.add("clock_not_calibrated", line)
            return Sample(line, size, iterations=iterations, cpu_util_pct=cpu)
        remarks.add("not_positive", line, row["average"])
        return None
    rate = measured(row["rate"], line, remarks) if "rate" in row else None
    peak = measured(row["peak"], line, remarks) if "peak" in row else None
    if not (unit and size and rate and _agrees(size, average, rate, unit)):
        unit = _proved_unit(unit, size, average, rate, line, remarks)
        if unit == _NONE_FITS:
            return None
    if peak == 0:
        remarks.add("peak_not_measured", line)
        peak = None
    factor = _TO_GBIT_S[unit] if unit else None
    return Sample(
        line, size, iterations=iterations, msg_rate_mpps=rate, cpu_util_pct=cpu,
        bw_peak_gbit_s=peak * factor if peak and factor else None,
        bw_avg_gbit_s=average * factor if factor else None, service_level=_count(row, "service_level", line, remarks),
        **_ports(row, factor, line, remarks),
    )  # fmt: skip


def _ports(row: Mapping[str, str], factor: float | None, line: int | None, remarks: Remarks) -> dict[str, Any]:
    """What --report-per-port says of each port."""
    found: dict[str, Any] = {f: measured(row[n], line, remarks) for n, f in _PORT_RATES.items() if n in row}
    for name, column in _PORTS.items():
        if name in row and factor and (value := measured(row[name], line, remarks)) is not None:
            found[column] = value * factor
    return found


def table(lines: Sequence[int], columns: Mapping[str, Sequence[str]], unit: str, kind: str) -> Samples | None:
    """
    Rows of a table at once, column by column, where nothing is to be remarked on any of them.

    Args:
        columns: Printed numbers by name, as :func:`bandwidth_sample` and :func:`latency_sample` take them.

    Returns:
        None where a row needs one of those: a number is missing or zero, or contradicts the others.
    """
    counts: dict[str, Sequence[Any]] = {n: list(map(int, columns[n])) for n in _COUNTS if n in columns}
    values: dict[str, Sequence[Any]] = {n: list(map(float, c)) for n, c in columns.items() if n not in _COUNTS}
    if any(v >= 2**63 for column in counts.values() for v in column):
        return None
    if any(not 0 <= v < math.inf for column in values.values() for v in column):
        return None
    average = "lat_avg_us" if "lat_avg_us" in columns else "lat_typical_us"
    if not all(
        all(values.get(name, ())) for name in (("peak", "average", "rate") if kind != "latency" else (average,))
    ):
        return None
    found = {"line": lines, **counts}
    if kind == "latency":
        few = "lat_p999_us" in columns and any(v <= 1000 for v in counts.get("iterations", ()))
        return None if few else Samples(found | values)
    checked = (counts.get("size_bytes", ()), values["average"], values.get("rate", ()))
    if not all(map(_agrees, *checked, repeat(unit))) or not all(checked[0]):
        return None
    factor = _TO_GBIT_S[unit]
    names = {"rate": "msg_rate_mpps", "cpu": "cpu_util_pct", **_PORT_RATES}
    found |= {field: values[name] for name, field in names.items() if name in values}
    names = {"peak": "bw_peak_gbit_s", "average": "bw_avg_gbit_s", **_PORTS}
    return Samples(
        found | {field: [v * factor for v in values[name]] for name, field in names.items() if name in values}
    )


def _proved_unit(
    unit: str | None, size: int | None, average: float, rate: float | None, line: int | None, remarks: Remarks
) -> str | None:
    """The unit that size and rate prove, else *unit*; ``_NONE_FITS`` where they contradict the average in every unit.

    Until 25.10 a server printed the Gb/sec of its client under its own header of MB/sec, 119 times too small.
    """
    if unit and (size is None or rate is None or _agrees(size, average, rate, unit)):
        return unit
    fitting: list[str] = []
    if size is not None and rate is not None:
        fitting = [u for u in UNITS[1:] if _agrees(size, average, rate, u)]
        if not fitting:
            remarks.add("inconsistent_row", line)
            return _NONE_FITS
    proved = fitting[0] if len(fitting) == 1 else None
    if unit:
        remarks.add("unit_conflict", line, f"{average} {proved}, not {unit}")
    else:
        remarks.add("unit_inferred" if proved else "unit_unknown", line, proved or f"{average}")
    return proved


def latency_sample(
    line: int | None, row: Mapping[str, str], remarks: Remarks, *, calibrated: bool = True
) -> Sample | None:
    """One row of a latency table, printed numbers by field names of Sample; None where it is refused."""
    size, iterations = _count(row, "size_bytes", line, remarks), _count(row, "iterations", line, remarks)
    printed = {k: v for k, v in row.items() if k not in ("size_bytes", "iterations")}
    if not calibrated and not any(float(v) for v in printed.values()):
        remarks.add("clock_not_calibrated", line)
        return Sample(line, size, iterations=iterations)
    average = row.get("lat_avg_us") or row.get("lat_typical_us", "nan")
    if not 0 < float(average) < math.inf:
        remarks.add("not_positive", line, average)
        return None
    if "lat_p999_us" in row and iterations is not None and iterations <= 1000:
        remarks.add("percentile_not_meaningful", line)
    values: dict[str, Any] = {k: measured(v, line, remarks) for k, v in printed.items()}
    return Sample(line, size, iterations=iterations, **values)


def _count(row: Mapping[str, str], key: str, line: int | None, remarks: Remarks) -> int | None:
    """A whole number that fits a signed 64-bit column; 2^64-1 iterations do occur."""
    if key not in row:
        return None
    value = int(row[key])
    if value < 2**63:
        return value
    remarks.add("iterations_overflow", line, row[key])
    return None


def measured(text: str, line: int | None, remarks: Remarks) -> float | None:
    """A finite number that is not negative, else None with a remark."""
    value = float(text)
    if 0 <= value < math.inf:
        return value
    remarks.add("not_finite", line, text)
    return None
