"""Rules on port counters: what rose between two snapshots. One snapshot alone says nothing."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rdmalab.language import marked as _
from rdmalab.rules._base import CHECK, MLX5, NOTE, SYSFS, WRONG, Facts, Hit, Line, Log, Rule, rule, tested

RULES: list[Rule] = []
_SNAPSHOTS = _("two snapshots of the port, before and after: ethtool -S, rdma statistic -j, or grep over "
               "/sys/class/infiniband/*/ports/*/hw_counters/*")  # fmt: skip
_DROPPED = (
    r"[rt]x_discards_phy|rx_prio\d_(?:buf_|cong_)?discards?|port_xmit_discards|PortXmitDiscards|packet_seq_err"
    r"|implied_nak_seq_err|local_ack_timeout_err|req_transport_retries_exceeded|retry_exceeded_err"
)
_AGAIN = (
    r"out_of_sequence|duplicate_request|roce_adp_retrans(?:_to)?|roce_slow_restart|out_of_seq_request|rcvd_seq_err"
    r"|completer_retry_err|roce_new_pkt_rty_num"
)
_FLAPS = r"link_downed|link_down_events_phy|link_down_count|link_error_recovery|Link(?:Downed|ErrorRecovery)Counter"
# ibv_event_type_str of libibverbs; others (a changed GID table, say) are no flap
_PORT_EVENT = re.compile(r"async event ?: (port error|port active|local catastrophic error)")
_STORMS = r"tx_pause_storm_(?:warning|error)_events"
_PAUSES = r"[rt]x_(?:prio\d_pause|pause_ctrl_phy)|rx_pfc_ena_frames_pri\d|frames_rx_pripause\d?"
_SHARE_HIGH_PCT = 5.0  # of the time between the snapshots: our own line, no document draws one

Row = Mapping[str, Any]


@rule(
    RULES, "packets-lost", WRONG,
    title=_("Counters that say loss"), source=f"{MLX5}; {SYSFS}", needs=_SNAPSHOTS,
    remedy=_("Find the port that drops (switch counters, optics), check PFC and ECN end to end; on lossy Ethernet set "
             "selective repeat or lower the load."),
)  # fmt: skip
def _packets_lost(facts: Facts) -> list[Hit] | None:
    """Packets sent again may only have overtaken each other (adaptive routing): that is to be checked."""
    told = _rows(facts, rf"{_DROPPED}|{_AGAIN}")
    lost = _hits(facts, told, _DROPPED, _("Packets were lost at {port} between the snapshots: {rises}."))
    what = _("Packets were sent again at {port} between the snapshots: {rises}.")
    return tested(told, (*lost, *_hits(facts, told, _AGAIN, what, CHECK)))


@rule(
    RULES, "pause-storm", WRONG,
    title=_("Pause frames stop the network"), source=MLX5, needs=_SNAPSHOTS,
    remedy=_("Look for the receiver that does not drain (PCIe, memory, a slow host), bound PFC with a watchdog on the "
             "switches, and let ECN act before PFC."),
)  # fmt: skip
def _pause_storm(facts: Facts) -> list[Hit] | None:
    told = _rows(facts, rf"{_STORMS}|{_PAUSES}|[rt]x_prio\d_pause_duration")
    hits = _hits(facts, told, _STORMS, _("The NIC itself reports a storm of pause frames at {port}: {rises}."))
    for row in told:
        share = _share_pct(row)
        if share is not None and share >= _SHARE_HIGH_PCT:
            what = _("Of the time between the snapshots {share} % was paused at {port}: {rises}.")
            hits += _hits(facts, [row], ".*", what, CHECK, share=round(share, 1))
    return tested(told, hits)


def _share_pct(row: Row) -> float | None:
    """The part of the time that was paused, where both snapshots carry their time."""
    if not row["counter"].endswith("_pause_duration") or not (row["first_at"] and row["last_at"] and row["delta"]):
        return None
    elapsed_us = (row["last_at"] - row["first_at"]).total_seconds() * 1e6
    return 100 * row["delta"] / elapsed_us if elapsed_us > 0 else None


@rule(
    RULES, "congestion-control", CHECK,
    title=_("Congestion control works on one side only"), source=MLX5, needs=_SNAPSHOTS,
    remedy=_("Enable DCQCN for the priority on both ends (roce_np, roce_rp), mark ECN on the switches below the PFC "
             "threshold, and let CNP have a priority of their own."),
)  # fmt: skip
def _congestion_control(facts: Facts) -> list[Hit] | None:
    """A sender's counters stand on another port than its receiver's: handled notices count over all ports."""
    told = _rows(facts, r"np_ecn_marked_roce_packets|np_cnp_sent|rp_cnp_handled|rp_cnp_ignored")
    hits = _hits(facts, told, "rp_cnp_ignored", _("Notices of congestion were ignored at {port}: {rises}."))
    ports: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in (*told, *_rows(facts, _PAUSES)):
        ports.setdefault((row["fabric"], row["host"], row["device"], row["last_path"]), {})[row["counter"]] = row
    for port in ports.values():
        marks, sent = port.get("np_ecn_marked_roce_packets"), port.get("np_cnp_sent")
        if marks and sent and marks["delta"] and sent["delta"] == 0:
            what = _("ECN marks arrived at {port} and no notice of congestion (np_cnp_sent) was sent: {rises}.")
            hits += _hits(facts, [marks], ".*", what, WRONG)
        if marks and sent and sent["delta"] and marks["delta"] == 0:
            what = _(
                "Notices of congestion were sent from {port} and no packet had an ECN mark "
                "(np_ecn_marked_roce_packets): {rises}."
            )
            hits += _hits(facts, [sent], ".*", what)
        if marks and marks["delta"] == 0:
            paused = [row for name, row in port.items() if re.fullmatch(_PAUSES, name)]
            what = _("Pause frames without one ECN mark at {port}, flow control is the only brake: {rises}.")
            hits += _hits(facts, paused, ".*", what, NOTE)
    return tested(told, hits)


@rule(
    RULES, "link-flaps", WRONG,
    title=_("A link went down"), source=f"{SYSFS}; {MLX5}; NVIDIA/nccl: src/transport/net_ib",
    needs=_("two snapshots of the port counters, or NCCL lines to the end of the job"),
    remedy=_("Change cable or optics, look at the other end's counters and the kernel log, and measure again."),
)  # fmt: skip
def _link_flaps(facts: Facts) -> list[Hit] | None:
    told = _rows(facts, _FLAPS)
    hits = _hits(facts, told, _FLAPS, _("The link of {port} went down or erred between the snapshots: {rises}."))
    event = _("NCCL reports an event of its RDMA port ({event}) while the job ran.")
    for note in facts.noted("link_event"):
        if found := _PORT_EVENT.search(note.text):
            hits.append(Hit(what=event, numbers={"event": found[1]}, lines=(note.at,), log=note.log))
    failed = _("NCCL gave up an RDMA device while the job ran and went on over another.")
    hits += [Hit(what=failed, lines=(note.at,), log=note.log) for note in facts.noted("port_failover")]
    judged = [log for log in facts.logs if log.verdict in ("ib", "roce", "rdma_unspecified")]
    return tested([*told, *judged], hits)


@rule(
    RULES, "slow-receiver", NOTE,
    title=_("A receiver that was not ready"), source=MLX5, needs=_SNAPSHOTS,
    remedy=_("Look at the software of the receiver: it posts too few receives. The network is not the cause."),
)  # fmt: skip
def _slow_receiver(facts: Facts) -> list[Hit] | None:
    names = r"rnr_nak_retry_err|out_of_buffer|(?:send|rcvd)_rnr_err"
    told = _rows(facts, names)
    return tested(told, _hits(facts, told, names, _("Receives were missing at {port} between the snapshots: {rises}.")))


def _rows(facts: Facts, names: str) -> list[Row]:
    """The differences of these counters, as far as one could be taken."""
    return [row for row in facts.differences if re.fullmatch(names, row["counter"]) and row["delta"] is not None]


def _hits(
    facts: Facts, rows: Iterable[Row], names: str, what: str, severity: str | None = None, **numbers: Any
) -> list[Hit]:
    """A hit for each port on which some of these counters rose, with the lines of both snapshots."""
    ports: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["delta"] and re.fullmatch(names, row["counter"]):
            ports.setdefault((row["fabric"], row["host"], row["device"], row["last_path"]), []).append(row)
    hits = []
    for (_fabric, host, device, path), rose in ports.items():
        if log := facts.log_at(path):
            port = " ".join(x for x in (host, device) if x) or path.rpartition("/")[2]
            rises = ", ".join(f"{row['counter']} +{row['delta']}" for row in rose)
            lines = dict.fromkeys(line for row in rose for line in _lines(facts, row, log))
            said = {"port": port, "rises": rises, **numbers}
            hits.append(Hit(what=what, numbers=said, lines=tuple(lines), log=log, severity=severity))
    return hits


def _lines(facts: Facts, row: Row, log: Log) -> tuple[Line, Line]:
    first = facts.log_at(row["first_path"]) or log
    return (
        Line(first.log_id, first.path, row["first_line"], f"{row['counter']}: {row['first']}"),
        Line(log.log_id, log.path, row["last_line"], f"{row['counter']}: {row['last']}"),
    )
