"""
What a notebook cell calls to put something on the page of a report.

    show(Block('<section class="page"><h2>...</h2><div data-figure="0"></div></section>', [figure], alts=["..."]))
    record("busbw_ratio", 4.0)

A block is a piece of HTML with places for charts. The exporter (`rdmalab.export`) turns it into a part of the
document; JupyterLab shows the same HTML and, below it, the charts. A record is a value that is kept with the
executed notebook and collected from there; no reader of the report sees it.
"""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

BLOCK = "application/vnd.rdmalab.block+json"
RECORD = "application/vnd.rdmalab.record+json"
PLOTLY = "application/vnd.plotly.v1+json"

# A chart that JupyterLab shows and that already stands inside a block carries this mark in its metadata: the
# exporter drops it, so that no chart is printed twice.
ECHO = "rdmalab_echo"

_OTHERS = r'(?: [\w-]+="[^"]*")*'
PLACE = re.compile(rf'<div(?P<before>{_OTHERS}) data-figure="(?P<index>\d+)"(?P<after>{_OTHERS})></div>')


class Figure(Protocol):
    """What is needed of a plotly figure."""

    def to_json(self) -> str | None:
        """The figure as JSON text with ``data`` and ``layout``."""
        ...


@dataclass(frozen=True)
class Block:
    """
    A piece of a report.

    Attributes:
        html: A fragment of classes that ``template/rdmalab/report.css`` lists. Text in it is already escaped.
            ``<div data-figure="0"></div>`` marks the place of the first figure; more attributes may follow. Figures
            without a place stand at the end.
        figures: plotly figures.
        kind: What the exporter does with it: "" puts it into the document, "rail" into the left column of the
            screen, which is not printed.
        alts: One sentence per figure for readers who do not see it.
    """

    html: str
    figures: Sequence[Figure] = ()
    kind: str = ""
    alts: Sequence[str] = ()

    def bundle(self) -> dict[str, Any]:
        """The block as the data of one notebook output."""
        figures = [json.loads(f.to_json() or "{}") for f in self.figures]
        alts = [*self.alts, *[""] * (len(figures) - len(self.alts))]
        content = {"html": self.html, "figures": figures, "alts": alts, "kind": self.kind}
        return {BLOCK: content, "text/html": PLACE.sub("", self.html)}

    def _ipython_display_(self) -> None:
        """Called by ``display`` and for the last value of a cell."""
        from IPython.display import display

        bundle = self.bundle()
        display(bundle, raw=True)  # type: ignore[no-untyped-call]
        if os.environ.get("RDMALAB_REPORT"):
            return
        for figure in bundle[BLOCK]["figures"]:
            display({PLOTLY: figure}, raw=True, metadata={ECHO: True})  # type: ignore[no-untyped-call]


def show(*blocks: Block) -> None:
    """Puts blocks on the page, in this order."""
    for block in blocks:
        block._ipython_display_()


def record(name: str, value: Any) -> None:
    """
    Keeps a value with the executed notebook, for `rdmalab.export.records`.

    Args:
        name: Key; a later record of the same name replaces an earlier one.
        value: Anything JSON can say.
    """
    from IPython.display import display

    display({RECORD: {name: value}}, raw=True)  # type: ignore[no-untyped-call]
