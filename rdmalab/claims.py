"""Claims: sentences of a vendor, written as TOML, held against arithmetic, each other, physics, facts and price.

:func:`load` reads and checks a claims file; :func:`audit` gives each claim its findings, one check after the other, and
the most severe of their verdicts. What the text does not decide is said so: a missing fact is named, never guessed. A
person's ruling (``audit`` in the file) is shown beside the verdict and never read by a check.
"""

import datetime
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice, product
from pathlib import Path
from typing import Any, NoReturn

from rdmalab import limits
from rdmalab.errors import UsageError, did_you_mean
from rdmalab.expression import ExpressionError, Value, evaluate, names
from rdmalab.model import COLLECTIVES
from rdmalab.units import parse_size

SCHEMA = "rdmalab.claims/1"
MOST_BYTES = 1_000_000
MOST_DEPTH = 100
MOST_DOTS = 20  # of one key; tomllib takes time in the square of them
VERDICTS = (
    "physically impossible", "arithmetically wrong", "contradicted by spec", "unit-confused", "implausible",
    "misleading", "unverifiable without a log", "consistent",
)  # fmt: skip
IMPOSSIBLE, WRONG, CONTRADICTED, CONFUSED, IMPLAUSIBLE, MISLEADING, OPEN, CONSISTENT = VERDICTS
EVIDENCE = ("confirmed", "refuted", "inconclusive", "no evidence")
KINDS = ("measured", "spec", "price", "derived", "advice")
_SCALE_UP = ("nvlink", "xgmi", "hccs", "pcie")
FAMILIES = ("tcp", "roce2", "infiniband", "iwarp", "efa", "slingshot", *_SCALE_UP)

