"""HTML of models for notebooks: a table of the bodies and a sketch."""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..model.constraint_fields import constraints_of, lines_of_constraints, text_of

if TYPE_CHECKING:
    from ..facade.model import Model

WIDTH, HEIGHT, MARGIN = 260, 220, 18
#: Rows: the directions to the right and upwards in the sketch, in world axes, as seen obliquely from above.
VIEW = np.array([[-np.sin(0.6), np.cos(0.6), 0.0], [-0.35 * np.cos(0.6), -0.35 * np.sin(0.6), 0.94]])
MAX_ROWS = 40
COLUMNS = ("", "body", "parent", "joint", "axis", "mass (kg)", "cg (m)")


def html_of(model: Model) -> str:
    """HTML of a model: a table and a sketch, which show the first sample of a batch."""
    batch, model = model.batch_shape, model[(0,) * len(model.batch_shape)]
    title = f"<b>{escape(model.name)}</b>: {model.n_bodies} bodies, nq = {model.nq}, nv = {model.nv}"
    if batch:
        title += f"; batch of shape {batch}, the first sample is shown"
    rows = [_row(model, i) for i in range(min(model.n_bodies, MAX_ROWS))]
    if model.n_bodies > MAX_ROWS:
        rows.append(f"<tr><td></td><td>and {model.n_bodies - MAX_ROWS} more bodies</td></tr>")
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{_constraints(model)}"
    flex = "display:flex;gap:1.5em;align-items:flex-start;flex-wrap:wrap"
    return f'<div>{title}<div style="{flex}"><div>{sketch_of(model)}</div><div>{table}</div></div></div>'


def _row(model: Model, i: int) -> str:
    dof, parent = model.velocity_index[i], model.parent[i]
    kind = model.joint_types[i]
    axis = _numbers(model.axis[dof]) if kind in ("revolute", "prismatic", "screw") else ""
    joint = f"{kind} <i>{escape(model.joint_names[i])}</i>"
    above = "<i>world</i>" if parent < 0 else escape(model.body_names[parent])
    cells = (i, escape(model.body_names[i]), above, joint, axis, f"{model.mass[i]:.4g}", _numbers(model.cg[i]))
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _constraints(model: Model) -> str:
    """HTML of a table of the constraints; empty if there are none."""
    constraints = constraints_of(model.description)
    if not constraints:
        return ""
    rows = [f"<tr><td>{escape(c.name)}</td><td>{escape(text_of(c))}</td></tr>" for c in constraints[:MAX_ROWS]]
    if len(constraints) > MAX_ROWS:
        rows.append(f"<tr><td>and {len(constraints) - MAX_ROWS} more constraints</td></tr>")
    head = "<tr><th>constraint</th><th>connects</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def _numbers(values: np.ndarray) -> str:
    return ", ".join(f"{x:.3g}" for x in values + 0.0)


def poses_at_rest(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Rotations (n, 3, 3) and joint origins (n, 3) of the bodies at the neutral positions, in world axes, m.

    In plain Python, so that a notebook does not wait for the compiler.
    """
    rotations: list[np.ndarray] = []
    origins: list[np.ndarray] = []
    for i, parent in enumerate(model.parent):
        R, p = (np.eye(3), np.zeros(3)) if parent < 0 else (rotations[parent], origins[parent])
        rotations.append(R @ model.placement_rotation[i])
        origins.append(p + R @ model.placement_translation[i])
    return np.array(rotations), np.array(origins)


def origins_at_rest(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Joint origins and centers of mass at the neutral positions: (n, 3) each, world axes, m."""
    rotations, origins = poses_at_rest(model)
    return origins, origins + np.einsum("nij,nj->ni", rotations, model.cg)


def sketch_of(model: Model) -> str:
    """SVG sketch of the neutral positions: joints, lines between them, centers of mass, and constraints (dashed).

    The line of a constraint connects its two points with the origins of their bodies. The radius of the circle of a
    center of mass grows with the cube root of the mass.
    """
    origins, centers = origins_at_rest(model)
    loops = lines_of_constraints(model.description, *poses_at_rest(model))
    flat = np.vstack([np.zeros(3), origins, centers, loops.reshape(-1, 3)]) @ VIEW.T
    low, high = flat.min(0), flat.max(0)
    scale = (np.array([WIDTH, HEIGHT]) - 2 * MARGIN).min() / max((high - low).max(), 1e-9)
    offset = (np.array([WIDTH, HEIGHT]) - scale * (high - low)) / 2
    x, y = (flat - low).T * scale + offset[:, None]
    y = HEIGHT - y
    n = model.n_bodies
    parts = [f'<rect x="{x[0] - 5:.1f}" y="{y[0] - 5:.1f}" width="10" height="10" fill="#999"/>']
    for i, parent in enumerate(model.parent):
        at, above, center = i + 1, parent + 1, i + 1 + n
        parts.append(_line(x[above], y[above], x[at], y[at], "#1f5a99", 2))
        parts.append(_line(x[at], y[at], x[center], y[center], "#b8cbe0", 1.5))
    ends = 1 + 2 * n + np.arange(4 * len(loops)).reshape(-1, 4)
    for four in ends:
        for a, b in pairwise(four):
            parts.append(_line(x[a], y[a], x[b], y[b], "#c03030", 1.5, ' stroke-dasharray="4 3"'))
    largest = max(model.mass.max(), 1e-300)
    for i, mass in enumerate(model.mass):
        radius = 2 + 5 * (mass / largest) ** (1 / 3)
        center = i + 1 + n
        parts.append(
            f'<circle cx="{x[center]:.1f}" cy="{y[center]:.1f}" r="{radius:.1f}" fill="#e0a030" opacity="0.7"/>'
        )
    for i, name in enumerate(model.body_names):
        label = f"<title>{escape(name)}</title>"
        parts.append(f'<circle cx="{x[i + 1]:.1f}" cy="{y[i + 1]:.1f}" r="3" fill="#1f5a99">{label}</circle>')
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}">{"".join(parts)}</svg>'


def _line(x1: float, y1: float, x2: float, y2: float, color: str, width: float, style: str = "") -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{color}" stroke-width="{width}"{style}/>'
