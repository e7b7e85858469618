"""The campaign file ``rdmalab.toml``: what the logs do not say, written once beside them.

It names the fabrics with their link rates, ports and domains, says by globs which log belongs to which fabric, which
tests of unlike tools measure the same thing, and single facts that a log leaves out. It never overrides a log.
"""

import datetime
import hashlib
import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from rdmalab.errors import CampaignError, did_you_mean
from rdmalab.model import COLLECTIVES, FAMILIES
from rdmalab.toml_records import Reader, read_toml

FILE_NAME = "rdmalab.toml"
DEFAULT_CAMPAIGN = "default"  # the place of logs that stand beside no campaign file
_PERIODS = ("GPU-hour", "GPU-month", "node-month")
_PERIODS = ("GPU-hour", "GPU-month", "node-month")
PRICE_UNITS = tuple(f"{money}/{per}" for money in ("CNY", "USD", "EUR") for per in _PERIODS)
# Keys whose words are listed, and the name of such a word.
_WORDS = {
    "family": (FAMILIES, "family"), "measures": (("bandwidth", "latency"), "measures"),
    "operation": (COLLECTIVES, "operation"), "latency_convention": (("one_way", "round_trip"), "convention"),
    "unit": (PRICE_UNITS, "unit"),
}  # fmt: skip
_LABEL_WIDTH = 24  # in letters; a Chinese character is as wide as two
_RDMA_MTUS = (256, 512, 1024, 2048, 4096)
_MOST = 2**53  # a greater number is a slip of the finger
_LINK_RATES_GBIT_S = (0.1, 3200)  # beyond, the rate was written in another unit
PAIR = "{pair}"


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
    gpu: str | None = None  # as a driver prints it, where the logs do not
    pcie: str | None = None  # the slot of a port: Gen4 x16


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
class Quote:
    """What a fabric's GPUs cost. ``discount_pct`` is what a lease of ``lease_months`` takes off the price."""

    fabric: str
    price: float
    unit: str
    source: str
    gpus_per_node: int | None = None
    lease_months: int | None = None
    discount_pct: float | None = None


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A step of a job: so many collectives of one size beside so many milliseconds of computing."""

    name: str
    size_bytes: int
    operation: str = "all_reduce"
    collectives_per_step: int = 1
    compute_ms: float | None = None
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """A campaign file, read and checked."""

    name: str
    path: Path
    sha256: str
    title: str = ""
    customer: str | None = None
    synthetic: bool = False
    dates: tuple[datetime.date, ...] = ()  # the first and the last day of the measurements
    pairs: str | None = None  # a glob with {pair}: logs of two fabrics with the same text there belong together
    notes: tuple[str, ...] = ()
    fabrics: tuple[Fabric, ...] = ()
    same: tuple[Same, ...] = ()
    facts: tuple[Facts, ...] = ()
    quotes: tuple[Quote, ...] = ()
    workloads: tuple[Workload, ...] = ()

    @property
    def root(self) -> Path:
        """The folder that the globs are relative to."""
        return self.path.parent

    @cached_property
    def _patterns(self) -> list[tuple[Fabric | Facts, re.Pattern[str]]]:
        owners: list[Fabric | Facts] = [*self.fabrics, *self.facts]
        return [(owner, _glob(glob)) for owner in owners for glob in owner.logs]

    def fabrics_of(self, path: str) -> list[Fabric]:
        """The fabrics that claim the log at *path* (absolute, or in an archive): none, one, or several by mistake."""
        return [owner for owner in self._claims(path) if isinstance(owner, Fabric)]

    def globs_of(self, path: str) -> list[str]:
        """The globs of fabrics that match the log at *path*."""
        inside = self.inside(path)
        return [g for fabric in self.fabrics for g in fabric.logs if _glob(g).fullmatch(inside)]

    def facts_of(self, path: str) -> list[Facts]:
        """The facts stated for the log at *path*."""
        return [owner for owner in self._claims(path) if isinstance(owner, Facts)]

    def pair_of(self, path: str) -> str | None:
        """The text at the place of ``{pair}``, if *path* matches: runs of two fabrics that share it are paired."""
        found = self._pair_pattern.fullmatch(self.inside(path)) if self._pair_pattern else None
        return found["pair"] if found else None

    @cached_property
    def _pair_pattern(self) -> re.Pattern[str] | None:
        return _glob(self.pairs) if self.pairs else None

    def _claims(self, path: str) -> list[Fabric | Facts]:
        inside = self.inside(path)
        return list(dict.fromkeys(owner for owner, pattern in self._patterns if pattern.fullmatch(inside)))

    def inside(self, path: str) -> str:
        """*path* as the globs see it: relative to the folder of the campaign file."""
        return PurePosixPath(path).relative_to(self.root.as_posix()).as_posix()


def nearest(file: str | Path, known: dict[str, Path | None] | None = None) -> Path | None:
    """The campaign file that rules a log file: the nearest one in its folder or above. *known* caches by folder."""
    folder = os.path.dirname(file)
    known = {} if known is None else known
    if folder not in known:
        ruler = Path(folder, FILE_NAME)
        above = os.path.dirname(folder)
        known[folder] = ruler if ruler.is_file() else (nearest(folder, known) if above != folder else None)
    return known[folder]


def load(path: str | Path) -> Campaign:
    """
    Reads and checks a campaign file.

    Raises:
        CampaignError: The file cannot be read, or something in it is wrong; the message names the line.
    """
    path = Path(path).absolute()
    raw, text, document = read_toml(path, CampaignError)
    return _Reader(path, text).campaign(document, hashlib.sha256(raw).hexdigest())


class _Reader(Reader):
    """Turns the TOML document into a campaign."""

    error = CampaignError

    def campaign(self, document: dict[str, Any], sha256: str) -> Campaign:
        """The whole document."""
        tables: dict[str, type] = {
            "fabric": Fabric, "same": Same, "facts": Facts, "quote": Quote, "workload": Workload,
        }  # fmt: skip
        for key in document:
            if key not in ("campaign", *tables):
                self.fail(key, f"unknown table '{key}'.{did_you_mean(key, ['campaign', *tables])}")
        head = document.get("campaign", {})
        if not isinstance(head, dict) or "name" not in head:
            self.fail("campaign", "[campaign] needs a name")
        given, nested = {"path": self.path, "sha256": sha256}, ("fabrics", "same", "facts", "quotes", "workloads")
        head = self.record(Campaign, "campaign", 0, head, given=given, nested=nested)
        if len(days := head.get("dates", ())) > 2 or list(days) != sorted(days):
            self.fail("dates", "dates wants the first and the last day of the measurements", "campaign")
        if head.get("pairs") and head["pairs"].count(PAIR) != 1:
            self.fail("pairs", f'pairs wants a glob with one {PAIR}, for example "*/run-{PAIR}.log"', "campaign")
        parts = {
            key: tuple(self.build(kind, key, i, t) for i, t in enumerate(self.array(document, key)))
            for key, kind in tables.items()
        }
        labels = [f.label for f in parts["fabric"]]
        for i, label in enumerate(labels):
            if label in labels[:i]:
                self.fail("label", f"two fabrics have the label '{label}'", "fabric", i)
        names = [f.name for f in parts["fabric"]]
        for i, name in enumerate(names):
            if name in names[:i]:
                self.fail("name", f"two fabrics are named '{name}'", "fabric", i)
        for i, quote in enumerate(parts["quote"]):
            if quote.fabric not in names:
                message = f"no [[fabric]] is named '{quote.fabric}'.{did_you_mean(quote.fabric, names)}"
                self.fail("fabric", message, "quote", i)
        return Campaign(
            **head, fabrics=parts["fabric"], same=parts["same"], facts=parts["facts"], quotes=parts["quote"],
            workloads=parts["workload"],
        )  # fmt: skip

    def build(self, kind: type, table: str, index: int, values: dict[str, Any]) -> Any:
        """One table as a record; words must be listed, numbers positive."""
        values = self.record(kind, table, index, values, given={})
        for key, value in values.items():
            if key in _WORDS and value not in _WORDS[key][0]:
                allowed, what = _WORDS[key]
                self.fail(key, f"unknown {what} '{value}'.{did_you_mean(value, allowed)}", table, index)
            if isinstance(value, int | float) and not isinstance(value, bool):
                if value <= 0 or math.isnan(value):
                    self.fail(key, f"{key} must be greater than 0", table, index)
                if value > _MOST:
                    self.fail(key, f"{key} is too large", table, index)
                if key == "link_rate_gbit_s" and not _LINK_RATES_GBIT_S[0] <= value <= _LINK_RATES_GBIT_S[1]:
                    message = f"{key} is the rate of one port in Gb/s (10^9 bit/s), for example 400; {value} is none"
                    self.fail(key, message, table, index)
        if kind is Fabric:
            values.setdefault("label", values["name"])
            self.fabric(table, index, values)
        if kind is Quote and values.get("discount_pct", 0) >= 100:
            self.fail("discount_pct", "discount_pct is what a lease takes off in per cent, below 100", table, index)
        if kind is Quote and ("discount_pct" in values) != ("lease_months" in values):
            self.fail("price", "lease_months and discount_pct belong together", table, index)
        if kind is Same and len(set(values["tests"])) < 2:
            self.fail("tests", "tests wants two tests or more that measure the same", table, index)
        return kind(**values)

    def fabric(self, table: str, index: int, values: dict[str, Any]) -> None:
        """What would only fail later: a name that no command line can say, a label that no table can hold, an MTU."""
        if not re.fullmatch(r"[^\s,=]([^,=\x00-\x1f]*[^\s,=])?", values["name"]):
            self.fail("name", "a fabric's name is a word without commas, equal signs and line breaks", table, index)
        width = sum(2 if ord(c) > 0x2E7F else 1 for c in values["label"])
        if width > _LABEL_WIDTH:
            key = "label" if values["label"] != values["name"] else "name"
            message = (
                f"reports have room for {_LABEL_WIDTH} letters of a label, this one has {width}: give a shorter label"
            )
            self.fail(key, message, table, index)
        rdma = values["family"] in ("roce", "softroce", "infiniband")
        if rdma and values.get("mtu_bytes") not in (None, *_RDMA_MTUS):
            allowed = ", ".join(map(str, _RDMA_MTUS))
            self.fail(
                "mtu_bytes", f"the MTU of an RDMA port is one of {allowed}, not {values['mtu_bytes']}", table, index
            )
        if not re.fullmatch(r"Gen[1-6] x(4|8|16)", values.get("pcie") or "Gen1 x4"):
            self.fail("pcie", f"pcie is a generation and a width like 'Gen5 x16', not '{values['pcie']}'", table, index)


_WILD = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]", PAIR: "(?P<pair>[^/]+)"}


def _glob(pattern: str) -> re.Pattern[str]:
    """A glob over paths: ``**`` crosses folders, ``*`` and ``?`` do not; an archive's name matches its members too."""
    out = ""
    for part in re.split(r"(\*\*/?|\*|\?|\{pair\})", pattern):
        out += _WILD.get(part, re.escape(part))
    return re.compile(out + "(?:!.*)?")


def unmatched_globs(campaign: Campaign, paths: Iterable[str]) -> list[tuple[str, str]]:
    """(owner, glob) pairs that match none of *paths*: of fabrics, of facts, and of what pairs the runs."""
    inside = [campaign.inside(p) for p in paths]
    owners = [*((f.name, f.logs) for f in campaign.fabrics), *(("facts", f.logs) for f in campaign.facts)]
    owners += [("pairs", (campaign.pairs,))] if campaign.pairs else []
    return [(name, g) for name, globs in owners for g in globs if not any(map(_glob(g).fullmatch, inside))]


def line_of_glob(campaign: Campaign, glob: str) -> int:
    """The line of the campaign file that holds *glob*; 1 where it is written in another way."""
    lines = campaign.path.read_text(encoding="utf-8-sig", errors="replace").split("\n")
    return next((n for n, line in enumerate(lines, 1) if f'"{glob}"' in line or f"'{glob}'" in line), 1)
