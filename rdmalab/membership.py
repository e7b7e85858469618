"""Which run belongs to which fabric of which campaign, and what its physical limit is there.

Rewritten from the campaign files at every ingest, so that a corrected file takes effect, and stored with the run, so
that the views need no Python.
"""

from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any

from rdmalab import campaign as campaigns
from rdmalab import limits
from rdmalab.campaign import DEFAULT_CAMPAIGN, Campaign, Fabric
from rdmalab.store import Writer

# The family of what an NCCL log proves (formats/nccl_info.py) in the words of the fabrics.
_FAMILY_OF_VERDICT = {"ib": "infiniband", "roce": "roce", "socket": "tcp"}
_FAMILY_OF_PROVIDER = {"efa": "efa", "cxi": "slingshot"}


def write_memberships(
    writer: Writer, paths: list[str], loaded: dict[Path, Campaign], default_name: str | None
) -> tuple[dict[str, int], list[str]]:
    """
    Rewrites the places of all stored logs that the campaign files rule, and of *paths* that none rules.

    Returns:
        Runs by campaign, and remarks for the receipt: globs that match nothing, logs that no fabric claims.
    """
    counts: Counter[str] = Counter()
    remarks: list[str] = []
    ruled: set[str] = set()
    stored = _stored_paths(writer)
    folders: dict[Path, Path | None] = {}
    for file, campaign in loaded.items():
        here = [p for p in stored if campaigns.nearest(p, folders) == file]
        ruled.update(here)
        _replace_campaign(writer, campaign)
        members, found = _members(_runs_of(writer, here, stored), campaign)
        writer.insert("members", members)
        counts[campaign.name] += len(members)
        remarks += found
        remarks += [
            f"{campaign.path}: the glob '{glob}' of {owner} matches no log" for owner, glob in campaigns.unmatched_globs(campaign, here)
        ]
    rest = [p for p in paths if p in stored and p not in ruled] + [
        m for p in paths for m in stored if m.startswith(f"{p}!") and m not in ruled
    ]
    if rest:
        name = default_name or DEFAULT_CAMPAIGN
        members = [_member(run, name, path, None, None) for path, run in _runs_of(writer, rest, stored)]
        members = list({m["run_id"]: m for m in members}.values())
        writer.run(
            "DELETE FROM raw.members WHERE campaign = $c AND run_id IN (SELECT unnest($ids))",
            {"c": name, "ids": [m["run_id"] for m in members]},
        )
        writer.insert("members", members)
        counts[name] += len(members)
    return dict(counts), remarks


def _stored_paths(writer: Writer) -> dict[str, str]:
    frame = writer.frame("SELECT path, log_id FROM raw.paths ORDER BY path")
    return dict(zip(frame["path"], frame["log_id"], strict=True))


