"""Read and write the problem and result files of the ports; README.md describes them."""

import numpy as np

JOINTS = {"revolute": 0, "prismatic": 1, "screw": 2, "free": 3}
TASKS = {"forward dynamics": 0, "rk4": 1, "rk45": 2, "inverse dynamics": 3, "mass matrix": 4, "derivatives": 5}


def axes_along(z):
    """Rotation (3, 3) whose third column is the unit vector z."""
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def bodies(model, free_base):
    """Return one row (25) per body, in axes whose z axis is the joint axis.

    All joints have one degree of freedom; with `free_base`, free joints are allowed too. A row contains
    parent, joint, pitch, translation (3), rotation (9, by rows), mass, cg (3), inertia about it (xx xy xz yy yz zz).
    """
    known = JOINTS if free_base else JOINTS.keys() - {"free"}
    if not set(model.joint_types) <= set(known):
        raise ValueError(f"expected joints of type {', '.join(sorted(known))}; found {set(model.joint_types)}")
    turns = [
        np.eye(3) if kind == "free" else axes_along(model.axis[dof])
        for kind, dof in zip(model.joint_types, model.velocity_index, strict=True)
    ]
    rows = []
    for i, turn in enumerate(turns):
        parent = model.parent[i]
        rotation = (turns[parent].T if parent >= 0 else np.eye(3)) @ model.placement_rotation[i] @ turn
        translation = model.placement_translation[i] @ (turns[parent] if parent >= 0 else np.eye(3))
        inertia = (turn.T @ model.inertia[i] @ turn)[np.triu_indices(3)]
        numbers = (parent, JOINTS[model.joint_types[i]], model.pitch[model.velocity_index[i]])
        rows.append([*numbers, *translation, *rotation.ravel(), model.mass[i], *(model.cg[i] @ turn), *inertia])
    return np.array(rows)


def write_problem(
    path, model, states, task, *, free_base=False, repeats=1, calls=1, duration=0.0, step=0.0, rtol=1e-8, atol=1e-10
):
    """Write the problem: states are q (batch, nq), qd and tau (batch, nv)."""
    with open(path, "w") as file:
        np.savetxt(file, [[model.n_bodies, len(states[0])]], fmt="%d")
        np.savetxt(file, [model.gravity], fmt="%.17g")
        np.savetxt(file, [[TASKS[task], repeats, calls]], fmt="%d")
        np.savetxt(file, [[duration, step, rtol, atol]], fmt="%.17g")
        np.savetxt(file, bodies(model, free_base), fmt=["%d"] * 2 + ["%.17g"] * 23)
        for state in states:
            np.savetxt(file, state, fmt="%.17g")


def read_result(path):
    """Read the result per sample, (batch, n or 2 n), and its last column: the residual, or the number of steps."""
    rows = np.loadtxt(path, ndmin=2)
    return rows[:, :-1], rows[:, -1]
