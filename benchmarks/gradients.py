"""Measure the run time of sensitivities: `simulate` against central differences in the same lanes.

    python benchmarks/gradients.py

A 7-joint arm moves for 0.5 s under gravity with the method rk4 and steps of 1 ms, on one thread. The script computes
the derivatives of the final state with respect to the initial state and the masses. Differences simulate two samples
for each parameter, all in one batch. The script prints the CPU time per motion and derivative, and the largest
difference of the results. If Drake is installed (pip install drake), it also prints the time of an evaluation of the
rate with these derivatives by Drake's AutoDiffXd, in steps of the method runge_kutta3. If MJX is installed (pip install
mujoco-mjx), it prints the time of an evaluation for the gradient of one final position (reverse mode), in 10 Euler
steps of the same batch. JAX compiles this for several minutes. The script also prints the largest difference from
rbchain's gradient, which Euler's method explains.
"""

import importlib.util
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
SAMPLES, REPEATS, STEP, MJX_STEPS = 16, 5, 1e-3, 10
SETTINGS = {"method": "rk4", "step": STEP, "save_at": 2}


def cpu_time(call):
    """Return the least CPU time of several calls, in s, and the result of the last."""
    call()  # compiles
    found = []
    for _ in range(REPEATS):
        start = time.process_time()
        result = call()
        found.append(time.process_time() - start)
    return min(found), result


def time_of_drake(model, parameters):
    """Return the CPU time of an evaluation of the rate of a serial chain with derivatives by AutoDiffXd, in s."""
    from pydrake.autodiffutils import AutoDiffXd, InitializeAutoDiff
    from pydrake.math import RigidTransform
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import FixedOffsetFrame, RevoluteJoint, RotationalInertia, SpatialInertia
    from pydrake.systems.analysis import ResetIntegratorFromFlags, Simulator_

    plant, n = MultibodyPlant(0.0), model.nv
    plant.mutable_gravity_field().set_gravity_vector(model.gravity)
    parent = plant.world_frame()
    for i in range(n):
        moments = RotationalInertia(1e-9, *model.inertia[i].diagonal()[1:])  # not zero, which Drake refuses
        inertia = SpatialInertia.MakeFromCentralInertia(model.mass[i], model.cg[i], moments)
        body, place = plant.AddRigidBody(f"link{i}", inertia), RigidTransform(model.placement_translation[i])
        frame = plant.AddFrame(FixedOffsetFrame(f"frame{i}", parent, place))
        plant.AddJoint(RevoluteJoint(f"joint{i}", frame, body.body_frame(), [0, 0, 1], damping=model.damping[i]))
        parent = body.body_frame()
    plant.Finalize()
    plant, x = plant.ToAutoDiffXd(), InitializeAutoDiff(parameters).reshape(-1)
    simulator = Simulator_[AutoDiffXd](plant)
    context, integrator = simulator.get_mutable_context(), ResetIntegratorFromFlags(simulator, "runge_kutta3", STEP)
    for i in range(n):
        plant.GetBodyByName(f"link{i}").SetMass(context, x[2 * n + i])
    plant.SetPositionsAndVelocities(context, x[: 2 * n])
    integrator.set_fixed_step_mode(True)
    simulator.Initialize()
    start = time.process_time()
    simulator.AdvanceTo(100 * STEP)
    return (time.process_time() - start) / integrator.get_num_derivative_evaluations()