def _runs_of(writer: Writer, paths: list[str], stored: dict[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """(path, run with the facts that a limit needs) for every run of the logs at *paths*."""
    frame = writer.frame(
        """SELECT r.*, l.transport_verdict, l.transport_provider, l.transport_fallback, l.transport_fallback_reason
           FROM raw.runs r JOIN raw.logs l USING (log_id)
           WHERE log_id IN (SELECT unnest($ids)) ORDER BY run_id""",
        {"ids": sorted({stored[p] for p in paths})},
    )
    by_log = defaultdict(list)
    for run in frame.iter_rows(named=True):
        by_log[run["log_id"]].append(run)
    return [(p, run) for p in paths for run in by_log[stored[p]]]


def _replace_campaign(writer: Writer, campaign: Campaign) -> None:
    for table in ("campaigns", "fabrics", "same", "members"):
        writer.run(f"DELETE FROM raw.{table} WHERE campaign = $c", {"c": campaign.name})
    writer.insert(
        "campaigns",
        [
            {
                "campaign": campaign.name, "title": campaign.title, "customer": campaign.customer,
                "synthetic": campaign.synthetic, "root": str(campaign.root), "file_sha256": campaign.sha256,
                "notes": list(campaign.notes),
            }
        ],
    )  # fmt: skip
    writer.insert(
        "fabrics",
        [
            {"campaign": campaign.name, "fabric": f.name, "fabric_family": f.family, "ordinal": i}
            | {k: v for k, v in vars(f).items() if k not in ("name", "family", "logs")}
            for i, f in enumerate(campaign.fabrics)
        ],
    )
    writer.insert("same", [{"campaign": campaign.name, **vars(s), "tests": list(s.tests)} for s in campaign.same])


def _members(runs: list[tuple[str, dict[str, Any]]], campaign: Campaign) -> tuple[list[dict[str, Any]], list[str]]:
    """One member a run; a content that two fabrics claim is refused, and said."""
    members: dict[str, dict[str, Any]] = {}
    remarks = {}
    for path, run in runs:
        claims = campaign.fabrics_of(path)
        new = _member(run, campaign.name, path, claims[0] if claims else None, campaign)
        if not claims:
            remarks[path] = f"{path}: no fabric of {campaign.path} claims this log; its family is '{new['fabric_family']}'"
        old = members.get(run["run_id"])
        names = {c.name for c in claims} | ({old["fabric"]} if old and old["declared"] else set())
        if len(names) > 1:
            new["refused_because"] = f"claimed by several fabrics: {', '.join(sorted(names))}"
            remarks[path] = f"{path}: {new['refused_because']}; mend the globs of {campaign.path}"
        members[run["run_id"]] = new if not old or claims else old
    return list(members.values()), list(remarks.values())


def _member(
    run: dict[str, Any], name: str, path: str, fabric: Fabric | None, campaign: Campaign | None
) -> dict[str, Any]:
    family, evidence = _family_shown(run)
    facts: dict[str, Any] = {}
    for stated in campaign.facts_of(path) if campaign else ():
        facts |= {k: v for k, v in vars(stated).items() if v is not None and k != "logs"}
    if fabric:
        refused = _contradiction(fabric, family, run)
        family, evidence = fabric.family, f"campaign file, fabric '{fabric.name}'"
    else:
        refused = None
    limit = _limit(
        run["kind"], run["operation"] or facts.get("operation"), run["ranks"] or facts.get("ranks"),
        run["nodes"], run["gpu_model"], run["bidirectional"], run["mtu_bytes"], fabric, family,
        run["communicator_ranks"] not in (None, run["ranks"]),
    )  # fmt: skip
    return {
        "campaign": name, "run_id": run["run_id"], "log_id": run["log_id"], "path": path,
        "fabric": fabric.name if fabric else family, "fabric_family": family, "fabric_evidence": evidence,
        "declared": fabric.name if fabric else None, "refused_because": refused,
        **{f"declared_{k}": facts.get(k) for k in ("size_bytes", "ranks", "operation", "program", "latency_convention")},
        "limit_gbyte_s": limit.gbyte_s, "limit_formula": limit.formula, "limit_source": limit.source,
        "limit_missing": limit.missing,
    }  # fmt: skip


def _family_shown(run: dict[str, Any]) -> tuple[str, str | None]:
    """The family that the log itself shows, and by what; ``unknown`` where it shows none."""
    if run["fabric"]:
        return run["fabric"], run["fabric_evidence"]
    verdict = run["transport_verdict"] if run["kind"] == "collective" else None
    family = _FAMILY_OF_VERDICT.get(verdict or "") or _FAMILY_OF_PROVIDER.get(run["transport_provider"] or "")
    if verdict == "intra_node" and (found := limits.scale_up(run["gpu_model"] or "")):
        family = found.family
    return (family, f"NCCL channel lines: {verdict}") if family else ("unknown", None)


def _contradiction(fabric: Fabric, shown: str, run: dict[str, Any]) -> str | None:
    """Why a run that the campaign file puts into *fabric* does not belong there, as its own lines prove."""
    if run["transport_fallback"] and fabric.family != "tcp":
        return f"fell back to sockets: {run['transport_fallback_reason'] or 'no RDMA device used'}"
    kin = {"roce": {"roce", "softroce"}, "softroce": {"roce", "softroce"}}
    if shown != "unknown" and shown not in kin.get(fabric.family, {fabric.family}):
        return f"the log shows {shown}, the campaign file says {fabric.family}"
    return None


@cache
def _limit(
    kind: str, operation: str | None, ranks: int | None, nodes: int | None, gpu_model: str | None,
    bidirectional: bool | None, mtu_bytes: int | None, fabric: Fabric | None, family: str, split: bool,
) -> limits.Limit:  # fmt: skip
    """The physical limit of a run in this fabric; without a campaign file the link rate is not known."""
    rate = fabric.link_rate_gbit_s if fabric else None
    if kind == "latency":
        return limits.Limit(gbyte_s=None, formula="", missing="a latency has no bandwidth limit")
    if split:
        return limits.Limit(gbyte_s=None, formula="", missing="which ranks form a communicator")
    if kind != "collective":
        mtu = mtu_bytes or (fabric.mtu_bytes if fabric else None)
        return limits.point_to_point_limit(family, rate, mtu, bidirectional=bidirectional)
    stated = fabric or Fabric(name=family, family=family)
    return limits.cluster_limit(
        operation, ranks=ranks, nodes=nodes, gpu_model=gpu_model, gpus_per_node=stated.gpus_per_node,
        gpus_per_domain=stated.gpus_per_domain, ports_per_node=stated.ports_per_node, link_rate_gbit_s=rate,
        mtu_bytes=stated.mtu_bytes, family=family, scale_up_gbyte_s=stated.scale_up_gbyte_s,
        in_network=bool(stated.in_network),
    )  # fmt: skip
