"""Compare the compiled closed form of the two-link arm with the general solver.

    taskset -c 0 python benchmarks/two_link.py

Each call computes the accelerations of a batch on one core. All programs run alternately; the times are medians.
"""

import math
import platform
import sys
from pathlib import Path

import numba
import numpy as np
from rich.console import Console
from rich.table import Table

import rbchain as rb
from rbchain.reference import TwoLink

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.timing import medians, processor, relative

BATCH, ROUNDS = 4096, 51
L1, L2, M1, M2, MP, G = 0.9, 0.6, 3.0, 2.0, 0.7, 9.81


@numba.njit(fastmath=False)
def forward_dynamics(r1, r3, r5, r6, first_inertia, least_determinant, q, qd, tau, qdd):
    """Compute `TwoLink.forward_dynamics` of a batch (m, 2), state by state."""
    for i in range(q.shape[0]):
        q1, q2, qd1, qd2 = q[i, 0], q[i, 1], qd[i, 0], qd[i, 1]
        c, s = r5 * math.cos(q2), r5 * math.sin(q2)
        first = 4.0 * (tau[i, 0] - tau[i, 1]) + s * (qd1 + qd2) * (qd1 + qd2) - r1 * math.cos(q1)
        second = 4.0 * tau[i, 1] - s * qd1 * qd1 - r3 * math.cos(q1 + q2)
        determinant = least_determinant + s * s
        qdd1 = (r6 * first - c * second) / determinant
        qdd[i, 0] = qdd1
        qdd[i, 1] = (first_inertia * second - c * first) / determinant - qdd1


def general_model():
    """Build the same arm with ModelBuilder; the payload is part of the last body."""
    builder = rb.ModelBuilder(name="two_link", gravity=(0, -G, 0))
    builder.add_body("upper", joint=rb.Revolute(), inertia=rb.Inertia.rod(L1, mass=M1, cg=(L1 / 2, 0, 0)))
    fore = rb.Inertia.rod(L2, mass=M2, cg=(L2 / 2, 0, 0)) + rb.Inertia(MP, cg=(L2, 0, 0))
    builder.add_body("fore", parent="upper", joint=rb.Revolute(), placement=rb.Pose((L1, 0, 0)), inertia=fore)
    return builder.build()


def main():
    """Measure and print the table."""
    rb.set_num_threads(1)
    two_link, model = TwoLink(L1, L2, M1, M2, MP, G), general_model()
    constants = two_link.r1, two_link.r3, two_link.r5, two_link.r6
    # without the term in sin q2, the determinant is that of the stretched arm
    inertia = two_link.r2 - two_link.r6
    constants = (*constants, inertia, two_link.r6 * inertia - two_link.r5**2)
    q, qd, tau = np.random.default_rng(0).normal(size=(3, BATCH, 2))
    special, general = np.empty((BATCH, 2)), model.forward_dynamics(q, qd, tau)
    calls = {
        "closed form, compiled, state by state": lambda: forward_dynamics(*constants, q, qd, tau, special),
        "rbchain": lambda: model.forward_dynamics(q, qd, tau),
        "closed form, NumPy (`TwoLink`)": lambda: two_link.forward_dynamics(q, qd, tau),
    }
    seconds = medians(calls, ROUNDS)
    closed_form = two_link.forward_dynamics(q, qd, tau)
    differences = [relative(special, closed_form), relative(general, closed_form), 0.0]
    table = Table(title=f"{processor()}; Python {platform.python_version()}; one core, batch {BATCH}")
    for column in ("forward dynamics of two links", "ns per sample", "divided by the first", "relative difference"):
        table.add_column(column)
    shortest = next(iter(seconds.values()))
    for (name, of), difference in zip(seconds.items(), differences, strict=True):
        table.add_row(name, f"{of / BATCH * 1e9:.1f}", f"{of / shortest:.2f}", f"{difference:.0e}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
