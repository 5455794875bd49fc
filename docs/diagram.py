"""Draw `docs/pictures/architecture.svg` from the imports of the package and the layers in pyproject.toml.

Sphinx calls `draw` when it builds the documentation. Each row is a layer, and an arrow is an import. Imports that
follow from others are not drawn.
"""

import ast
import tomllib
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
#: The packages that a state passes from a method of `Model` to the kernels and back.
PATH = ("facade", "model", "drivers", "core.algorithms")
#: Small modules that most packages import; the picture leaves them out.
COMMON = {"common", "compiling", "errors"}
WIDTH, ROW, BOX, GAP = 760, 50, 26, 90


def layers():
    """The layers of import-linter from top to bottom, each a list of packages; the layers of core come last."""
    contracts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rows = {contract["containers"][0]: contract["layers"] for contract in contracts if "containers" in contract}
    inside = [" | ".join(f"core.{name}" for name in layer.split(" | ")) for layer in rows["rbchain.core"]]
    names = [part for layer in rows["rbchain"] for part in (inside if layer == "core" else [layer])]
    found = [[name for name in row.split(" | ") if name not in COMMON] for row in names]
    return [row for row in found if row]


def package_of(module, packages):
    """The package of the diagram that contains a module such as `rbchain.core.tree.joints`, or None."""
    parts = module.split(".")[1:]
    return next((name for name in (".".join(parts[:2]), *parts[:1]) if name in packages), None)


def ignored_imports():
    """The imports (from, to) that import-linter ignores."""
    contracts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return {tuple(text.split(" -> ")) for contract in contracts for text in contract.get("ignore_imports", ())}


def imports(packages):
    """The packages that each package imports, without those imported for type checking or within one function only."""
    found, ignored = defaultdict(set), ignored_imports()
    for path in sorted((REPOSITORY / "rbchain").rglob("*.py")):
        module = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")
        home = module if path.name == "__init__.py" else module.rpartition(".")[0]
        tree = ast.parse(path.read_text(encoding="utf-8"))
        typing_only = {
            inner
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or node in typing_only:
                continue
            base = home.split(".")[: len(home.split(".")) + 1 - node.level] if node.level else []
            target = ".".join([*base, *(node.module or "").split(".")]).rstrip(".")
            for name in node.names:
                ends = package_of(module, packages), package_of(f"{target}.{name.name}", packages)
                is_used = target.startswith("rbchain") and (module, target) not in ignored
                if is_used and all(ends) and ends[0] != ends[1]:
                    found[ends[0]].add(ends[1])
    return found


def without_implied(direct):
    """The direct imports that do not follow from other imports."""

    def reachable(package):
        return {end for target in direct[package] for end in {target} | reachable(target)}

    return {
        package: {t for t in targets if not any(t in reachable(other) for other in targets - {t})}
        for package, targets in list(direct.items())
    }


def draw():
    """The text of the picture."""
    rows = layers()
    direct = imports({package for row in rows for package in row})
    place = {}
    for y, row in enumerate(rows):
        widths = [8 * len(name) + 24 for name in row]
        x = (WIDTH - sum(widths) - GAP * (len(row) - 1)) / 2
        for name, width in zip(row, widths, strict=True):
            place[name] = (x, y * ROW + 10, width)
            x += width + GAP
    lines, boxes = [], []
    for package, targets in sorted(without_implied(direct).items()):
        for target in sorted(targets | {end for start, end in pairwise(PATH) if start == package}):
            (x0, y0, w0), (x1, y1, w1) = place[package], place[target]
            start, end, bend = (x0 + w0 / 2, y0 + BOX), (x1 + w1 / 2, y1 - 3), (y1 - y0) / 2
            kind = ' class="path"' if (package, target) in pairwise(PATH) else ""
            lines.append(
                f'<path{kind} d="M{start[0]:.0f} {start[1]:.0f} C{start[0]:.0f} {start[1] + bend:.0f} '
                f'{end[0]:.0f} {end[1] - bend:.0f} {end[0]:.0f} {end[1]:.0f}" marker-end="url(#tip)"/>'
            )
    for name, (x, y, width) in place.items():
        kind = ' class="path"' if name in PATH else ""
        boxes.append(f'<rect{kind} x="{x:.0f}" y="{y}" width="{width}" height="{BOX}" rx="4"/>')
        boxes.append(f'<text x="{x + width / 2:.0f}" y="{y + 17}">{name}</text>')
    style = (
        "rect{fill:#fff;stroke:#666} rect.path{fill:#fbe9e7;stroke:#c1272d} path{fill:none;stroke:#999} "
        "path.path{stroke:#c1272d;stroke-width:2} text{font:13px monospace;text-anchor:middle;fill:#222}"
    )
    marker = (
        '<marker id="tip" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="7" markerHeight="7" orient="auto" '
        'markerUnits="userSpaceOnUse">'
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {len(rows) * ROW}" width="{WIDTH}">'
    content = [
        head,
        f"<style>{style}</style>",
        f'<defs>{marker}<polygon points="0,0 6,3 0,6" fill="#777"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{len(rows) * ROW}" style="stroke:none"/>',
        *lines,
        *boxes,
        "</svg>",
    ]
    return "\n".join(content) + "\n"
