"""Measure the dynamics of closed loops per evaluation, compared with lcaba and constraintDynamics of Pinocchio.

    taskset -c 0 python benchmarks/closed_chains.py [batch]

rbchain computes a batch of states in lanes, on one core. Pinocchio computes one state at a time, called from Python.
All constraints connect points (3 rows), in both programs. Times are medians of the CPU time. Errors are relative to a
dense solution.
"""

import platform
import sys
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
import pinocchio as pin
from rich.console import Console
from rich.progress import track
from rich.table import Table

import rbchain as rb

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.timing import medians, processor, relative

ROD = rb.Inertia.rod(1.0, mass=1.0, axis=(0, 0, 1), cg=(0, 0, 0.5))
SINGLE = 64  # states that Pinocchio computes, one after the other
ACCURACY, MU, ITERATIONS = 1e-10, 1e-6, 100  # of Pinocchio's proximal iterations; its documentation recommends mu
DEPENDENT = 1e-9  # ratio of singular values below which rows depend on each other; the others have 2e-2 and more
RIGHT = 1e-5  # relative error


def four_bar():
    """Return a parallelogram of rods of 1 m in the x-z plane."""
    return parallelograms(1)


def parallelograms(count):
    """Return the N-four-bar mechanism of the IFToMM library, problem A02: cranks at x = 0 to N, joined by couplers.

    The order is depth-first: crank 0, coupler 0, crank 1, and so on.
    """
    builder = rb.ModelBuilder(name=f"A02, N = {count}", gravity=(0, 0, -9.81))
    hinge = rb.Revolute((0, 1, 0))
    coupler = rb.Inertia(1.0, cg=(0.5, 0, 0), inertia=(1e-4, 1 / 12, 1 / 12))
    for i in range(count + 1):
        builder.add_body(f"crank{i}", joint=hinge, placement=rb.Pose((i, 0, 0)), inertia=ROD)
        if i < count:
            builder.add_body(
                f"coupler{i}", parent=f"crank{i}", joint=hinge, placement=rb.Pose((0, 0, 1)), inertia=coupler
            )
    for i in range(count):
        builder.add_constraint(
            rb.BallConstraint(f"pin{i}", f"coupler{i}", f"crank{i + 1}", point_a=(1, 0, 0), point_b=(0, 0, 1))
        )
    return builder.build()


def held_chain(links=20):
    """Return rods in series that are held at both ends: an arch of half a circle."""
    builder = rb.ModelBuilder(name=f"chain of {links} links, held at both ends", gravity=(0, 0, -9.81))
    for i in range(links):
        builder.add_body(
            f"link{i}",
            parent=f"link{i - 1}" if i else None,
            joint=rb.Revolute((0, 1, 0)),
            placement=rb.Pose((0, 0, 1.0 if i else 0.0)),
            inertia=ROD,
        )
    span = 1.0 / np.sin(np.pi / links / 2)
    builder.add_constraint(rb.BallConstraint("end", None, f"link{links - 1}", point_a=(span, 0, 0), point_b=(0, 0, 1)))
    return builder.build()


def three_rrs():
    """Return a 3-RRS parallel robot: three legs of two rods on hinges, with ball joints at the platform."""
    builder = rb.ModelBuilder(name="3-RRS", gravity=(0, 0, -9.81))
    builder.add_body("platform", joint=rb.Free(), inertia=rb.Inertia.cylinder(0.5, 0.05, mass=2.0))
    for leg in range(3):
        angle = 2 * np.pi * leg / 3
        radial = np.array([np.cos(angle), np.sin(angle), 0])
        across = (-np.sin(angle), np.cos(angle), 0)
        names = f"lower{leg}", f"upper{leg}"
        builder.add_body(names[0], joint=rb.Revolute(across), placement=rb.Pose(radial), inertia=ROD)
        builder.add_body(
            names[1], parent=names[0], joint=rb.Revolute(across), placement=rb.Pose((0, 0, 1)), inertia=ROD
        )
        builder.add_constraint(
            rb.BallConstraint(f"ball{leg}", names[1], "platform", point_a=(0, 0, 1), point_b=0.5 * radial)
        )
    return builder.build()


