"""Measure error against CPU time for stiff systems on one core, next to SciPy's Radau and BDF, MuJoCo and Drake.

    pip install drake mujoco
    taskset -c 0 python benchmarks/stiff.py [--problems A05 arm cable cable_in_air arch] [--fewest 3] [--most 10]

SciPy integrates the same right-hand side: compiled `forward_dynamics` with the passive forces, drag and forces between
bodies. It computes Jacobians by differences of one vectorized call. MuJoCo integrates the cable in air, whose springs
and dampers it has too, by its implicit methods with fixed steps, and Drake by those with error control. The error is
the largest deviation of a position from a reference at the end, in rad or m. SciPy does not project the positions of
the arch onto its constraint. The reference is "rosenbrock" with a
tolerance of 1e-12. All methods run in turns with the same tolerance 10^-fewest ... 10^-most. CPU times are medians in a
warm process. The second table contains multiples of the time of "rosenbrock" at the same error, interpolated between
tolerances.
"""

import argparse
import platform
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.integrate import solve_ivp

import rbchain as rb

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.closed_chains import held_chain
from benchmarks.iftomm import Problem, governor
from benchmarks.timing import processor

LIMIT = 20.0  # s; a method that takes longer is not run with smaller tolerances
RUNS = 5
ERRORS = 10.0 ** -np.arange(3, 10)


def arm():
    """A falling Puma 560 with dampers, dry friction and stiff elastic stops, on which the arm comes to rest."""
    robot = rb.load(Path(__file__).parents[1] / "examples" / "puma560.urdf")
    each = np.ones(robot.nv)
    model = robot.replace(damping=5.0 * each, friction=5.0 * each, friction_velocity=1e-3 * each)
    stops = {"stop_lower": -0.4 * each, "stop_upper": 0.4 * each}
    model = model.replace(**stops, limit_stiffness=1e6 * each, limit_damping=0.5 * each)
    return Problem(model, np.zeros(robot.nv), np.zeros(robot.nv), 1.0, None)


def cable(links=50, density=1000.0):
    """A cable of 10 m in water with stiff bending, damping in the joints and drag, which starts horizontally."""
    length, mass, radius = 10.0 / links, 60.0 / links, 0.02
    builder = rb.ModelBuilder(name="cable", gravity=(0, -9.81, 0), fluid_density=density)
    rod = rb.Inertia(mass, cg=(length / 2, 0, 0), inertia=np.array([1e-6, 1.0, 1.0]) * mass * length**2 / 12)
    axis, center = (1, 0, 0), (length / 2, 0, 0)
    drag = rb.Immersion.cylinder(radius, length, axis=axis, center=center, drag=1.1) if density else None
    for i in range(links):
        builder.add_body(
            f"link{i}",
            parent=f"link{i - 1}" if i else None,
            joint=rb.Revolute((0, 0, 1)),
            placement=rb.Pose((length if i else 0.0, 0, 0)),
            inertia=rod,
            passive=rb.PassiveForces(stiffness=100.0 / length if i else 0.0, damping=1.0 / length if i else 0.0),
            **({"immersion": drag} if density else {}),
        )
    return Problem(builder.build(), np.zeros(links), np.zeros(links), 1.0, None)


def cable_in_air():
    """The cable in air."""
    return cable(density=0.0)


def arch(links=50):
    """An arch of rods with stiff springs and dampers, which is held at both ends by a constraint."""
    model = held_chain(links)
    each, guess = np.ones(links), np.full(links, np.pi / links)
    model = model.replace(stiffness=1e5 * each, damping=1e4 * each, rest_position=0.3 / links * each)
    guess[0] /= 2.0
    return Problem(model, model.assemble(guess), np.zeros(links), 1.0, None)


