"""Link the names in the text of pages, such as `simulate`, `motion.tau` and `rb.PID(...)`, to their reference."""

import pydoc
import re
from collections import defaultdict
from typing import Any

from docutils import nodes
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


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform."""
    app.add_post_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
