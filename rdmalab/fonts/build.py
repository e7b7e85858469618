"""
Builds the font files of this folder. Run once, by hand, when a face or a character set changes:

    pip install fonttools brotli
    python rdmalab/fonts/build.py            # needs npm on PATH and a package registry it can reach

Input are the TrueType files of three npm packages (named in FACES); they are fetched with ``npm pack`` into a
temporary folder. Output are subsets as woff2, and the licence of each family beside them.

Why TrueType: Chromium embeds CFF outlines of Chinese fonts as Type 3 fonts, which printers and archives dislike.
Why the Kangxi code points go: several characters share one glyph with a radical of U+2E80-2FDF. A PDF writer maps
a glyph back to the first character it finds, so the radical would be what a reader copies and searches.
Why hinting goes: pages are printed and screens are dense; hints would be half of the bytes.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent

SANS = "@expo-google-fonts/ibm-plex-sans"
MONO = "@expo-google-fonts/ibm-plex-mono"
CHINESE = "@expo-google-fonts/noto-sans-sc"

# output file: (package, file inside the package, character set)
FACES = {
    "plex-sans-400.woff2": (SANS, "400Regular/IBMPlexSans_400Regular.ttf", "latin"),
    "plex-sans-400-italic.woff2": (SANS, "400Regular_Italic/IBMPlexSans_400Regular_Italic.ttf", "latin"),
    "plex-sans-600.woff2": (SANS, "600SemiBold/IBMPlexSans_600SemiBold.ttf", "latin"),
    "plex-mono-400.woff2": (MONO, "400Regular/IBMPlexMono_400Regular.ttf", "latin"),
    "noto-sc-400.woff2": (CHINESE, "400Regular/NotoSansSC_400Regular.ttf", "chinese"),
    "noto-sc-700.woff2": (CHINESE, "700Bold/NotoSansSC_700Bold.ttf", "chinese"),
}
LICENCES = {SANS: "OFL-IBM-Plex.txt", CHINESE: "OFL-Noto-Sans-SC.txt"}  # Plex Sans and Mono share one text

FEATURES = ["kern", "mark", "mkmk", "ccmp", "locl", "tnum", "pnum", "lnum", "zero", "palt"]

_LATIN_RANGES = [
    (0x20, 0x7E), (0xA0, 0x17F),  # Latin of Europe
    (0x370, 0x3FF),  # Greek: µ-like letters, sigma
    (0x2009, 0x200A), (0x2010, 0x2027), (0x202F, 0x203A), (0x2060, 0x2060),  # spaces, dashes, quotes, dots
    (0x20AC, 0x20AC), (0x2116, 0x2116), (0x2122, 0x2122), (0x2126, 0x2126),
    (0x2190, 0x2199),  # arrows
    (0x2202, 0x2265),  # minus, division, at most, at least
    (0x2500, 0x257F), (0x25A0, 0x25FF),  # boxes that logs draw, geometric marks
    (0x2713, 0x2717), (0xFFFD, 0xFFFD),
]  # fmt: skip
_CHINESE_RANGES = [
    (0x20, 0x7E), (0xA0, 0xFF), (0x370, 0x3FF), (0x2000, 0x206F), (0x2100, 0x214F), (0x2190, 0x227F),
    (0x2460, 0x24FF), (0x3000, 0x303F), (0xFF00, 0xFFEF),
]  # fmt: skip
_RADICALS = range(0x2E80, 0x2FE0)
# Characters of the level-3 list of common standard characters that stand in names of people and places and that
# GB2312 of 1980 does not hold.
_NAMES = (
    "镕喆堃珺翀赟玥昇焜珮瑄璟晟祎睿煊烨骉囍禤邨瀞菓堀峯熙樾旻昶昉昀泓渲湉珩琬琰瑀瑭璘璠璿甯皓"
    "瞾祺翊翎翥苒荃莀菡萱蓁蕙蕴蘅谡钰铠锟锴骧鹓麒骞曌淏濛炜煜"
)


def _latin() -> set[int]:
    return {c for low, high in _LATIN_RANGES for c in range(low, high + 1)}


def _gb2312() -> set[int]:
    """Every character of GB2312, read back from Python's own codec."""
    found = set()
    for lead in range(0xA1, 0xF8):
        for trail in range(0xA1, 0xFF):
            try:
                found.add(ord(bytes([lead, trail]).decode("gb2312")))
            except UnicodeDecodeError:
                continue
    return found


def _chinese() -> set[int]:
    ranges = {c for low, high in _CHINESE_RANGES for c in range(low, high + 1)}
    return (ranges | _gb2312() | {ord(c) for c in _NAMES}) - set(_RADICALS)


def fetch(package: str, folder: Path) -> Path:
    """Unpacks an npm package and returns the folder with its files."""
    packed = subprocess.run(
        ["npm", "pack", "--silent", package], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.split()[-1]
    target = folder / packed.removesuffix(".tgz")
    with tarfile.open(folder / packed) as archive:
        archive.extractall(target, filter="data")
    return target / "package"


def subset(source: Path, target: Path, characters: Iterable[int]) -> set[int]:
    """Writes the subset and returns the characters that are really in it."""
    from fontTools.subset import Options, Subsetter, load_font, save_font  # type: ignore  # not among our packages

    options = Options()
    options.flavor = "woff2"
    options.layout_features = FEATURES
    options.hinting = False
    options.desubroutinize = True
    options.name_IDs = [0, 1, 2, 3, 4, 5, 6, 13, 14]  # names, copyright and licence stay inside the file
    options.notdef_outline = True
    options.recalc_timestamp = False
    font = load_font(str(source), options)
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=sorted(characters))
    subsetter.subset(font)
    save_font(font, str(target), options)
    return set(font.getBestCmap())


def main() -> None:
    """Fetches, subsets, and writes the files of this folder."""
    sets = {"latin": _latin(), "chinese": _chinese()}
    with tempfile.TemporaryDirectory() as temporary:
        packages = {p: fetch(p, Path(temporary)) for p in (SANS, MONO, CHINESE)}
        for name, (package, file, characters) in FACES.items():
            inside = subset(packages[package] / file, HERE / name, sets[characters])
            sys.stdout.write(f"{name}: {len(inside)} characters, {(HERE / name).stat().st_size:,} bytes\n")
        for package, name in LICENCES.items():
            shutil.copyfile(packages[package] / "LICENSE_FONT", HERE / name)


if __name__ == "__main__":
    main()