_TIME_US = {
    "ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6, "h": 3.6e9, "day": 8.64e10, "month": 2.628e12, "year": 3.1536e13,
}  # fmt: skip
_GBYTE_S = {f"{p}B/s": f / 1e9 for p, f in {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.items()}
_GBYTE_S |= {f"{p}b/s": f / 8e9 for p, f in {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.items()}
_GBYTE_S |= {f"{p}iB/s": 1024.0**n / 1e9 for n, p in enumerate("KMGT", 1)}
_BYTES = {"B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"}
_PRICES = {f"{c}/{per}" for c in ("CNY", "USD") for per in ("month", "node-month", "GPU-month", "GPU-hour")}
_PLAIN = {"x", "%", "points", "1", "ranks", "ports", "steps", "cores", "W", "CNY", "USD", "req/s", "token/s"}
UNITS = (*_TIME_US, *_GBYTE_S, *sorted(_BYTES), *sorted(_PRICES), *sorted(_PLAIN))

METRICS = (
    "busbw", "algbw", "wire_min", "bw", "latency", "msg_rate", "fraction_of_line", "fraction_of_bound", "implied_ranks",
    "util", "comm_time", "comm_share", "rate", "scaling_eff", "counter", "stall", "price", "fact", "ratio", "gain",
    "reduction", "points", "count", "steps", "memory", "power", "throughput", "share",
)  # fmt: skip
_COMPARISONS = ("ratio", "gain", "reduction", "points")
_EXPECTATIONS = ("value", "as_printed", "range", "at_least", "at_most", "asserts")
_NUMBER = (int, float)
_TEXTS: dict[str, Any] = {"vendor": str, "language": str, "file": str, "url": str, "id": str, "conditions": str}
# What each table may hold: a type, the words allowed, or a table of its own.
_SYSTEM = {"gpu": str, "domains": int, "gpus_per_domain": int, "nic": str, "nic_ports": int, "pcie": str}
_FABRIC = {"family": FAMILIES, "gen": (str, int), "rate_gbps": _NUMBER, "mtu": int, "ip": (str, int)}
_CLAIM: dict[str, Any] = {
    "id": str, "where": str, "text": str, "kind": KINDS, "system": _SYSTEM, "fabric": _FABRIC, "metric": str,
    "baseline": (str, dict), "value": _NUMBER, "as_printed": str, "range": list, "at_least": _NUMBER,
    "at_most": _NUMBER, "asserts": str, "unit": UNITS,
    "convention": {
        "direction": ("one", "both", "unstated"), "bandwidth": ("busbw", "algbw", "wire", "logical", "unstated"),
        "latency": ("one-way", "round-trip", "unstated"),
        "scope": ("message", "collective", "step", "token", "request", "unstated"),
    },
    "tolerance": {"rel": _NUMBER, "abs": _NUMBER, "points": _NUMBER}, "derive": str, "formula": str,
    "computed": _NUMBER, "evidence": {"where": dict, "pair_by": (str, list), "min_runs": int, "confidence": _NUMBER},
    "setting": dict,
    "audit": {"verdict": VERDICTS, "reason": str, "by": str, "on": (str, datetime.date)},
}  # fmt: skip
_DOCUMENT: dict[str, Any] = {
    "schema": (SCHEMA,), "source": _TEXTS | {"read_on": (str, datetime.date)}, "claim": list,
}  # fmt: skip


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
            "reading": (by.reading if by else "") or _declared(claim),
            "formula": stated or (by.formula if by else None) or None,
            "computed": claim.computed if claim.formula else own.computed if own else by.computed if by else None,
            "text": claim.text, "stated": claim.printed, "unit": claim.unit or None, "line": claim.line,
            "decided_by": by.check if by else None, "because": by.result if by else _UNSETTLED,
            "missing": [f.missing for f in self.findings if f.missing],
            "checks": [{k: v for k, v in vars(f).items() if v not in (None, "")} for f in self.findings],
            "evidence": dict(self.evidence), "audit": {k: str(v) for k, v in claim.audit.items()} or None,
        }  # fmt: skip


# Reading ----------------------------------------------------------------------------------------------------------


def load(path: str | Path) -> Document:
    """
    Reads and checks a claims file (C0).

    Raises:
        ClaimsError: The file cannot be read, or something in it is wrong; the message names the line.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise ClaimsError(f"{path}: larger than 1 MB, split it into one file per source")
        text = raw.decode("utf-8-sig")
        for number, line in enumerate(text.replace(" ", "").replace("\t", "").split("\n"), 1):
            if any(word.count(".") > MOST_DOTS for word in re.findall(r"[\w.\"'-]+", line)):
                raise ClaimsError(f"{path}:{number}: a key of more than {MOST_DOTS} parts")
        return _Reader(path, text).document(tomllib.loads(text))
    except OSError as error:
        raise ClaimsError(f"{path}: {str(error.strerror).lower()}") from None
    except UnicodeDecodeError as error:
        raise ClaimsError(f"{path}:{error.object.count(10, 0, error.start) + 1}: not UTF-8 text") from None
    except RecursionError:
        raise ClaimsError(f"{path}: nested too deeply") from None
    except ValueError as error:  # TOMLDecodeError, and whole numbers of thousands of digits
        where = re.search(r"at line (\d+)", str(error))
        what = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "a number has too many digits"
        raise ClaimsError(f"{path}{f':{where[1]}' if where else ''}: not valid TOML: {what}") from None


class _Reader:
    """Turns the TOML document into records; every complaint carries the line of the word it is about."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.lines = path, text.split("\n")
        self.heads = [n for n, line in enumerate(self.lines, 1) if re.match(r"\s*\[\[\s*claim\s*]]", line)]

    def document(self, document: dict[str, Any]) -> Document:
        self.table(document, _DOCUMENT, "the file", None)
        for key in ("schema", "source", "claim"):
            if key not in document:
                self.fail(None, key, f"the file needs '{key}'")
        if not all(isinstance(t, dict) for t in document["claim"]):
            self.fail(None, "claim", "write each claim as a table of its own: [[claim]]")
        self.table(document["source"], _DOCUMENT["source"], "[source]", None)
        tables: list[dict[str, Any]] = document["claim"]
        claims = tuple(self.claim(i, table) for i, table in enumerate(tables))
        places = self.places(claims)
        for i, claim in enumerate(claims):
            self.references(i, claim, places)
        numbers = {c.id: c.number for c in claims if c.number is not None}
        for i, claim in enumerate(claims):
            self.formulas(i, claim, numbers)
        self.cycles(claims, places)
        return Document(path=self.path, source=document["source"], claims=claims)

    def table(self, table: Any, keys: Mapping[str, Any], name: str, index: int | None) -> None:
        """Refuses unknown keys, wrong types and unlisted words."""
        for key, value in table.items():
            if key not in keys:
                self.fail(index, key, f"unknown key '{key}' in {name}.{did_you_mean(key, list(keys))}")
            self.value(key, value, keys[key], index)

    def value(self, key: str, value: Any, wanted: Any, index: int | None) -> None:
        if isinstance(wanted, dict):
            if not isinstance(value, dict):
                self.fail(index, key, f"{key} wants a table")
            self.table(value, wanted, key, index)
        elif isinstance(wanted, tuple) and isinstance(wanted[0], str):
            if value not in wanted:
                self.fail(index, key, f"unknown {key} {value!r:.60}.{did_you_mean(str(value)[:60], wanted)}")
        elif not isinstance(value, wanted) or isinstance(value, bool):
            kinds = wanted if isinstance(wanted, tuple) else (wanted,)
            words = {str: "a text", int: "a whole number", float: "a number", list: "a list", dict: "a table"}
            self.fail(
                index, key, f"{key} wants {' or '.join(words.get(k, 'a date') for k in kinds)}, not {value!r:.60}"
            )
        elif isinstance(value, int | float):
            if not abs(value) < 1e30:
                self.fail(index, key, f"{key} is no number of any use")
            if value <= 0 and key in ("domains", "gpus_per_domain", "nic_ports", "rate_gbps", "mtu", "min_runs"):
                self.fail(index, key, f"{key} must be greater than 0")

    def claim(self, index: int, table: dict[str, Any]) -> Claim:
        """One table as a record."""
        self.table(table, _CLAIM, "[[claim]]", index)
        for key in ("id", "text", "kind"):
            if not table.get(key):
                self.fail(index, "[[claim]]", f"[[claim]] needs '{key}'")
        if not re.fullmatch(r"[A-Za-z0-9._-]+", table["id"]):
            self.fail(index, "id", f"id '{table['id']:.60}' may hold letters, digits, '.', '_' and '-'")
        stated = [key for key in _EXPECTATIONS if key in table]
        if len(stated) != 1:
            self.fail(index, "id", f"{table['id']} needs exactly one of {', '.join(_EXPECTATIONS)}")
        if stated[0] != "asserts" and not {"unit", "metric"} <= set(table):
            self.fail(index, stated[0], f"a number needs a {'metric' if 'unit' in table else 'unit'}")
        given = {k: table[k] for k in _CLAIM if k in table and k not in (*_EXPECTATIONS, "metric", "tolerance")}
        metric = self.metric(index, table["metric"]) if "metric" in table else None
        line = self.heads[index] if index < len(self.heads) else 1
        return Claim(line=line, metric=metric, **given, **self.expectation(index, table, stated[0]))

    def expectation(self, index: int, table: dict[str, Any], key: str) -> dict[str, Any]:
        """The bounds that the sentence states, with its tolerance in its own unit."""
        value = table[key]
        if key == "asserts":
            rule = re.fullmatch(r"\s*([A-Za-z][\w.-]*)\s*(==|!=|<=|>=|<|>)\s*([^<>=!]+?)\s*", value)
            return {"asserts": rule.groups(), "printed": value} if rule else self.fail(
                index, key, "asserts wants a fact, a comparison and a word: nccl.net.default == Socket"
            )  # fmt: skip
        if key == "range":
            if len(value) != 2 or not all(type(v) in _NUMBER and abs(v) < 1e30 for v in value) or value[0] > value[1]:
                self.fail(index, key, "range wants two numbers, the smaller first")
            low, high, printed = float(value[0]), float(value[1]), f"{value[0]} to {value[1]}"
        elif key == "as_printed":
            if not re.fullmatch(r"-?\d{1,15}(\.\d{1,15})?", value):
                self.fail(index, key, f"as_printed wants the digits of one number, not {value!r:.60}")
            low = high = float(value)
            printed = value
        else:
            low = -math.inf if key == "at_most" else float(value)
            high = math.inf if key == "at_least" else float(value)
            printed = {"at_most": "at most ", "at_least": "at least "}.get(key, "") + f"{value:g}"
        size = max(abs(e) for e in (low, high) if math.isfinite(e))
        decimals = len(printed.partition(".")[2]) if key == "as_printed" else 0
        slack = 0.5 * 10.0**-decimals if key == "as_printed" else 0.02 * size
        if stated := table.get("tolerance"):
            slack = max(stated.get("rel", 0) * size, stated.get("abs", 0), stated.get("points", 0))
        return {"low": low, "high": high, "slack": slack, "printed": printed}

    def metric(self, index: int, text: str) -> Call:
        """Reads ``name(argument, key=word)``; names are those of the vocabulary."""
        try:
            call = _call(text, 0)
        except ValueError as error:
            self.fail(index, "metric", f"metric {text!r:.80}: {error}")
        return call if isinstance(call, Call) else self.fail(index, "metric", f"metric {text!r:.80} is no call")

    def places(self, claims: tuple[Claim, ...]) -> dict[str, int]:
        """The index of each id."""
        places: dict[str, int] = {}
        for i, claim in enumerate(claims):
            if claim.id in places:
                self.fail(i, "id", f"id '{claim.id}' is used twice")
            places[claim.id] = i
        return places

    def references(self, index: int, claim: Claim, places: Mapping[str, int]) -> None:
        """Every claim that is named exists; comparisons of claims that a number needs have one."""
        if isinstance(claim.baseline, str) and claim.baseline not in places:
            more = did_you_mean(claim.baseline, list(places))
            self.fail(index, "baseline", f"baseline '{claim.baseline:.60}' is no claim.{more}")
        if isinstance(claim.baseline, dict):
            self.table(claim.baseline, {"system": _SYSTEM, "fabric": _FABRIC}, "baseline", index)

    def formulas(self, index: int, claim: Claim, values: Mapping[str, Value]) -> None:
        """Both formulas have a value, and the one that is written beside ``formula`` is right."""
        for key, text in (("derive", claim.derive), ("formula", claim.formula)):
            try:
                result = evaluate(text, values) if text else None
            except ExpressionError as error:
                self.fail(index, key, f"{key}: {error}")
            if key == "formula" and (result is None) != (claim.computed is None):
                self.fail(index, "id", "formula and computed belong together")
            if key == "formula" and result is not None and not math.isclose(result, claim.computed or 0, rel_tol=1e-5):
                self.fail(index, "computed", f"the formula gives {result:.6g}, not {claim.computed:g}")

    def cycles(self, claims: tuple[Claim, ...], places: Mapping[str, int]) -> None:
        """Refuses claims that rest on themselves, and chains that nobody can follow."""
        depth: dict[str, int] = {}
        for start in claims:
            path, stack = {start.id}, [(start.id, iter(names(start.derive)))]
            while stack:
                id_, rest = stack[-1]
                below = next((n for n in rest if n not in depth), None)
                if below is None:
                    depth[id_] = 1 + max((depth[n] for n in names(claims[places[id_]].derive)), default=0)
                    path.discard(stack.pop()[0])
                    if depth[id_] > MOST_DEPTH:
                        self.fail(places[id_], "derive", f"{id_} rests on a chain of more than {MOST_DEPTH} claims")
                    continue
                if below in path:
                    self.fail(places[id_], "derive", f"{id_} and {below} are derived from each other")
                if len(path) > MOST_DEPTH:
                    self.fail(
                        places[start.id], "derive", f"{start.id} rests on a chain of more than {MOST_DEPTH} claims"
                    )
                path.add(below)
                stack.append((below, iter(names(claims[places[below]].derive))))

    def fail(self, index: int | None, key: str, message: str) -> NoReturn:
        """Raises with the line of *key* in the claim of that index, else in the head of the file."""
        start = 0 if index is None else self.heads[index] - 1 if index < len(self.heads) else 0
        end = next((h - 1 for h in self.heads if h - 1 > start), len(self.lines)) if index is not None else None
        pattern = re.compile(rf"(?:^|[\s{{,\[.])\"?{re.escape(key)}\"?\s*(?:=|\])")
        found = (n for n, line in enumerate(self.lines[start:end], start + 1) if pattern.search(line))
        raise ClaimsError(f"{self.path}:{next(found, start + 1)}: {message}")


def _call(text: str, depth: int) -> Call | str:
    text = text.strip()
    head = re.match(r"([a-z_]+)\((.*)\)\Z", text, re.DOTALL)
    if head is None:
        if re.fullmatch(r"[\w ./:+-]{1,60}", text):
            return text
        raise ValueError("write name(argument, key=word)")
    if depth > 10 or len(text) > 500:
        raise ValueError("nested too deeply or too long")
    if head[1] not in METRICS:
        raise ValueError(f"unknown metric '{head[1]}'.{did_you_mean(head[1], METRICS)}")
    args, options = [], {}
    for part in _split(head[2]):
        key, equals, word = part.partition("=")
        if equals and re.fullmatch(r"\s*[a-z_]+\s*", key):
            options[key.strip()] = word.strip()
        else:
            args.append(_call(part, depth + 1))
    if "op" in options and options["op"] not in COLLECTIVES:
        raise ValueError(f"unknown op '{options['op']}'.{did_you_mean(options['op'], COLLECTIVES)}")
    return Call(name=head[1], args=tuple(args), options=options)


def _split(text: str) -> list[str]:
    """The parts between commas that stand in no inner parentheses."""
    parts, level = [""], 0
    for letter in text:
        level += (letter == "(") - (letter == ")")
        if letter == "," and not level:
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in parts if part.strip()]


