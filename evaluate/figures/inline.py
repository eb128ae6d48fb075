"""SVG as matplotlib writes it, made fit to stand in a page of HTML, beside others."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from xml.etree import ElementTree as ET

from langshift.evaluate.figures.colours import VARIABLES
from langshift.evaluate.figures.lettering import clean

_REFERENCE = re.compile(r"(?:url\(#|^#)([\w.-]+)")
_STYLED = ("fill", "stroke")
_FONT = re.compile(r"(?:(?P<weight>bold|[1-9]00) )?(?P<size>[\d.]+)px .*")
_ROOT = (
    "display: block; width: 100%; max-width: {width:g}px; height: auto; "
    "font-family: sans-serif; stroke-linejoin: round; stroke-linecap: butt"
)


def inline(drawn: str, title: str, description: str, taken_back: Callable[[str], str]) -> str:
    """An ``<svg>`` without prolog, metadata and style sheet, whose ids are its own and whose inks are the page's.

    Args:
        drawn: what matplotlib wrote, with letters as letters.
        title: what it is, for those who do not see it.
        description: what it shows, likewise.
        taken_back: what a drawn text is in truth.

    Returns:
        the same bytes for the same figure.
    """
    root = ET.fromstring(drawn)  # noqa: S314  (matplotlib's own words, not a stranger's)
    _strip(root, taken_back)
    _, _, width, _ = (float(number) for number in root.attrib["viewBox"].split())
    names = {"title": clean(title), "desc": clean(description)}
    root.attrib = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": root.attrib["viewBox"], "role": "img"}
    root.attrib |= {"aria-labelledby": " ".join(f"#{name}" for name in names), "style": _ROOT.format(width=width)}
    for place, (name, text) in enumerate(names.items()):
        element = ET.Element(name, {"id": name})
        element.text = text
        root.insert(place, element)
    _name(root, "f" + sha256(ET.tostring(root)).hexdigest()[:10])
    return ET.tostring(root, encoding="unicode")


def _strip(root: ET.Element, taken_back: Callable[[str], str]) -> None:
    """Leave only what is seen: no name spaces, metadata, style sheet or empty space."""
    for parent in list(root.iter()):
        for child in list(parent):
            child.tag = child.tag.rpartition("}")[2]
            child.tail = None
            if child.tag in ("metadata", "style"):
                parent.remove(child)
        parent.attrib = {name.rpartition("}")[2]: value for name, value in parent.attrib.items()}
        _dress(parent)
        if parent.tag == "text":
            parent.text = taken_back(parent.text or "")
        elif not (parent.text or "").strip():
            parent.text = None
    root.tag = "svg"


def _dress(element: ET.Element) -> None:
    """Colours and letters of an element; variables work in styles only, so that attributes become styles."""
    parts = (part.partition(":") for part in element.attrib.pop("style", "").split(";"))
    style = {name.strip(): value.strip() for name, colon, value in parts if colon}
    style |= {name: element.attrib.pop(name) for name in _STYLED if name in element.attrib}
    style.pop("font-family", None)
    if short := _FONT.fullmatch(style.pop("font", "")):
        style |= {"font-size": f"{short['size']}px", **({"font-weight": short["weight"]} if short["weight"] else {})}
    if style:
        element.attrib["style"] = "; ".join(f"{name}: {VARIABLES.get(value, value)}" for name, value in style.items())


def _name(root: ET.Element, prefix: str) -> None:
    """Keep the ids that something refers to, and make them this figure's own."""
    used = {found for element in root.iter() for value in element.attrib.values() for found in _references(value)}
    known = {name: f"{prefix}-{number}" for number, name in enumerate(sorted(used))}
    for element in root.iter():
        if "id" in element.attrib and element.attrib["id"] not in known:
            del element.attrib["id"]
        for name, value in element.attrib.items():
            if name == "id":
                element.attrib[name] = known[value]
            elif name == "aria-labelledby":
                element.attrib[name] = " ".join(known[part.removeprefix("#")] for part in value.split())
            else:
                element.attrib[name] = _REFERENCE.sub(lambda found: _renamed(found, known), value)


def _references(value: str) -> list[str]:
    return [found for part in value.split() for found in _REFERENCE.findall(part)]


def _renamed(found: re.Match[str], known: dict[str, str]) -> str:
    return found[0].removesuffix(found[1]) + known[found[1]]
