"""The fonts in the package as style sheets: IBM Plex for Latin, a subset of Noto Sans SC for Chinese."""

import base64
import re
from functools import cache
from pathlib import Path

FONTS = Path(__file__).with_name("fonts")
CJK = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")

_LATIN_FACES = [
    ("Plex", 400, "normal", "plex-sans-400.woff2"),
    ("Plex", 400, "italic", "plex-sans-400-italic.woff2"),
    ("Plex", 600, "normal", "plex-sans-600.woff2"),
    ("Plex Mono", 400, "normal", "plex-mono-400.woff2"),
]
_CHINESE_FACES = [("RSC", 400, "normal", "noto-sc-400.woff2"), ("RSC", 600, "normal", "noto-sc-700.woff2")]
# Dashes, quotes and dots that both scripts use and that are a full square in Chinese: left to the Chinese face there.
_PLEX_IN_CHINESE = "U+0-2013,U+2015-2017,U+201A,U+201B,U+201E-2025,U+2027-FFFF"


def font_css(chinese: bool, text: str) -> str:
    """
    The faces a document needs; the Chinese ones are 2.7 MB and only come when there is something to show.

    Args:
        chinese: Whether the document is in Chinese.
        text: What it says.
    """
    only = _PLEX_IN_CHINESE if chinese else ""
    latin = [_face(*f, only if f[0] == "Plex" else "") for f in _LATIN_FACES]
    wanted = _CHINESE_FACES if chinese or CJK.search(text) else []
    return "".join([*latin, *(_face(*f) for f in wanted)])


@cache
def _face(family: str, weight: int, style: str, file: str, only: str = "") -> str:
    data = base64.b64encode((FONTS / file).read_bytes()).decode()
    span = f"unicode-range:{only};" if only else ""
    return (
        f'@font-face{{font-family:"{family}";font-weight:{weight};font-style:{style};{span}'
        f'src:url(data:font/woff2;base64,{data}) format("woff2")}}\n'
    )