# Judging ----------------------------------------------------------------------------------------------------------


class Book:
    """A document as the checks see it: numbers by id, and what must be compared with each other in groups."""

    def __init__(self, document: Document) -> None:
        self.claims = {claim.id: claim for claim in document.claims}
        self.numbers = {claim.id: claim.number for claim in document.claims if claim.number is not None}
        self.times: dict[str | None, list[Claim]] = {}
        self.alike: dict[str, list[Claim]] = {}
        for claim in document.claims:
            if _is_time(claim) and claim.stated("scope") in (None, "message"):
                self.times.setdefault(claim.fabric.get("family"), []).append(claim)
            if claim.metric and claim.low is not None and (claim.system or claim.fabric):
                self.alike.setdefault(_sameness(claim), []).append(claim)
        for family, group in self.times.items():  # who is far from any of them is far from one of these two
            ends = {c.id: _finite_ends(c.scaled(_TIME_US) or (0.0, 0.0)) for c in group}
            self.times[family] = [min(group, key=lambda c: ends[c.id][1]), max(group, key=lambda c: ends[c.id][0])]


def _is_time(claim: Claim) -> bool:
    return bool(claim.metric and claim.metric.name in ("latency", "comm_time") and claim.unit in _TIME_US)


def audit(document: Document, evidence: Callable[[Claim], Mapping[str, Any] | None] | None = None) -> list[Judgement]:
    """
    Judges every claim of a document, in its order.

    Args:
        document: What :func:`load` returned.
        evidence: What logs say of a claim, as a mapping with at least ``verdict``, a word of ``EVIDENCE``; None where
            no run matches. Without it every claim has "no evidence".
    """
    book = Book(document)
    return [
        Judgement(
            claim=claim,
            findings=tuple(finding for check in CHECKS for finding in check(claim, book)),
            evidence=(evidence(claim) if evidence else None) or {"verdict": "no evidence"},
        )
        for claim in document.claims
    ]


