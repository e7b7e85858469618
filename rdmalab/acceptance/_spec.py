"""The limits of a contract as records, read from TOML with complaints that name the line."""

import hashlib
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from rdmalab.errors import UsageError, did_you_mean
from rdmalab.model import COLLECTIVES, FAMILIES
from rdmalab.toml_records import Reader, read_toml
from rdmalab.units import parse_size, size_text

# metric -> (kind of test, column or None, unit)
NUMBERS: dict[str, tuple[str, str, str]] = {
    "busbw_gbyte_s": ("collective", "busbw_gbyte_s", "GB/s"), "algbw_gbyte_s": ("collective", "algbw_gbyte_s", "GB/s"),
    "time_us": ("collective", "time_us", "us"), "bw_avg_gbit_s": ("bandwidth", "bw_avg_gbit_s", "Gb/s"),
    "line_pct": ("bandwidth", "100 * bw_avg_gbit_s / (fabric_rate * CASE WHEN bidirectional THEN 2 ELSE 1 END)", "%"),
    "lat_typical_us": ("latency", "lat_typical_us", "us"), "lat_avg_us": ("latency", "lat_avg_us", "us"),
    "lat_p99_us": ("latency", "lat_p99_us", "us"), "lat_p999_us": ("latency", "lat_p999_us", "us"),
    "utilization_pct": ("", "utilization_pct", "%"), "pair_spread_pct": ("collective", "busbw_gbyte_s", "%"),
    "drop_pct": ("", "", "%"),
}  # fmt: skip
WORDS = {"transport": "transport_verdict", "gdr": "transport_gdr"}
METRICS = (*NUMBERS, *WORDS, "ranks")
_FACTORS = {("GB/s", "Gb/s"): 8.0, ("Gb/s", "GB/s"): 0.125, ("ms", "us"): 1000.0, ("ns", "us"): 0.001}
STATISTICS = ("median", "min", "max", "every_run", "worst_pair", "worst_node")  # and p1 to p99
_OVER_SIZES = ("every", "mean", "max", "min")