def right_hand_side(problem):
    """Return the rate of y = (q, qd) for SciPy; y is (2 n,) or (2 n, m)."""
    model, forces = problem.model, problem.settings["forces"]
    n = model.nv

    def rate(t, y):
        states = np.ascontiguousarray(y.T)
        q, qd = np.ascontiguousarray(states[..., :n]), np.ascontiguousarray(states[..., n:])
        wrenches = model.wrenches_between_bodies(q, qd, forces) if forces else None
        qdd = model.forward_dynamics(q, qd, 0.0, wrenches, passive=True)
        return np.concatenate([qd, qdd], -1).T

    return rate


def methods(problem):
    """Return each method as a function of the tolerance, which returns the positions at the end and the steps."""
    y0, rate, n = np.r_[problem.q, problem.qd], right_hand_side(problem), problem.model.nv

    def with_rbchain(method):
        def run(tolerance):
            settings = {"rtol": tolerance, "atol": tolerance} | problem.settings
            motion = problem.model.simulate(problem.q, problem.qd, problem.duration, method=method, **settings)
            return motion.q[-1], int(motion.steps)

        return run

    def with_scipy(method):
        def run(tolerance):
            settings = {"rtol": max(tolerance, 1e-13), "atol": tolerance, "vectorized": True}
            try:
                found = solve_ivp(rate, (0.0, problem.duration), y0, method, **settings)
            except ValueError:  # the state of a trial step was not finite
                return np.full(n, np.nan), 0
            return found.y[:n, -1] if found.success else np.full(n, np.nan), found.t.size

        return run

    ours = {name: with_rbchain(name) for name in ("rosenbrock", "radau", "rk45")}
    return ours | {f"SciPy {name}": with_scipy(name) for name in ("Radau", "BDF")}


def methods_of_mujoco(problem):
    """Return the implicit methods of MuJoCo: a tolerance of 1e-k means a step of 10^(-k / 2) s."""
    import mujoco

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "cable.xml")
        rb.save(problem.model, file)
        model = mujoco.MjModel.from_xml_path(str(file))

    def with_mujoco(integrator):
        def run(tolerance):
            steps = round(problem.duration / tolerance**0.5)
            model.opt.integrator, model.opt.timestep = integrator, problem.duration / steps
            state = mujoco.MjData(model)
            mujoco.mj_step(model, state, nstep=steps)
            return state.qpos.copy(), steps

        return run

    kinds = mujoco.mjtIntegrator
    integrators = {"MuJoCo implicit": kinds.mjINT_IMPLICIT, "MuJoCo implicitfast": kinds.mjINT_IMPLICITFAST}
    return {name: with_mujoco(integrator) for name, integrator in integrators.items()}


def methods_of_drake(problem):
    """Return the implicit methods of Drake with error control, whose accuracy is the tolerance."""
    from pydrake.math import RigidTransform
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import (
        FixedOffsetFrame,
        RevoluteJoint,
        RevoluteSpring,
        RotationalInertia,
        SpatialInertia,
    )
    from pydrake.systems.analysis import ResetIntegratorFromFlags, Simulator

    model, plant = problem.model, MultibodyPlant(time_step=0.0)
    plant.mutable_gravity_field().set_gravity_vector(model.gravity)
    parent = plant.world_frame()
    for i, name in enumerate(model.body_names):
        about_cg = RotationalInertia(*np.diagonal(model.inertia[i]))
        inertia = SpatialInertia.MakeFromCentralInertia(model.mass[i], model.cg[i], about_cg)
        body = plant.AddRigidBody(name, inertia)
        place = RigidTransform(model.placement_translation[i])
        place = plant.AddFrame(FixedOffsetFrame(f"place of {name}", parent, place))
        joint = plant.AddJoint(RevoluteJoint(name, place, body.body_frame(), [0, 0, 1], model.damping[i]))
        plant.AddForceElement(RevoluteSpring(joint, 0.0, model.stiffness[i]))
        parent = body.body_frame()
    plant.Finalize()

    def with_drake(scheme):
        def run(tolerance):
            simulator = Simulator(plant)
            integrator = ResetIntegratorFromFlags(simulator, scheme, problem.duration)
            integrator.set_maximum_step_size(problem.duration)
            integrator.set_target_accuracy(tolerance)
            plant.SetPositions(simulator.get_mutable_context(), problem.q)
            plant.SetVelocities(simulator.get_mutable_context(), problem.qd)
            try:
                simulator.AdvanceTo(problem.duration)
            except RuntimeError:  # the step became too small
                return np.full(model.nv, np.nan), 0
            return plant.GetPositions(simulator.get_context()).copy(), integrator.get_num_steps_taken()

        return run

    schemes = ("implicit_euler", "velocity_implicit_euler", "radau1", "radau3")
    return {f"Drake {scheme}": with_drake(scheme) for scheme in schemes}


