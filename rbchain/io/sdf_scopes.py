"""Scopes of an SDF file, the elements in which names of frames are defined, with poses and included files."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..common.misspelled import did_you_mean
from ..common.real_arrays import excerpt
from ..errors import FileFormatError
from ..model.pose import Pose
from .notes import Notes
from .sdf_vocabulary import check_vocabulary
from .urdf_elements import rotation_of
from .urdf_visuals import file_of
from .urdf_vocabulary import owner_of
from .xml_reading import label, xml_root

MODEL = "__model__"
VERSIONS = ((1, 4), (1, 12))
UNIT = 1e-3  # largest error of the length of a unit quaternion
DISTINCT_NAMES = (1, 7)  # the version in which the names of links and joints must differ
TRUE = ("1", "true")


def text_of(element: Any, tag: str, default: str = "") -> str:
    """Return the text of a child; the default if it is missing or empty."""
    return (element.findtext(tag) or "").strip() or default


def numbers(path: Path, element: Any, default: tuple[float, ...], may_be_infinite: bool = False) -> np.ndarray:
    """Return the numbers in the text of an element; the default if there is no element.

    Raises a FileFormatError if the text does not contain as many numbers as the default.
    """
    if element is None:
        return np.array(default)
    try:  # float() takes underscores, XML's decimals have none
        found = np.array([float(word) for word in (element.text or "").replace("_", "?").split()])
    except ValueError:
        found = np.zeros(0)
    if len(found) != len(default) or np.isnan(found).any() or not (may_be_infinite or np.isfinite(found).all()):
        owner = next((text for x in element.iterancestors() if (text := owner_of(x))), label(element.getparent()))
        count = f"{len(default)} finite numbers, separated by spaces" if len(default) > 1 else "1 number"
        raise FileFormatError(f"{path}: {owner}: <{label(element)}> is {element.text!r}; expected {count}")
    return found


def child_of(element: Any, tag: str) -> Any:
    """Return the first child with a name, which may have a prefix; None if there is none."""
    return next((child for child in element if label(child) == tag), None)


def number(path: Path, element: Any, tag: str, default: float, may_be_infinite: bool = False) -> float:
    """Return the number in a child; the default if the child is missing."""
    return float(numbers(path, None if element is None else child_of(element, tag), (default,), may_be_infinite)[0])


class File(NamedTuple):
    """An SDF file: its path, its version, the files that include it, and the notes about it."""

    path: Path
    version: tuple[int, int]
    above: tuple[Path, ...]
    notes: Notes


class Scope:
    """A world or a model: its elements by their names, and the frames that they define.

    Attributes
    ----------
    prefix : str
        Prefix of the names in this scope, in the model that is read.
    nested : dict of Scope
        The models in this scope, by their names.
    missing : list of str
        The included files of a world that do not exist.
    outer : Pose
        Pose of the frame `__model__` in the world.
    """

    def __init__(self, file: File, element: Any) -> None:
        self.file, self.element, self.path = file, element, file.path
        self.is_world = element.tag != "model"
        self.outer, self.prefix = Pose(), ""
        self.nested: dict[str, Scope] = {}
        self.missing: list[str] = []
        self._elements: dict[str, Any] = {}
        self._poses = {MODEL: Pose()} | ({"world": Pose()} if self.is_world else {})
        for tag in ("link", "joint", "frame"):
            for child in element.findall(tag):
                self._add(child)
        for child in element.findall("model"):
            self._add_model(file, child)
        for child in element.findall("include"):
            included = self._included(child)
            if included is not None:
                self._add_model(*included)

    @property
    def is_static(self) -> bool:
        """Whether all links of the model are fixed to the world."""
        return text_of(self.element, "static").lower() in TRUE

    def of_tag(self, tag: str) -> list[tuple[str, Any]]:
        """Return the names, in the model that is read, and the elements with a tag."""
        return [(self.prefix + child.get("name"), child) for child in self.element.findall(tag)]

    def all_scopes(self) -> Iterator[Scope]:
        """Return this scope and all scopes in it."""
        yield self
        for scope in self.nested.values():
            yield from scope.all_scopes()

    def place(self, outer: Pose, prefix: str = "") -> None:
        """Set the pose in the world and the prefix of this scope, and of all scopes in it."""
        self.outer, self.prefix = outer, prefix
        for name, scope in self.nested.items():
            scope.place(outer @ self.pose(name), f"{prefix}{name}::")

    def pose(self, name: str) -> Pose:
        """Return the pose of a frame in the frame `__model__` of this scope."""
        chain: dict[str, Pose] = {}
        while name not in self._poses:
            if name in chain:
                raise FileFormatError(f"{self.path}: the pose of {name!r} is relative to itself; expected no cycle")
            reference, chain[name] = self._relative(name)
            name = reference
        found = self._poses[name]
        for each, pose in reversed(chain.items()):
            found = self._poses[each] = found @ pose
        return found

    def pose_of(self, element: Any) -> Pose:
        """Return the pose of an element in the frame `__model__` of this scope."""
        return self.pose(reference_of(element)) @ self.raw_pose(element.find("pose"))

    def raw_pose(self, pose: Any) -> Pose:
        """Return the pose in a <pose> element; the identity if there is none."""
        if pose is None or not (pose.text or "").strip():
            return Pose()
        degrees, kind = pose.get("degrees", "").lower() in TRUE, pose.get("rotation_format", "euler_rpy")
        where = f"{self.path}: {label(pose.getparent())} {pose.getparent().get('name')!r}: <pose>"
        if kind not in ("euler_rpy", "quat_xyzw") or (degrees and kind == "quat_xyzw"):
            raise FileFormatError(
                f"{where} has rotation_format {kind!r} and degrees {str(degrees).lower()}; expected 'euler_rpy', or "
                "'quat_xyzw' without degrees"
            )
        if kind == "euler_rpy":
            found = numbers(self.path, pose, (0.0,) * 6)
            return Pose(found[:3], rotation_of(np.radians(found[3:]) if degrees else found[3:]))
        found = numbers(self.path, pose, (0.0,) * 7)
        if abs(np.linalg.norm(found[3:]) - 1.0) > UNIT:
            raise FileFormatError(f"{where} is {pose.text!r}; expected a unit quaternion x y z w")
        return Pose(found[:3], found[3:] / np.linalg.norm(found[3:]))

    def link(self, name: str) -> str | None:
        """Return the link to which a frame is attached, under its name in the model; None for the world."""
        asked = set[str]()
        while not (name == "world" or (name == MODEL and self.is_world)):
            if name in asked:
                raise FileFormatError(f"{self.path}: the frame {name!r} is attached to itself; expected a link")
            asked.add(name)
            element = self.element if name == MODEL else self._elements.get(name)
            if element is None:
                _, scope, rest = self._inner(name)
                return scope.link(rest)
            if element.tag == "link":
                return self.prefix + name
            if element.tag == "model" and name != MODEL:
                return self.nested[name].link(MODEL)
            name = self._canonical() if name == MODEL else _attached_to(element)
        return None

    def _canonical(self) -> str:
        """Return the link or nested model to which the frame `__model__` is attached."""
        links = [child.get("name") for child in self.element.findall("link")]
        names = [self.element.get("canonical_link"), *links, *self.nested]
        found = next((name for name in names if name), None)
        if found is None:
            raise FileFormatError(
                f"{self.path}: model {self.element.get('name')!r} has no links; expected at least one"
            )
        return found

    def _relative(self, name: str) -> tuple[str, Pose]:
        """Return the frame to which the pose of another frame is relative, and this pose."""
        element = self._elements.get(name)
        if element is None:
            head, scope, rest = self._inner(name)
            return head, scope.pose(rest)
        pose = self.raw_pose(element.find("pose"))
        frame = element.get("placement_frame") if element.tag == "model" else ""
        return reference_of(element), pose @ self.nested[name].pose(frame).inverse() if frame else pose

    def _inner(self, name: str) -> tuple[str, Scope, str]:
        """Return the name of a nested model, the model, and the rest of a name."""
        head, _, rest = name.partition("::")
        if head not in self.nested or not rest:
            raise FileFormatError(
                f"{self.path}: {self.element.tag} {self.element.get('name')!r} has no frame {name!r}; expected one of "
                f"{excerpt([*self._elements])}{did_you_mean(name, self._elements)}"
            )
        return head, self.nested[head], rest

    def _add(self, element: Any) -> None:
        name, tag = element.get("name"), element.tag
        if not name or name in ("world", MODEL):
            raise FileFormatError(f"{self.path}: the name of a {tag} is {name!r}; expected another name")
        other = self._elements.setdefault(name, element)
        may_be_equal = (other.tag, tag) == ("link", "joint") and self.file.version < DISTINCT_NAMES
        if other is not element and not may_be_equal:
            raise FileFormatError(
                f"{self.path}: a {other.tag} and another {tag} have the name {name!r}; expected different names of all "
                f"elements of a {self.element.tag}"
            )

    def _add_model(self, file: File, element: Any) -> None:
        self._add(element)
        self.nested[element.get("name")] = Scope(file, element)

    def _included(self, include: Any) -> tuple[File, Any] | None:
        """Return the model of an <include> element and its file; None for a file of a world that does not exist."""
        uri = text_of(include, "uri")
        where = f"{self.path}: <include> of {uri!r}"
        if include.get("merge", "").lower() in TRUE:
            raise FileFormatError(f'{where} has merge="true", which is not supported; copy its model into the file')
        path = Path(file_of(self.path, uri, may_be_renamed=False))
        path = _file_in(path) if path.is_dir() else path
        if not path.is_file():
            if self.is_world:
                self.missing.append(uri)
                return None
            raise FileFormatError(
                f"{where}: the file does not exist; expected it at {path}, or in a folder of GZ_SIM_RESOURCE_PATH"
            )
        if path.resolve() in (above := (*self.file.above, self.path.resolve())):
            raise FileFormatError(f"{where}: the files include each other in a cycle; remove this <include>")
        root, version = root_of(path)
        check_vocabulary(root, self.file.notes)
        models = root.findall("model")
        if len(models) != 1:
            raise FileFormatError(f"{where}: {path} has {len(models)} models; expected one")
        _override(models[0], include)
        return File(path, version, above, self.file.notes), models[0]


def _override(model: Any, include: Any) -> None:
    """Set the name, the pose and other settings of a model that an <include> element gives."""
    for attribute in ("name", "placement_frame"):
        model.set(attribute, text_of(include, attribute, model.get(attribute, "")))
    for tag in ("pose", "static"):
        own = include.find(tag)
        if own is not None:
            for child in model.findall(tag):
                model.remove(child)
            model.append(copy.deepcopy(own))


def _attached_to(element: Any) -> str:
    """Return the frame to which a joint or a frame is attached."""
    return text_of(element, "child") if element.tag == "joint" else element.get("attached_to") or MODEL


def reference_of(element: Any) -> str:
    """Return the frame to which the pose of an element is relative: by default the link of a part of a link."""
    pose = element.find("pose")
    given = None if pose is None else pose.get("relative_to") or pose.get("frame")
    if given or element.tag in ("link", "model"):
        return given or MODEL
    return _attached_to(element) if element.tag in ("joint", "frame") else element.getparent().get("name")


def root_of(path: Path) -> tuple[Any, tuple[int, int]]:
    """Return the root element of an SDF file and its version."""
    root = xml_root(path)
    if label(root) != "sdf":
        raise FileFormatError(f"{path}: the root element is <{label(root)}>; expected <sdf>")
    given = root.get("version")
    version = _version(given)
    if not VERSIONS[0] <= version <= VERSIONS[1]:
        raise FileFormatError(f"{path}: the version of <sdf> is {given!r}; expected '1.4' to '1.12'")
    return root, version


def _version(text: str | None) -> tuple[int, int]:
    found = re.fullmatch(r"\s*(\d+)\.(\d+)\s*", text or "")
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _file_in(folder: Path) -> Path:
    """Return the SDF file of a folder with a model of Gazebo: the latest version in its file model.config."""
    config = folder / "model.config"
    files = [*xml_root(config).iter("sdf")] if config.is_file() else []
    known = [(_version(file.get("version")), (file.text or "").strip()) for file in files]
    known = [item for item in known if item[0] <= VERSIONS[1]]
    return folder / (max(known)[1] if known else "model.sdf")
