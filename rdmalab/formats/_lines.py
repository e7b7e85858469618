"""Clean lines: without carriage returns, terminal colours, launcher and pod prefixes; CRI partial records joined.

A prefix is only removed where a line that a format is sure of (its *anchor*) shows that the log carries one:
``0: `` in a log without a launcher is text like any other.
"""

import re
from collections.abc import Iterator
from itertools import count, islice, pairwise, repeat
from typing import NamedTuple

from rdmalab.sources import Text

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[@-Z\\-_])")
_STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_COMMENT = re.compile(r"#[# \t]*$")  # belongs to the tool's own line, whether the anchor names it or not
_CRI = re.compile(rf"({_STAMP} std(?:out|err)) ([FP]) ?")

_NUMBER = re.compile(r"(?:[A-Za-z][\w./-]*:)?\d{1,9}[:-]")  # grep -n, with -H
_WORD = re.compile(r"[^\W\d_]|[-*•>│]")
_FREQUENT = 3  # lines
_SAMPLE = 1 << 16  # bytes
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_LEVEL = "(?:TRACE|INFO|DEBUG|NOTICE|WARN(?:ING)?|ERROR|stdout|stderr)"
# What may stand before a line. Only ATOMS with a tag tell one stream from another; stamps and log levels do not.
_ATOMS = {
    "cri": (rf"{_STAMP} std(?:out|err) [FP] ?", False),
    "gitlab": (rf"{_STAMP} \d\d[OE][ +]", False),
    "stamp": (rf"\[?{_STAMP}\]?[ \t]+", False),
    "clock": (rf"(?:\[{_CLOCK}\]|{_CLOCK})[ \t]+", False),
    "syslog": (rf"[A-Z][a-z]{{2}} +\d+ {_CLOCK} +", False),
    "date": (rf"[A-Z][a-z]{{2}} [A-Z][a-z]{{2}} +\d+ {_CLOCK}(?: [A-Z]{{3,4}})? \d{{4}}:?[ \t]*", False),
    "epoch": (r"\d{13}[ \t]+", False),
    "glog": (rf"[IWEF]\d{{4}} {_CLOCK} +\d+ [\w./-]+:\d+\] ", False),
    "dashes": (rf"- (?:[\w.-]+ - )?{_LEVEL} - ", False),
    "level": (rf"(?:\[?{_LEVEL}\]?:?[ \t]+)", False),
    "place": (r"\[[\w./-]+:\d+(?::\w+)?\][ \t]+", False),
    "number": (r"[ ]*\d+\t", False),
    "service": (r"[A-Za-z][\w.-]*[ \t]*\|[ \t]?", True),
    "bar": (r"[|│][ \t]?", False),
    "quote": (r">[ \t]?", False),
    "mpi": (r"\[(?:[\w.-]+@)?\d+,\d+\](?:\[[^\]\s]*\])?<std(?:out|err|diag)>:[ ]?", True),
    "pod": (r"\[pod/[^\]\s]+\][ \t]", True),
    "torch": (r"\[(?:rank|default)\d+\]:[ ]?", True),
    "ray": (r"\([^()]*\bpid=\d+[^()]*\)[ \t]", True),
    "process": (r"[\w.-]+ [\w./-]+\[\d+\]:[ ]", True),
    "rank": (r"[ ]*\d+:[ \t]", True),
    "bracket": (r"\[[\w.-]+\][ \t]", True),
    "host": (r"[A-Za-z][\w.-]*:[ ]?", True),
}


class Line(NamedTuple):
    """A clean line. ``tag`` names the stream it came from: the launcher's mark (``[1,0]<stdout>:``), empty without."""

    number: int
    tag: str
    text: str


def clean(text: Text, without: re.Pattern[str] | None = None) -> Iterator[tuple[int, str]]:
    """
    Yields (number, line) without CR and terminal colours; CRI partial records are joined under the first number.

    Args:
        without: Lines to be passed over, see :meth:`Text.lines`.
    """
    held: dict[str, tuple[int, str]] = {}
    for number, line in text.lines(without):
        line = line.strip("\r")
        if "\x1b" in line:
            line = _ANSI.sub("", line)
        record = _CRI.match(line) if line[:2] == "20" else None
        if record:
            stream = record[1].rsplit(" ", 1)[1]
            if stream in held:
                number, start = held.pop(stream)
                line = start + line[record.end() :]
            if record[2] == "P":
                held[stream] = number, line
                continue
        yield number, line
    yield from held.values()


def unprefixed(text: Text, anchor: re.Pattern[str], without: re.Pattern[str] | None = None) -> Iterator[Line]:
    """
    The clean lines of *text* with their launcher prefix split off.

    Args:
        anchor: Matches the beginning of what the tool itself prints on lines that only it prints. What stands before
            the first match shows which prefixes the log carries.
        without: Matches blocks of whole lines that nobody wants; they may be passed over where no line has a prefix.
    """
    prefix = _prefix_pattern(text, anchor)
    if prefix is not None:
        return _without(prefix, clean(text))
    if (content := _clean_already(text)) is not None:
        return map(Line, count(1), repeat(""), _lines_of(content))
    return (Line(number, "", line) for number, line in clean(text, without))


def plain_lines(text: Text, anchor: re.Pattern[str]) -> list[str] | None:
    """All lines of *text* where it is held in memory and :func:`unprefixed` would change none of them, else None."""
    content = _clean_already(text)
    if content is None or (_may_lead(content, anchor) and not all(map(_is_blank, _leads_in(content, anchor)))):
        return None
    return _lines_of(content)


