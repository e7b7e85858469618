"""Lines of logs, read again to be quoted: the store keeps what a log says and where, not its text."""

from collections.abc import Collection
from pathlib import Path

from rdmalab import sources


def text_of(path: str, file: str, sha256: str) -> sources.Text | str:
    """
    The text of a stored log as it was read, or one sentence why it cannot be shown.

    Args:
        path: What a user is shown, ``archive!member`` for a part of an archive.
        file: The file on disk that holds it.
        sha256: Of the content that was read.
    """
    texts = sources.texts(file) if Path(file).exists() else ()
    text = next((t for t in texts if isinstance(t, sources.Text) and t.path == path), None)
    if text is None:
        return f"{path}: the log is no longer there; the store keeps its numbers, not its text"
    if text.sha256 != sha256:
        return f"{path}: the log has changed since it was read; its lines are not shown"
    return text


def lines_of(text: sources.Text, wanted: Collection[int]) -> dict[int, str]:
    """The lines with these numbers; whole chunks without any are passed over."""
    found: dict[int, str] = {}
    for first, chunk in text.chunks():
        last = first + chunk.count(b"\n")
        if inside := [n for n in wanted if first <= n <= last and n not in found]:
            lines = chunk.split(b"\n")
            found |= {n: lines[n - first].decode("utf-8", "replace").strip() for n in inside if n - first < len(lines)}
        if len(found) == len(wanted):
            break
    return found
