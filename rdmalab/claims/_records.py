"""What a claim is, and what is found of it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rdmalab.errors import UsageError
from rdmalab.expression import Value

SCHEMA = "rdmalab.claims/1"
VERDICTS = (
    "physically impossible", "arithmetically wrong", "contradicted by spec", "unit-confused", "implausible",
    "misleading", "unverifiable without a log", "consistent",
)  # fmt: skip
IMPOSSIBLE, WRONG, CONTRADICTED, CONFUSED, IMPLAUSIBLE, MISLEADING, OPEN, CONSISTENT = VERDICTS
EVIDENCE = ("confirmed", "refuted", "inconclusive", "no evidence")
KINDS = ("measured", "spec", "price", "derived", "advice")
SCALE_UP = ("nvlink", "xgmi", "hccs", "pcie")
FAMILIES = ("tcp", "roce2", "infiniband", "iwarp", "efa", "slingshot", *SCALE_UP)

TIME_US = {
    "ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6, "h": 3.6e9, "day": 8.64e10, "month": 2.628e12, "year": 3.1536e13,
}  # fmt: skip
GBYTE_S = {f"{p}B/s": f / 1e9 for p, f in {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.items()}
GBYTE_S |= {f"{p}b/s": f / 8e9 for p, f in {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.items()}
GBYTE_S |= {f"{p}iB/s": 1024.0**n / 1e9 for n, p in enumerate("KMGT", 1)}
BYTES = {"B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"}
PRICES = {f"{c}/{per}" for c in ("CNY", "USD") for per in ("month", "node-month", "GPU-month", "GPU-hour")}
_PLAIN = {"x", "%", "points", "1", "ranks", "ports", "steps", "cores", "W", "CNY", "USD", "req/s", "token/s"}
UNITS = (*TIME_US, *GBYTE_S, *sorted(BYTES), *sorted(PRICES), *sorted(_PLAIN))

METRICS = (
    "busbw", "algbw", "wire_min", "bw", "latency", "msg_rate", "fraction_of_line", "fraction_of_bound", "implied_ranks",
    "util", "comm_time", "comm_share", "rate", "scaling_eff", "counter", "stall", "price", "fact", "ratio", "gain",
    "reduction", "points", "count", "steps", "memory", "power", "throughput", "share",
)  # fmt: skip
NUMBER = (int, float)

_UNSETTLED = "what the text says settles it neither way: a log is needed"


class ClaimsError(UsageError):
    """A claims file cannot be used; the message names the file and the line."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A metric as written: ``busbw(op=all_reduce)`` or a comparison of two of them."""

    name: str
    args: tuple["Call | str", ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    def uses(self, *wanted: str) -> bool:
        """Whether this call or one inside it is named so."""
        return self.name in wanted or any(isinstance(a, Call) and a.uses(*wanted) for a in self.args)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One sentence of the source. ``low`` and ``high`` bound what it says, in its unit; None where it has no number."""

    id: str
    line: int
    text: str
    kind: str
    where: str = ""
    system: Mapping[str, Any] = field(default_factory=dict)
    fabric: Mapping[str, Any] = field(default_factory=dict)
    metric: Call | None = None
    baseline: str | Mapping[str, Any] | None = None
    low: float | None = None
    high: float | None = None
    slack: float = 0.0
    printed: str = ""
    unit: str = ""
    asserts: tuple[str, str, str] | None = None
    convention: Mapping[str, str] = field(default_factory=dict)
    derive: str = ""
    formula: str = ""
    computed: float | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    setting: Mapping[str, Any] = field(default_factory=dict)
    audit: Mapping[str, Any] = field(default_factory=dict)

    def stated(self, key: str) -> str | None:
        """A convention, None where the text leaves it open."""
        word = self.convention.get(key, "unstated")
        return None if word == "unstated" else word

    @property
    def number(self) -> Value | None:
        """The number that other claims see: a value, both ends of a range, or the one bound that is stated."""
        ends = [e for e in (self.low, self.high) if e is not None and math.isfinite(e)]
        return None if not ends else ends[0] if len(set(ends)) == 1 else (ends[0], ends[1])

    def holds(self, truth: float, rel: float | None = None) -> bool:
        """Whether *truth* is what the claim says, within its tolerance, or within the share *rel*."""
        low, high = self.low or 0.0, self.high or 0.0
        around = [self.slack if rel is None else abs(e) * rel if math.isfinite(e) else 0.0 for e in (low, high)]
        return low - around[0] - 1e-9 * abs(truth) <= truth <= high + around[1] + 1e-9 * abs(truth)

    def scaled(self, units: Mapping[str, float]) -> tuple[float, float] | None:
        """The least and the greatest number in the base of *units*, None in another unit."""
        if self.unit not in units or self.low is None or self.high is None:
            return None
        return self.low * units[self.unit], self.high * units[self.unit]


@dataclass(frozen=True, kw_only=True)
class Document:
    """A claims file, read and checked."""

    path: Path
    source: Mapping[str, Any]
    claims: tuple[Claim, ...]
    sha256: str = ""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one check found; ``flag`` is V (read in the source), D (derived here) or R (recalled)."""

    check: str
    formula: str
    result: str
    computed: float | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    flag: str = "D"
    verdict: str | None = None
    reading: str = ""
    missing: str | None = None


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """A claim with its findings; ``evidence`` is what logs say of it, kept apart from the first verdict."""

    claim: Claim
    findings: tuple[Finding, ...]
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @property
    def decisive(self) -> Finding | None:
        """The finding with the most severe verdict, the first of them."""
        found = [f for f in self.findings if f.verdict]
        return min(found, key=lambda f: VERDICTS.index(f.verdict or ""), default=None)

    @property
    def verdict(self) -> str:
        """A word of ``VERDICTS``; what no check settles stays open."""
        return (self.decisive.verdict if self.decisive else None) or OPEN

    @property
    def bad(self) -> bool:
        """Whether a reader must be stopped: impossible, wrong, or refuted by logs."""
        return self.verdict in (IMPOSSIBLE, WRONG) or self.evidence.get("verdict") == "refuted"

    def row(self) -> dict[str, Any]:
        """One JSON object; a number that is not known is None."""
        claim, by = self.claim, self.decisive
        stated = claim.formula or claim.derive
        own = next((f for f in self.findings if f.formula == stated), None)
        return {
            "id": claim.id, "verdict": self.verdict, "evidence_verdict": self.evidence.get("verdict", "no evidence"),
            "reading": (by.reading if by else "") or declared(claim),
            "formula": stated or (by.formula if by else None) or None,
            "computed": claim.computed if claim.formula else own.computed if own else by.computed if by else None,
            "text": claim.text, "stated": claim.printed, "unit": claim.unit or None, "line": claim.line,
            "decided_by": by.check if by else None, "because": by.result if by else _UNSETTLED,
            "missing": [f.missing for f in self.findings if f.missing],
            "checks": [{k: v for k, v in vars(f).items() if v not in (None, "")} for f in self.findings],
            "evidence": dict(self.evidence), "audit": {k: str(v) for k, v in claim.audit.items()} or None,
        }  # fmt: skip


def declared(claim: Claim) -> str:
    stated = [f"{key} {word}" for key, word in claim.convention.items() if word != "unstated"]
    return ", ".join(["as declared", *([claim.unit] if claim.unit else []), *stated])
