"""Claims files: read, checked, and every complaint with its line (C0)."""

import datetime
import hashlib
import math
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from rdmalab.claims._records import (
    FAMILIES,
    KINDS,
    METRICS,
    NUMBER,
    SCHEMA,
    UNITS,
    VERDICTS,
    Call,
    Claim,
    ClaimsError,
    Document,
)
from rdmalab.errors import did_you_mean
from rdmalab.expression import ExpressionError, Value, evaluate, names
from rdmalab.model import COLLECTIVES

MOST_BYTES = 1_000_000
MOST_DEPTH = 100
MOST_DOTS = 20  # of one key; tomllib takes time in the square of them

_EXPECTATIONS = ("value", "as_printed", "range", "at_least", "at_most", "asserts")
_TEXTS: dict[str, Any] = {"vendor": str, "language": str, "file": str, "url": str, "id": str, "conditions": str}
# What each table may hold: a type, the words allowed, or a table of its own.
_SYSTEM = {"gpu": str, "domains": int, "gpus_per_domain": int, "nic": str, "nic_ports": int, "pcie": str}
_FABRIC = {"family": FAMILIES, "gen": (str, int), "rate_gbps": NUMBER, "mtu": int, "ip": (str, int)}
_CLAIM: dict[str, Any] = {
    "id": str, "where": str, "text": str, "kind": KINDS, "system": _SYSTEM, "fabric": _FABRIC, "metric": str,
    "baseline": (str, dict), "value": NUMBER, "as_printed": str, "range": list, "at_least": NUMBER,
    "at_most": NUMBER, "asserts": str, "unit": UNITS,
    "convention": {
        "direction": ("one", "both", "unstated"), "bandwidth": ("busbw", "algbw", "wire", "logical", "unstated"),
        "latency": ("one-way", "round-trip", "unstated"),
        "scope": ("message", "collective", "step", "token", "request", "unstated"),
    },
    "tolerance": {"rel": NUMBER, "abs": NUMBER, "points": NUMBER}, "derive": str, "formula": str,
    "computed": NUMBER, "evidence": {"where": dict, "pair_by": (str, list), "min_runs": int, "confidence": NUMBER},
    "setting": dict,
    "audit": {"verdict": VERDICTS, "reason": str, "by": str, "on": (str, datetime.date)},
}  # fmt: skip
_DOCUMENT: dict[str, Any] = {
    "schema": (SCHEMA,), "source": _TEXTS | {"read_on": (str, datetime.date), "synthetic": bool}, "claim": list,
}  # fmt: skip


def load(path: str | Path) -> Document:
    """
    Reads and checks a claims file (C0).

    Raises:
        ClaimsError: The file cannot be read, or something in it is wrong; the message names the line.
    """
    path = Path(os.environ.get("RDMALAB_FOLDER", ""), path)  # where a report was asked for
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise ClaimsError(f"{path}: larger than 1 MB, split it into one file per source")
        text = raw.decode("utf-8-sig")
        for number, line in enumerate(text.replace(" ", "").replace("\t", "").split("\n"), 1):
            if any(word.count(".") > MOST_DOTS for word in re.findall(r"[\w.\"'-]+", line)):
                raise ClaimsError(f"{path}:{number}: a key of more than {MOST_DOTS} parts")
        document = _Reader(path, text).document(tomllib.loads(text))
        return replace(document, sha256=hashlib.sha256(raw).hexdigest())
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
        elif wanted is bool:
            if not isinstance(value, bool):
                self.fail(index, key, f"{key} wants true or false, not {value!r:.60}")
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
            if len(value) != 2 or not all(type(v) in NUMBER and abs(v) < 1e30 for v in value) or value[0] > value[1]:
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
