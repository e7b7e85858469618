"""What a report says beside the limits: which transport the logs prove, declared ranks, the worst pair and node."""

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rdmalab.acceptance._check import lines_of
from rdmalab.acceptance._result import NOT_COMPARABLE, NOT_TESTED, Acceptance, Line
from rdmalab.acceptance._spec import Threshold

if TYPE_CHECKING:
    from rdmalab.lab import Lab

_RDMA = ("ib", "roce", "ofi", "rdma_unspecified")


def observed(lab: "Lab", campaign: str) -> list[tuple[Threshold, Line]]:
    """
    Every fabric with what its logs show, whether a spec asks for it or not: transport, GPUDirect RDMA, ranks of each
    operation, worst pair and worst node of each operation that several pairs of hosts measured, at the largest size.
    """
    fabrics = lab.sql("SELECT DISTINCT fabric FROM runs WHERE campaign = $c ORDER BY 1", c=campaign)["fabric"].to_list()
    return [
        (t, line)
        for t in _looked_for(lab, campaign)
        for fabric in fabrics
        for line in lines_of(lab, campaign, t, fabric)
        if line.n and line.outcome != NOT_COMPARABLE and (line.outcome != NOT_TESTED or t.metric == "transport")
    ]


def _looked_for(lab: "Lab", campaign: str) -> Iterator[Threshold]:
    yield Threshold(metric="transport", source="", one_of=_RDMA)
    yield Threshold(metric="gdr", source="", one_of=("all",))
    rows = lab.sql(
        """SELECT operation, max(size_bytes) AS size_bytes, count(DISTINCT hosts) FILTER (len(hosts) = 2) AS pairs
           FROM results WHERE campaign = $c AND kind = 'collective' AND operation IS NOT NULL GROUP BY 1 ORDER BY 1""",
        c=campaign,
    )
    for operation, size, pairs in rows.iter_rows():
        yield Threshold(metric="ranks", source="", operation=operation)
        for statistic in ("worst_pair", "worst_node") if pairs > 1 and size else ():
            yield Threshold(
                metric="busbw_gbyte_s", source="", operation=operation, statistic=statistic, sizes=(str(size),),
                at_least=0.0,
            )  # fmt: skip


def head_of(lab: "Lab", campaign: str) -> dict[str, Any]:
    """The words of the campaign file: title, customer, synthetic, root, and the labels of the fabrics."""
    frame = lab.sql(
        "SELECT campaign, title, customer, synthetic, root FROM raw.campaigns WHERE campaign = $c", c=campaign
    )
    empty = {"campaign": campaign, "title": None, "customer": None, "synthetic": False, "root": None}
    labels = {row["fabric"]: row["label"] or row["fabric"] for row in lab.fabrics(campaign).iter_rows(named=True)}
    return empty | (frame.row(0, named=True) if len(frame) else {}) | {"labels": labels}


def snapshot_of(lab: "Lab", found: Acceptance) -> str:
    """A hash of what the outcomes rest on: the logs of the campaign and the spec."""
    logs = lab.sql(
        "SELECT DISTINCT sha256 || fabric AS part FROM runs WHERE campaign = $c ORDER BY 1", c=found.campaign
    )
    return hashlib.sha256("\n".join([*logs["part"], found.spec.sha256]).encode()).hexdigest()


def logs_of(lab: "Lab", found: Acceptance) -> dict[str, tuple[str, str, int]]:
    """Run id → (path, sha256, line) of every run behind a limit."""
    runs = sorted({r for x in found.outcomes for line in x.lines for r in line.runs})
    frame = lab.sql(
        "SELECT run_id, path, sha256, line FROM runs WHERE campaign = $c AND list_contains($r, run_id)",
        c=found.campaign, r=runs,
    )  # fmt: skip
    return {run: (path, sha256, line) for run, path, sha256, line in frame.iter_rows()}