def check_fact(claim: Claim, book: Book) -> Iterator[Finding]:
    """C1: a number of a data sheet, or the ratio of two, in the declared reading or in a named other one."""
    call = claim.metric
    if claim.low is None or not call or not call.uses("fact"):
        return
    both = 2.0 if claim.stated("direction") == "both" and call.name == "fact" else 1.0
    facts = [_fact(a) for a in (call.args if call.name == "ratio" else (call,)) if isinstance(a, Call)]
    if None in facts or not facts:
        yield _open("C1", f"no packaged fact for {call.name}", "a fact of this name")
        return
    known = [f for f in facts if f]
    truth = known[0].value * both / (known[1].value if len(known) > 1 else 1.0)
    formula = " / ".join(f"{f.value:g}" for f in known)
    factors = {"both directions summed": 2.0, "bits for bytes": 8.0, "binary for decimal": 1.048576}
    links = known[0].links
    if links > 1:
        factors |= {f"all {links} links": float(links), f"all {links} links, both directions summed": 2.0 * links}
    yield _compared(
        "C1", claim, truth, formula, factors if known[0].is_rate else {}, CONTRADICTED, known[0].source, known[0].flag
    )


def check_scope(claim: Claim, book: Book) -> Iterator[Finding]:
    """C1: a latency without scope, far from other latencies that the document gives for the same fabric."""
    mine = claim.scaled(_TIME_US)
    if not claim.metric or claim.metric.name != "latency" or claim.stated("scope") or mine is None:
        return
    for other in book.times.get(claim.fabric.get("family"), []):
        theirs = other.scaled(_TIME_US)
        if theirs is None or other.id == claim.id:
            continue
        (least, most), (low, high) = _finite_ends(mine), _finite_ends(theirs)
        apart = max(low / most if most else 0.0, least / high if high else 0.0)
        if apart >= 100:
            yield Finding(
                check="C1", formula=f"{max(low, least):g} / {min(high, most):g}", computed=apart, verdict=CONFUSED,
                inputs={claim.id: claim.printed, other.id: other.printed}, source="the document itself",
                reading="message, collective or request: not stated",
                result=f"{apart:.4g} times apart from {other.id} ({other.printed} {other.unit}), scope unstated",
            )  # fmt: skip
            return


def check_request(claim: Claim, book: Book) -> Iterator[Finding]:
    """C1: the time of a whole answer that would hold fewer than ten tokens is the time of a token."""
    base = book.claims.get(claim.baseline) if isinstance(claim.baseline, str) else None
    mine, theirs = claim.scaled(_TIME_US), base.scaled(_TIME_US) if base else None
    if not base or claim.stated("scope") != "request" or base.stated("scope") != "token" or not mine or not theirs:
        return
    tokens = _finite_ends(mine)[1] / (_finite_ends(theirs)[0] or math.inf)
    yield Finding(
        check="C1", formula=f"{_finite_ends(mine)[1]:g} / {_finite_ends(theirs)[0]:g}", computed=tokens,
        inputs={claim.id: claim.printed, base.id: base.printed}, source="the document itself",
        verdict=CONFUSED if tokens < 10 else None, reading="per token, not per request" if tokens < 10 else "",
        result=f"{tokens:.3g} tokens in an answer, at one pass per token",
    )  # fmt: skip


def check_derive(claim: Claim, book: Book) -> Iterator[Finding]:
    """C2: the number that follows from other numbers; wrong only if it is so for all that those numbers may be."""
    if not claim.derive or claim.low is None:
        return
    truth = evaluate(claim.derive, book.numbers)
    used = {n: book.claims[n].printed for n in names(claim.derive)}
    found = _compared("C2", claim, truth, claim.derive, _factors(claim), WRONG, "the document itself", "D", used)
    if found.verdict != CONSISTENT and _may_hold(claim, book):
        found = replace(
            found, verdict=OPEN, reading="", result=f"{found.result}, open within what its inputs leave open"
        )
    yield found


def _may_hold(claim: Claim, book: Book) -> bool:
    """Whether the claim holds for some values of its inputs, inside their tolerances or beyond a one-sided bound."""
    used = [book.claims[n] for n in names(claim.derive)]
    for values in islice(product(*(_leeway(c) for c in used)), 64):
        try:
            if claim.holds(evaluate(claim.derive, dict(zip((c.id for c in used), values, strict=True)))):
                return True
        except ExpressionError:
            continue
    return False


