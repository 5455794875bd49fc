"""The programs of the race.

Each program has a name and a method `prepare(problem, task, states, **settings)`. The method returns a function that
computes all states once, and returns the seconds per state and the results (states, m). `prepare` raises `Unable` if
the program does not support the task or takes too long.

The results are accelerations or forces (nv), the first row of the mass matrix, the last row of d qdd / dq, or the final
q and qd of a simulation.
"""

import time
from functools import cached_property

import mujoco
import mujoco.batch
import mujoco.rollout
import numpy as np
import pinocchio as pin

import rbchain as rb
from tests.oracles import peers

SAMPLE = 256  # states of programs that Python calls for each state
MOST_STATES = {"Octave": 8, "NumPy": 64, "C#, Mono": 64}
IN_LANES = {f"C++ in {n} lanes, {compiler}" for n in (4, 8) for compiler in ("g++", "clang++")}
COMPILED = {"C++, g++", "C++, clang++", "Fortran"} | IN_LANES


class Unable(Exception):
    """The program does not support the task."""


class Problem:
    """A mechanism in rbchain, Pinocchio and MuJoCo."""

    def __init__(self, name, model):
        self.name, self.model = name, model

    @cached_property
    def pinocchio(self):
        return peers.to_pinocchio(self.model)

    @cached_property
    def mujoco(self):
        return peers.to_mujoco(self.model)

    def states(self, batch, seed=0):
        """Return random q, qd and a third array, for a batch."""
        rng = np.random.default_rng(seed)
        q, qd = self.model.random_state(rng, batch)
        return q, qd, rng.normal(size=qd.shape)


def timed(call, states, check=lambda found: found):
    """Return a function that calls `call` once to warm up and once to measure."""

    def lap():
        call()
        started = time.perf_counter()
        found = call()
        return (time.perf_counter() - started) / states, check(found)

    return lap


class Rbchain:
    """rbchain, called once for all states."""

    def __init__(self, dtype=np.float64, alone=False):
        self.dtype, self.name = dtype, "rbchain" if dtype is np.float64 else "rbchain, float32"
        self.alone = alone  # a single state (n,) rather than a batch of one

    def prepare(self, problem, task, states, duration=0.0, **settings):
        model = problem.model
        q, qd, x = (s.astype(self.dtype) for s in states)
        settings = settings | {"save_at": [duration]}  # as the other programs, which return the last state only
        if self.alone:
            move = lambda: model.simulate(q[0], qd[0], duration, method=task, tau=x[0], **settings)  # noqa: E731
            return timed(move, 1, lambda motion: np.concatenate([motion.q[-1], motion.qd[-1]])[None])
        if task == "forward dynamics":
            return timed(lambda: model.forward_dynamics(q, qd, x), len(q))
        if task == "inverse dynamics":
            return timed(lambda: model.inverse_dynamics(q, qd, x), len(q))
        if self.dtype is np.float32:
            raise Unable
        if task == "mass matrix":
            out = np.empty((*x.shape, model.nv))
            return timed(lambda: model.mass_matrix(q, out=out), len(q), lambda H: H[:, 0])
        if task == "derivatives":
            out = np.empty((len(q), 3, model.nv, model.nv))
            derivatives = lambda: model.forward_dynamics_derivatives(q, qd, x, out=out)  # noqa: E731
            return timed(derivatives, len(q), lambda found: found[0][:, -1])
        move = lambda: model.simulate(q, qd, duration, method=task, tau=x, **settings)  # noqa: E731
        return timed(move, len(q), lambda motion: np.concatenate([motion.q[:, -1], motion.qd[:, -1]], axis=-1))


class FromProgram:
    """A program of `ports`, which measures its own time."""

    def __init__(self, program, folder):
        self.program, self.folder, self.name = program, folder, program.name

    def prepare(self, problem, task, states, **settings):
        model = problem.model
        if task not in self.program.tasks or (model.nq != model.nv and not self.program.free_base):
            raise Unable
        if model.nv > 100 and "Pinocchio" in self.name:  # its workspace grows with the third power
            raise Unable
        if self.name in MOST_STATES and (model.nv > 100 or (task != "forward dynamics" and model.nv > 7)):
            raise Unable
        if self.name == "Octave" and task != "forward dynamics":  # takes minutes; see `python -m benchmarks.ports`
            raise Unable
        few = [s[: MOST_STATES.get(self.name, len(s))] for s in states]
        settings = {"repeats": 1 if self.name in MOST_STATES else 3} | settings

        def lap():
            seconds, found, _ = self.program.run(self.folder, model, few, task, **settings)
            return np.median(seconds) / len(few[0]), found

        return lap


