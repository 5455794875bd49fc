"""HTML of models for notebooks: a table of the bodies and a sketch."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from ..model.constraint_fields import constraints_of, text_of
from .sketch import sketch_of

if TYPE_CHECKING:
    from ..facade.model import Model

MAX_ROWS = 40
COLUMNS = ("", "body", "parent", "joint", "axis", "mass (kg)", "cg (m)")


def html_of(model: Model) -> str:
    """HTML of a model: a table and a sketch, which show the first sample of a batch."""
    batch = model.batch_shape
    title = f"<b>{escape(model.name)}</b>: {model.n_bodies} bodies, nq = {model.nq}, nv = {model.nv}"
    if 0 in batch:
        return f"<div>{title}; a batch of shape {batch}, without samples</div>"
    model = model[(0,) * len(batch)]
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