def _leeway(claim: Claim) -> list[Value]:
    number, slack = claim.number, claim.slack
    if isinstance(number, tuple):
        return [(number[0] - slack, number[1] - slack), (number[0] + slack, number[1] + slack)]
    if number is None:
        return []
    beyond = (1.5, 2.0, 10.0) if claim.high == math.inf else (0.67, 0.5, 0.1) if claim.low == -math.inf else ()
    return [number - slack, number + slack, *(number * f for f in beyond)]


def check_alike(claim: Claim, book: Book) -> Iterator[Finding]:
    """C3: the same metric of the same system and fabric, with numbers that exclude each other."""
    for other in book.alike.get(_sameness(claim), ())[:50] if claim.low is not None else ():
        if other.id != claim.id and (_above(claim, other) or _above(other, claim)):
            yield Finding(
                check="C3", formula=f"{claim.printed} against {other.printed}", verdict=MISLEADING,
                inputs={claim.id: claim.printed, other.id: other.printed}, source="the document itself",
                result=f"{other.id} says {other.printed} {other.unit} of the same thing; a person has to confirm it",
            )  # fmt: skip
            return


def check_collective(claim: Claim, book: Book) -> Iterator[Finding]:
    """C4: the largest busbw that ranks, domains and ports allow; a missing fact is asked for, not guessed."""
    mine = claim.scaled(_GBYTE_S)
    if not claim.metric or claim.metric.name not in ("busbw", "algbw") or mine is None:
        return
    plain, reduced = _collective_limit(claim, False), _collective_limit(claim, True)
    if plain.gbyte_s is None or reduced.gbyte_s is None:
        word = _MISSING.get(plain.missing or "", plain.missing or "")
        yield _open("C4", f"no bound: state {word}", word)
        return
    factor = _bus_factor(claim) if claim.metric.name == "algbw" or claim.stated("bandwidth") == "algbw" else 1.0
    value, scale = mine[0] * factor, _GBYTE_S[claim.unit]
    if claim.stated("bandwidth") in ("logical", "wire") or not math.isfinite(value):
        yield _open("C4", "bandwidth that is not busbw or algbw has no bound here", "bandwidth")
        return
    yield _bounded(claim, value, claim.slack * scale * factor, plain, reduced, f"busbw, one direction, {claim.unit}")


def check_link(claim: Claim, book: Book) -> Iterator[Finding]:
    """C4: the payload rate of the ports, in the looser direction where none is stated."""
    mine, system, fabric = claim.scaled(_GBYTE_S), claim.system, claim.fabric
    if not claim.metric or claim.metric.name != "bw" or mine is None or not math.isfinite(mine[0]):
        return
    if fabric.get("family") in _SCALE_UP or "of" in claim.metric.options:
        return
    ports = system.get("nic_ports")
    limit = limits.point_to_point_limit(
        _family(claim), fabric.get("rate_gbps"), fabric.get("mtu"), ports=ports or 1,
        bidirectional=claim.stated("direction") != "one",
    )  # fmt: skip
    if limit.gbyte_s is None:
        word = _MISSING.get(limit.missing or "", limit.missing or "")
        yield _open("C4", f"no bound: state {word}", word)
        return
    found = _bounded(claim, mine[0], claim.slack * _GBYTE_S[claim.unit], limit, limit, "payload rate of the ports")
    yield found if ports or not found.verdict else _open("C4", "above one port: state nic_ports", "nic_ports")


def check_slot(claim: Claim, book: Book) -> Iterator[Finding]:
    """C4: the slot that the host has for its NIC; how many slots there are is seldom stated, so it forbids nothing."""
    mine = claim.scaled(_GBYTE_S)
    slot = claim.system.get("pcie") or (_extra(claim.system.get("gpu", "")) or {}).get("pcie")
    lanes = re.fullmatch(r"(Gen\d) x(\d+)", slot or "")
    if not claim.metric or claim.metric.name != "bw" or mine is None or not lanes or not math.isfinite(mine[0]):
        return
    cap = limits.link_rate_gbit_s("pcie", lanes[1], int(lanes[2]))
    scale = _GBYTE_S[claim.unit]
    if cap is not None and mine[0] - claim.slack * scale > cap / 8 * 1.002:
        yield Finding(
            check="C4", formula=f"{slot}: {cap:.6g} Gb/s", computed=cap / 8 / scale, inputs={"pcie": slot},
            source="torvalds/linux:drivers/pci/pci.h (PCIE_SPEED2MBS_ENC)", verdict=IMPLAUSIBLE,
            reading="one slot per host", result=f"one slot carries {cap:.4g} Gb/s, a second is not stated",
        )  # fmt: skip


def check_floor(claim: Claim, book: Book) -> Iterator[Finding]:
    """C4 and C5: no latency below one traversal of an adapter; a message within what public tests accept."""
    mine, family, scope = claim.scaled(_TIME_US), claim.fabric.get("family"), claim.stated("scope")
    if not claim.metric or claim.metric.name != "latency" or mine is None or family in _SCALE_UP:
        return
    if "of" in claim.metric.options and scope in (None, "message"):
        return  # of a part: a switch, a length of fibre
    floor = 0.5 * (2 if claim.stated("latency") == "round-trip" else 1)
    if mine[1] + claim.slack * _TIME_US[claim.unit] < floor * 0.998:
        if family is None:
            yield _open("C4", f"below {floor:g} us: state family", "family")
            return
        yield Finding(
            check="C4", formula=f"{floor:g} us", computed=floor, verdict=IMPOSSIBLE, flag="V", source=_ADAPTER,
            reading="one way or round trip", result=f"below one traversal of the best adapter, {floor:g} us",
        )  # fmt: skip
    elif scope == "message":
        yield _message_band(claim, mine, floor)
    elif scope == "collective":
        yield from _collective_latency(claim, mine)