class PinocchioFromPython:
    """Pinocchio's functions, called from Python for each state."""

    name = "Pinocchio, Python"

    def prepare(self, problem, task, states, **_):
        if problem.model.nv > 100:  # its workspace grows with the third power
            raise Unable
        peer = problem.pinocchio
        model, data = peer.model, peer.model.createData()
        orders = peer.position_order, peer.velocity_order, peer.velocity_order
        few = [tuple(np.ascontiguousarray(x[i][o]) for x, o in zip(states, orders, strict=True)) for i in range(SAMPLE)]
        back = np.argsort(peer.velocity_order)
        if task == "forward dynamics":
            return timed(lambda: [pin.aba(model, data, *s).copy() for s in few], SAMPLE, lambda x: np.array(x)[:, back])
        if task == "inverse dynamics":
            return timed(
                lambda: [pin.rnea(model, data, *s).copy() for s in few], SAMPLE, lambda x: np.array(x)[:, back]
            )
        if task == "mass matrix":
            rows = lambda found: peers.mirrored(found)[back][:, back][0]  # noqa: E731
            call = lambda: [pin.crba(model, data, s[0]) for s in few]  # noqa: E731
            return timed(call, SAMPLE, lambda found: rows(found[-1])[None])
        if task == "derivatives":
            call = lambda: [pin.computeABADerivatives(model, data, *s) for s in few]  # noqa: E731
            return timed(call, SAMPLE, lambda found: found[-1][0][back][:, back][-1:])
        raise Unable


class PinocchioInParallel:
    """Pinocchio's parallel functions for a whole batch."""

    def __init__(self, threads=1):
        self.threads, self.name = threads, "Pinocchio, parallel"

    def prepare(self, problem, task, states, **_):
        calls = {"forward dynamics": pin.abaInParallel, "inverse dynamics": pin.rneaInParallel}
        if task not in calls or problem.model.nv > 100:
            raise Unable
        peer = problem.pinocchio
        pool = pin.ModelPool(peer.model, self.threads)
        orders = peer.position_order, peer.velocity_order, peer.velocity_order
        theirs = [np.asfortranarray(x[:, o].T) for x, o in zip(states, orders, strict=True)]
        found, back = np.empty_like(theirs[2], order="F"), np.argsort(peer.velocity_order)
        call = lambda: calls[task](self.threads, pool, *theirs, found)  # noqa: E731
        return timed(call, len(states[0]), lambda _: found.T[:, back])


class Mujoco:
    """MuJoCo's batch functions: forward dynamics, including collision detection, and RK4."""

    def __init__(self, by="batch", threads=1):
        self.by, self.threads, self.name = by, threads, f"MuJoCo, {by}"

    def prepare(self, problem, task, states, duration=0.0, step=0.0, **_):
        if problem.model.nq != problem.model.nv:  # other conventions than ours: compared in the tests
            raise Unable
        engine = problem.mujoco.model
        q, qd, tau = states
        threads = self.threads
        if task == "forward dynamics" and self.by == "batch":
            sims = mujoco.batch.Batch(engine, len(q), threads, persistent=True)
            sims.qpos, sims.qvel, sims.qfrc_applied = q, qd, tau
            return timed(sims.forward, len(q), lambda _: np.asarray(sims.qacc))
        if task != "rk4":
            raise Unable
        engine.opt.integrator, engine.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, step
        steps = round(duration / step)
        if self.by == "batch":
            sims = mujoco.batch.Batch(engine, len(q), threads, persistent=True)

            def move():
                sims.qpos, sims.qvel, sims.qfrc_applied = q, qd, tau
                sims.step(nstep=steps)

            return timed(move, len(q), lambda _: np.concatenate([np.array(sims.qpos), np.array(sims.qvel)], axis=1))
        data = [mujoco.MjData(engine) for _ in range(threads)]
        initial = np.concatenate([np.zeros((len(q), 1)), q, qd], axis=1)
        control = np.broadcast_to(tau[:, None], (len(q), steps, tau.shape[1]))
        settings = {"nstep": steps, "control": control, "control_spec": int(mujoco.mjtState.mjSTATE_QFRC_APPLIED)}
        roll = lambda: mujoco.rollout.rollout(engine, data, initial, **settings)  # noqa: E731
        return timed(roll, len(q), lambda found: found[0][:, -1, 1 : 1 + 2 * q.shape[1]])


