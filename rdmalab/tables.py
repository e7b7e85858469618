"""Numbers become text here, at the very end, and tables become HTML.

The interval decides the digits: the last digit shown is the first digit of its half-width, or the second if the first
is a 1; never so few that a bound prints equal to the median, or as 1 where the interval of a ratio excludes 1.
"""

import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from rdmalab.compare import SLOWER

if TYPE_CHECKING:
    from rdmalab.claims import Judgement
    from rdmalab.compare import Cell, Comparison, Refusal, Table

NBSP, THIN = "\u00a0", "\u2009"
_TIME_UNITS = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"))


def number_text(value: float, digits: int = 3) -> str:
    """A number with *digits* significant digits and thin spaces between thousands, never in scientific notation."""
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return fixed(value, decimals)


def fixed(value: float, decimals: int) -> str:
    """A number with a fixed count of decimals; thin spaces between thousands from 10 000 on."""
    text = f"{value:,.{decimals}f}"
    return text.replace(",", THIN if len(text.partition(".")[0].lstrip("-")) > 5 else "")


def decimals_for(median: float, low: float | None, high: float | None) -> int:
    """How many decimals a median and its interval are printed with."""
    if low is None or high is None:
        return max(0, 2 - math.floor(math.log10(abs(median)))) if median else 0
    half = (high - low) / 2
    most = max(_decimals_of(v) for v in (median, low, high))  # never more than the tool printed
    if half <= 0:
        return most
    exponent = math.floor(math.log10(half) + 1e-12)
    decimals = max(0, -exponent + (half / 10.0**exponent < 2))
    while decimals < most and _hides(decimals, median, low, high):
        decimals += 1
    return min(decimals, most)


def _decimals_of(value: float) -> int:
    """How many decimals a value has, of at most 6: printed values have few."""
    return len(f"{value:.6f}".rstrip("0").partition(".")[2])


def _hides(decimals: int, median: float, low: float, high: float) -> bool:
    texts = [f"{v:.{decimals}f}" for v in (low, median, high)]
    return (texts[0] == texts[1] and low != median) or (texts[2] == texts[1] and high != median)


def value_texts(cell: "Cell", scale: float = 1.0) -> tuple[str, str]:
    """(median, "[low, high]") of a cell, both in the same digits; the second is empty without an interval."""
    low = cell.low / scale if cell.low is not None else None
    high = cell.high / scale if cell.high is not None else None
    decimals = decimals_for(cell.median / scale, low, high)
    if low is None or high is None:
        return fixed(cell.median / scale, decimals), ""
    return fixed(cell.median / scale, decimals), f"[{fixed(low, decimals)}, {fixed(high, decimals)}]"


def ratio_texts(cell: "Cell", *, inverse: bool = False) -> tuple[str, str]:
    """(ratio, "[low, high]") of a cell, at least 2 decimals below 3 and 1 below 30; *inverse*: baseline over fabric."""
    ratio, low, high = cell.ratio, cell.ratio_low, cell.ratio_high
    if ratio is None:
        return "", ""
    if inverse:
        ratio, low, high = 1 / ratio, 1 / high if high else None, 1 / low if low else None
    decimals = 2 if ratio < 3 else 1 if ratio < 30 else 0
    if ratio < 0.1:
        decimals = max(decimals, 1 - math.floor(math.log10(ratio)))
    if low is None or high is None:
        return fixed(ratio, decimals), ""
    while decimals < 9 and (_hides(decimals, ratio, low, high) or _prints_one(decimals, low, high)):
        decimals += 1
    return fixed(ratio, decimals), f"[{fixed(low, decimals)}, {fixed(high, decimals)}]"


def shown_ratio(cell: "Cell") -> tuple[str, str]:
    """(ratio, "[low, high]") as tables print it: a slower fabric as a fraction, with the factor that sentences name."""
    if cell.verdict != SLOWER:
        return ratio_texts(cell)
    value, interval = ratio_texts(cell, inverse=True)
    low, _, high = interval.strip("[]").partition(", ")
    return f"1/{value}", f"[1/{high}, 1/{low}]"


def _prints_one(decimals: int, low: float, high: float) -> bool:
    """Whether a bound would read as 1 although the interval excludes 1."""
    return (low > 1 and float(f"{low:.{decimals}f}") <= 1) or (high < 1 and float(f"{high:.{decimals}f}") >= 1)


def time_unit(value_us: float) -> tuple[float, str]:
    """(microseconds in the unit, unit) that suits a time: µs, ms or s."""
    return next((scale, unit) for scale, unit in _TIME_UNITS if value_us >= scale or scale == 1.0)


def duration_text(value_us: float) -> str:
    """A round time in words: ``10 µs``, ``1 ms``."""
    scale, unit = time_unit(value_us)
    return f"{value_us / scale:g}{NBSP}{unit}"


