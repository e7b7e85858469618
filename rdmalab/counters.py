"""What the counters of a port did between two snapshots, and which of them mean loss, congestion or a bad cable.

A counter is a total since some start: only the difference of two snapshots of the same port says anything. They may
stand in one log, or in two logs whose paths differ in nothing but a word such as ``before`` and ``after``; file names
decide nothing else. A counter that is not listed is not known: mlx5 lists the pauses of a priority only where flow
control is on, which is no 0.

Meanings: torvalds/linux Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst and
Documentation/ABI/stable/sysfs-class-infiniband. Widths: InfiniBand Architecture, PortCounters (they stop at their
largest value), and the queue counters of mlx5 (32 bits, they begin again at 0).
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.lab import Lab

# (names, class, what a difference above 0 says). Classes: proof, pressure, info, warn, alarm.
_LOSS = "packets were lost or retransmitted (out_of_sequence also under adaptive routing)"
_MEANINGS = (
    (r"[rt]x_vport_rdma_(?:unicast|multicast)_bytes", "proof", "RDMA traffic went over this port"),
    (r"rx_prio\d_pause(?:_duration|_transition)?", "pressure", "the network made this port stop"),
    (r"tx_prio\d_pause(?:_duration)?", "pressure", "this host could not take what arrived"),
    (r"port_xmit_wait|PortXmitWait", "pressure", "data waited for credit; a tick is no unit of time"),
    (r"tx_pause_storm_(?:warning|error)_events", "alarm", "a storm of pause frames"),
    (
        r"[rt]x_discards_phy|rx_prio\d_(?:buf_|cong_)?discards?|port_xmit_discards|PortXmitDiscards",
        "alarm", "packets were dropped: what should be lossless is not",
    ),
    (r"port_rcv_errors|PortRcvErrors", "alarm", "packets arrived damaged"),
    (r"np_ecn_marked_roce_packets|np_cnp_sent|rp_cnp_handled", "info", "congestion control at work"),
    (r"rp_cnp_ignored", "alarm", "congestion notices were ignored: congestion control is off on one side"),
    (
        r"out_of_sequence|packet_seq_err|implied_nak_seq_err|duplicate_request|local_ack_timeout_err"
        r"|roce_adp_retrans(?:_to)?|roce_slow_restart\w*|out_of_seq_request|rcvd_seq_err|completer_retry_err"
        r"|roce_new_pkt_rty_num", "alarm", _LOSS,
    ),
    (r"rnr_nak_retry_err|out_of_buffer|(?:send|rcvd)_rnr_err", "warn", "the receiving software was too slow"),
    (
        r"req_transport_retries_exceeded|re(?:q|sp)_cqe_error|retry_(?:rnr_)?exceeded_err", "alarm",
        "a queue pair died",
    ),
    (
        r"link_downed|link_down_events_phy|link_down_count|symbol_error|link_error_recovery|rx_pcs_symbol_err_phy"
        r"|(?:LinkDowned|SymbolError|LinkErrorRecovery)Counter", "alarm", "cable or optics: the link fell or erred",
    ),
    (r"rx_corrected_bits_phy", "info", "corrected bits are normal with FEC: the rate counts, not the number"),
)  # fmt: skip
_CLASS_OF = [(re.compile(names), kind, says) for names, kind, says in _MEANINGS]
_RISES_ONLY = re.compile(
    r"(?:.*[_.])?(?:bytes|packets|pkts|octets|frames)(?:_phy|_nic)?|port_(?:xmit|rcv)_\w+|rx_\w+_requests"
)

# Counters that stop at their largest value, with that value; the long names are those of perfquery.
_STOPS_AT = {
    name: largest
    for largest, names in {
        2**4 - 1: "local_link_integrity_errors excessive_buffer_overrun_errors LocalLinkIntegrityErrors"
        " ExcessiveBufferOverrunErrors",
        2**8 - 1: "link_error_recovery link_downed port_rcv_constraint_errors port_xmit_constraint_errors"
        " LinkErrorRecoveryCounter LinkDownedCounter PortXmitConstraintErrors PortRcvConstraintErrors",
        2**16 - 1: "symbol_error port_rcv_errors port_rcv_remote_physical_errors port_rcv_switch_relay_errors"
        " port_xmit_discards VL15_dropped SymbolErrorCounter PortRcvErrors PortRcvRemotePhysicalErrors"
        " PortRcvSwitchRelayErrors PortXmitDiscards VL15Dropped",
    }.items()
    for name in names.split()
}
_WRAPPING = """
    rx_write_requests rx_read_requests rx_atomic_requests rx_dct_connect out_of_buffer out_of_sequence
    duplicate_request rnr_nak_retry_err packet_seq_err implied_nak_seq_err local_ack_timeout_err
    resp_local_length_error resp_cqe_error req_cqe_error req_remote_invalid_request req_remote_access_errors
    resp_remote_access_errors resp_cqe_flush_error req_cqe_flush_error req_transport_retries_exceeded
    req_rnr_retries_exceeded roce_adp_retrans roce_adp_retrans_to roce_slow_restart roce_slow_restart_cnps
    roce_slow_restart_trans