def check_power(claim: Claim, book: Book) -> Iterator[Finding]:
    """C4: the supplies of a host carry at least its GPUs at their rated power."""
    if not claim.metric or claim.metric != Call(name="power") or claim.unit != "W" or claim.high is None:
        return
    gpu, count = _extra(claim.system.get("gpu", "")), claim.system.get("gpus_per_domain")
    if not gpu or not count or not gpu["tdp_w"]:
        yield _open("C4", "state gpu and gpus_per_domain", "gpu" if not gpu else "gpus_per_domain")
        return
    need = float(gpu["tdp_w"]) * count * claim.system.get("domains", 1)
    short = claim.high + claim.slack < need * 0.998
    yield Finding(
        check="C4", formula=f"{count * claim.system.get('domains', 1)} * {gpu['tdp_w']}", computed=need,
        inputs={"gpu": gpu["name"], "rated_w": gpu["tdp_w"]}, source=gpu["source"], flag=gpu["flag"],
        verdict=(IMPOSSIBLE if gpu["flag"] in ("V", "D") else IMPLAUSIBLE) if short else CONSISTENT,
        reading="sum of all supplies, GPUs at rated power", result=f"the GPUs alone are rated {need:g} W",
    )  # fmt: skip


def check_band(claim: Claim, book: Book) -> Iterator[Finding]:
    """C5: the share of the ports that public runs of large messages reach."""
    mine, rate, ports = claim.scaled(_GBYTE_S), claim.fabric.get("rate_gbps"), claim.system.get("nic_ports")
    size = claim.metric.options.get("size_min", "") if claim.metric else ""
    if not claim.metric or claim.metric.name != "busbw" or mine is None or not (rate and ports and size):
        return
    if claim.system.get("domains", 1) < 2 or _size(size) < 2**30 or not math.isfinite(mine[1]):
        return
    if claim.metric.options.get("op") not in _RINGS or claim.fabric.get("family") in ("tcp", "iwarp", *_SCALE_UP):
        return  # the public runs are of these operations over RDMA
    line = rate * ports / 8
    share = mine[1] / line
    yield Finding(
        check="C5", formula=f"{mine[1]:g} / {line:g} * 100", computed=share * 100, flag="V", source=_PUBLIC_RUNS,
        inputs={"line_gbyte_s": line}, verdict=MISLEADING if share < 0.5 else CONSISTENT,
        reading="busbw against the line rate of the ports",
        result=f"{share * 100:.1f} % of the line rate, "
        + ("below the 50 to 97 % of public runs: a person has to confirm it" if share < 0.5 else "as in public runs"),
    )  # fmt: skip


def check_domain_band(claim: Claim, book: Book) -> Iterator[Finding]:
    """C5: inside one domain, the share of the rate of a GPU that public runs reach."""
    mine, up = claim.scaled(_GBYTE_S), limits.scale_up(claim.system.get("gpu", ""))
    call = claim.metric
    if not call or call.name != "busbw" or call.options.get("op") != "all_reduce" or mine is None or up is None:
        return
    if claim.system.get("domains") != 1 or not math.isfinite(mine[0]):
        return
    most = 1.2 if up.nvls_possible else 0.9  # public runs: 0.93 to 1.07 with NVLS, 0.76 to 0.82 without
    share = mine[0] / up.gbyte_s
    yield Finding(
        check="C5", formula=f"{mine[0]:g} / {up.gbyte_s:g} * 100", computed=share * 100, flag="V",
        source=_PUBLIC_RUNS,
        verdict=IMPLAUSIBLE if share > most else None, reading="busbw against the scale-up rate of a GPU",
        result=f"{share * 100:.1f} % of {up.gbyte_s:g} GB/s" + (", above public runs" if share > most else ""),
    )  # fmt: skip


def check_speedup(claim: Claim, book: Book) -> Iterator[Finding]:
    """C5: how much RDMA gained over sockets on the same nodes in public runs, whatever the size."""
    call, other = claim.metric, claim.baseline
    against = book.claims[other].fabric if isinstance(other, str) else (other or {}).get("fabric", {})
    if not call or call.name != "ratio" or claim.low is None or against.get("family") != "tcp" or claim.unit != "x":
        return
    if call.uses("latency", "busbw", "algbw") and claim.low > 22.6 * 1.03:
        yield Finding(
            check="C5", formula="122.57 / 5.43", computed=122.57 / 5.43, verdict=IMPLAUSIBLE, flag="V",
            source="eth-cscs/cscs-docs:docs/software/communication/nccl.md",
            result="public runs of the same nodes gain 2.9 to 22.6 times over sockets",
        )  # fmt: skip


def check_rule(claim: Claim, book: Book) -> Iterator[Finding]:
    """C6: an asserted fact against the packaged facts of specifications and of NCCL and RDMA."""
    if claim.asserts is None:
        return
    name, sign, word = claim.asserts
    row = _facts().get(name)
    if row is None:
        return
    right = _asserted(row["value"], sign, word)
    yield Finding(
        check="C6", formula=f"{name} {sign} {word}", inputs={name: row["value"]}, source=row["source"],
        flag=row["flag"], verdict=CONSISTENT if right else CONTRADICTED if row["flag"] in ("V", "D") else IMPLAUSIBLE,
        result=row["says"], reading="a rule of the specification",
    )  # fmt: skip


def check_price(claim: Claim, book: Book) -> Iterator[Finding]:
    """C8: a quote per GPU hour, 730 hours a month; no market price is known here, so it settles nothing."""
    currency, _, per = claim.unit.partition("/")
    if not claim.metric or claim.metric.name != "price" or claim.unit not in _PRICES or claim.low is None:
        return
    gpus = 1 if per.startswith("GPU") else claim.system.get("gpus_per_domain")
    if gpus is None:
        yield Finding(
            check="C8", formula="", result="no price per GPU hour: state gpus_per_domain", missing="gpus_per_domain"
        )
        return
    hours = 1 if per == "GPU-hour" else 730
    least, most = _finite_ends((claim.low, claim.high or claim.low))
    yield Finding(
        check="C8", formula=f"{least:g} / {gpus} / {hours}", computed=least / gpus / hours,
        source="the document itself",
        result=f"{least / gpus / hours:.4g} to {most / gpus / hours:.4g} {currency} per GPU hour",
    )  # fmt: skip


CHECKS: tuple[Callable[[Claim, Book], Iterator[Finding]], ...] = (
    check_fact, check_scope, check_request, check_derive, check_alike, check_collective, check_link, check_slot,
    check_floor, check_power, check_band, check_domain_band, check_speedup, check_rule, check_price,
)  # fmt: skip


