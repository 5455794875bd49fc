"""Link the names in the text of pages to their reference: `simulate`, `motion.tau`, `rb.PID(...)`, xarray.Dataset."""

import pydoc
import re
from collections import defaultdict
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

import rbchain

#: The class that a variable of this name belongs to in the examples of all pages.
VARIABLES = {
    "model": "Model",
    "builder": "ModelBuilder",
    "motion": "Trajectory",
    "motions": "Trajectory",
    "stepper": "Stepper",
    "study": "Study",
}
#: Names of other projects that the pages write without their module.
SHORT = {
    "CubicSpline": "scipy.interpolate.CubicSpline",
    "np.argsort": "numpy.argsort",
    "solve_continuous_are": "scipy.linalg.solve_continuous_are",
}
ELSEWHERE = re.compile(r"\b(?:numpy|scipy|xarray|pandas)(?:\.\w+)+")
NOT_LINKED = (nodes.literal, nodes.literal_block, nodes.reference, nodes.title, nodes.raw, nodes.comment, pending_xref)
NAME = re.compile(r"(?:rb\.|rbchain\.)?([A-Za-z_]\w*)(?:\.([a-z]\w*))?(?:\(.*\))?", re.DOTALL)


def targets(objects: dict[str, Any]) -> dict[tuple[str, str], str]:
    """Return the full name for each (owner, name). The owner of functions and classes is "".

    A method of `Model` is also found without its owner, as the pages write `forward_dynamics`.
    """
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for full, entry in objects.items():
        *_, owner, name = full.split(".")
        if entry.objtype == "module":
            continue
        is_member = entry.objtype in ("method", "property", "attribute", "classmethod", "staticmethod")
        if is_member:
            found[owner, name].add(full)
            if owner == "Model" and entry.objtype == "method":
                found["", name].add(full)
        elif pydoc.locate(full) is getattr(rbchain, name, None) or hasattr(rbchain.Model, name):
            found["", name].add(full)
            found["Model", name].add(full)  # functions of which the model has a method, such as `simulate`
    return {key: names.pop() for key, names in found.items() if len(names) == 1}


class LinkNames(SphinxPostTransform):
    """Make a reference of each literal that names one documented object."""

    default_priority = 5

    def run(self, **_: Any) -> None:
        objects = self.env.domains["py"].objects
        known = targets(objects)
        for literal in list(self.document.findall(nodes.literal)):
            if isinstance(literal.parent, nodes.reference) or "xref" in literal.get("classes", ()):
                continue
            match = NAME.fullmatch(literal.astext())
            if match is None or isinstance(literal.parent, nodes.title):
                continue
            first, second = match.groups()
            key = (VARIABLES.get(first, first), second) if second else ("", first)
            if key not in known:
                continue
            entry = objects[known[key]]
            link = make_refnode(self.app.builder, self.env.docname, entry.docname, entry.node_id, [literal.deepcopy()])
            literal.replace_self(link)


class LinkNamesElsewhere(SphinxPostTransform):
    """Make a reference of each name of NumPy, SciPy, xarray and pandas, which intersphinx resolves."""

    default_priority = 6

    def run(self, **_: Any) -> None:
        for literal in list(self.document.findall(nodes.literal)):
            name = SHORT.get(literal.astext(), literal.astext())
            if ELSEWHERE.fullmatch(name) and not is_inside(literal.parent, NOT_LINKED):
                literal.replace_self(self.reference(name, literal.deepcopy()))
        for text in list(self.document.findall(nodes.Text)):
            names = list(ELSEWHERE.finditer(text))
            if not names or is_inside(text, NOT_LINKED):
                continue
            parts: list[nodes.Node] = []
            ends = [0, *(match.end() for match in names)]
            for match, begin in zip(names, ends, strict=False):
                parts += [nodes.Text(text[begin : match.start()]), self.reference(match[0], nodes.Text(match[0]))]
            text.parent.replace(text, [*parts, nodes.Text(text[ends[-1] :])])

    def reference(self, name: str, content: nodes.Node) -> pending_xref:
        """Return a reference that stays plain text if no inventory contains the name."""
        settings = {"refdomain": "py", "reftype": "obj", "refexplicit": True, "refwarn": False}
        return pending_xref("", content, reftarget=name, refdoc=self.env.docname, **settings)


def is_inside(node: nodes.Node | None, kinds: tuple[type[nodes.Node], ...]) -> bool:
    """Return whether a node is below a node of one of these classes."""
    while node is not None and not isinstance(node, kinds):
        node = node.parent
    return node is not None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transforms."""
    app.add_post_transform(LinkNames)
    app.add_post_transform(LinkNamesElsewhere)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