"""
_32_BITS = frozenset(_WRAPPING.split())
_EXACT = 2**53  # above it not every whole number is a float
_UNITS = ("bytes", "packets", "4-byte words", "us", "bits")
_NO_COUNTERS = ("lifespan", "rate", "link_up")
_WORDS = ("before", "pre", "start", "begin", "first"), ("after", "post", "end", "last")
_WORD = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(sum(_WORDS, ()))})(?![A-Za-z0-9])", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One counter of one port between its first and its last snapshot.

    ``delta`` is None where the counter was set back, ``remark`` says so. ``evidence`` says why the two belong
    together. ``first_at`` and ``last_at`` are UTC, None where the logs carry no time.
    """

    campaign: str | None
    fabric: str | None
    host: str | None
    device: str | None
    counter: str
    first: int
    last: int
    delta: int | None
    unit: str | None
    kind: str | None  # proof, pressure, info, warn, alarm
    says: str | None  # what a delta above 0 says
    remark: str | None
    evidence: str
    snapshots: int
    first_at: Any
    last_at: Any
    first_path: str
    first_line: int
    last_path: str
    last_line: int


@lru_cache(maxsize=4096)
def meaning(counter: str) -> tuple[str | None, str | None]:
    """The class of a counter and what its rise says; ``(None, None)`` where it is not known."""
    return next(((kind, says) for names, kind, says in _CLASS_OF if names.fullmatch(counter)), (None, None))


def differences(lab: "Lab", campaign: str | None = None) -> "pl.DataFrame":
    """
    The difference of every counter that was read twice, one row a counter, columns as in :class:`Difference`.

    What was read once, or in logs of which nothing tells the order, has no row.
    """
    import polars as pl

    rows = lab.sql(
        """SELECT d.campaign, d.fabric, d.host, d.device, d.metric, d.value, d.unit, d.read_at, d.line, p.path
           FROM readings d JOIN logs l USING (log_id) JOIN raw.paths p USING (log_id)
           LEFT JOIN raw.campaigns c ON c.campaign = d.campaign
           WHERE coalesce(d.campaign = $c, true) AND (c.root IS NULL OR starts_with(p.path, c.root || '/'))
             AND (d.unit IS NULL OR list_contains($units, d.unit))
             AND d.value IS NOT NULL AND NOT list_contains($no, d.metric)
             AND (list_contains(l.formats, 'port-counters') OR list_contains(l.formats, 'hccn-tool'))""",
        c=campaign,
        units=list(_UNITS),
        no=list(_NO_COUNTERS),
    ).rows(named=True)
    found = [difference for port in _ports(rows) for difference in _of_port(port)]
    schema = {
        name: pl.Datetime("us", "UTC") if name.endswith("_at") else pl.Int64 if name in _WHOLE else pl.String
        for name in Difference.__annotations__
    }
    return pl.DataFrame([vars(d) for d in found], schema=schema, orient="row")


_WHOLE = ("first", "last", "delta", "snapshots", "first_line", "last_line")


