"""Which run belongs to which fabric of which campaign, and what its physical limit is there.

Rewritten from the campaign files at every ingest, so that a corrected file takes effect, and stored with the run, so
that the views need no Python.
"""

from collections import defaultdict
from collections.abc import Iterable
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
_FACTS = ("size_bytes", "ranks", "operation", "program", "latency_convention")
_WITHIN_A_NODE = ("nvlink", "xgmi", "hccs", "pcie", "unknown")


def write_memberships(
    writer: Writer, files: set[str], loaded: dict[Path, Campaign], default_name: str | None
) -> tuple[dict[str, int], list[str]]:
    """
    Rewrites the places of all stored logs that the campaign files rule, and of those in *files* that none rules.

    Returns:
        Runs by campaign, and remarks for the receipt: globs that match nothing, logs that no fabric claims.
    """
    counts: dict[str, int] = {}
    remarks: list[str] = []
    stored = writer.frame("SELECT path, file, log_id FROM raw.paths ORDER BY path").rows()
    folders: dict[str, Path | None] = {}
    places: dict[Path | None, dict[str, str]] = defaultdict(dict)  # campaign file -> path -> log_id
    for path, file, log_id in stored:
        ruler = campaigns.nearest(file, folders)
        if ruler in loaded or (ruler is None and file in files):
            places[ruler][path] = log_id
    for ruler, campaign in loaded.items():
        remarks += _replace_campaign(writer, campaign)
        members, found = _members(writer, places[ruler], campaign)
        _leave_other_campaigns(writer, campaign.name, places[ruler])
        writer.insert("members", members)
        writer.insert("places", _places(writer, places[ruler], campaign))
        counts[campaign.name] = len(members)
        remarks += found
    if rest := _unplaced(writer, places[None], default_name):
        name = default_name or DEFAULT_CAMPAIGN
        counts[name] = counts.get(name, 0) + _write_unruled(writer, name, rest)
    return counts, remarks


def remove_campaign(writer: Writer, name: str) -> None:
    """Removes a campaign and all places in it; the logs stay."""
    for table in ("campaigns", "fabrics", "same", "quotes", "workloads", "members", "places"):
        writer.run(f"DELETE FROM raw.{table} WHERE campaign = $c", {"c": name})


def _leave_other_campaigns(writer: Writer, name: str, places: dict[str, str]) -> None:
    """A log that a campaign file rules stands in that campaign alone, wherever it stood before there was the file."""
    for table in ("members", "places"):
        writer.run(
            f"DELETE FROM raw.{table} WHERE campaign <> $c AND path IN (SELECT unnest($paths))",
            {"c": name, "paths": list(places)},
        )


def _unplaced(writer: Writer, places: dict[str, str], default_name: str | None) -> dict[str, str]:
    """Of logs that no file rules, those that need a place: without a name given, the ones that have none yet."""
    if default_name or not places:
        return places
    elsewhere = writer.frame(
        """SELECT path, log_id FROM (SELECT campaign, path, log_id FROM raw.members
                                     UNION SELECT campaign, path, log_id FROM raw.places)
           WHERE campaign <> $c AND path IN (SELECT unnest($paths))""",
        {"c": DEFAULT_CAMPAIGN, "paths": list(places)},
    )
    return dict(places.items() - set(elsewhere.rows()))


def _write_unruled(writer: Writer, name: str, places: dict[str, str]) -> int:
    first = {log_id: path for path, log_id in sorted(places.items(), reverse=True)}
    members = [
        _member(run, name, first[log_id], None, None)
        for log_id, runs in _runs_of(writer, first).items()
        for run in runs
    ]
    for table in ("members", "places"):
        writer.run(
            f"DELETE FROM raw.{table} WHERE campaign = $c AND log_id IN (SELECT unnest($ids))",
            {"c": name, "ids": list(first)},
        )
    writer.insert("members", members)
    runless = sorted(_without_runs(writer, first))
    writer.insert("places", [{"campaign": name, "log_id": i, "path": first[i], "fabric": None} for i in runless])
    return len(members)