def cell_html(text: str, kind: str = "num") -> str:
    """A table cell; *text* is escaped."""
    return f'<td class="{kind}">{escape(text)}</td>'


def aligned(texts: Sequence[str]) -> list[str]:
    """
    The HTML of the numbers of one column, padded with invisible digits so that their decimal points align.

    What is no plain number ("not measured", "1/104") pads nothing and is not padded.
    """
    places = [len(t.partition(".")[2]) if _PLAIN.fullmatch(t) else None for t in texts]
    most = max((p for p in places if p is not None), default=0)
    out = []
    for text, place in zip(texts, places, strict=True):
        missing = "" if place is None or place == most else "0" * (most - place) if place else "." + "0" * most
        out.append(escape(text) + (f'<span class="pad">{missing}</span>' if missing else ""))
    return out


_PLAIN = re.compile(rf"[\d{THIN}]+(?:\.\d+)?")


def table_html(head: Sequence[str], rows: Iterable[str], *, over: str = "", foot: str = "", kind: str = "data") -> str:
    """A table from ready head and body rows (HTML); *over* is a first head row, *foot* stands below as the caption."""
    first = f"<tr>{over}</tr>" if over else ""
    caption = f"<caption>{foot}</caption>" if foot else ""
    body = "".join(rows)
    return f'<table class="{kind}">{caption}<thead>{first}<tr>{"".join(head)}</tr></thead><tbody>{body}</tbody></table>'


def th(text: str, kind: str = "num", span: int = 1) -> str:
    """A head cell; *text* is escaped."""
    extra = f' colspan="{span}"' if span > 1 else ""
    return f'<th class="{kind}" scope="col"{extra}>{escape(text)}</th>'


def comparison_lines(c: "Comparison") -> list[str]:
    """A comparison for a terminal: one block a measurand, one line a size; ``~`` where no difference is shown."""
    out: list[str] = []
    for table in c.tables:
        out += [_subject_text(table), *_aligned(_comparison_rows(c, table)), ""]
    out += [_refusal_text(r) for r in c.refusals]
    out.append("~ no difference shown; ? too few runs for an interval; ratio: times as fast as the baseline")
    return out


def _refusal_text(refusal: "Refusal") -> str:
    """One line on what stands beside nothing, and why."""
    names = list(dict.fromkeys(s.operation if s.kind == "collective" else s.test for s in refusal.subjects))
    return f"not compared: {', '.join(str(n) for n in names)} of {', '.join(refusal.fabrics)}: {refusal}"


def _subject_text(table: "Table") -> str:
    s = table.subject
    if s.tests:
        return f"{s.kind}: " + ", ".join(f"{f} {t}" for f, t in s.tests)
    words = (
        [s.operation, s.dtype, s.redop, s.placement, f"{s.ranks} ranks"]
        if s.kind == "collective"
        else [s.test, s.connection, s.memory]
    )
    return ", ".join(str(w) for w in words if w)


def _comparison_rows(c: "Comparison", table: "Table") -> list[list[str]]:
    unit = "us" if table.subject.lower_is_better else "Gb/s"
    rows = [["size", *(f"{f} {unit}" for f in table.fabrics), *(f"{f} ratio" for f in table.others)]]
    for size in (s for s in table.sizes if sum(table.cell(f, s) is not None for f in table.fabrics) > 1):
        cells = [table.cell(f, size) for f in table.fabrics]
        ratios = [table.cell(f, size) for f in table.others]
        name = str(size) if size is not None else "stream"
        rows.append([name, *(" ".join(value_texts(x)) if x else "-" for x in cells), *(_ratio_mark(x) for x in ratios)])
    return rows


def _ratio_mark(x: "Cell | None") -> str:
    if x is None or x.ratio is None:
        return "-"
    mark = {"no difference shown": "~ ", "too few runs": "? "}.get(x.verdict, "")
    return mark + " ".join(ratio_texts(x)).strip()


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return ["  ".join(text.rjust(w) for text, w in zip(r, widths, strict=True)).rstrip() for r in rows]


def claim_lines(judgement: "Judgement") -> list[str]:
    """A claim for the terminal: its verdict with the reason, and under it what runs say of it, where any does."""
    row = judgement.row()
    stated = f"{row['stated']} {row['unit'] or ''}".strip()
    out = [f"{row['id']:<10} {row['verdict']:<26} {stated:<30} {row['because']} [{row['reading']}]"]
    found = judgement.evidence
    if found.get("median") is not None:
        low, high = (number_text(found[key], 4) for key in ("low", "high"))
        out.append(
            f"{'':<10} {found['verdict']:<26} {number_text(found['median'], 4)} [{low}, {high}] {found['unit']} "
            f"in {found['n']} runs"
        )
    elif found.get("n"):
        out.append(f"{'':<10} {found['verdict']:<26} {found['because']}")
    return out
