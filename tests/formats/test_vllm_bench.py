"""What the vllm-bench format promises, on results written for it and on any text at all."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdmalab.formats import vllm_bench
from rdmalab.model import Parsed, Reading
from rdmalab.sources import Text

LOGS = Path(__file__).parent / "vllm_bench"
ALL = sorted(LOGS.iterdir())


def content(name: str) -> str:
    return (LOGS / name).read_text()


def parsed(text: str) -> Parsed:
    return vllm_bench.parse(Text.of(text))


def values(found: Parsed) -> dict[str, float | None]:
    return {r.metric: r.value for r in found.readings}


def codes(found: Parsed) -> list[str]:
    return [note.code for note in found.notes]


def test_a_result_is_a_point_of_the_sweep() -> None:
    """Every reading belongs to its concurrency and keeps the local stamp of the result."""
    found = parsed(content("concurrency_16.json"))
    assert {(r.device, r.stamp, r.read_at, r.line) for r in found.readings} == {
        ("concurrency=16", "20260617-163232", None, 1)
    }
    assert found.readings[0] == Reading(
        metric="completed", value=150.0, unit="requests", device="concurrency=16", line=1, stamp="20260617-163232"
    )


def test_throughput_and_latencies() -> None:
    """Statistics stand behind what they are of; a key that holds null is left out."""
    assert values(parsed(content("concurrency_16.json"))) == {
        "completed": 150.0,
        "failed": 50.0,
        "num_prompts": 200.0,
        "max_concurrency": 16.0,
        "duration_s": 40.0,
        "request_throughput_per_s": 3.75,
        "output_throughput_per_s": 750.0,
        "total_token_throughput_per_s": 1125.0,
        "success_rate_ratio": 0.75,
        "ttft_mean_ms": 80.5,
        "ttft_median_ms": 73.25,
        "ttft_std_ms": 0.0,
        "ttft_p99_ms": 259.5,
        "ttft_p99.9_ms": 300.25,
        "e2el_median_ms": 4100.5,
    }


def test_latencies_of_the_survivors_are_said_to_be_so() -> None:
    """Where requests failed, the reader is told that the latencies leave them out."""
    found = parsed(content("concurrency_16.json"))
    assert [(n.code, n.text) for n in found.notes] == [
        ("completed_only", "Latencies cover the completed requests only: 150 of 200."),
        ("serving_setup", "Model example/Model-8B, request rate inf."),
    ]
    assert "completed_only" not in codes(parsed(content("appended.json")))


def test_keys_without_a_unit_are_seconds_where_the_throughput_says_so() -> None:
    """3.125 s x 1.25 requests/s are 4 requests in flight, which is the concurrency: the keys are seconds."""
    found = values(parsed(content("seconds.json")))
    assert (found["ttft_median_ms"], found["ttft_p99_ms"]) == (250.0, 500.0)
    assert (found["e2el_median_ms"], found["tpot_median_ms"]) == (3125.0, 31.25)
    assert found["success_rate_ratio"] == 1.0


def test_without_the_time_of_a_request_it_is_made_from_its_tokens() -> None:
    """0.25 s to the first of 100 tokens and 0.03125 s for each are 3.375 s: still about 4 in flight."""
    text = content("seconds.json").replace('"median_e2el": 3.125,', "")
    assert values(parsed(text))["ttft_median_ms"] == 250.0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"median_e2el": 3.125', '"median_e2el": 3125.0'),  # milliseconds
        ('"max_concurrency": 4', '"max_concurrency": null'),
        ('"request_throughput": 1.25', '"request_throughput": null'),
    ],
)
def test_a_unit_that_nothing_proves_is_refused(old: str, new: str) -> None:
    """Where the numbers do not bear out seconds, no latency without a unit is read."""
    found = parsed(content("seconds.json").replace(old, new))
    assert not any(metric.endswith("_ms") for metric in values(found))
    assert "unit_unknown" in codes(found)


def test_results_that_were_appended() -> None:
    """A result a line; without a concurrency limit it is an open loop and no point of a sweep; NaN is no number."""
    found = parsed(content("appended.json"))
    assert [(r.device, r.value, r.line) for r in found.readings if r.metric == "ttft_median_ms"] == [
        ("concurrency=1", 41.5, 1)
    ]
    assert {r.device for r in found.readings if r.line == 2} == {None}
    assert [(n.line, n.code) for n in found.notes] == [(2, "open_loop")]


def test_counts_that_do_not_fit_give_no_success_rate() -> None:
    """150 completed and 40 failed are not 200 requests."""
    found = parsed(content("concurrency_16.json").replace('"failed": 50', '"failed": 40'))
    assert "success_rate_ratio" not in values(found)
    assert "counts_disagree" in codes(found)


def test_a_latency_of_nothing_is_not_measured() -> None:
    """vLLM writes 0 where no request was completed: no latency is read."""
    text = '{"completed": 0, "num_prompts": 5, "duration": 2.0, "request_throughput": 0.0, "median_ttft_ms": 0.0}'
    found = parsed(text)
    assert values(found)["success_rate_ratio"] == 0.0
    assert "ttft_median_ms" not in values(found)
    assert "no_concurrency" in codes(found)


def test_a_torn_document_is_noted() -> None:
    """A result that lost its end gives no number."""
    found = parsed(content("concurrency_16.json")[:-20])
    assert (found.readings, codes(found)) == ((), ["cut_document"])


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.name)
def test_cutting_a_log_invents_nothing(path: Path) -> None:
    """Cut behind any line, a file gives the beginning of its own readings, and no others."""
    whole, lines = parsed(path.read_text()).readings, path.read_text().splitlines(keepends=True)
    for end in range(len(lines)):
        part = parsed("".join(lines[:end])).readings
        assert part == whole[: len(part)]


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.name)
def test_the_signature_finds_every_log(path: Path) -> None:
    """Every file here is recognised."""
    assert vllm_bench.SIGNATURE.search(path.read_bytes())


KEYS = st.sampled_from([*json.loads(content("concurrency_16.json")), *json.loads(content("seconds.json"))])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=3,
)


@given(st.dictionaries(KEYS, JSON, max_size=20), st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_document_is_read(document: dict[str, object], before: str) -> None:
    """No value of any kind raises, and every reading is a finite number."""
    for reading in parsed(f"{before}\n{json.dumps(document)}\n").readings:
        assert reading.value is not None
        assert abs(reading.value) < float("inf")


def test_the_collected_logs() -> None:
    """Results of other people, where a folder of them is named: both variants, in milliseconds."""
    if "RDMALAB_CORPUS" not in os.environ:
        pytest.skip("RDMALAB_CORPUS names no folder")
    folder = Path(os.environ["RDMALAB_CORPUS"]) / "companions"
    names = {
        "success_rate": "success_rate_ratio", "median_e2e_ms": "e2el_median_ms", "p99_e2e_ms": "e2el_p99_ms",
        "median_ttft_ms": "ttft_median_ms", "requests_per_s": "request_throughput_per_s", "completed": "completed",
        "failed": "failed",
    }  # fmt: skip
    seen = 0
    for name, entry in json.loads((folder / "truth.json").read_text())["files"].items():
        if entry["format"] in ("vllm_bench_serve", "serving_json_seconds"):
            found, expected = parsed((folder / name).read_text()), entry["expect"]
            assert {r.device for r in found.readings} == {f"concurrency={expected['concurrency']}"}
            wanted = {names[key]: value for key, value in expected.items() if key in names}
            assert {metric: values(found)[metric] for metric in wanted} == pytest.approx(wanted, rel=1e-12)
            seen += 1
    assert seen == 7