# Facts and comparisons --------------------------------------------------------------------------------------------

_ADAPTER = "stas00/ml-engineering:network/README.md (0.5 us, the best adapter published)"
_RINGS = ("all_reduce", "all_gather", "reduce_scatter")
_PUBLIC_RUNS = "stas00/ml-engineering:network/README.md; aws-samples/awsome-distributed-training (nccl-tests)"
_ACCEPTED = "Mellanox/ngc_multinode_perf:common.sh (accepted: 2.5 us write and send)"
# Message latency in us, one way, that public tests of a fabric reach or accept.
_MESSAGE_US = {
    None: (0.5, 2.5, _ACCEPTED), "infiniband": (0.5, 2.5, _ACCEPTED), "roce2": (0.5, 2.5, _ACCEPTED),
    "tcp": (1.86, 50.0, "Mellanox/sockperf pull 73; microsoft/lagscope pull 49"),
    "iwarp": (1.5, 4.5, "page: chelsio.com RDMA iWARP"),
}  # fmt: skip
_MISSING = {
    "link_rate_gbit_s": "rate_gbps", "ports_per_node": "nic_ports", "gpus_per_node": "domains",
    "scale_up_gbyte_s": "gpu", "ranks": "gpus_per_domain", "operation": "op", "mtu_bytes": "mtu",
}  # fmt: skip
_COLUMNS = {
    "scaleup_per_direction_GBps": ("scale_up_gbyte_s", 1.0), "scaleup_total_GBps": ("scale_up_gbyte_s", 2.0),
    "data_GBps_per_direction": ("data_gbyte_s", 1.0), "data_Gbps": ("data_gbit_s", 1.0),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Fact:
    value: float
    source: str
    flag: str
    links: int = 1
    is_rate: bool = True


def _fact(call: Call) -> _Fact | None:
    """A number of a packaged table: ``fact(gpus, NAME, COLUMN)``, ``fact(links, FAMILY/NAME/LANES, COLUMN)``."""
    words = [a for a in call.args if isinstance(a, str)]
    if len(words) == 2 and words[0] == "facts" and (row := _facts().get(words[1])):
        known = _number(row["value"])
        return None if known is None else _Fact(value=known, source=row["source"], flag=row["flag"], is_rate=False)
    if len(words) != 3 or words[0] not in ("gpus", "links"):
        return None
    found = _gpu(words[1]) if words[0] == "gpus" else _link(words[1])
    column, factor = _COLUMNS.get(words[2], (words[2], 1.0))
    links = int(found["lanes"]) if found and words[0] == "gpus" else 1
    if column == "per_link_gbyte_s":
        column, factor = "scale_up_gbyte_s", 1.0 / links
    else:
        links = 1
    value = _number(found.get(column, "")) if found else None
    if not found or not value:
        return None
    return _Fact(value=value * factor, source=found["source"], flag=found["confidence"][:1], links=links)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _gpu(name: str) -> dict[str, str] | None:
    rows = limits.table("gpus")
    return next((r for r in rows if name == r["gpu"] or re.fullmatch(r["printed_as"], name, re.IGNORECASE)), None)


def _link(key: str) -> dict[str, str] | None:
    return next((r for r in limits.table("links") if key == f"{r['family']}/{r['name']}/{r['lanes']}"), None)


@cache
def _facts() -> dict[str, dict[str, str]]:
    return {row["name"]: row for row in limits.table("facts")}


def _extra(gpu: str) -> dict[str, str] | None:
    """Rated power and slot of a GPU, kept as facts of their own."""
    row = _gpu(gpu)
    key = re.sub(r"[^a-z0-9]+", "_", row["gpu"].lower()) if row else ""
    power, slot = _facts().get(f"{key}.tdp_w"), _facts().get(f"{key}.pcie")
    if not row or not (power or slot):
        return None
    return {
        "name": row["gpu"], "tdp_w": power["value"] if power else "", "pcie": slot["value"] if slot else "",
        "source": (power or slot or {})["source"], "flag": (power or slot or {})["flag"],
    }  # fmt: skip


def _compared(
    check: str, claim: Claim, truth: float, formula: str, factors: Mapping[str, float], worst: str, source: str,
    flag: str, inputs: Mapping[str, Any] | None = None,
) -> Finding:  # fmt: skip
    """The claim holds as declared, or in one other reading, which is named, or not at all."""
    reading = "" if claim.holds(truth) else next(
        (name for name, f in factors.items() if claim.holds(truth * f, 0.03) or claim.holds(truth / f, 0.03)), ""
    )  # fmt: skip
    verdict = CONSISTENT if claim.holds(truth) else CONFUSED if reading else worst
    if verdict == CONTRADICTED and flag not in ("V", "D"):
        verdict = IMPLAUSIBLE
    said = f"{truth:.6g} against {claim.printed} {claim.unit}".strip()
    return Finding(
        check=check, formula=formula, computed=truth, inputs=inputs or {}, source=source, flag=flag, verdict=verdict,
        reading=reading, result=f"{said}; {reading}" if reading else said,
    )  # fmt: skip


def _factors(claim: Claim) -> dict[str, float]:
    """The other readings of a derived number: only those that its metric and unit leave open."""
    call = claim.metric
    if call and call.uses("price") and isinstance(claim.baseline, Mapping):
        ours, theirs = claim.system.get("gpus_per_domain"), claim.baseline.get("system", {}).get("gpus_per_domain")
        return {"per GPU, not per node": theirs / ours} if ours and theirs and ours != theirs else {}
    if claim.unit in _TIME_US and call and call.uses("latency"):
        way = {} if claim.stated("latency") else {"round trip": 2.0}
        return way | {"a factor of 1000 in the unit": 1000.0}
    if claim.unit in _GBYTE_S:
        ways = {} if claim.stated("direction") else {"both directions summed": 2.0}
        return ways | {"bits for bytes": 8.0, "binary for decimal": 1.048576, "a factor of 1000 in the unit": 1000.0}
    return {"binary for decimal": 1.048576} if claim.unit in _BYTES else {}


def _bounded(
    claim: Claim, value: float, slack: float, plain: limits.Limit, reduced: limits.Limit, reading: str
) -> Finding:
    """Above every bound: impossible, unless it is the line rate in bits; above the one without SHARP: implausible."""
    least, most = sorted((plain.gbyte_s or 0.0, reduced.gbyte_s or 0.0))
    gpu, low = _gpu(claim.system.get("gpu", "")), value - slack
    certain = gpu is None or gpu["confidence"] in ("V", "D")
    line = claim.fabric.get("rate_gbps", 0) / 8 * claim.system.get("nic_ports", 1)
    verdict = (IMPOSSIBLE if certain else IMPLAUSIBLE) if low > most * 1.002 else IMPLAUSIBLE
    if low <= least * 1.002:
        verdict = ""
    elif line and abs(value / 8 / line - 1) <= 0.03:
        verdict, reading = CONFUSED, "bits for bytes"
    used, scale = (reduced if low > most * 1.002 else plain), _GBYTE_S[claim.unit]
    bound = (used.gbyte_s or 0.0) / scale
    return Finding(
        check="C4", formula=used.formula, computed=bound, inputs=used.inputs, source=used.source,
        flag="V" if certain else "R", reading=reading, verdict=verdict or None,
        result=f"{'above' if verdict else 'within'} the bound of {bound:.6g} {claim.unit}",
    )  # fmt: skip


def _collective_limit(claim: Claim, in_network: bool) -> limits.Limit:
    system, fabric, call = claim.system, claim.fabric, claim.metric
    k, g, up = system.get("domains"), system.get("gpus_per_domain"), limits.scale_up(system.get("gpu", ""))
    if k is None:
        return limits.Limit(gbyte_s=None, formula="", missing="domains")
    return limits.collective_limit(
        call.options.get("op") if call else None, ranks=k * g if g else None, ranks_per_domain=g, domains=k,
        port_gbit_s=fabric.get("rate_gbps"), ports_per_domain=system.get("nic_ports"), mtu_bytes=fabric.get("mtu"),
        family=_family(claim), scale_up_gbyte_s=up.gbyte_s if up else None,
        algorithm=call.options.get("algorithm") if call else None,
        nvls_possible=up.nvls_possible if up else True, in_network=in_network,
    )  # fmt: skip


def _family(claim: Claim) -> str | None:
    family: str | None = claim.fabric.get("family")
    return "roce" if family == "roce2" else family


def _bus_factor(claim: Claim) -> float:
    n = claim.system.get("domains", 1) * claim.system.get("gpus_per_domain", 1)
    op = claim.metric.options.get("op") if claim.metric else None
    passes = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "alltoall": 1, "gather": 1, "scatter": 1}
    return passes[op] * (n - 1) / n if op in passes else 1.0


