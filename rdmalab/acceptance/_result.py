"""What a check finds: lines of measured values, an outcome a limit, and the whole."""

from collections.abc import Sequence
from dataclasses import dataclass

from rdmalab.acceptance._spec import Spec, Threshold

PASS, NOT_TESTED, NOT_COMPARABLE, NOT_DECIDED, FAIL, REFUSED = OUTCOMES = (
    "pass", "not tested", "not comparable", "not decided", "fail", "refused",
)  # fmt: skip  # in rising order: a limit has the outcome of its worst line


@dataclass(frozen=True, kw_only=True)
class Line:
    """
    One measured value of a limit: a fabric, a measurand and a size (or a window of sizes) with its runs.

    ``sql`` gives the values of the runs again (``rdmalab query``); *low* and *high* are the interval, or the extremes.
    """

    outcome: str
    because: str
    fabric: str = ""
    measurand: str = ""
    size_bytes: int | None = None
    n: int = 0
    value: float | None = None
    low: float | None = None
    high: float | None = None
    where: str = ""
    bound: float | None = None
    bound_formula: str = ""
    bound_source: str = ""
    runs: tuple[str, ...] = ()
    sql: str = ""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A limit with its lines; ``closes`` is the command whose log would test what was not tested."""

    limit: Threshold
    lines: tuple[Line, ...]
    closes: str = ""

    @property
    def worst(self) -> Line:
        """The line that decides: of the worst outcome, and of these the nearest to failing."""
        return self.worst_of(self.lines)

    def worst_of(self, lines: Sequence[Line]) -> Line:
        """The same of some of the lines."""
        sign = -1 if self.limit.at_most is not None else 1
        return max(lines, key=lambda x: (OUTCOMES.index(x.outcome), -sign * (x.value or 0.0)))

    @property
    def outcome(self) -> str:
        """A word of ``OUTCOMES``."""
        return self.worst.outcome


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """A spec held against a campaign."""

    spec: Spec
    campaign: str
    outcomes: tuple[Outcome, ...]

    @property
    def passed(self) -> int:
        """How many limits pass."""
        return sum(x.outcome == PASS for x in self.outcomes)

    @property
    def accepted(self) -> bool:
        """Whether every limit passes."""
        return self.passed == len(self.outcomes)

    def count(self, outcome: str) -> int:
        """How many limits have this outcome."""
        return sum(x.outcome == outcome for x in self.outcomes)