def stewart_platform():
    """Return a Stewart platform: six legs with a universal joint, a slider and a ball joint."""
    builder = rb.ModelBuilder(name="Stewart platform", gravity=(0, 0, -9.81))
    builder.add_body("platform", joint=rb.Free(), inertia=rb.Inertia.cylinder(0.5, 0.05, mass=5.0))
    for leg in range(6):
        angle = np.pi / 3 * (leg // 2 * 2) + (0.2 if leg % 2 else -0.2)
        top = np.pi / 3 * (leg // 2 * 2) + (0.8 if leg % 2 else -0.8)
        foot, tip = np.array([np.cos(angle), np.sin(angle), 0]), 0.5 * np.array([np.cos(top), np.sin(top), 0])
        builder.add_body(f"lower{leg}", joint=rb.Universal((1, 0, 0), (0, 1, 0)), placement=rb.Pose(foot), inertia=ROD)
        builder.add_body(f"upper{leg}", parent=f"lower{leg}", joint=rb.Prismatic((0, 0, 1)), inertia=ROD)
        builder.add_constraint(
            rb.BallConstraint(f"ball{leg}", f"upper{leg}", "platform", point_a=(0, 0, 1), point_b=tip)
        )
    return builder.build()


def closed_states(model, guess, batch):
    """Return states (batch, nq), (batch, nv) near a guess: 16 assembled ones, repeated."""
    rng, different = np.random.default_rng(0), min(batch, 16)
    q = model.assemble(model.integrate(guess, 0.1 * rng.normal(size=(different, model.nv))))
    qd = model.assemble_velocities(q, rng.normal(size=(different, model.nv)))
    repeats = -(-batch // different)
    return np.tile(q, (repeats, 1))[:batch], np.tile(qd, (repeats, 1))[:batch]


def guesses():
    """Return a guess of closed positions for each mechanism."""
    arch = np.full(20, np.pi / 20)
    arch[0] = np.pi / 40
    on_legs = three_rrs().neutral()
    on_legs[2] = 1.6
    on_legs[7:] = [-0.6, 0.9] * 3
    raised = stewart_platform().neutral()
    raised[2] = 1.5
    return {
        "four-bar": (four_bar(), np.array([0.5, -0.5, 0.5])),
        "3-RRS": (three_rrs(), on_legs),
        "Stewart platform": (stewart_platform(), raised),
        "chain of 20 links": (held_chain(), arch),
        "A02, N = 40": (parallelograms(40), np.r_[np.tile([0.5, -0.5], 40), 0.5]),
    }


def in_pinocchio(model):
    """Return the model and the constraints in Pinocchio.

    The world is the second end of a constraint, because lcaba ends with a segmentation fault if it is the first one.
    """
    description = model.description
    built, at = pin.Model(), [0]
    built.gravity.linear = model.gravity
    for i, name in enumerate(model.body_names):
        kind = model.joint_types[i]
        dofs = slice(model.velocity_index[i], model.velocity_index[i] + description.dof_counts[i])
        axes = model.axis[dofs]
        if kind == "free":
            joint = pin.JointModelFreeFlyer()
        elif kind == "prismatic":
            joint = pin.JointModelPrismaticUnaligned(axes[0])
        elif kind == "revolute":
            joint = pin.JointModelRevoluteUnaligned(axes[0])
        else:
            joint = pin.JointModelComposite()
            for axis in axes:
                joint.addJoint(pin.JointModelRevoluteUnaligned(axis), pin.SE3.Identity())
        placement = pin.SE3(model.placement_rotation[i], model.placement_translation[i])
        at.append(built.addJoint(at[model.parent[i] + 1], joint, placement, name))
        built.appendBodyToJoint(at[-1], pin.Inertia(model.mass[i], model.cg[i], model.inertia[i]), pin.SE3.Identity())
    if not built.check(built.createData()):
        raise ValueError(f"{model.name}: Pinocchio requires depth-first order of the bodies")
    constraints = pin.StdVec_RigidConstraintModel()
    for c, place in enumerate(description.constraints):
        points = model.constraint_point_a[c], model.constraint_point_b[c]
        ends = [
            (at[body + 1], pin.SE3(np.eye(3), point))
            for body, point in zip((place.body_a, place.body_b), points, strict=True)
        ]
        first, second = sorted(ends, key=lambda end: end[0] == 0)
        constraints.append(
            pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, built, *first, *second, pin.ReferenceFrame.LOCAL)
        )
    return built, constraints


def call_of(function, prepare, built, constraints):
    """Return the function of (q, qd, tau) that calls Pinocchio, with working memory of its own."""
    data, constraint_data = built.createData(), pin.StdVec_RigidConstraintData()
    for constraint in constraints:
        constraint_data.append(constraint.createData())
    prepare(built, data, constraints, constraint_data)
    settings = pin.ProximalSettings(ACCURACY, MU, ITERATIONS)
    return lambda q, qd, tau: function(built, data, q, qd, tau, constraints, constraint_data, settings)


def functions_of_pinocchio(built, constraints):
    """Return the contestants of Pinocchio, functions of (q, qd, tau) for one state."""
    return {
        "lcaba": call_of(pin.lcaba, lambda *memory: pin.computeJointMinimalOrdering(*memory[:3]), built, constraints),
        "constraintDynamics": call_of(pin.constraintDynamics, pin.initConstraintDynamics, built, constraints),
    }


def accelerations(built, constraints, q, qd, tau):
    """Solve M qdd + h = tau + J^T f and J qdd + (dJ/dt) qd = 0 densely; dependent rows of J do not matter.

    Pinocchio computes M, h and J, and singular values solve the equations.
    """
    data = built.createData()
    mass = pin.crba(built, data, q)
    factor = np.linalg.cholesky(np.triu(mass) + np.triu(mass, 1).T)
    force = tau - pin.nle(built, data, q, qd)
    pin.computeJointJacobians(built, data, q)
    pin.forwardKinematics(built, data, q, qd, np.zeros(built.nv))
    rows, bias = [], []
    for constraint in constraints:
        ends = [
            (constraint.joint1_id, constraint.joint1_placement, pin.LOCAL_WORLD_ALIGNED),
            (constraint.joint2_id, constraint.joint2_placement, pin.LOCAL_WORLD_ALIGNED),
        ]
        first, second = (pin.getFrameJacobian(built, data, *end)[:3] for end in ends)
        rows.append(first - second)
        first, second = (pin.getFrameClassicalAcceleration(built, data, *end).linear for end in ends)
        bias.append(first - second)
    free = np.linalg.solve(factor, force)
    scaled = np.linalg.solve(factor, np.vstack(rows).T).T
    constrained = np.linalg.lstsq(scaled, -np.concatenate(bias) - scaled @ free, rcond=DEPENDENT)[0]
    return np.linalg.solve(factor.T, free + constrained)


def overhead_of_calls():
    """Measure the seconds of a call of lcaba for a single hinge without constraints."""
    pendulum = rb.ModelBuilder(gravity=(0, 0, -9.81))
    pendulum.add_body("rod", joint=rb.Revolute((0, 1, 0)), inertia=ROD)
    call, state = functions_of_pinocchio(*in_pinocchio(pendulum.build()))["lcaba"], np.zeros((3, 1))
    return medians({"lcaba": lambda: [call(*state) for _ in range(SINGLE)]}, clock=process_time)["lcaba"] / SINGLE


def main():
    batch = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    rb.set_num_threads(1)
    table = Table("mechanism", "nv", "rows", "function", "us per state", "divided by rbchain", "error", "result right?")
    for name, (model, guess) in track(list(guesses().items()), "Mechanisms"):
        q, qd = closed_states(model, guess, batch)
        tau, out = np.random.default_rng(1).normal(size=(batch, model.nv)), np.empty((batch, model.nv))
        single = list(zip(q, qd, tau, strict=True))[:SINGLE]
        built, constraints = in_pinocchio(model)
        expected = np.array([accelerations(built, constraints, *state) for state in single])
        found = {"rbchain": model.forward_dynamics(q, qd, tau)[: len(single)]}
        calls = {"rbchain": partial(model.forward_dynamics, q, qd, tau, out=out)}
        for function, call in functions_of_pinocchio(built, constraints).items():
            found[function] = np.array([call(*state).copy() for state in single])
            calls[function] = lambda call=call, single=single: [call(*state) for state in single]
        seconds = medians(calls, clock=process_time)
        times = {of: seconds[of] / (batch if of == "rbchain" else len(single)) for of in calls}
        for function, time in times.items():
            error = relative(found[function], expected)
            first = (name, str(model.nv), str(3 * len(constraints))) if function == "rbchain" else ("", "", "")
            ratio = time / times["rbchain"]
            right = "yes" if error < RIGHT else "no"
            table.add_row(*first, function, f"{1e6 * time:.2f}", f"{ratio:.1f}", f"{error:.0e}", right)
        table.add_section()
    console = Console(width=120)
    console.print(f"{processor()}, Python {platform.python_version()}, batch of {batch}, one core")
    console.print(table)
    console.print(f"A result is right if its relative error is below {RIGHT}.")
    console.print(f"A call of lcaba for one hinge without constraints takes {1e6 * overhead_of_calls():.1f} us.")


if __name__ == "__main__":
    main()