class SpecError(UsageError):
    """A spec cannot be used; the message names the file and the line."""


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """
    One ``[[limit]]``: what is measured, on what, and the value it must keep.

    ``domains`` to ``in_network`` say what hardware the limit is for: without a run they give its physical bound.
    """

    metric: str
    source: str
    name: str = ""
    operation: str | None = None
    program: str | None = None
    ranks: int | None = None
    nodes: int | None = None
    dtype: str | None = None
    placement: str | None = None
    bidirectional: bool | None = None
    latency_convention: str | None = None
    memory: str | None = None
    connection: str | None = None
    queue_pairs: int | None = None
    sizes: tuple[str, ...] = ()
    size_min: str | None = None
    size_max: str | None = None
    over_sizes: str = "every"
    fabrics: tuple[str, ...] = ()
    statistic: str = "median"
    at_least: float | None = None
    at_most: float | None = None
    one_of: tuple[str, ...] = ()
    unit: str | None = None
    runs_at_least: int = 1
    golden: float | None = None
    of: str | None = None
    gpu: str | None = None
    nic: str | None = None
    family: str | None = None
    domains: int | None = None
    gpus_per_domain: int | None = None
    ports_per_domain: int | None = None
    link_rate_gbit_s: float | None = None
    mtu_bytes: int | None = None
    pcie: str | None = None
    in_network: bool | None = None
    line: int = 0

    @property
    def kind(self) -> str:
        """``collective``, ``bandwidth`` or ``latency``; empty where the metric leaves it to the test."""
        if self.metric in NUMBERS and (kind := NUMBERS[self.of or self.metric][0]):
            return kind
        return "collective" if self.operation or not self.program else ""

    @property
    def shown_unit(self) -> str:
        """GB/s, Gb/s, us, %; empty for words and ranks."""
        return NUMBERS[self.metric][2] if self.metric in NUMBERS else ""

    @property
    def asks(self) -> str:
        """``at least 22 GB/s``, ``one of ib, roce``."""
        if self.one_of:
            return f"one of {', '.join(self.one_of)}"
        if self.metric == "ranks":
            return "implied ranks as declared"
        word, value = ("at least", self.at_least) if self.at_least is not None else ("at most", self.at_most)
        return f"{word} {value:g} {self.shown_unit}".strip()

    @property
    def test(self) -> str:
        """``all_reduce``, ``ib_write_bw``; empty where any test counts."""
        return self.operation or self.program or ""

    @property
    def window(self) -> tuple[int | None, int | None]:
        """The smallest and the largest message size, both included."""
        if self.sizes:
            sizes = [parse_size(s) for s in self.sizes]
            return min(sizes), max(sizes)
        low, high = (None if s is None else parse_size(s) for s in (self.size_min, self.size_max))
        return low, high

    def good(self, value: float) -> bool:
        """Whether *value*, in the unit of the metric, keeps the limit."""
        return value >= self.at_least if self.at_least is not None else value <= (self.at_most or 0.0)


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A spec, read and checked."""

    name: str
    path: Path
    sha256: str
    source: str = ""
    title: str = ""
    campaign: str | None = None
    limits: tuple[Threshold, ...] = ()


def load(path: str | Path) -> Spec:
    """
    Reads and checks a spec.

    Raises:
        SpecError: It cannot be read, or something in it is wrong; the message names the line.
    """
    path = Path(os.environ.get("RDMALAB_FOLDER", ""), path).absolute()  # where a report was asked for
    raw, text, document = read_toml(path, SpecError)
    return _SpecReader(path, text).spec(document, hashlib.sha256(raw).hexdigest())


class _SpecReader(Reader):
    """Turns the TOML document into a spec."""

    error: ClassVar[type[UsageError]] = SpecError

    def spec(self, document: dict[str, Any], sha256: str) -> Spec:
        """The whole document."""
        for key in document:
            if key not in ("spec", "limit"):
                self.fail(key, f"unknown table '{key}'.{did_you_mean(key, ['spec', 'limit'])}")
        head = document.get("spec", {})
        if not isinstance(head, dict) or "name" not in head:
            self.fail("spec", "[spec] needs a name")
        given = {"path": self.path, "sha256": sha256}
        head = self.record(Spec, "spec", 0, head, given=given, nested=("limits",))
        found = [self.threshold(i, t, head.get("source", "")) for i, t in enumerate(self.array(document, "limit"))]
        if not found:
            self.fail("spec", "a spec needs limits: [[limit]]")
        names = [t.name for t in found]
        for i, name in enumerate(names):
            if name in names[:i]:
                self.fail("name", f"two limits are named '{name}'", "limit", i)
        return Spec(**head, limits=tuple(found))

    def threshold(self, index: int, values: dict[str, Any], source: str) -> Threshold:
        """One ``[[limit]]``, its number in the unit of its metric."""
        values = {"source": source, **values} if source else values
        values = self.record(Threshold, "limit", index, values, given={"line": self.line_of("", "limit", index)})
        t = Threshold(**values)
        self._words(t, index)
        self._limit(t, index)
        self._test(t, index)
        self._sizes(t, index)
        number: dict[str, Any] = self._converted(t, index)
        return replace(t, name=t.name or _name(t), **number)

    def _wrong(self, key: str, message: str, index: int) -> NoReturn:
        self.fail(key, message, "limit", index)

    def _words(self, t: Threshold, index: int) -> None:
        numbers = {"ranks", "nodes", "queue_pairs", "domains", "gpus_per_domain", "ports_per_domain", "runs_at_least"}
        allowed: dict[str, Sequence[str]] = {
            "metric": METRICS, "statistic": STATISTICS, "over_sizes": _OVER_SIZES, "operation": COLLECTIVES,
            "placement": ("out_of_place", "in_place"), "latency_convention": ("one_way", "round_trip"),
            "family": FAMILIES, "of": tuple(NUMBERS),
        }  # fmt: skip
        for key, words in allowed.items():
            word = getattr(t, key)
            quantile = key == "statistic" and re.fullmatch(r"p[1-9]\d?", word)
            if word is not None and word not in words and not quantile:
                self._wrong(key, f"unknown {key} '{word}'.{did_you_mean(word, list(words))}", index)
        for key in (*numbers, "link_rate_gbit_s", "golden", "mtu_bytes"):
            if getattr(t, key) is not None and not getattr(t, key) > 0:
                self._wrong(key, f"{key} must be greater than 0", index)
        if not t.source.strip():
            self._wrong("source", "source is empty: say who asks for this limit, and where", index)

    def _limit(self, t: Threshold, index: int) -> None:
        stated = [k for k in ("at_least", "at_most") if getattr(t, k) is not None]
        if t.metric in WORDS:
            if stated or not t.one_of:
                self._wrong("metric", f"{t.metric} wants one_of = [words], not a number", index)
        elif t.one_of or (bool(stated) == (t.metric == "ranks")) or len(stated) > 1:
            what = "no number: the printed bandwidths say it" if t.metric == "ranks" else "one of at_least and at_most"
            self._wrong("metric", f"{t.metric} wants {what}", index)
        for key in stated:
            if not math.isfinite(getattr(t, key)) or getattr(t, key) < 0:
                self._wrong(key, f"{key} must be a number from 0", index)

    def _test(self, t: Threshold, index: int) -> None:
        if t.operation and t.program:
            self._wrong("program", "a limit is for an operation of a collective or for a program, not for both", index)
        kind = NUMBERS[t.metric][0] if t.metric in NUMBERS else "collective"
        if kind == "collective" and not t.operation and t.metric not in WORDS:
            self._wrong("metric", f"{t.metric} wants the operation of a collective, for example all_reduce", index)
        if kind in ("bandwidth", "latency") and not t.program:
            self._wrong("metric", f"{t.metric} wants the program, for example ib_write_bw", index)
        if kind == "latency" and not t.latency_convention:
            self._wrong("metric", f"{t.metric} wants latency_convention: one_way or round_trip", index)
        if t.metric == "drop_pct" and not t.of:
            self._wrong("metric", "drop_pct wants of = the metric that must not drop", index)

    def _sizes(self, t: Threshold, index: int) -> None:
        if t.sizes and (t.size_min or t.size_max):
            self._wrong("sizes", "give either sizes, or size_min and size_max", index)
        for key in ("sizes", "size_min", "size_max"):
            for text in t.sizes if key == "sizes" else [getattr(t, key)]:
                try:
                    parse_size(text or 0)
                except ValueError as error:
                    self._wrong(key, f"{key} wants a size like 8, 64KiB or 1GiB: {error}", index)
        low, high = t.window
        if low is not None and high is not None and low > high:
            self._wrong("size_min", "size_min is above size_max", index)

    def _converted(self, t: Threshold, index: int) -> dict[str, float]:
        """The number in the unit of the metric."""
        unit = t.shown_unit
        if t.unit in (None, unit):
            return {}
        factor = _FACTORS.get((str(t.unit), unit))
        if factor is None:
            known = [unit, *(a for a, b in _FACTORS if b == unit)]
            hint = did_you_mean(t.unit or "", known)
            self._wrong("unit", f"{t.metric} is in {unit}, not in {t.unit}.{hint}", index)
        return {k: v * factor for k in ("at_least", "at_most") if (v := getattr(t, k)) is not None}


def _name(t: Threshold) -> str:
    """A name from what is asked, for a limit that has none."""
    low, high = t.window
    size = "" if low is None and high is None else window_text(t)
    words = [t.test, t.metric, t.statistic if t.statistic != "median" else "", size, ", ".join(t.fabrics)]
    return " ".join(w for w in words if w)


def window_text(t: Threshold) -> str:
    """The sizes of a limit: ``1 GiB``, ``8 B..``, ``1 MiB..1 GiB``."""
    low, high = t.window
    if low == high and low is not None:
        return plain_size(low)
    return f"{'' if low is None else plain_size(low)}..{'' if high is None else plain_size(high)}"


def plain_size(size_bytes: int) -> str:
    """A message size for a terminal, without the no-break space of reports."""
    return size_text(size_bytes).replace("\u00a0", " ")