def gradient_of_mjx(model, q, qd, mass):
    """Return the CPU time of an evaluation for the gradient of the last angle by MJX, in s, and this gradient."""
    import jax
    import mujoco
    from mujoco import mjx

    jax.config.update("jax_enable_x64", True)
    links, n = [], model.nv
    for i in range(n):
        moments = " ".join(f"{max(moment, 1e-9)}" for moment in model.inertia[i].diagonal())  # zero is refused
        center = " ".join(map(str, model.cg[i]))
        place = " ".join(map(str, model.placement_translation[i]))
        joint = f'<joint type="hinge" axis="0 0 1" damping="{model.damping[i]}"/>'
        inertial = f'<inertial pos="{center}" mass="{model.mass[i]}" diaginertia="{moments}"/>'
        links.append(f'<body pos="{place}">{joint}{inertial}')
    gravity = " ".join(map(str, model.gravity))
    option = f'<option timestep="{STEP}" gravity="{gravity}"><flag contact="disable" eulerdamp="disable"/></option>'
    text = f"<mujoco>{option}<worldbody>{''.join(links)}{'</body>' * n}</worldbody></mujoco>"
    mujoco_model = mujoco.MjModel.from_xml_string(text)
    arm, start = mjx.put_model(mujoco_model), mjx.put_data(mujoco_model, mujoco.MjData(mujoco_model))

    def last_angle(q, qd, mass):
        one = arm.replace(body_mass=arm.body_mass.at[1:].set(mass))
        state = start.replace(qpos=q, qvel=qd)
        return jax.lax.scan(lambda state, _: (mjx.step(one, state), None), state, None, length=MJX_STEPS)[0].qpos[-1]

    gradient = jax.jit(jax.vmap(jax.grad(last_angle, argnums=(0, 1, 2))))
    best, found = cpu_time(lambda: jax.block_until_ready(gradient(q, qd, mass)))
    return best / (len(q) * MJX_STEPS), found


def main():
    import numpy as np

    import rbchain as rb

    rb.set_num_threads(1)
    rng, n = np.random.default_rng(0), 7
    arm = rb.Model.serial_chain(n, length=0.3, mass=2.0).replace(damping=np.full(n, 0.1))
    q, qd = 0.3 * rng.normal(size=(2, SAMPLES, n))
    mass = arm.mass * rng.uniform(0.9, 1.1, (SAMPLES, n))
    names = ("q", "qd", "mass")

    def sensitivities():
        motion = arm.vary(mass=mass).simulate(q, qd, 0.5, derivatives=names, **SETTINGS)
        return np.concatenate([motion.derivatives[name][:, -1] for name in names], -1)

    def differences():
        size, parameters = 1e-5, np.concatenate([q, qd, mass], -1)
        moved = parameters[:, None, None] + size * np.array([1.0, -1.0])[:, None, None] * np.eye(3 * n)
        parts = (moved[..., :n], moved[..., n : 2 * n], moved[..., 2 * n :])
        motion = arm.vary(mass=parts[2]).simulate(*parts[:2], 0.5, **SETTINGS)
        ends = np.concatenate([motion.q[..., -1, :], motion.qd[..., -1, :]], -1)
        return np.swapaxes(ends[:, 0] - ends[:, 1], -1, -2) / (2 * size)

    (exact_time, exact), (difference_time, difference) = cpu_time(sensitivities), cpu_time(differences)
    count = SAMPLES * 3 * n
    print(f"sensitivities        {1e6 * exact_time / count:8.1f} us per motion and derivative")
    print(f"central differences  {1e6 * difference_time / count:8.1f} us per motion and derivative")
    print(f"ratio                {difference_time / exact_time:8.2f}")
    print(
        f"largest difference   {np.abs(exact - difference).max() / np.abs(exact).max():8.1e} of the largest derivative"
    )
    print(f"an evaluation        {1e6 * exact_time / SAMPLES / (4 * 0.5 / STEP):8.1f} us")
    if importlib.util.find_spec("pydrake"):
        drake = min(time_of_drake(arm, np.concatenate([q[0], qd[0], mass[0]])) for _ in range(REPEATS))
        print(f"an evaluation, Drake {1e6 * drake:8.1f} us")
    if importlib.util.find_spec("mujoco") and importlib.util.find_spec("jax"):
        mjx_time, gradient = gradient_of_mjx(arm, q, qd, mass)
        motion = arm.vary(mass=mass).simulate(q, qd, MJX_STEPS * STEP, derivatives=names, **SETTINGS)
        own = np.concatenate([motion.derivatives[name][:, -1, n - 1] for name in names], -1)
        print(f"an evaluation, MJX   {1e6 * mjx_time:8.1f} us")
        print(f"largest difference   {np.abs(own - np.concatenate(gradient, -1)).max():8.1e}")


if __name__ == "__main__":
    main()
