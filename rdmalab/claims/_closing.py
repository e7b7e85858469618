"""What would settle a claim that is open: which log, of which command, run how."""

from typing import NamedTuple

from rdmalab.claims._records import Call, Claim

# Metrics and the kind of record that measures them.
_RECORDS = {
    "util": "gpu", "counter": "counters", "stall": "soak", "scaling_eff": "scaling", "comm_time": "profile",
    "comm_share": "profile", "price": "quote", "throughput": "serving", "memory": "facts", "power": "gpu",
    "implied_ranks": "collective", "fraction_of_line": "collective", "fraction_of_bound": "collective",
    "msg_rate": "bandwidth", "wire_min": "counters",
}  # fmt: skip


class Closing(NamedTuple):
    """A kind of record (``collective``, ``latency``, ``counters`` ...), and the command that prints it, if any."""

    kind: str
    command: str


def closing(claim: Claim) -> Closing:
    """The record that would settle a claim; ``statement`` where only the source itself can say more."""
    call = _measured(claim.metric)
    if call is None:
        return Closing("statement", "")
    if call.name in ("busbw", "algbw") or (call.name == "latency" and "op" in call.options):
        return Closing("collective", _collective(claim, call))
    if call.name == "latency":
        if claim.stated("scope") in ("request", "token", "step"):
            return Closing("serving", "")
        verb = call.options.get("verb", "write")
        return Closing("latency", f"ib_{verb}_lat -s {call.options.get('size', '8')} -n 10000 SERVER")
    if call.name in ("bw", "msg_rate"):
        verb = call.options.get("verb", "write")
        both = " -b" if claim.stated("direction") == "both" else ""
        return Closing("bandwidth", f"ib_{verb}_bw -s {call.options.get('size', '65536')} --report_gbits{both} SERVER")
    kind = _RECORDS.get(call.name, "statement")
    return Closing(kind, _collective(claim, call) if kind == "collective" else "")


def _measured(call: Call | None) -> Call | None:
    """The innermost call that names something measured: that of ``ratio(busbw(...))``."""
    while call is not None and call.name in ("ratio", "gain", "reduction", "points", "rate"):
        call = next((a for a in call.args if isinstance(a, Call)), None)
    return call


def _collective(claim: Claim, call: Call) -> str:
    gpus = claim.system.get("gpus_per_domain", 8)
    low, high = call.options.get("size_min", call.options.get("size", "8")), call.options.get("size_max", "8G")
    if "size" in call.options:
        high = low
    name = {"sendrecv": "sendrecv"}.get(call.options.get("op", ""), call.options.get("op", "all_reduce"))
    nodes = claim.system.get("domains")
    where = f"mpirun -np {nodes} -N 1 " if nodes and nodes > 1 else ""
    return f"NCCL_DEBUG=INFO {where}{name}_perf -b {low} -e {high} -f 2 -g {gpus}"
