"""The configuration audit: what the logs of a campaign show to be set up wrong, each with its line and its remedy.

The rules stand in :mod:`rdmalab.rules`. Here their facts are read from the store, their hits are gathered to findings
and the lines behind them are read again from the logs, so that a finding quotes what is there.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from rdmalab.quotes import lines_of, text_of
from rdmalab.rules import RULES
from rdmalab.rules._base import SEVERITIES, WRONG, Fabric, Facts, Hit, Line, Log, Noted, Read, Rule, Test

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.lab import Lab

Fact = TypeVar("Fact", Noted, Test, Read)
_SEEN_BELOW = 30  # lines of a banner
_LONGEST = 240  # characters of a quoted line
# The readings that rules look at; a store may hold millions of others.
_METRICS = (
    r"gpu_nic_distance|pcie\.link\.(?:gen|width)\.(?:current|max)|utilization\.gpu|roce_version|(?:active|max)_mtu"
)
_FAILURES = (
    "ib_completion_error", "ib_call_failed", "link_event", "nccl_warning", "bootstrap_failed", "watchdog_timeout",
    "port_failover", "failure", "failed",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Finding:
    """
    One thing that is set up wrong, or to be checked.

    Attributes:
        what: A sentence with places for :attr:`numbers`; :meth:`sentence` fills them in.
        lines: The lines of the first log that show it.
        logs: Paths of all logs that show it.
    """

    rule: Rule
    severity: str
    fabric: str | None
    what: str
    numbers: Mapping[str, Any]
    lines: tuple[Line, ...]
    logs: tuple[str, ...]

    def sentence(self) -> str:
        """What was found, in English."""
        return self.what.format_map(self.numbers)

    def row(self) -> dict[str, Any]:
        """For machines."""
        return {
            "severity": self.severity, "rule": self.rule.id, "fabric": self.fabric, "what": self.sentence(),
            "numbers": dict(self.numbers), "remedy": self.rule.remedy, "source": self.rule.source,
            "evidence": [{"path": x.path, "line": x.line, "text": x.text} for x in self.lines],
            "logs": list(self.logs),
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Benign:
    """Warnings that look like a failure and are none; ``but`` counts the notes of real failures in the same log."""

    line: Line
    text: str
    but: int


@dataclass(frozen=True, kw_only=True)
class Audit:
    """
    All that the rules say of one campaign.

    ``campaign`` are the words of its file with the ``labels`` of its fabrics, ``snapshot`` is a hash of the logs,
    ``hashes`` holds the beginning of each log's sha256 by its path.
    """

    campaign: Mapping[str, Any]
    findings: tuple[Finding, ...]
    benign: tuple[Benign, ...]
    tested: tuple[Rule, ...]
    untested: tuple[Rule, ...]
    logs: int
    snapshot: str
    hashes: Mapping[str, str]

    def count(self, severity: str) -> int:
        """How many findings of a severity there are."""
        return sum(f.severity == severity for f in self.findings)

    @property
    def wrong(self) -> bool:
        """Whether something is wrong, not only to be checked."""
        return self.count(WRONG) > 0

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "campaign": self.campaign["campaign"], "logs": self.logs,
            "counts": {severity: self.count(severity) for severity in SEVERITIES},
            "findings": [f.row() for f in self.findings],
            "benign": [
                {"path": b.line.path, "line": b.line.line, "text": b.line.text, "because": b.text, "failures": b.but}
                for b in self.benign
            ],
            "tested": [r.id for r in self.tested],
            "not_tested": [{"rule": r.id, "needs": r.needs} for r in self.untested],
        }  # fmt: skip

    def frame(self) -> "pl.DataFrame":
        """One row a line of evidence; numbers as JSON."""
        import polars as pl

        rows = [
            {k: v for k, v in f.row().items() if k not in ("evidence", "logs", "numbers")}
            | {"numbers": json.dumps(dict(f.numbers), ensure_ascii=False), "logs": len(f.logs)}
            | {"path": x.path, "line": x.line, "text": x.text}
            for f in self.findings
            for x in f.lines
        ]
        order = ("severity", "rule", "fabric", "what", "numbers", "path", "line", "text", "logs", "remedy", "source")
        return pl.DataFrame(rows, schema=dict.fromkeys(order, pl.String) | dict.fromkeys(("line", "logs"), pl.Int64))

    def words(self) -> list[str]:
        """The audit for a terminal."""
        counts = ", ".join(f"{n} {severity}" for severity in SEVERITIES if (n := self.count(severity)))
        out = [
            f"{self.campaign['campaign']}: {_many(len(self.findings), 'finding')}{counts and f' ({counts})'} in "
            f"{_many(self.logs, 'log')}; {_many(len(self.tested), 'rule')} tested, {len(self.untested)} not"
        ]
        for f in self.findings:
            place = f" on {f.fabric}" if f.fabric else ""
            more = f" (in {len(f.logs)} logs)" if len(f.logs) > 1 else ""
            out += ["", f"{f.severity.upper()}  {f.rule.id}{place}: {f.sentence()}{more}"]
            out += [f"    {x.path}:{x.line}: {x.text}" for x in f.lines]
            out += [f"    remedy: {f.rule.remedy}", f"    source: {f.rule.source}"]
        for b in self.benign:
            but = f" The same log has {b.but} notes of failures." if b.but else ""
            out += ["", f"benign  {b.line.path}:{b.line.line}: {b.line.text}", f"    {b.text}{but}"]
        for needs, rules in self.missing().items():
            out += ["", f"not tested: {', '.join(rule.id for rule in rules)}", f"    needs {needs}"]
        return out

    def missing(self) -> dict[str, list[Rule]]:
        """What it takes to test the rules that could not be, with those rules."""
        found: dict[str, list[Rule]] = {}
        for rule in self.untested:
            found.setdefault(rule.needs, []).append(rule)
        return found


def _many(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def audit(lab: "Lab", campaign: str | None = None) -> Audit:
    """
    Holds the logs of a campaign against every rule.

    Args:
        campaign: Default: the only one in the store.

    Raises:
        UsageError: There is no such campaign, or several and none was named.
    """
    name = lab.the_campaign(campaign, runless=True)  # NCCL may write its lines into a log of their own
    facts = read_facts(lab, name)
    results = [(rule, rule.find(facts)) for rule in RULES]
    findings = [f for rule, hits in results for f in gather(rule, hits or ())]
    findings.sort(key=lambda f: SEVERITIES.index(f.severity))
    benign = _benign(facts)
    quoted = _quoted(lab, [x for f in findings for x in f.lines] + [b.line for b in benign])
    return Audit(
        campaign=_words_of(lab, name),
        findings=tuple(replace(f, lines=tuple(quoted[x] for x in f.lines)) for f in findings),
        benign=tuple(replace(b, line=quoted[b.line]) for b in benign),
        tested=tuple(rule for rule, hits in results if hits is not None),
        untested=tuple(rule for rule, hits in results if hits is None),
        logs=len(facts.logs),
        snapshot=hashlib.sha256("\n".join(sorted(log.log_id for log in facts.logs)).encode()).hexdigest(),
        hashes={log.path: log.log_id for log in facts.logs},
    )


def gather(rule: Rule, hits: Iterable[Hit]) -> list[Finding]:
    """One finding for all hits of a rule that say the same of the same fabric."""
    groups: dict[tuple[Any, ...], list[Hit]] = {}
    for hit in hits:
        fabric = hit.log.fabric.name if hit.log.fabric else None
        key = hit.severity or rule.severity, fabric, hit.what, tuple(sorted(map(repr, hit.numbers.items())))
        groups.setdefault(key, []).append(hit)
    return [
        Finding(
            rule=rule, severity=severity, fabric=fabric, what=what, numbers=found[0].numbers, lines=found[0].lines,
            logs=tuple(dict.fromkeys(hit.log.path for hit in found)),
        )
        for (severity, fabric, what, _numbers), found in groups.items()
    ]  # fmt: skip


def _benign(facts: Facts) -> list[Benign]:
    return [
        Benign(line=note.at, text=note.text, but=sum(len(facts.noted(code, note.log)) for code in _FAILURES))
        for note in facts.noted("benign_warnings")
    ]


# --- facts ----------------------------------------------------------------------------------------------------------


def read_facts(lab: "Lab", campaign: str) -> Facts:
    """What the store knows of a campaign, for the rules."""
    from rdmalab.counters import differences

    fabrics = {
        row["fabric"]: Fabric(row["fabric"], row["fabric_family"], row["mtu_bytes"], row["ports_per_node"])
        for row in lab.fabrics(campaign).iter_rows(named=True)
    }
    logs = {log.log_id: log for log in _logs(lab, campaign, fabrics)}
    ids = list(logs)
    return Facts(
        fabrics=fabrics, logs=tuple(logs.values()), notes=tuple(_notes(lab, ids, logs)),
        tests=tuple(_tests(lab, ids, logs)), readings=tuple(_readings(lab, ids, logs)),
        differences=tuple(differences(lab, campaign).iter_rows(named=True)),
    )  # fmt: skip


def _logs(lab: "Lab", campaign: str, fabrics: Mapping[str, Fabric]) -> list[Log]:
    rows = lab.sql(
        """SELECT log_id, m.path, m.fabric, l.transport_verdict, l.transport_gdr, l.transport_fallback_reason,
                  l.transport_evidence
           FROM (SELECT log_id, min(path) AS path, min(declared) AS fabric FROM raw.members WHERE campaign = $c
                 GROUP BY log_id
                 UNION SELECT log_id, min(path), min(fabric) FROM raw.places WHERE campaign = $c GROUP BY log_id) m
           JOIN raw.logs l USING (log_id) ORDER BY m.path""",
        c=campaign,
    )
    return [
        Log(log_id, path, fabrics.get(fabric or ""), verdict, gdr, reason, _evidence(log_id, path, evidence or ""))
        for log_id, path, fabric, verdict, gdr, reason, evidence in rows.iter_rows()
    ]


def _evidence(log_id: str, path: str, text: str) -> tuple[Line, ...]:
    """The lines ``61: node-a:... via NET/IB/0`` that prove the transport."""
    parts = re.findall(r"^(\d+): (.*)$", text, re.MULTILINE)
    return tuple(Line(log_id, path, int(number), said) for number, said in parts)


def _notes(lab: "Lab", ids: Sequence[str], logs: Mapping[str, Log]) -> list[Noted]:
    rows = lab.sql(
        "SELECT log_id, line, code, text FROM notes WHERE log_id IN (SELECT unnest($ids)) ORDER BY log_id, line",
        ids=ids,
    )
    return _by_path(Noted(logs[log_id], line, code, text) for log_id, line, code, text in rows.iter_rows())


def _tests(lab: "Lab", ids: Sequence[str], logs: Mapping[str, Log]) -> list[Test]:
    rows = lab.sql(
        """SELECT log_id, line, run_id, device, mtu_bytes, gid_index, pair_key, library_version FROM raw.runs
           WHERE log_id IN (SELECT unnest($ids)) ORDER BY log_id, ordinal""",
        ids=ids,
    )
    return _by_path(Test(logs[log_id], *rest) for log_id, *rest in rows.iter_rows())


def _readings(lab: "Lab", ids: Sequence[str], logs: Mapping[str, Log]) -> list[Read]:
    rows = lab.sql(
        """SELECT log_id, line, host, device, metric, value FROM raw.readings
           WHERE log_id IN (SELECT unnest($ids)) AND regexp_full_match(metric, $metrics) AND value IS NOT NULL
           ORDER BY log_id, line""",
        ids=ids,
        metrics=_METRICS,
    )
    return _by_path(Read(logs[log_id], *rest) for log_id, *rest in rows.iter_rows())


def _by_path(facts: Iterable[Fact]) -> list[Fact]:
    """In the order of the paths, within a log in the order of the query: the first of them is quoted."""
    return sorted(facts, key=lambda fact: fact.log.path)


def _words_of(lab: "Lab", campaign: str) -> dict[str, Any]:
    """The head of the campaign file; only the name where there is none."""
    frame = lab.sql("SELECT * FROM raw.campaigns WHERE campaign = $c", c=campaign)
    labels = {row["fabric"]: row["label"] or row["fabric"] for row in lab.fabrics(campaign).iter_rows(named=True)}
    empty = {"campaign": campaign, "title": None, "customer": None, "synthetic": False, "root": None}
    return empty | (frame.row(0, named=True) if len(frame) else {}) | {"labels": labels}


# --- lines ----------------------------------------------------------------------------------------------------------


def _quoted(lab: "Lab", lines: Iterable[Line]) -> dict[Line, Line]:
    """Each line with its literal text; of a log that is gone or changed, with what the store keeps of it."""
    by_log: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        by_log.setdefault((line.log_id, line.path), []).append(line)
    if not by_log:
        return {}
    files = lab.sql(
        """SELECT path, coalesce(any_value(p.file), path) AS file, any_value(l.sha256) AS sha256
           FROM (SELECT unnest($ids) AS log_id, unnest($paths) AS path) w JOIN raw.logs l USING (log_id)
           LEFT JOIN raw.paths p USING (log_id, path) GROUP BY log_id, path""",
        ids=[log_id for log_id, _path in by_log],
        paths=[path for _log_id, path in by_log],
    )
    known = {path: (file, sha256) for path, file, sha256 in files.iter_rows()}
    out: dict[Line, Line] = {}
    for (_log_id, path), wanted in by_log.items():
        text = text_of(path, *known[path])
        numbers = {n for line in wanted if line.line for n in _places(line)}
        literal = {} if isinstance(text, str) else lines_of(text, numbers)
        out |= {line: _literal(line, literal) for line in wanted}
    return out


def _places(line: Line) -> range:
    """The numbers under which the line may stand."""
    first = line.line or 1
    return range(first, first + (_SEEN_BELOW if line.seek else 1))


def _literal(line: Line, literal: Mapping[int, str]) -> Line:
    value = line.text.rpartition(" ")[2]
    for number in _places(line):
        text = literal.get(number, "")
        if text and (line.seek is None or (line.seek in text and re.search(rf"\b{re.escape(value)}\b", text))):
            return line._replace(line=number, text=_cut(text, line.text.partition(":")[0]), seek=None)
    return line


def _cut(text: str, word: str) -> str:
    """A line that fits on a page; of a long one the part around *word*, where it holds it."""
    if len(text) <= _LONGEST:
        return text
    start = max(0, text.find(word) - _LONGEST // 3)
    return f"{'... ' if start else ''}{text[start : start + _LONGEST]} ..."
