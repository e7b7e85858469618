"""Units of the field, and the conversions between them.

Suffixes used in every name: ``_bytes``, ``_us``, ``_gbyte_s`` (10^9 byte/s, what nccl-tests prints), ``_gbit_s``
(10^9 bit/s, the unit of links), ``_mpps`` (10^6 messages/s), ``_pct``.
"""

# perftest prints 2^20 byte/s, whether the header says MB/sec (to 24.04) or MiB/sec (since 24.07):
# linux-rdma/perftest:src/perftest_parameters.h, format_factor 0x100000.
MIB_S_IN_GBIT_S = 2**20 * 8 / 1e9

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")


def gbit_s(value: float, unit: str) -> float:
    """
    Converts a bandwidth to 10^9 bit/s.

    Args:
        value: The number as printed.
        unit: The unit word as printed: ``MB/sec`` and ``MiB/sec`` (both 2^20 byte/s in perftest), ``Gb/sec``, ``GB/s``.

    Raises:
        KeyError: *unit* is none of these.
    """
    return value * {"MB/sec": MIB_S_IN_GBIT_S, "MiB/sec": MIB_S_IN_GBIT_S, "Gb/sec": 1.0, "GB/s": 8.0}[unit]


def size_text(size_bytes: int) -> str:
    """Writes a size in the largest binary unit that divides it, with a no-break space: ``65536`` is ``64 KiB``."""
    power = 0
    while power < len(_BINARY) - 1 and size_bytes and size_bytes % 1024 == 0:
        size_bytes //= 1024
        power += 1
    if power == 0 and size_bytes >= 10240:  # no power of two: nccl-tests trims sizes to 16 bytes a rank
        value = float(size_bytes)
        while value >= 1024 and power < len(_BINARY) - 1:
            value /= 1024
            power += 1
        return f"{value:.4g}\u00a0{_BINARY[power]}"
    return f"{size_bytes}\u00a0{_BINARY[power]}"


def parse_size(text: str | int) -> int:
    """
    Reads a message size: ``8``, ``64K``, ``64KiB``, ``1 GiB``; the letters are binary, as in nccl-tests ``-b``.

    Raises:
        ValueError: The text is no size.
    """
    if isinstance(text, int):
        return text
    bare = text.replace("\u00a0", "").replace(" ", "").upper().removesuffix("B").removesuffix("I")
    power = "KMGT".find(bare[-1:]) + 1 if bare[-1:] else 0
    try:
        value = float(bare[:-1] if power else bare) * 1024**power
    except ValueError:
        raise ValueError(f"{text!r} is no size") from None
    if value != int(value) or value < 0:
        raise ValueError(f"{text!r} is no whole number of bytes")
    return int(value)
