"""The reporter of rccl-tests, the benchmark of oneCCL, mlnx_qos and the counters of hccn_tool."""

import pytest

from rdmalab import formats
from rdmalab.model import Log
from rdmalab.sources import Text

CSV = """\
numCycle,collective,ranks,rankspernode,gpusperrank,size,type,redop,inplace,time,algbw,busbw,#wrong
0,AllReduce,2,16,8,1,1048576,float,sum,0,61.13,17.15,32.16,0
0,AllReduce,2,16,8,1,1048576,float,sum,1,60.94,17.21,32.26,N/A
0,AllGather,2,16,8,1,1048576,float,none,0,61.13,17.15,16.08,0
"""
JSON = """\
[
  {"numCycle": 0, "name": "AllReduce", "gpus": 8, "size": 1048576, "type": "float", "redop": "sum", "inPlace": 0,
   "time": 61.13, "algBw": 17.15, "busBw": 30.01, "wrong": 0}
]
"""
ONECCL = """\
#------------------------------------------------------------
# Benchmarking: allreduce 
# #processes: 16
#------------------------------------------------------------

        #bytes  #elem_count  #repetitions   t_min[usec]   t_max[usec]   t_avg[usec]  stddev[%]
          1024          256            20         12.31         14.02         13.13       3.10
       1048576       262144            20         58.31         66.02         61.13       3.10

# All done
"""  # noqa: W291
QOS = """\
$ mlnx_qos -i ens1f0np0
DCBX mode: OS controlled
Priority trust state: dscp
Receive buffer size (bytes): 130944,130944,0,
PFC configuration:
\tpriority    0   1   2   3
\tenabled     0   0   0   1
\tbuffer      0   0   0   1
tc: 0 ratelimit: unlimited, tsa: vendor
"""


def read(text: str) -> Log:
    return formats.read(Text.of(text))


def test_a_csv_of_the_reporter_is_two_runs() -> None:
    """Under MPI the number of nodes stands behind the name, though the header does not say so."""
    reduce, gather = read(CSV).runs
    assert (reduce.tool, reduce.operation, reduce.ranks, reduce.nodes, reduce.status) == (
        "rccl-tests", "all_reduce", 16, 2, "complete",
    )  # fmt: skip
    assert [(s.line, s.size_bytes, s.placement, s.time_us, s.busbw_gbyte_s, s.wrong) for s in reduce.samples] == [
        (2, 1048576, "out_of_place", 61.13, 32.16, 0),
        (3, 1048576, "in_place", 60.94, 32.26, None),
    ]
    assert (gather.operation, gather.samples[0].redop, read(CSV).notes) == ("all_gather", None, ())


def test_a_document_of_the_reporter() -> None:
    """Without MPI the ranks are the GPUs of the one process."""
    (run,) = read(JSON).runs
    assert (run.operation, run.ranks, run.samples[0].busbw_gbyte_s, run.status) == ("all_reduce", 8, 30.01, "complete")


@pytest.mark.parametrize("cut", ["16,8,1,1048576,float,sum,1,60.94,17.21,32.26,N/A", "#wrong"])
def test_a_torn_row_of_the_reporter_is_a_note(cut: str) -> None:
    """Neither a short row nor one without its line end is read."""
    text = CSV.replace(cut, "1") if cut != "#wrong" else CSV.rstrip("\n")
    found = read(text)
    assert [n.code for n in found.notes] == ["torn_row"]
    assert found.status == "truncated"
    assert sum(len(run.samples) for run in found.runs) == 2


def test_oneccl_prints_times_only() -> None:
    """The average time; no bandwidth is made up, and perftest does not claim the table."""
    found = read(ONECCL)
    (run,) = found.runs
    assert found.formats == ("oneccl-benchmark",)
    assert (run.operation, run.ranks, run.status) == ("all_reduce", 16, "complete")
    assert [(s.line, s.size_bytes, s.count, s.time_us, s.iter_max_us, s.busbw_gbyte_s) for s in run.samples] == [
        (7, 1024, 256, 13.13, 14.02, None),
        (8, 1048576, 262144, 61.13, 66.02, None),
    ]
    assert "torn_row" in [n.code for n in read(ONECCL.replace(" 13.13 ", " ")).notes]


def test_mlnx_qos_says_where_flow_control_is_on() -> None:
    """One reading a priority, of the device that the command names."""
    found = {(r.device, r.metric): r.value for r in read(QOS).readings}
    assert found["ens1f0np0", "pfc_enabled_prio3"] == 1
    assert found["ens1f0np0", "pfc_enabled_prio0"] == 0
    assert found["ens1f0np0", "trust_dscp"] == 1
    assert found["ens1f0np0", "receive_buffer_1"] == 130944


def test_counters_of_hccn_tool() -> None:
    """The device stands in the command; a rising roce_new_pkt_rty_num is retransmission."""
    text = "# hccn_tool -i 3 -stat -g\npacket statistics:\nmac_tx_pfc_pkt_num:0\nroce_new_pkt_rty_num:17\n"
    found = [(r.device, r.metric, r.value) for r in read(text).readings]
    assert found == [("3", "mac_tx_pfc_pkt_num", 0), ("3", "roce_new_pkt_rty_num", 17)]
