"""The campaign file ``rdmalab.toml``: what the logs do not say, written once beside them.

It names the fabrics with their link rates, ports and domains, says by globs which log belongs to which fabric, which
tests of unlike tools measure the same thing, and single facts that a log leaves out. It never overrides a log.
"""

import hashlib
import re
import tomllib
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from rdmalab.errors import CampaignError, did_you_mean
from rdmalab.model import COLLECTIVES, FAMILIES

FILE_NAME = "rdmalab.toml"
DEFAULT_CAMPAIGN = "default"  # the place of logs that stand beside no campaign file


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """One thing that is compared. Rates are per port and direction, in 10^9 bit/s."""

    name: str
    family: str
    label: str = ""
    logs: tuple[str, ...] = ()
    link_rate_gbit_s: float | None = None
    ports_per_node: int | None = None
    mtu_bytes: int | None = None
    gpus_per_node: int | None = None
    gpus_per_domain: int | None = None
    scale_up_gbyte_s: float | None = None
    in_network: bool | None = None
    nic: str | None = None


@dataclass(frozen=True, kw_only=True)
class Same:
    """Tests of unlike tools or verbs that measure the same thing; they are named beside every ratio."""

    measures: str
    tests: tuple[str, ...]
    size_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the logs of some globs leave out. A fact that a log states itself is never replaced."""

    logs: tuple[str, ...]
    size_bytes: int | None = None
    ranks: int | None = None
    operation: str | None = None
    program: str | None = None
    latency_convention: str | None = None


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """A campaign file, read and checked."""

    name: str
    path: Path
    sha256: str
    title: str = ""
    customer: str | None = None
    synthetic: bool = False
    notes: tuple[str, ...] = ()
    fabrics: tuple[Fabric, ...] = ()
    same: tuple[Same, ...] = ()
    facts: tuple[Facts, ...] = ()

    @property
    def root(self) -> Path:
        """The folder that the globs are relative to."""
        return self.path.parent

    @cached_property
    def _patterns(self) -> list[tuple[Fabric | Facts, re.Pattern[str]]]:
        return [(item, _glob(glob)) for item in (*self.fabrics, *self.facts) for glob in item.logs]

    def fabrics_of(self, path: str) -> list[Fabric]:
        """The fabrics that claim the log at *path* (absolute, or an archive member): none, one, or several by mistake."""
        return self._claims(path, Fabric)

    def facts_of(self, path: str) -> list[Facts]:
        """The facts stated for the log at *path*."""
        return self._claims(path, Facts)

    def _claims(self, path: str, kind: type) -> list[Any]:
        inside = PurePosixPath(path).relative_to(self.root.as_posix()).as_posix()
        found = [item for item, pattern in self._patterns if isinstance(item, kind) and pattern.fullmatch(inside)]
        return list(dict.fromkeys(found))


def nearest(path: str | Path, known: dict[Path, Path | None] | None = None) -> Path | None:
    """The campaign file that rules a log: the nearest one in its folder or above. *known* caches by folder."""
    folder = Path(str(path).split("!", 1)[0]).parent
    known = {} if known is None else known
    if folder not in known:
        file = folder / FILE_NAME
        known[folder] = file if file.is_file() else (nearest(folder, known) if folder != folder.parent else None)
    return known[folder]


def load(path: str | Path) -> Campaign:
    """
    Reads and checks a campaign file.

    Raises:
        CampaignError: The file cannot be read, or something in it is wrong; the message names the line.
    """
    path = Path(path).absolute()
    try:
        raw = path.read_bytes()
        text = raw.decode("utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        raise CampaignError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CampaignError(f"{path}: not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise CampaignError(f"{path}: not valid TOML: {error}") from None
    return _Reader(path, text).campaign(document, hashlib.sha256(raw).hexdigest())


class _Reader:
    """Turns the TOML document into records; every complaint carries the line of the word it is about."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.lines = path, text.splitlines()

    def campaign(self, document: dict[str, Any], sha256: str) -> Campaign:
        tables = {"fabric": Fabric, "same": Same, "facts": Facts}
        for key in document:
            if key not in ("campaign", *tables):
                self.fail(key, f"unknown table '{key}'.{did_you_mean(key, ['campaign', *tables])}")
        head = document.get("campaign", {})
        if not isinstance(head, dict) or "name" not in head:
            self.fail("campaign", "[campaign] needs a name")
        head = self.record(Campaign, "campaign", 0, head, given={"path": self.path, "sha256": sha256})
        parts = {
            key: tuple(self.build(kind, key, i, t) for i, t in enumerate(self.array(document, key)))
            for key, kind in tables.items()
        }
        names = [f.name for f in parts["fabric"]]
        for i, name in enumerate(names):
            if name in names[:i]:
                self.fail("name", f"two fabrics are named '{name}'", "fabric", i)
        return Campaign(**head, fabrics=parts["fabric"], same=parts["same"], facts=parts["facts"])

    def array(self, document: dict[str, Any], key: str) -> list[dict[str, Any]]:
        tables = document.get(key, [])
        if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
            self.fail(key, f"write each {key} as a table of its own: [[{key}]]")
        return list(tables)

    def build(self, kind: type, table: str, index: int, values: dict[str, Any]) -> Any:
        values = self.record(kind, table, index, values, given={})
        checks = {
            "family": (FAMILIES, "family"), "measures": (("bandwidth", "latency"), "measures"),
            "operation": (COLLECTIVES, "operation"), "latency_convention": (("one_way", "round_trip"), "convention"),
        }  # fmt: skip
        for key, (allowed, what) in checks.items():
            if (word := values.get(key)) is not None and word not in allowed:
                self.fail(key, f"unknown {what} '{word}'.{did_you_mean(word, allowed)}", table, index)
        for key, value in values.items():
            if isinstance(value, int | float) and not isinstance(value, bool) and value <= 0:
                self.fail(key, f"{key} must be greater than 0", table, index)
        if kind is Fabric:
            values.setdefault("label", values["name"])
        return kind(**values)

    def record(self, kind: type, table: str, index: int, values: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        """The values of one table with the types that the record wants; unknown and missing keys are refused."""
        types = {f.name: f for f in fields(kind) if f.name not in (*given, "fabrics", "same", "facts")}
        out = dict(given)
        for key, value in values.items():
            if key not in types:
                self.fail(key, f"unknown key '{key}' in [{table}].{did_you_mean(key, list(types))}", table, index)
            out[key] = self.value(key, value, str(types[key].type), table, index)
        for key, f in types.items():
            if key not in out and f.default is MISSING and f.default_factory is MISSING:
                self.fail(table, f"[{table}] needs '{key}'", table, index)
        return out

    def value(self, key: str, value: Any, wanted: str, table: str, index: int) -> Any:
        if wanted.startswith("<class"):
            wanted = wanted.split("'")[1]
        if wanted.startswith("tuple"):
            if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
                self.fail(key, f"{key} wants a list of texts", table, index)
            return tuple(value)
        kinds = {"str": str, "int": int, "float": (int, float), "bool": bool}
        word = wanted.removesuffix(" | None")
        if not isinstance(value, kinds[word]) or (isinstance(value, bool) and word != "bool"):
            names = {"str": "a text", "int": "a whole number", "float": "a number", "bool": "true or false"}
            self.fail(key, f"{key} wants {names[word]}, not {value!r}", table, index)
        return value

    def fail(self, key: str, message: str, table: str | None = None, index: int = 0) -> None:
        raise CampaignError(f"{self.path}:{self.line_of(key, table, index)}: {message}")

    def line_of(self, key: str, table: str | None, index: int) -> int:
        """The line of *key* inside the *index*-th table of that name, else of the table's head, else 1."""
        seen, head, inside = -1, 1, table is None
        for number, line in enumerate(self.lines, 1):
            bare = line.strip()
            if bare.startswith("["):
                is_table = bare.strip("[] \t").split("#")[0].strip("[] ") == table
                seen += is_table
                inside = table is None or (is_table and seen == index)
                head = number if inside else head
                if table is None and bare.strip("[] ").split("]")[0] == key:
                    return number
            elif inside and re.match(rf'"?{re.escape(key)}"?\s*=', bare):
                return number
        return head


def _glob(pattern: str) -> re.Pattern[str]:
    """A glob over paths with ``/``: ``**`` crosses folders, ``*`` and ``?`` do not; archive members match after ``!``."""
    out = ""
    for part in re.split(r"(\*\*/?|\*|\?)", pattern):
        out += {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part))
    return re.compile(out + "(?:!.*)?")


def unmatched_globs(campaign: Campaign, paths: Iterable[str]) -> list[tuple[str, str]]:
    """(fabric or facts, glob) pairs that match none of *paths*."""
    inside = [PurePosixPath(p).relative_to(campaign.root.as_posix()).as_posix() for p in paths]
    owners = [*((f.name, f.logs) for f in campaign.fabrics), *(("facts", f.logs) for f in campaign.facts)]
    return [(name, g) for name, globs in owners for g in globs if not any(_glob(g).fullmatch(p) for p in inside)]
