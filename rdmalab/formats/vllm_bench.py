"""vllm-bench: the JSON result of ``vllm bench serve --save-result``, one document for each concurrency.

    {"date": "20260617-163232", "max_concurrency": 64, "num_prompts": 3200, "completed": 1791, ...}

Keys that end in ``_ms`` are milliseconds. A variant without the ending is in seconds, which is believed only where the
throughput of the same document bears it out. Latencies cover the requests that were completed, so a server that drops
half of them can look fast: the success rate belongs beside every latency.
"""

import re
from typing import Any

from rdmalab.formats._json import documents, finite
from rdmalab.formats._lines import clean
from rdmalab.formats._telemetry import Found
from rdmalab.model import Parsed, Reading
from rdmalab.sources import Text

NAME = "vllm-bench"
EXAMPLE = '  "median_ttft_ms": 73.2587007805705,'
HINTS = (b"request_throughput",)
SIGNATURE = re.compile(rb'"request_throughput":')

_LATENCY = re.compile(r"(mean|median|std|p\d+(?:\.\d+)?)_(ttft|tpot|itl|e2el)(_ms)?")
_PLAIN = {  # key of the document: metric, unit
    "completed": ("completed", "requests"),
    "failed": ("failed", "requests"),
    "num_prompts": ("num_prompts", "requests"),
    "max_concurrency": ("max_concurrency", "requests"),
    "duration": ("duration_s", "s"),
    "request_throughput": ("request_throughput_per_s", "requests/s"),
    "request_goodput": ("request_goodput_per_s", "requests/s"),
    "output_throughput": ("output_throughput_per_s", "tokens/s"),
    "total_token_throughput": ("total_token_throughput_per_s", "tokens/s"),
}
_LITTLE = (  # what Little's law needs
    "request_throughput", "max_concurrency", "median_e2el", "mean_e2el", "median_ttft", "median_tpot", "completed",
    "total_output_tokens",
)  # fmt: skip
_OPEN_LOOP = "Open loop: the requests were not held to a concurrency, so this is no point of a concurrency sweep."
_UNIT_UNKNOWN = "Latencies without a unit in their name cannot be shown to be seconds and are left out."
_COMPLETED_ONLY = "Latencies cover the completed requests only: {completed} of {prompts}."


def parse(text: Text) -> Parsed:
    """Every number of a result is a reading of the device ``concurrency=N``."""
    found = Found()
    for line, document in documents(clean(text), '"request_throughput"'):
        if document is None:
            found.note(line, "cut_document", "The JSON document ends before its closing brace.")
        elif isinstance(document, dict) and {"completed", "request_throughput", "duration"} <= document.keys():
            _result(found, line, document)
    return Parsed(readings=tuple(found.readings), notes=tuple(found.notes))


def _result(found: Found, line: int, document: dict[str, Any]) -> None:
    values = {metric: (finite(document.get(key)), unit) for key, (metric, unit) in _PLAIN.items() if key in document}
    values["success_rate_ratio"] = _success_rate(found, line, document), "ratio"
    values |= _latencies(found, line, document)
    device, date = _device(found, line, document), document.get("date")
    found.readings += [
        Reading(
            metric=metric, value=value, unit=unit, device=device, line=line,
            stamp=date if isinstance(date, str) else None,
        )
        for metric, (value, unit) in values.items()
        if value is not None
    ]  # fmt: skip
    model, rate = document.get("model_id"), document.get("request_rate")
    if isinstance(model, str):
        found.note(line, "serving_setup", f"Model {model}, request rate {rate}.")


def _device(found: Found, line: int, document: dict[str, Any]) -> str | None:
    concurrency = finite(document.get("max_concurrency"))
    if concurrency is not None:
        return f"concurrency={concurrency:.0f}"
    if "max_concurrency" in document:
        found.note(line, "open_loop", _OPEN_LOOP)
    else:
        found.note(line, "no_concurrency", "The document does not say at what concurrency it was measured.")
    return None


def _success_rate(found: Found, line: int, document: dict[str, Any]) -> float | None:
    """Completed requests over all; None where the counts do not fit together."""
    completed, prompts, failed = (finite(document.get(key)) for key in ("completed", "num_prompts", "failed"))
    if completed is None or not prompts:
        return None
    if not 0 <= completed <= prompts or (failed is not None and completed + failed != prompts):
        counts = f"{completed:.0f} completed, {failed} failed, {prompts:.0f} in all"
        found.note(line, "counts_disagree", f"No success rate: the counts do not fit together ({counts}).")
        return None
    if completed < prompts:
        text = _COMPLETED_ONLY.format(completed=f"{completed:.0f}", prompts=f"{prompts:.0f}")
        found.note(line, "completed_only", text)
    return completed / prompts


def _latencies(found: Found, line: int, document: dict[str, Any]) -> dict[str, tuple[float, str]]:
    """``ttft_median_ms`` and its like, in milliseconds. vLLM writes 0 where there was nothing to measure: left out."""
    keys = {key: match for key in document if (match := _LATENCY.fullmatch(key))}
    in_seconds = _fits_seconds(document)
    if not in_seconds and not all(match[3] for match in keys.values()):
        found.note(line, "unit_unknown", _UNIT_UNKNOWN)
    latencies: dict[str, tuple[float, str]] = {}
    for key, match in keys.items():
        value = finite(document[key])
        if value is not None and (value > 0 or (value == 0 and match[1] == "std")) and (match[3] or in_seconds):
            latencies[f"{match[2]}_{match[1]}_ms"] = (value if match[3] else value * 1000), "ms"
    return latencies


def _fits_seconds(document: dict[str, Any]) -> bool:
    """
    Whether the keys without a unit are seconds.

    Requests in flight = time of a request x requests a second (Little's law), and no more are in flight than the
    concurrency allows. Milliseconds taken for seconds would make a thousand times as many; a median may be off the
    mean by a little.
    """
    known = {key: finite(document.get(key)) or 0.0 for key in _LITTLE}
    request_s = known["median_e2el"] or known["mean_e2el"]
    if not request_s and all(known[key] for key in ("completed", "total_output_tokens", "median_ttft", "median_tpot")):
        tokens = known["total_output_tokens"] / known["completed"]
        request_s = known["median_ttft"] + known["median_tpot"] * tokens
    return 0 < request_s * known["request_throughput"] <= 3 * known["max_concurrency"]