class Drake:
    """Drake's MultibodyPlant, called from Python for each state."""

    name = "Drake, Python"

    def prepare(self, problem, task, states, **_):
        if problem.model.nv > 100 or not set(problem.model.joint_types) <= {"revolute"}:
            raise Unable
        try:
            from pydrake.multibody.tree import MultibodyForces
        except ImportError:
            raise Unable from None
        plant = plant_of(problem.model)
        context = plant.CreateDefaultContext()
        port, nothing = plant.get_applied_generalized_force_input_port(), MultibodyForces(plant)

        def put(q, qd):
            plant.SetPositions(context, q)
            plant.SetVelocities(context, qd)

        def accelerations(q, qd, tau):
            port.FixValue(context, tau)
            put(q, qd)
            return plant.EvalTimeDerivatives(context).CopyToVector()[len(q) :]

        def forces(q, qd, qdd):
            put(q, qd)
            nothing.SetZero()
            plant.CalcForceElementsContribution(context, nothing)
            return plant.CalcInverseDynamics(context, qdd, nothing)

        def first_row(q, *_):
            plant.SetPositions(context, q)
            return plant.CalcMassMatrix(context)[0]

        calls = {"forward dynamics": accelerations, "inverse dynamics": forces, "mass matrix": first_row}
        if task not in calls:
            raise Unable
        few = [tuple(x[i] for x in states) for i in range(min(SAMPLE, len(states[0])))]
        return timed(lambda: np.array([calls[task](*s) for s in few]), len(few))


def plant_of(model):
    """Build the same mechanism of revolute joints in Drake."""
    from pydrake.math import RigidTransform, RotationMatrix
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import FixedOffsetFrame, RevoluteJoint, RotationalInertia, SpatialInertia

    plant, bodies = MultibodyPlant(time_step=0.0), {}
    for i, name in enumerate(model.body_names):
        I = model.inertia[i]  # noqa: E741
        tensor = RotationalInertia(I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
        bodies[i] = plant.AddRigidBody(name, SpatialInertia.MakeFromCentralInertia(model.mass[i], model.cg[i], tensor))
        parent = plant.world_frame() if model.parent[i] < 0 else bodies[model.parent[i]].body_frame()
        rotation = RotationMatrix.ProjectToRotationMatrix(model.placement_rotation[i])
        place = RigidTransform(rotation, model.placement_translation[i])
        on_parent = plant.AddFrame(FixedOffsetFrame(f"on_{name}", parent, place))
        plant.AddJoint(
            RevoluteJoint(f"joint_{name}", on_parent, bodies[i].body_frame(), model.axis[model.velocity_index[i]])
        )
    plant.mutable_gravity_field().set_gravity_vector(model.gravity)
    plant.Finalize()
    return plant


class Mjx:
    """MuJoCo MJX with JAX on the CPU, in float64, for a whole batch."""

    name = "MJX (JAX), CPU"

    def prepare(self, problem, task, states, **_):
        # XLA takes minutes to compile longer chains
        if task != "forward dynamics" or problem.model.nv > 18 or problem.model.nq != problem.model.nv:
            raise Unable
        try:
            import jax
            from mujoco import mjx
        except ImportError:
            raise Unable from None
        jax.config.update("jax_enable_x64", True)
        model = mjx.put_model(problem.mujoco.model)
        blank = mjx.make_data(model)

        @jax.jit
        @jax.vmap
        def accelerations(q, qd, tau):
            return mjx.forward(model, blank.replace(qpos=q, qvel=qd, qfrc_applied=tau)).qacc

        theirs = [jax.numpy.asarray(s) for s in states]
        return timed(lambda: accelerations(*theirs).block_until_ready(), len(states[0]), np.asarray)


def single_jointed(model):
    """Replace the free joint by three prismatic and three revolute joints with massless bodies between them."""
    builder = rb.ModelBuilder(name=model.name, gravity=model.gravity)
    axes = np.eye(3)
    parent = None
    for i, joint in enumerate([*(rb.Prismatic(a) for a in axes), *(rb.Revolute(a) for a in axes[:2])]):
        builder.add_body(f"massless{i}", parent=parent, joint=joint)
        parent = f"massless{i}"
    for i, name in enumerate(model.body_names):
        if model.joint_types[i] == "free":
            joint, above = rb.Revolute(axes[2]), parent
        else:
            joint, above = rb.Revolute(model.axis[model.velocity_index[i]]), model.body_names[model.parent[i]]
        place = rb.Pose(model.placement_translation[i], model.placement_rotation[i])
        inertia = rb.Inertia(model.mass[i], cg=model.cg[i], inertia=model.inertia[i])
        builder.add_body(name, parent=above, joint=joint, placement=place, inertia=inertia)
    return builder.build()
