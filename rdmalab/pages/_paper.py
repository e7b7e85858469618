"""What every report has in common: sections with a finding as title, columns, notes, the cover, the margins."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from rdmalab.tables import cell_html
from rdmalab.wording import Phrasing


class Paper:
    """
    The paper of one report in one language: the base of all pages.

    Args:
        phrasing: How things are said, in the language of the report.
        report: Name of the report, for example ``Fabric comparison``, translated.
        report_id: A name that changes with the data.
        snapshot: Hash of the data.
        customer: For whom; None where nobody is stated.
        synthetic: Whether the data was made up; every page then says so.
    """

    def __init__(
        self, phrasing: Phrasing, *, report: str, report_id: str, snapshot: str, customer: str | None, synthetic: bool
    ) -> None:
        self.phrasing, self.lang, self._ = phrasing, phrasing.lang, phrasing._
        self.report, self.report_id, self.snapshot, self.customer = report, report_id, snapshot, customer
        self.status = self._("SYNTHETIC DATA: nothing was measured") if synthetic else ""
        self._number = 0

    def _cover(
        self, clauses: Iterable[str], lead: str, facts: Sequence[tuple[str, str]], *, after: str = "", caption: str = ""
    ) -> str:
        """
        The first page.

        Args:
            clauses: The verdict, each clause on a line of its own.
            lead: What the verdict rests on.
            facts: (name, value) at the foot of the page.
            after: HTML under the lead: what must be said on the first page.
            caption: What the figure of the cover shows; empty for a cover without one.
        """
        title = " ".join(f'<span class="clause">{whole_words(x)}</span>' for x in clauses)
        tag = f'<span class="tag">{escape(self.status)}</span>' if self.status else ""
        figure = (
            f'<div class="coverfigure"><p class="sub">{escape(caption)}</p><div data-figure="0"></div></div>'
            if caption
            else ""
        )
        foot = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in facts)
        return (
            f'<section class="cover"><p class="covertop"><b>{escape(self.report)}</b> {tag}</p>'
            f'<h1>{title}</h1><p class="lead">{whole_words(lead)}</p>{after}{figure}'
            f'<dl class="facts">{foot}</dl></section>'
        )

    def _section(
        self, kicker: str, title: str, sub: str, body: str, kind: str = "page", *, counted: bool = True
    ) -> str:
        """A section with its number, the finding as title, and what is drawn as sub-line; *body* is HTML."""
        if counted:
            self._number += 1
            kicker = f"{self._number} {kicker}"
        head = whole_words(self.phrasing.sentence(title))
        return (
            f'<section class="{kind}"><p class="kicker">{escape(kicker)}</p><h2>{head}</h2>'
            f'<p class="sub">{escape(sub)}</p>{body}</section>'
        )

    def _columns(self, *columns: tuple[str, str], kind: str = "ruled") -> str:
        """(head, text) side by side."""
        return (
            f'<div class="cols3 {kind}">'
            + "".join(f"<div><h4>{escape(h)}</h4><p>{whole_words(t)}</p></div>" for h, t in columns)
            + "</div>"
        )

    def _keyed(self, items: Iterable[tuple[str, str]]) -> str:
        """(drawing as SVG, name) on a line of keys above a chart."""
        keys = " ".join(f'<span class="key">{svg} {escape(name)}</span>' for svg, name in items)
        return f'<p class="keys">{keys}</p>'

    def _noted(self, word: str, texts: Sequence[str]) -> str:
        """Notes, each behind a bold *word*."""
        return "".join(f'<div class="note"><b>{escape(word)}</b> {escape(t)}</div>' for t in texts)

    def _hatched(self, what: str, why: str, closes: str) -> str:
        """What could not be compared, why, and what closes the gap."""
        closing = escape(self._("Closes with:"))
        return f'<div class="hatched"><b>{escape(what)}</b> {escape(why)} <em>{closing}</em> {escape(closes)}</div>'

    def _facts(self, campaign: Mapping[str, Any], evidence: str, *, measured: str = "") -> list[tuple[str, str]]:
        """What stands at the foot of a cover: for whom, on what, when and on how much evidence."""
        return [
            (self._("Prepared for"), self.customer or self._("not stated")),
            (self._("Campaign"), campaign["title"] or campaign["campaign"]),
            *([(self._("Measured"), measured)] if measured else []),
            (self._("Evidence"), evidence),
            (self._("Report"), self.report_id),
        ]

    def header(self) -> dict[str, Any]:
        """What the margins of the pages print; a report adds its ``title``."""
        return {
            "report": self.report, "customer": self.customer, "status": self.status or None,
            "report_id": self.report_id, "snapshot": self.snapshot[:12],
        }  # fmt: skip


def shown_path(path: str, root: str | None) -> str:
    """
    A path without the folders above the campaign: reports name no user and no machine.

    Where no campaign file says what lies above, only the name is left, of an archive's member with the archive's.
    """
    inside = path.removeprefix(f"{root}/") if root else path
    return inside if inside != path else "!".join(part.rpartition("/")[2] for part in path.split("!"))


def lines(text: str, per_line: int) -> int:
    """How many lines a text takes of which one holds *per_line* letters; a Chinese character is as wide as two."""
    return -(-sum(2 if unicodedata.east_asian_width(x) in "WF" else 1 for x in text) // per_line)


def whole_words(text: str) -> str:
    """Escaped text whose hyphenated words and names never break: ``all-reduce``, ``Soft-RoCE``, ``node-002``."""
    return _HYPHENATED.sub(lambda m: f'<span class="keep">{m[0]}</span>' if len(m[0]) < 25 else m[0], escape(text))


_HYPHENATED = re.compile(r"[A-Za-z0-9_.]+(?:-[A-Za-z0-9_.]+){1,3}")


def powers(html: str) -> str:
    """HTML with powers set high."""
    return re.sub(r"\b(10|2)\^(\d+)", r"\1<sup>\2</sup>", html)


def explained(items: Iterable[tuple[str, str]]) -> str:
    """(word, what it means) as a table."""
    rows = "".join(f'<tr>{cell_html(k, "text")}<td class="text">{powers(escape(v))}</td></tr>' for k, v in items)
    return f'<table class="words"><tbody>{rows}</tbody></table>'


def bullets(texts: Iterable[str]) -> str:
    """Texts as a list, in small type."""
    return '<ul class="evidence">' + "".join(f"<li>{escape(t)}</li>" for t in texts) + "</ul>"


def p(text: str) -> str:
    """A paragraph of text."""
    return f"<p>{escape(text)}</p>"


def h3(text: str) -> str:
    """A small heading."""
    return f"<h3>{escape(text)}</h3>"


def kept(text: str, kind: str = "text") -> str:
    """A cell whose short text never breaks; a long one may."""
    return (
        f'<td class="{kind}"><span class="keep">{escape(text)}</span></td>'
        if len(text) <= 20
        else cell_html(text, kind)
    )
