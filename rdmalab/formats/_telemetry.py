"""What the formats of counters and utilization share: numbers, units that a tool's manual gives, the last line."""

import math
import re
from dataclasses import dataclass, field

from rdmalab.model import Note, Parsed, Reading
from rdmalab.sources import Text

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def number(printed: str) -> float | None:
    """The finite number that *printed* is, from its first to its last character, else None."""
    if not _NUMBER.fullmatch(printed):
        return None
    value = float(printed)
    return value if math.isfinite(value) else None


@dataclass
class Found:
    """What a format has read so far."""

    readings: list[Reading] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def note(self, line: int, code: str, text: str) -> None:
        """Adds a note."""
        self.notes.append(Note(line, code, text))

    def torn(self, line: int, text: str) -> None:
        """Notes a row that is not whole; nothing of it is read."""
        self.note(line, "torn_row", f"A row that is not whole is left out: {quoted(text)}")

    def parsed(self, text: Text) -> Parsed:
        """All of it, without the values of a last line that has no line end: its last digits may be missing."""
        cut = _unfinished_line(text)
        if any(r.line == cut for r in self.readings):
            self.readings = [r for r in self.readings if r.line != cut]
            self.notes.append(Note(cut, "torn_row", "The last line has no line end, so its values are left out."))
        return Parsed(readings=tuple(self.readings), notes=tuple(self.notes))


def quoted(text: str) -> str:
    """The beginning of a line, for a note."""
    text = text.strip()
    return text if len(text) <= 80 else f"{text[:77]}..."


def _unfinished_line(text: Text) -> int:
    """The number of the last line where it has no line end, else 0."""
    number, last = 0, b"\n"
    for number, last in text.chunks():  # noqa: B007 - the last chunk is what is wanted
        pass
    return 0 if last.endswith((b"\n", b"\r")) else number + last.count(b"\n")
