"""The table of floors, half-bandwidth sizes and asymptotes that any report on sweeps can carry."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rdmalab.pages._paper import kept
from rdmalab.tables import cell_html, number_text, table_html, th
from rdmalab.units import size_text

if TYPE_CHECKING:
    import polars as pl

    from rdmalab.wording import Phrasing


def curve_table(found: "pl.DataFrame", labels: Mapping[str, str], w: "Phrasing") -> str:
    """
    One row a measurand and fabric: what two numbers say of its curve, or what was measured at its ends.

    Args:
        found: Of :func:`rdmalab.curves.summary`, only the rows to be shown.
        labels: Fabric → the words that the report shows.

    Returns:
        The HTML of the table, empty where there is no row.
    """
    head = [
        th(w._("Test"), "text"), th(w._("Fabric"), "text"), th(w._("runs")), th(w._("floor, µs")),
        th(w._("half-bandwidth size")), th(w._("asymptote, GB/s")), th(w._("Source"), "text"),
    ]  # fmt: skip
    rows = [
        f"<tr>{kept(_test(r, w))}{kept(labels[r['fabric']])}{cell_html(str(r['runs']))}"
        f"{''.join(cell_html(text) for text in _numbers(r, w))}{cell_html(_source(r, w), 'text')}</tr>"
        for r in found.iter_rows(named=True)
    ]
    return table_html(head, rows) if rows else ""


def _test(r: dict[str, Any], w: "Phrasing") -> str:
    if r["kind"] != "collective":
        return str(r["test"])
    place = w._("out of place") if r["placement"] == "out_of_place" else w._("in place")
    return w.clauses([w.collective(r["operation"]), place])


def _numbers(r: dict[str, Any], w: "Phrasing") -> tuple[str, str, str]:
    fitted = r["latency_floor_us"] is not None
    names = (
        ("latency_floor_us", "half_bandwidth_bytes", "asymptotic_gbyte_s") if fitted
        else ("smallest_us", "half_of_largest_bytes", "largest_gbyte_s")
    )  # fmt: skip
    floor, half, top = (r[name] for name in names)
    return number_text(floor), w._("below the smallest") if half is None else _size(half), number_text(top)


def _size(value: float) -> str:
    """A size between powers of two, in three digits."""
    unit = 1024 ** max(0, min(3, (int(value).bit_length() - 1) // 10))
    return f"{number_text(value / unit)}{size_text(unit)[1:]}"


def _source(r: dict[str, Any], w: "Phrasing") -> str:
    if r["latency_floor_us"] is not None:
        return w._("fitted")
    return w._("measured")
