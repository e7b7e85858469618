"""The start page of ``rdmalab lab``: what the store holds, what the last ingest brought, which notebooks there are."""

import json
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdmalab.errors import RdmalabError
from rdmalab.lab import Lab
from rdmalab.language import translator
from rdmalab.report import notebooks_folder

if TYPE_CHECKING:
    import polars as pl


class Start:
    """
    A page for the first cell of a notebook; it is made anew whenever it is shown.

    Args:
        db: The store; default as in :func:`rdmalab.open`.
        lang: ``en`` or ``zh``.

    Raises:
        UsageError: There is no such language.
    """

    def __init__(self, db: str | Path | None = None, lang: str = "en") -> None:
        self._ = translator(lang)
        self._db = db

    def _repr_html_(self) -> str:
        try:
            with Lab(self._db) as lab:
                parts = [self._campaigns(lab), self._fabrics(lab), self._last_ingest(lab)]
                where = str(lab.store.path)
        except RdmalabError as error:
            parts, where = [f"<p>{escape(str(error))}</p>"], ""
        name = self._("Store")
        store = f"<p>{escape(name)}: <code>{escape(where)}</code></p>"
        return "".join([store, *parts, self._notebooks()])

    def _campaigns(self, lab: Lab) -> str:
        frame = lab.sql(
            """SELECT campaign, any_value(title) AS title, any_value(customer) AS customer, count(DISTINCT fabric) AS f,
                      count(*) AS runs, count(*) FILTER (excluded_because IS NULL) AS used
               FROM runs LEFT JOIN raw.campaigns USING (campaign) GROUP BY campaign ORDER BY campaign"""
        )
        head = (self._("Campaign"), self._("Title"), self._("Customer"), self._("fabrics"), self._("runs"),
                self._("of these quotable"))  # fmt: skip
        return self._table(self._("Campaigns"), head, frame)

    def _fabrics(self, lab: Lab) -> str:
        frame = lab.sql(
            """SELECT r.campaign, coalesce(any_value(f.label), r.fabric) AS label, any_value(r.fabric_family) AS family,
                      any_value(f.link_rate_gbit_s) AS rate, count(*) AS runs,
                      count(*) FILTER (r.excluded_because IS NULL) AS used
               FROM runs r LEFT JOIN raw.fabrics f USING (campaign, fabric)
               GROUP BY r.campaign, r.fabric ORDER BY r.campaign, any_value(f.ordinal) NULLS LAST, r.fabric"""
        )
        head = (self._("Campaign"), self._("Fabric"), self._("Family"), self._("Link rate, Gb/s"), self._("runs"),
                self._("of these quotable"))  # fmt: skip
        return self._table(self._("Fabrics"), head, frame)

    def _last_ingest(self, lab: Lab) -> str:
        frame = lab.sql(
            """SELECT strftime(ingested_at AT TIME ZONE 'UTC', '%Y-%m-%d %H:%M UTC') AS at,
                      array_to_string(campaigns, ', ') AS c, files, already_known, new_logs, runs, samples, readings,
                      notes, failed, unrecognised, not_read FROM ingests LIMIT 1"""
        )
        head = (
            self._("Time"), self._("Campaigns"), self._("files"), self._("already known"), self._("new logs"),
            self._("runs"), self._("rows"), self._("readings"), self._("notes"), self._("failed"),
            self._("unrecognised"), self._("not readable"),
        )  # fmt: skip
        return self._table(self._("Last ingest"), head, frame)

    def _notebooks(self) -> str:
        """The notebooks beside this one as links, and the command that makes the report of each."""
        rows = []
        for path in sorted(notebooks_folder().glob("*.ipynb")):
            if path.stem == "start":
                continue
            link = f'<a href="{escape(path.name)}">{escape(path.stem)}</a>'
            asks = (
                "" if path.stem == "explore" else f"<code>rdmalab report {escape(path.stem.replace('_', '-'))}</code>"
            )
            rows.append([link, escape(self._about(path)), asks])
        head = (self._("Notebook"), self._("What it shows"), self._("As a report"))
        return _html(self._("Notebooks"), head, rows)

    def _about(self, path: Path) -> str:
        known = {
            "explore": self._("A campaign on one screen: charts, runs, lines of logs"),
            "fabric_comparison": self._("Latency, throughput and utilization of fabrics side by side"),
            "pairs": self._("Which host, adapter or pair is slow"),
            "configuration_audit": self._("What the logs show to be set up wrong"),
            "acceptance": self._("Results held against the limits of a contract"),
            "claims_audit": self._("The claims of an offer held against physics, arithmetic and logs"),
            "price_performance": self._("What a delivered GB/s costs, and when the dearer fabric pays"),
        }
        return known.get(path.stem) or _first_words(path)

    def _table(self, title: str, head: Iterable[str], frame: "pl.DataFrame") -> str:
        rows = [
            [escape("" if v is None else f"{v:g}" if isinstance(v, float) else str(v)) for v in r] for r in frame.rows()
        ]
        return _html(title, head, rows)


def _first_words(path: Path) -> str:
    """What a notebook says of itself in its first comment or heading."""
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    lines = ("".join(c["source"]).partition("\n")[0] for c in cells)
    return next((line.lstrip("# ") for line in lines if line.startswith("#")), "")


def _html(title: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of cells that are HTML already."""
    top = "".join(f"<th style='text-align:left'>{escape(h)}</th>" for h in head)
    body = "".join("<tr>" + "".join(f"<td style='text-align:left'>{c}</td>" for c in row) + "</tr>" for row in rows)
    return f"<h3>{escape(title)}</h3><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
