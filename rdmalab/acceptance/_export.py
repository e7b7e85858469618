"""An acceptance for a terminal, as JSON and as JUnit XML."""

import re
from collections.abc import Iterator
from typing import Any

from rdmalab.acceptance._result import NOT_TESTED, OUTCOMES, PASS, Acceptance, Line, Outcome
from rdmalab.acceptance._spec import plain_size


def rows_of(found: Acceptance) -> list[dict[str, Any]]:
    """Plain values of every limit and line, for JSON."""
    return [
        {
            "name": x.limit.name, "outcome": x.outcome, "metric": x.limit.metric, "test": x.limit.test,
            "statistic": x.limit.statistic, "at_least": x.limit.at_least, "at_most": x.limit.at_most,
            "one_of": list(x.limit.one_of), "unit": x.limit.shown_unit, "source": x.limit.source, "closes": x.closes,
            "lines": [vars_of(line) for line in x.lines],
        }
        for x in found.outcomes
    ]  # fmt: skip


def vars_of(line: Line) -> dict[str, Any]:
    """A line as plain values."""
    return {f: getattr(line, f) for f in Line.__dataclass_fields__} | {"runs": list(line.runs)}


def to_dict(found: Acceptance) -> dict[str, Any]:
    """The whole as one JSON object; ``sql`` of a line gives its values again."""
    spec = found.spec
    return {
        "spec": spec.name, "title": spec.title, "sha256": spec.sha256, "campaign": found.campaign,
        "accepted": found.accepted, "passed": found.passed, "of": len(found.outcomes),
        "counts": {o: found.count(o) for o in OUTCOMES if found.count(o)}, "limits": rows_of(found),
    }  # fmt: skip


def text_lines(found: Acceptance) -> Iterator[str]:
    """For a terminal: a line a limit with the value that decides, and what closes a gap."""
    for x in found.outcomes:
        w = x.worst
        value = "" if w.value is None else f" {w.value:.6g} {x.limit.shown_unit}".rstrip()
        many = x.limit.window[0] != x.limit.window[1]
        at = f" at {plain_size(w.size_bytes)}" if w.size_bytes is not None and many else ""
        yield f"{x.outcome:<14} {x.limit.name}: {x.limit.asks}"
        found_at = f"{w.fabric}{at}{value}; " if w.fabric else ""
        yield f"{'':<14} {found_at}{w.because}"
        if x.closes:
            yield f"{'':<14} tested by: {x.closes}"
        yield f"{'':<14} source: {x.limit.source}"
    counts = ", ".join(f"{found.count(o)} {o}" for o in OUTCOMES if found.count(o))
    of = f"{found.passed} of {len(found.outcomes)} limits pass ({counts})"
    yield f"{found.spec.name}, campaign {found.campaign}: {of}"


def to_junit(found: Acceptance) -> str:
    """JUnit XML: a test case a limit; what was not tested is skipped, everything else that does not pass has failed."""
    from xml.etree import ElementTree as Xml

    skipped = found.count(NOT_TESTED)
    counts = {
        "tests": len(found.outcomes), "failures": len(found.outcomes) - found.passed - skipped, "errors": 0,
        "skipped": skipped,
    }  # fmt: skip
    numbers = {k: str(v) for k, v in counts.items()}
    root = Xml.Element("testsuites", numbers)
    suite = Xml.SubElement(root, "testsuite", {"name": _clean(found.spec.name), **numbers})
    for x in found.outcomes:
        names = {"classname": _clean(f"{found.spec.name}.{found.campaign}"), "name": _clean(x.limit.name)}
        case = Xml.SubElement(suite, "testcase", {**names, "time": "0"})
        if x.outcome == NOT_TESTED:
            Xml.SubElement(case, "skipped", {"message": _clean(f"{x.outcome}: {x.worst.because}")})
        elif x.outcome != PASS:
            said = {"message": _clean(f"{x.outcome}: {x.worst.because}"), "type": x.outcome.replace(" ", "_")}
            Xml.SubElement(case, "failure", said).text = _clean("\n".join(_told(x)))
        Xml.SubElement(case, "system-out").text = _clean("\n".join(_told(x)))
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _told(x: Outcome) -> list[str]:
    told = [f"asked: {x.limit.asks}; source: {x.limit.source}"]
    for line in x.lines:
        value = "" if line.value is None else f" {line.value:.6g} {x.limit.shown_unit}"
        size = "" if line.size_bytes is None else f" at {plain_size(line.size_bytes)}"
        told.append(f"{line.outcome}: {line.fabric}{size}{value}; {line.because}; {line.sql}")
    return told


def _clean(text: str) -> str:
    """Without the control characters that XML cannot hold."""
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "?", text)
