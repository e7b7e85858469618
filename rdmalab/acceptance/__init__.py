"""Acceptance: the limits of a contract, written as TOML, held against the runs of a campaign.

:func:`load` reads and checks a spec, :func:`check` gives every limit an outcome. A limit passes only where the interval
of the median lies wholly on the good side (or where every run does, if it asks for that); what straddles it is not
decided. A limit that physics forbids is refused itself, so that nobody signs it. The unit is the run.
"""

from rdmalab.acceptance._bound import stated_bound
from rdmalab.acceptance._check import check
from rdmalab.acceptance._export import text_lines, to_dict, to_junit
from rdmalab.acceptance._observed import head_of, logs_of, observed, snapshot_of
from rdmalab.acceptance._result import (
    FAIL,
    NOT_COMPARABLE,
    NOT_DECIDED,
    NOT_TESTED,
    OUTCOMES,
    PASS,
    REFUSED,
    Acceptance,
    Line,
    Outcome,
)
from rdmalab.acceptance._spec import METRICS, Spec, SpecError, Threshold, load, window_text

__all__ = [
    "FAIL", "METRICS", "NOT_COMPARABLE", "NOT_DECIDED", "NOT_TESTED", "OUTCOMES", "PASS", "REFUSED", "Acceptance",
    "Line", "Outcome", "Spec", "SpecError", "Threshold", "check", "head_of", "load", "logs_of", "observed",
    "snapshot_of", "stated_bound", "text_lines", "to_dict", "to_junit", "window_text",
]  # fmt: skip