def measured(contest, tolerances, wanted):
    """Run all methods in turns; return {method: [(tolerance, steps, error, median CPU time in s)]}."""
    results, running = {name: [] for name in contest}, dict(contest)
    for run in contest.values():
        run(tolerances[0])  # compiles
    for tolerance in tolerances:
        seconds, found = {name: [] for name in running}, {}
        for _ in range(RUNS):
            for name, run in running.items():
                if sum(seconds[name]) < LIMIT / 4:
                    started = time.process_time()
                    found[name] = run(tolerance)
                    seconds[name].append(time.process_time() - started)
        for name in list(running):
            q, steps = found[name]
            results[name].append((tolerance, steps, np.abs(q - wanted).max(), np.median(seconds[name])))
            if np.median(seconds[name]) > LIMIT:
                del running[name]
    return results


def time_at(error, rows):
    """Interpolate the CPU time of a method at this error; NaN if all its errors are larger.

    A method whose errors are all smaller counts with its fastest run.
    """
    points = sorted((np.log(e), np.log(seconds)) for _, _, e, seconds in rows if np.isfinite(e) and e > 0.0)
    if not points:
        return np.nan
    errors, times = np.array(points).T
    best = np.minimum.accumulate(times)  # a smaller error in less time is a better way to the larger error
    return float(np.exp(np.interp(np.log(error), errors, best, left=np.nan)))


def tables(name, results):
    """Return the table of all runs, and that of the multiples at equal errors."""
    runs = Table("method", "rtol = atol", "steps", "error", "CPU, s", title=name)
    for method, rows in results.items():
        for tolerance, steps, error, seconds in rows:
            runs.add_row(method, f"{tolerance:.0e}", str(steps), f"{error:.1e}", f"{seconds:.4f}")
        runs.add_section()
    multiples = Table("error", *(f"{error:.0e}" for error in ERRORS), title=f"{name}: multiples of rosenbrock's time")
    ours = [time_at(error, results["rosenbrock"]) for error in ERRORS]
    multiples.add_row("rosenbrock, s", *("" if np.isnan(t) else f"{t:.4f}" for t in ours))
    for method, rows in results.items():
        if method != "rosenbrock":
            ratios = [time_at(error, rows) / t for error, t in zip(ERRORS, ours, strict=True)]
            multiples.add_row(method, *("" if np.isnan(ratio) else f"{ratio:.1f}" for ratio in ratios))
    return runs, multiples


def main():
    """Print two tables for each problem."""
    problems = {"A05": governor, "arm": arm, "cable": cable, "cable_in_air": cable_in_air, "arch": arch}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", choices=problems, default=list(problems))
    parser.add_argument("--fewest", type=int, default=3)
    parser.add_argument("--most", type=int, default=10)
    given = parser.parse_args()
    rb.set_num_threads(1)
    console = Console(width=130)
    console.print(f"{processor()}, Python {platform.python_version()}")
    for name in given.problems:
        problem = problems[name]()
        contest = methods(problem)
        if name == "cable_in_air":
            contest |= methods_of_mujoco(problem) | methods_of_drake(problem)
        wanted, _ = contest["rosenbrock"](1e-12)
        for table in tables(name, measured(contest, 10.0 ** -np.arange(given.fewest, given.most + 1), wanted)):
            console.print(table)


if __name__ == "__main__":
    main()
