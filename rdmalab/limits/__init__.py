"""What physics allows: payload rates of links, scale-up rates of GPUs, the largest busbw of a collective.

A limit is an upper bound or it is None: a run above it is wrong or has another explanation, so where a fact leaves a
choice the larger bound is taken, and where a fact is missing it is named. :func:`judge` varies what is missing over all
that the facts allow, and only calls impossible what every choice forbids. Facts stand in ``physics/*.tsv``, each row
with its source; ``confidence`` is V (read in the source), D (derived by arithmetic) or R (recalled, at most a hint).

Symbols: n ranks in k equal scale-up domains of g GPUs; R payload rate of all ports of a domain, B scale-up rate of a
GPU, both in GB/s and per direction. A domain is what NVLink, xGMI or HCCS joins: a node, or a rack (NVL72).
"""

from rdmalab.limits._bounds import (
    BUSBW_SOURCE,
    NVLS_SOURCE,
    RDMA_MTUS,
    Limit,
    ScaleUp,
    algorithm_limits,
    cluster_limit,
    collective_limit,
    goodput_gbit_s,
    implied_ranks,
    minimum_wire_gbyte_s,
    point_to_point_limit,
    ranks_agree,
    ranks_that_fit,
    scale_up,
)  # fmt: skip
from rdmalab.limits._judge import IMPLAUSIBLE, IMPOSSIBLE, OPEN, POSSIBLE, Bounds, Judged, bounds, judge
from rdmalab.limits._latency import ADAPTER_SOURCE, judge_latency, latency_model_us, traversal_us
from rdmalab.limits._tables import (
    Accelerator,
    Fact,
    Nic,
    accelerator,
    link_rate_gbit_s,
    nic,
    pcie_expected_gbyte_s,
    slot_rate,
    table,
)  # fmt: skip

__all__ = [
    "ADAPTER_SOURCE", "BUSBW_SOURCE", "IMPLAUSIBLE", "IMPOSSIBLE", "NVLS_SOURCE", "OPEN", "POSSIBLE", "RDMA_MTUS",
    "Accelerator", "Bounds", "Fact", "Judged", "Limit", "Nic", "ScaleUp", "accelerator", "algorithm_limits", "bounds",
    "cluster_limit", "collective_limit", "goodput_gbit_s", "implied_ranks", "judge", "judge_latency",
    "latency_model_us", "link_rate_gbit_s", "minimum_wire_gbyte_s", "nic", "pcie_expected_gbyte_s",
    "point_to_point_limit", "ranks_agree", "ranks_that_fit", "scale_up", "slot_rate", "table", "traversal_us",
]  # fmt: skip
