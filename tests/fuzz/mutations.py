"""Mutations of files: changed text and damaged bytes."""

import re

from hypothesis import strategies as st

NUMBER = re.compile(r"-?\d+\.?\d*(?:[eE][-+]?\d+)?")
WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
#: Replacements of a number.
NUMBERS = ("", "0", "-1", "1e-320", "1e308", "1e400", "nan", "inf", "-inf", "1" + "0" * 400, "1e", "0x10", "1,5", "ten")
#: Replacements of a word, including keywords of the formats.
WORDS = (
    "",
    "link",
    "joint",
    "free",
    "ball",
    "fixed",
    "revolute",
    "mimic",
    "inertial",
    "world",
    "name",
    "ß",
    "true",
    "[]",
)
#: Insertions.
PIECES = ("<", ">", '"', "/>", "&amp;", "&x;", "\n", "[", "]", "=", "#", "\x00", "é", "<!--", "<![CDATA[", "{}")


@st.composite
def mutated(draw, text):
    """Strategy for a text with one to three changes."""
    for _ in range(draw(st.integers(1, 3))):
        text = _changed(draw, text)
    return text


def _changed(draw, text):
    kind = draw(st.sampled_from(("number", "word", "piece", "line", "twice", "swap", "cut")))
    lines = text.splitlines(keepends=True)
    if kind in ("number", "word"):
        found = list((NUMBER if kind == "number" else WORD).finditer(text))
        if not found:
            return text
        place = found[draw(st.integers(0, len(found) - 1))]
        new = draw(st.sampled_from(NUMBERS if kind == "number" else WORDS))
        return text[: place.start()] + new + text[place.end() :]
    if kind in ("piece", "cut") or len(lines) < 2:
        at = draw(st.integers(0, len(text)))
        return text[:at] if kind == "cut" else text[:at] + draw(st.sampled_from(PIECES)) + text[at:]
    i, j = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    if kind == "line":
        return "".join(lines[:i] + lines[i + 1 :])
    if kind == "twice":
        return "".join(lines[:i] + [lines[j]] + lines[i:])
    lines[i], lines[j] = lines[j], lines[i]
    return "".join(lines)


@st.composite
def damaged(draw, content):
    """Strategy for bytes with a flipped bit, a truncated end or a gap."""
    kind = draw(st.sampled_from(("bit", "cut", "gap", "empty")))
    at = draw(st.integers(0, max(len(content) - 1, 0)))
    if kind == "empty" or not content:
        return b""
    if kind == "bit":
        return content[:at] + bytes([content[at] ^ (1 << draw(st.integers(0, 7)))]) + content[at + 1 :]
    return content[:at] if kind == "cut" else content[:at] + content[min(at + 7, len(content)) :]