def _may_lead(content: str, anchor: re.Pattern[str]) -> bool:
    """A quick look: anchors that begin as comments have nothing before them where each begins its line."""
    return anchor.pattern[:1] != "#" or bool(anchor.search(("\n" + content).replace("\n#", "\n")))


def _clean_already(text: Text) -> str | None:
    """The content of a text of which :func:`clean` would yield all lines as they are, else None."""
    held = text.held
    if held is None or b"\r" in held or b"\x1b" in held or b" std" in held:
        return None
    try:
        return held.decode()
    except UnicodeDecodeError:
        return None


def _lines_of(content: str) -> list[str]:
    return content.removesuffix("\n").split("\n") if content else []


def _without(prefix: re.Pattern[str], lines: Iterator[tuple[int, str]]) -> Iterator[Line]:
    for number, line in lines:
        found = prefix.match(line)
        if found:
            rest = line[found.end() :]
            if found[0].rstrip()[-1:] in ("|", "│"):  # a row of a table has one at its end too
                rest = rest.rstrip(" \t|│")
            yield Line(number, "".join(v for v in found.groups() if v).strip(), rest)
        else:
            yield Line(number, "", line)


def ends_with_line_end(text: Text) -> bool:
    """Whether the last line of *text* is whole: one without a line end may have lost its last characters."""
    last = b""
    for _, chunk in text.chunks():
        last = chunk
    return last.endswith((b"\n", b"\r"))


def _prefix_pattern(text: Text, anchor: re.Pattern[str]) -> re.Pattern[str] | None:
    """The pattern of all prefixes that stand before anchors, or None when there is none."""
    leads = [_COMMENT.sub("", lead) for lead in _leads(text, anchor) if not _is_blank(lead)]
    numbered = bool(leads) and all(map(_NUMBER.match, leads)) and _are_numbered(text)
    if numbered:
        leads = [lead for lead in (_NUMBER.sub("", lead, count=1) for lead in leads) if lead.strip()]
    shapes: list[str] = []
    unknown: dict[str, int] = {}
    for lead in leads:
        shape, known = _shape(lead)
        if not known and not _WORD.search(lead):  # digits: of a row with one column more
            continue
        # Words that stand before an anchor once are text that another process wrote there, not a prefix.
        unknown[shape] = unknown.get(shape, 0) + (2 if known else 1)
        if unknown[shape] > 1 and shape not in shapes:
            shapes.append(shape)
            if len(shapes) >= 8:
                break
    shapes += [
        shape for shape, count in unknown.items() if count == 1 and len(shapes) < 8 and _is_frequent(shape, text)
    ]
    pattern = "|".join(f"(?:{s})" for s in sorted(shapes, key=len, reverse=True))
    if numbered:
        pattern = f"{_NUMBER.pattern}(?:{pattern})?"
    return re.compile(pattern) if pattern else None


def _are_numbered(text: Text) -> bool:
    """Whether every line begins with its number, as ``grep -n`` prints it: each is greater than the one before."""
    _, start = next(text.chunks(), (1, b""))
    lines = start[:_SAMPLE].decode("utf-8", errors="replace").split("\n")[:-1]
    numbers = [int(found[0][:-1].rpartition(":")[2]) for line in lines if (found := _NUMBER.match(line))]
    return len(numbers) == len(lines) >= _FREQUENT and all(a < b for a, b in pairwise(numbers))


def _is_frequent(shape: str, text: Text) -> bool:
    """Whether many lines begin like this."""
    pattern = re.compile(f"^(?:{shape})", re.MULTILINE)
    _, start = next(text.chunks(), (1, b""))
    return sum(1 for _ in islice(pattern.finditer(start.decode("utf-8", errors="replace")), _FREQUENT)) == _FREQUENT


def _is_blank(lead: str) -> bool:
    """Whether a line only begins with blanks or as a comment: that is the tool's own."""
    return not _COMMENT.sub("", lead).strip()


def _leads(text: Text, anchor: re.Pattern[str]) -> Iterator[str]:
    """What stands before the first anchor of each line that holds one."""
    for _, chunk in text.chunks():
        content = chunk.decode("utf-8", errors="replace").replace("\r", "")
        if "\x1b" in content or " stdout P " in content or " stderr P " in content:
            # Colours and split records hide anchors: only clean lines show them.
            for _, line in clean(Text.of(chunk)):
                if found := anchor.search(line):
                    yield line[: found.start()]
            continue
        yield from _leads_in(content, anchor)


def _leads_in(content: str, anchor: re.Pattern[str]) -> Iterator[str]:
    """The same for clean lines; what is empty is left out."""
    done = -1
    for found in anchor.finditer(content):
        at = found.start()
        start = content.rfind("\n", 0, at) + 1
        if start not in (done, at):
            yield content[start:at]
        done = start


def _shape(lead: str) -> tuple[str, bool]:
    """The pattern of the text before an anchor: known atoms (True), else the text itself with any digits (False)."""
    pattern, rest = "", lead.lstrip(" \t")
    while rest.strip():
        for atom, tagged in _ATOMS.values():
            if found := re.match(atom, rest):
                pattern += f"({atom})" if tagged else f"(?:{atom})"
                rest = rest[found.end() :]
                break
        else:
            pattern += "(?:" + re.sub(r"\d+", r"\\d+", re.escape(rest.strip())) + r")[ \t]?"
            return r"[ \t]*" + pattern, False
    return r"[ \t]*" + pattern, True
