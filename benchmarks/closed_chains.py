"""Measure the dynamics of closed chains per evaluation, beside Pinocchio's constraintDynamics, and with varied lengths.

    taskset -c 0 python benchmarks/closed_chains.py [batch]

rbchain computes a batch of states in lanes, on one core; Pinocchio computes one state after the other, from Python. All
constraints are points (3 rows), in rbchain and in Pinocchio. Times are medians.
"""

import platform
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import rbchain as rb

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.timing import medians, processor

ROD = rb.Inertia.rod(1.0, mass=1.0, axis=(0, 0, 1), cg=(0, 0, 0.5))


def four_bar():
    """Return a parallelogram of rods of 1 m in the x-z plane."""
    return parallelograms(1)


def parallelograms(count):
    """Return the N-four-bar mechanism of the IFToMM library, problem A02: cranks at x = 0 to N, joined by couplers."""
    builder = rb.ModelBuilder(name=f"A02, N = {count}", gravity=(0, 0, -9.81))
    hinge = rb.Revolute((0, 1, 0))
    coupler = rb.Inertia(1.0, cg=(0.5, 0, 0), inertia=(1e-4, 1 / 12, 1 / 12))
    for i in range(count + 1):
        builder.add_body(f"crank{i}", joint=hinge, placement=rb.Pose((i, 0, 0)), inertia=ROD)
    for i in range(count):
        builder.add_body(f"coupler{i}", parent=f"crank{i}", joint=hinge, placement=rb.Pose((0, 0, 1)), inertia=coupler)
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
        "four-bar": (four_bar(), np.array([0.5, 0.5, -0.5])),
        "3-RRS": (three_rrs(), on_legs),
        "Stewart platform": (stewart_platform(), raised),
        "chain of 20 links": (held_chain(), arch),
        "A02, N = 40": (parallelograms(40), np.r_[np.full(41, 0.5), np.full(40, -0.5)]),
    }


def in_pinocchio(model):
    """Return the function of (q, qd, tau) that computes constraintDynamics, and the order of its joints."""
    import pinocchio as pin

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
    contacts = pin.StdVec_RigidConstraintModel()
    for c, place in enumerate(description.constraints):
        poses = [pin.SE3(np.eye(3), point) for point in (model.constraint_point_a[c], model.constraint_point_b[c])]
        ends = [at[body + 1] for body in (place.body_a, place.body_b)]
        contacts.append(
            pin.RigidConstraintModel(
                pin.ContactType.CONTACT_3D, built, ends[0], poses[0], ends[1], poses[1], pin.ReferenceFrame.LOCAL
            )
        )
    data, contact_data = built.createData(), pin.StdVec_RigidConstraintData()
    for contact in contacts:
        contact_data.append(contact.createData())
    settings = pin.ProximalSettings(1e-12, 1e-6, 100)
    pin.initConstraintDynamics(built, data, contacts, contact_data)
    order = np.array([model.joint_names.index(name) for name in list(built.names)[1:]])
    if (order != np.arange(order.size)).any():
        raise ValueError("Pinocchio numbers the joints differently")
    return lambda q, qd, tau: pin.constraintDynamics(built, data, q, qd, tau, contacts, contact_data, settings)


def main():
    batch = int(sys.argv[1]) if len(sys.argv) > 1 else 2048
    rb.set_num_threads(1)
    table = Table("mechanism", "nv", "rows", "rbchain, us", "Pinocchio, us", "ratio", "largest difference")
    for name, (model, guess) in track(list(guesses().items()), "Mechanisms"):
        q, qd = closed_states(model, guess, batch)
        tau, out = np.random.default_rng(1).normal(size=(batch, model.nv)), np.empty((batch, model.nv))
        pinocchio = in_pinocchio(model)
        single = list(zip(q, qd, tau, strict=True))[: 200 if model.nv < 50 else 20]
        expected = np.array([pinocchio(*state).copy() for state in single])
        found = model.forward_dynamics(q, qd, tau)[: len(single)]
        difference = np.abs(found - expected).max() / np.abs(expected).max()

        def one_by_one(single=single, pinocchio=pinocchio):
            for state in single:
                pinocchio(*state)

        seconds = medians(
            {
                "rbchain": lambda m=model, s=(q, qd, tau), o=out: m.forward_dynamics(*s, out=o),
                "Pinocchio": one_by_one,
            }
        )
        own, other = 1e6 * seconds["rbchain"] / batch, 1e6 * seconds["Pinocchio"] / len(single)
        rows = model.constraint_residual(q[0]).size
        table.add_row(
            name, str(model.nv), str(rows), f"{own:.2f}", f"{other:.1f}", f"{other / own:.1f}", f"{difference:.0e}"
        )
    console = Console(width=120)
    console.print(f"{processor()}, Python {platform.python_version()}, batch of {batch}, one core")
    console.print(table)


if __name__ == "__main__":
    main()
