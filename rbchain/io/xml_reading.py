"""XML of robot descriptions: accepts files that other programs read, and is safe.

Parsers of other programs ignore the XML version and name spaces. lxml checks both, but only well-formedness matters.
"""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from typing import Any

from lxml import etree

from ..errors import FileFormatError

# Atomic groups: backtracking over many comments would take exponential time.
BEFORE = rb"(?>\s*(?><!--.*?-->))*+\s*"
DECLARATION = re.compile(BEFORE + rb"(<\?xml\b[^>]*\?>)", re.DOTALL)
ENCODING = re.compile(rb"encoding\s*=\s*[\"']([\w.-]+)[\"']")
ROOT = re.compile(rb"(?>\s*(?><!--.*?-->|<\?.*?\?>|<!(?!--)[^>]*>))*+\s*<([\w:.-]+)", re.DOTALL)


def root_name(path: Path) -> str | None:
    """Return the name of a file's root element without parsing the file; None if it is not found."""
    found = ROOT.match(_content(path))
    return found[1].decode(errors="replace") if found else None


def xml_root(path: Path, content: bytes | None = None) -> Any:
    """Parse a file, or its `content` after changes; return its root element. Elements of a default name space lose it.

    Raises a FileFormatError with line and column if the file is not well-formed. A document type also raises an error:
    its entities could expand without limit or refer to other files.
    """
    content = _content(path) if content is None else content
    declaration = DECLARATION.match(content)
    if declaration:
        blank = re.sub(rb"\S", b" ", declaration[1])  # keeps the lines of error messages
        content = content[: declaration.start(1)] + blank + content[declaration.end(1) :]
        encoding = ENCODING.search(declaration[1])
        content = _in_utf8(path, content, encoding[1].decode()) if encoding else content
    root = _parsed(path, content)
    if root.getroottree().docinfo.internalDTD is not None and _local(root.tag) in ("robot", "sdf"):
        raise FileFormatError(
            f"{path}: the file declares a document type (DOCTYPE); expected none, because rbchain does not expand "
            "entities. Remove the declaration"
        )
    for element in root.iter(etree.Element):
        if element.prefix is None and element.tag.startswith("{") and ":" not in _local(element.tag):
            element.tag = _local(element.tag)
    return root


def _content(path: Path) -> bytes:
    """Return the content of a file without a mark of the byte order, and in UTF-8 if it is in UTF-16."""
    content = path.read_bytes()
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", errors="replace").encode(errors="replace")
    return content.removeprefix(codecs.BOM_UTF8)


def _in_utf8(path: Path, content: bytes, encoding: str) -> bytes:
    """Convert the content of a file, whose declaration names this encoding, to UTF-8."""
    if encoding.lower().startswith(("utf-16", "utf16")):  # the bytes of the declaration are in UTF-8
        return content
    try:
        return content.decode(encoding).encode()
    except LookupError:
        raise FileFormatError(f"{path}: the encoding {encoding!r} is unknown; expected UTF-8") from None
    except UnicodeError as error:
        raise FileFormatError(f"{path}: the file is not in its encoding {encoding!r}: {error}") from None


def _parsed(path: Path, content: bytes) -> Any:
    """Parse the content of a file. Prefixes without a declaration remain part of the names."""
    options: dict[str, Any] = {"resolve_entities": False, "no_network": True, "load_dtd": False}
    options |= {"remove_comments": True, "remove_pis": True}
    parser = etree.XMLParser(**options)
    try:
        return etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        faults = [entry for entry in parser.error_log if entry.domain_name != "NAMESPACE"]
        if faults or not len(parser.error_log):
            found = f"{faults[0].message}, line {faults[0].line}, column {faults[0].column}" if faults else error.msg
            raise FileFormatError(f"{path}: the file is not well-formed XML: {found}") from None
    return etree.fromstring(content, etree.XMLParser(**options, recover=True))


def label(element: Any) -> str:
    """Return the name of an element as it is written in the file, with its prefix."""
    name = _local(element.tag)
    return f"{element.prefix}:{name}" if element.prefix else name


def attributes_of(element: Any) -> dict[str, str]:
    """Return the attributes of an element under their names in the file, without the attributes of XML itself."""
    prefixes = {uri: prefix for prefix, uri in element.nsmap.items()}
    found = {}
    for key, value in element.attrib.items():
        space = key[1:].rpartition("}")[0]
        written = f"{prefixes.get(space, 'xml')}:{_local(key)}" if space else key
        if not written.startswith(("xml:", "xsi:")):
            found[written] = value
    return found


def _local(name: str) -> str:
    """Return a name of lxml without its name space."""
    return name.rpartition("}")[2]
