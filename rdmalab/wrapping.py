"""Logs that stand inside another document, line for line: notebooks, Docker's log files, HTML.

    {"log":"# Using devices\\n","stream":"stdout","time":"2026-01-02T03:04:05.678Z"}      /var/lib/docker/containers
      "# Using devices\\n",                                                               outputs of a notebook
    [1,0]&lt;stdout&gt;:# Using devices                                                   copied from a web page

Every line stays the line it is, so that numbers of lines are those of the file.
"""

import json
import re

_STRING = rb'"((?:[^"\\]|\\.)*)"'
_DOCKER = re.compile(rb'^\{"log": ?' + _STRING + rb", ?[^\n]*\}\r?$", re.MULTILINE)
_CELL = re.compile(rb"^[ \t]*" + _STRING + rb",?\r?$", re.MULTILINE)
_NO_BREAK_SPACE, _ZERO_WIDTH_SPACE = "\u00a0".encode(), "\u200b".encode()


def unwrapped(content: bytes) -> bytes:
    """The same lines of UTF-8 as the tool printed them."""
    # Looking for a single byte first costs next to nothing.
    if b"\xc2" in content and _NO_BREAK_SPACE in content:
        content = content.replace(_NO_BREAK_SPACE, b" ")
    if b"\xe2" in content and _ZERO_WIDTH_SPACE in content:
        content = content.replace(_ZERO_WIDTH_SPACE, b"")
    if b"{" in content:
        if b'{"log":' in content:
            content = _DOCKER.sub(_line, content)
        if b'"cell_type"' in content:
            content = _CELL.sub(_line, content)
    if b"&" in content and (b"&lt;" in content or b"&gt;" in content):
        content = content.replace(b"&lt;", b"<").replace(b"&gt;", b">").replace(b"&amp;", b"&")
    return content


def _line(found: re.Match[bytes]) -> bytes:
    """What a JSON string holds, if it is one line."""
    try:
        line = str(json.loads(b'"%s"' % found[1])).encode(errors="replace")
    except ValueError:
        return found[0]
    line = line.removesuffix(b"\n")
    return found[0] if b"\n" in line else line