def _runs_of(writer: Writer, log_ids: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """The runs of logs, with the facts that a limit needs."""
    frame = writer.frame(
        """SELECT run_id, log_id, r.kind, r.operation, r.program, r.ranks, r.communicator_ranks, r.nodes, r.gpu_model,
                  r.bidirectional, r.mtu_bytes, r.latency_convention, r.fabric, r.fabric_evidence,
                  l.transport_verdict, l.transport_provider, l.transport_fallback, l.transport_fallback_reason
           FROM raw.runs r JOIN raw.logs l USING (log_id)
           WHERE log_id IN (SELECT unnest($ids)) ORDER BY run_id""",
        {"ids": sorted(set(log_ids))},
    )
    runs = defaultdict(list)
    for run in frame.iter_rows(named=True):
        runs[run["log_id"]].append(run)
    return runs


def _replace_campaign(writer: Writer, campaign: Campaign) -> list[str]:
    """Writes the campaign anew, also under a new name. Says where the name belonged to another folder until now."""
    before = writer.frame("SELECT campaign, root FROM raw.campaigns").rows()
    root = str(campaign.root)
    for name in {campaign.name, *(name for name, where in before if where == root)}:
        remove_campaign(writer, name)
    _write_campaign(writer, campaign)
    return [
        f"{campaign.path}: the campaign '{name}' was that of {where} until now"
        for name, where in before
        if name == campaign.name and where != root
    ]


def _write_campaign(writer: Writer, campaign: Campaign) -> None:
    head = {
        "campaign": campaign.name, "title": campaign.title, "customer": campaign.customer,
        "synthetic": campaign.synthetic, "root": str(campaign.root), "file_sha256": campaign.sha256,
        "notes": list(campaign.notes), "pairs": campaign.pairs,
        "first_day": campaign.dates[0] if campaign.dates else None,
        "last_day": campaign.dates[-1] if campaign.dates else None,
    }  # fmt: skip
    writer.insert("campaigns", [head])
    fabrics = [
        {"campaign": campaign.name, "fabric": f.name, "fabric_family": f.family, "ordinal": i}
        | {k: v for k, v in vars(f).items() if k not in ("name", "family", "logs")}
        for i, f in enumerate(campaign.fabrics)
    ]
    writer.insert("fabrics", fabrics)
    for table, records in (("quotes", campaign.quotes), ("workloads", campaign.workloads)):
        writer.insert(table, [{"campaign": campaign.name, **vars(record)} for record in records])
    writer.insert("same", [{"campaign": campaign.name, **vars(s), "tests": list(s.tests)} for s in campaign.same])


def _members(writer: Writer, places: dict[str, str], campaign: Campaign) -> tuple[list[dict[str, Any]], list[str]]:
    """One member a run; a content that two fabrics claim, at one path or at two, is refused, and said."""
    paths: dict[str, list[str]] = defaultdict(list)
    for path, log_id in places.items():
        paths[log_id].append(path)
    members: list[dict[str, Any]] = []
    remarks = []
    for log_id, runs in _runs_of(writer, paths).items():
        claims = {fabric: path for path in reversed(paths[log_id]) for fabric in campaign.fabrics_of(path)}
        fabric = min(claims, key=lambda f: (claims[f], campaign.fabrics.index(f)), default=None)
        path = claims[fabric] if fabric else paths[log_id][0]
        new = [_member(run, campaign.name, path, fabric, campaign) for run in runs]
        if fabric is None:
            family = new[0]["fabric_family"]
            remarks.append(f"{path}: no fabric of {campaign.path} claims this log; its family is '{family}'")
        if len(claims) > 1:
            refused = f"claimed by several fabrics: {', '.join(sorted(f.name for f in claims))}"
            globs = {glob for where in claims.values() for glob in campaign.globs_of(where)}
            lines = " and ".join(str(n) for n in sorted({campaigns.line_of_glob(campaign, glob) for glob in globs}))
            remarks.append(f"{path}: {refused}; mend the globs of {campaign.path}, lines {lines}")
            new = [member | {"refused_because": refused} for member in new]
        members += new
    remarks += [
        f"{campaign.path}:{campaigns.line_of_glob(campaign, glob)}: the glob '{glob}' of {owner} matches no log"
        for owner, glob in campaigns.unmatched_globs(campaign, places)
    ]
    return members, remarks


def _places(writer: Writer, places: dict[str, str], campaign: Campaign) -> list[dict[str, Any]]:
    """The places of logs that hold no run (telemetry, NCCL lines), with the fabric where exactly one claims them."""
    found = {}
    runless = _without_runs(writer, places.values())
    for path, log_id in places.items():
        if log_id in runless:
            claims = campaign.fabrics_of(path)
            fabric = claims[0].name if len(claims) == 1 else None
            if log_id not in found or fabric:
                found[log_id] = {"campaign": campaign.name, "log_id": log_id, "path": path, "fabric": fabric}
    return list(found.values())


def _without_runs(writer: Writer, log_ids: Iterable[str]) -> set[str]:
    """The logs that hold no run, but readings or notes."""
    frame = writer.frame(
        """SELECT log_id FROM raw.logs WHERE log_id IN (SELECT unnest($ids)) AND log_id NOT IN (
               SELECT log_id FROM raw.runs)
           AND log_id IN (SELECT log_id FROM raw.readings UNION SELECT log_id FROM raw.notes)""",
        {"ids": sorted(set(log_ids))},
    )
    return set(frame["log_id"])


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
        **{f"declared_{k}": facts.get(k) for k in _FACTS},
        "limit_gbyte_s": limit.gbyte_s, "limit_formula": limit.formula, "limit_source": limit.source,
        "limit_flag": limit.flag if limit.gbyte_s is not None else None,
        "limit_missing": limit.missing, "paired_as": campaign.pair_of(path) if campaign else None,
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
    verdict = run["transport_verdict"] if run["kind"] == "collective" else None
    if verdict == "intra_node" and fabric.family not in _WITHIN_A_NODE:
        return f"the log shows that all ranks share a node, the campaign file says {fabric.family}"
    if verdict == "rdma_unspecified" and fabric.family == "tcp":
        return "the log shows RDMA, the campaign file says tcp"
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
        slot = fabric.pcie if fabric else None
        return limits.point_to_point_limit(family, rate, mtu, bidirectional=bidirectional, pcie=slot)
    stated = fabric or Fabric(name=family, family=family)
    return limits.cluster_limit(
        operation, ranks=ranks, nodes=nodes, gpu_model=gpu_model or stated.gpu, gpus_per_node=stated.gpus_per_node,
        gpus_per_domain=stated.gpus_per_domain, ports_per_node=stated.ports_per_node, link_rate_gbit_s=rate,
        mtu_bytes=stated.mtu_bytes, family=family, scale_up_gbyte_s=stated.scale_up_gbyte_s,
        in_network=bool(stated.in_network), pcie=stated.pcie,
    )  # fmt: skip
