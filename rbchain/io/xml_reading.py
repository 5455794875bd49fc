"""XML of robot descriptions: tolerant of what other programs read, and safe.

Parsers of other programs ignore the XML version and name spaces. lxml checks both, but only well-formedness matters.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from lxml import etree

from ..errors import FileFormatError

# Atomic groups, because backtracking over many comments would take exponential time.
BEFORE = rb"(?:\xef\xbb\xbf)?(?>\s*(?><!--.*?-->))*+\s*"
DECLARATION = re.compile(BEFORE + rb"(<\?xml\b[^>]*\?>)", re.DOTALL)
ENCODING = re.compile(rb"encoding\s*=\s*[\"']([\w.-]+)[\"']")
ROOT = re.compile(rb"(?:\xef\xbb\xbf)?(?>\s*(?><!--.*?-->|<\?.*?\?>|<![^>]*>))*+\s*<([\w:.-]+)", re.DOTALL)


def root_name(path: Path) -> str | None:
    """Return the name of a file's root element without parsing the file; None if it is not found."""
    found = ROOT.match(path.read_bytes())
    return found[1].decode(errors="replace") if found else None


def xml_root(path: Path) -> Any:
    """Parse a file; return its root element. Elements of a default name space lose it.

    Raises a FileFormatError with line and column if the file is not well-formed. Files with a document type are
    refused: its entities could expand without limit or refer to other files.
    """
    content, encoding = path.read_bytes(), None
    declaration = DECLARATION.match(content)
    if declaration:
        given = ENCODING.search(declaration[1])
        encoding = given[1].decode() if given else None
        blank = re.sub(rb"\S", b" ", declaration[1])  # keeps the lines of error messages
        content = content[: declaration.start(1)].replace(b"\xef\xbb\xbf", b"") + blank + content[declaration.end(1) :]
    root = _parsed(path, content.lstrip() and content, encoding)
    if root.getroottree().docinfo.internalDTD is not None:
        raise FileFormatError(
            f"{path}: the file declares a document type (DOCTYPE); expected none, because rbchain does not expand "
            "entities. Remove the declaration"
        )
    for element in root.iter(etree.Element):
        if element.prefix is None and element.tag.startswith("{"):
            element.tag = etree.QName(element).localname
    return root


def _parsed(path: Path, content: bytes, encoding: str | None) -> Any:
    """Parse the content of a file. Prefixes without a declaration remain part of the names."""

    options: dict[str, Any] = {"resolve_entities": False, "no_network": True, "load_dtd": False}
    options |= {"encoding": encoding, "remove_comments": True, "remove_pis": True}
    try:
        parser = etree.XMLParser(**options)
    except LookupError:
        raise FileFormatError(f"{path}: the encoding {encoding!r} is unknown; expected UTF-8") from None
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
    if not element.tag.startswith("{"):
        return element.tag
    return f"{element.prefix}:{etree.QName(element).localname}"


def attributes_of(element: Any) -> dict[str, str]:
    """Return the attributes of an element with their names as they are written, without those of XML itself."""
    prefixes = {uri: prefix for prefix, uri in element.nsmap.items()}
    found = {}
    for key, value in element.attrib.items():
        name = etree.QName(key) if key.startswith("{") else None
        written = key if name is None else f"{prefixes.get(name.namespace, 'xml')}:{name.localname}"
        if not written.startswith(("xml:", "xsi:")):
            found[written] = value
    return found


def texts_of(element: Any, tag: str) -> list[str]:
    """Return the values of the children with this name: their text, or their attribute `value`."""
    return [(child.text or "").strip() or child.get("value", "") for child in element if label(child) == tag]