def findings(frame: "pl.DataFrame") -> list[tuple[str, str]]:
    """
    What several counters of a frame of :func:`differences` say together: (class, sentence).

    Pauses without ECN marks, marks that nobody answers, answers that nobody heeds. A counter that is not in the frame
    says nothing.
    """
    import polars as pl

    def total(pattern: str) -> int | None:
        part = frame.filter(pl.col("counter").str.contains(f"^(?:{pattern})$"), pl.col("delta").is_not_null())
        return None if part.is_empty() else int(part["delta"].sum())

    pauses, marks = total(r"[rt]x_prio\d_pause"), total("np_ecn_marked_roce_packets")
    sent, heeded = total("np_cnp_sent"), total("rp_cnp_handled")
    out = []
    if pauses and marks == 0:
        out.append(("warn", f"{pauses} pause frames and no ECN mark: flow control was the only brake"))
    if marks and sent == 0:
        out.append(("alarm", f"{marks} ECN marks and no congestion notice sent: DCQCN is off at the receiver"))
    if sent and heeded == 0:
        out.append(("alarm", f"{sent} congestion notices sent and none handled: DCQCN is off at the sender"))
    return out


def _ports(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The readings of each port, first snapshot first, of one log or of logs whose paths name their order."""
    for row in rows:
        word = _WORD.search(row["path"].lower())
        row["order"] = int(word[0] in _WORDS[1]) if word else None
        row["place"] = _WORD.sub("*", row["path"].lower(), count=1) if word else row["path"]

    def port(row: dict[str, Any]) -> tuple[str, ...]:
        return tuple(str(row[k] or "") for k in ("campaign", "fabric", "place", "host", "device"))

    rows.sort(key=lambda r: (port(r), r["order"] or 0, r["path"], r["line"] or 0))
    return [list(group) for _, group in groupby(rows, port)]


def _of_port(rows: list[dict[str, Any]]) -> list[Difference]:
    counters: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        counters.setdefault(row["metric"], []).append(row)
    several = {name: series for name, series in counters.items() if len(series) > 1 and _belong(series)}
    total = {name: series for name, series in several.items() if meaning(name)[0] or _RISES_ONLY.fullmatch(name)}
    fell = [name for name, series in total.items() if _falls(series) and not _may_begin_again(series)]
    if not any(series[0]["value"] > 0 and not _falls(series) for series in total.values()):
        fell = [name for name, series in total.items() if _falls(series)]
    return [_difference(series, fell) for series in several.values()]


def _belong(series: list[dict[str, Any]]) -> bool:
    """Whether nothing but time lies between the readings: a list without a device may be that of another port."""
    paths = [row["path"] for row in series]
    if len(set(paths)) == 1:
        return series[0]["device"] is not None
    in_order = [row["order"] for row in series]
    return None not in in_order and (series[0]["device"] is not None or len(set(paths)) == len(paths) == 2)


def _may_begin_again(series: list[dict[str, Any]]) -> bool:
    return series[0]["metric"] in _32_BITS and all(row["value"] < 2**32 for row in series)


def _falls(series: list[dict[str, Any]]) -> bool:
    return any(a["value"] > b["value"] for a, b in pairwise(series))


def _difference(series: list[dict[str, Any]], fell: list[str]) -> Difference:
    first, last = series[0], series[-1]
    delta, remark = _delta(first["metric"], [int(row["value"]) for row in series], fell)
    kind, says = meaning(first["metric"])
    one_log = first["path"] == last["path"]
    return Difference(
        campaign=first["campaign"], fabric=first["fabric"], host=first["host"], device=first["device"],
        counter=first["metric"], first=int(first["value"]), last=int(last["value"]), delta=delta, unit=first["unit"],
        kind=kind, says=says, remark=remark,
        evidence="two snapshots in one log" if one_log else "two logs, their paths say which is the first",
        snapshots=len(series), first_at=first["read_at"], last_at=last["read_at"], first_path=first["path"],
        first_line=first["line"] or 0, last_path=last["path"], last_line=last["line"] or 0,
    )  # fmt: skip


def _delta(counter: str, values: list[int], fell: list[str]) -> tuple[int | None, str | None]:
    """How much a counter rose, and what is to be said of it; None where it cannot be known."""
    first, last = values[0], values[-1]
    if fell:
        return None, f"set back, or another port: {', '.join(fell[:3])} fell between the snapshots"
    if max(values) > _EXACT:
        return None, "above 2^53 the store keeps no exact number"
    if any(a > b for a, b in pairwise(values)):
        if counter not in _32_BITS:
            return None, f"fell from {max(values)} to {last}: set back, or no counter"
        rose = sum((b - a) % 2**32 for a, b in pairwise(values))
        return rose, "32 bits wide: began again at 0 in between, while no other counter of the port fell"
    if _STOPS_AT.get(counter) == last:
        return last - first, f"stands at its largest value, {last}: the rise may be larger"
    return last - first, None