def _message_band(claim: Claim, mine: tuple[float, float], floor: float) -> Finding:
    """A message latency against public tests: faster is implausible, slower stays open."""
    low, high, source = _MESSAGE_US.get(claim.fabric.get("family"), _MESSAGE_US[None])
    low, high = max(low, floor), high * (floor / 0.5)
    least, most = mine
    verdict = IMPLAUSIBLE if most < low * 0.98 else OPEN if least > high * 1.02 else CONSISTENT
    said = {IMPLAUSIBLE: "faster than", OPEN: "slower than", CONSISTENT: "as in"}[verdict]
    return Finding(
        check="C5", formula=f"{low:g} to {high:g} us", inputs={claim.id: claim.printed}, source=source, flag="V",
        verdict=verdict, reading="one message, " + (claim.stated("latency") or "one-way"),
        result=f"{said} public tests, {low:g} to {high:g} us",
    )  # fmt: skip


def _collective_latency(claim: Claim, mine: tuple[float, float]) -> Iterator[Finding]:
    """A whole collective against the model of NCCL (Tree, LL): more than three times faster is implausible."""
    k, g = claim.system.get("domains"), claim.system.get("gpus_per_domain")
    if not k or not g:
        yield _open("C5", "no model: state domains and gpus_per_domain", "domains" if not k else "gpus_per_domain")
        return
    formula = f"6.8 + 2 * (({g} - 1) * 0.6 + floor(log2({k})) * 5.0)"
    model = evaluate(formula)
    fast = mine[1] < model / 3
    yield Finding(
        check="C5", formula=formula, computed=model, source="NVIDIA/nccl:src/graph/tuning.cc", flag="V",
        verdict=IMPLAUSIBLE if fast else None, reading="one collective over all ranks",
        result=f"the model of NCCL gives {model:.4g} us" + (", more than three times as long" if fast else ""),
    )  # fmt: skip


def _asserted(truth: str, sign: str, word: str) -> bool:
    left, right = _number(truth), _number(word)
    if left is None or right is None:
        return (truth.lower() == word.lower()) == (sign in ("==", "<=", ">="))
    return {
        "==": left == right, "!=": left != right, "<": left < right, "<=": left <= right, ">": left > right,
        ">=": left >= right,
    }[sign]  # fmt: skip


def _open(check: str, result: str, missing: str) -> Finding:
    return Finding(check=check, formula="", result=result, verdict=OPEN, missing=missing)


def _finite_ends(ends: tuple[float, float]) -> tuple[float, float]:
    """Both ends; the one bound that is stated stands for both."""
    low, high = ends
    return (low if math.isfinite(low) else high, high if math.isfinite(high) else low)


def _above(one: Claim, other: Claim) -> bool:
    return (one.low or 0.0) - one.slack > (other.high or 0.0) + other.slack


def _sameness(claim: Claim) -> str:
    """What two claims must share to speak of the same thing."""
    tables = (sorted(t.items()) for t in (claim.system, claim.fabric, claim.convention))
    return repr((claim.metric, *tables, claim.unit, claim.baseline))


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError:
        return 0


def _declared(claim: Claim) -> str:
    stated = [f"{key} {word}" for key, word in claim.convention.items() if word != "unstated"]
    return ", ".join(["as declared", *([claim.unit] if claim.unit else []), *stated])
