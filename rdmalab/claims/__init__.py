"""Claims: sentences of a vendor, written as TOML, held against arithmetic, each other, physics, facts and price.

:func:`load` reads and checks a claims file; :func:`audit` gives each claim its findings, one check after the other, and
the most severe of their verdicts. What the text does not decide is said so: a missing fact is named, never guessed. A
person's ruling (``audit`` in the file) is shown beside the verdict and never read by a check.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rdmalab.claims._checks import CHECKS, Book
from rdmalab.claims._closing import Closing, closing
from rdmalab.claims._evidence import Evidence
from rdmalab.claims._reading import load
from rdmalab.claims._records import (
    EVIDENCE,
    OPEN,
    VERDICTS,
    Call,
    Claim,
    ClaimsError,
    Document,
    Finding,
    Judgement,
)

if TYPE_CHECKING:
    from rdmalab.lab import Lab

__all__ = [
    "CHECKS",
    "EVIDENCE",
    "OPEN",
    "VERDICTS",
    "Call",
    "Claim",
    "ClaimsError",
    "Closing",
    "Document",
    "Evidence",
    "Finding",
    "Judgement",
    "audit",
    "closing",
    "judge",
    "load",
]


def audit(document: Document, evidence: Callable[[Claim], Mapping[str, Any] | None] | None = None) -> list[Judgement]:
    """
    Judges every claim of a document, in its order.

    Args:
        document: What :func:`load` returned.
        evidence: What logs say of a claim, see :class:`Evidence`: a mapping with at least ``verdict``, a word of
            ``EVIDENCE``; None where no run matches. Without it every claim has "no evidence".
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


def judge(document: Document, lab: "Lab | None" = None) -> list[Judgement]:
    """
    Judges every claim of a document, with the evidence of a store where there is one.

    Args:
        lab: An open store.
    """
    return audit(document, Evidence(lab, document) if lab else None)
