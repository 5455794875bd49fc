"""Measure the time of Cartesian impedance control in a motion, compiled and in plain Python.

    taskset -c 0 python benchmarks/needs.py

At 1 kHz, springs and dampers for position and orientation hold the tool of each arm at its goal. The arms have 7
joints, and masses and goals per sample. The controller needs the pose, the Jacobian and the bias forces of the nominal
model. From the time of the motion, the script subtracts the time of the same motion with a compiled function that needs
nothing. All cases run alternately; the times are medians of the processor time.
"""

import platform
import sys
import time
from pathlib import Path

import numpy as np

import rbchain as rb

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.timing import medians, processor

SAMPLES, PERIODS, PERIOD, ROUNDS = 1024, 100, 1e-3, 7
STIFFNESS, DAMPING = (400.0, 20.0), (40.0, 2.0)  # N/m and N m/rad, N s/m and N m s/rad
JOINT_DAMPING = 1.0  # N m s/rad
START = np.array([-0.4, 0.4, 0.0, 1.3, 0.0, 0.8, 0.0])  # rad
MOVE = np.array([0.1, -0.05, 0.08])  # m
NEEDS = rb.Needs(pose="tool", jacobian="tool", bias_forces=True)


def impedance(t, q, qd, parameters, computed, out):
    """Compute the joint torques of one sample; `parameters` are the position (3) and the rotation (9) of its goal."""
    J, R = computed.jacobian, computed.rotation
    n = out.shape[0]
    for i in range(n):
        out[i] = computed.bias_forces[i] - JOINT_DAMPING * qd[i]
    for axis in range(3):
        after, before = (axis + 1) % 3, (axis + 2) % 3
        turn, velocity, rate = 0.0, 0.0, 0.0
        for column in range(3):  # half the sum of the cross products of the columns
            turn += R[after, column] * parameters[3 + 3 * before + column]
            turn -= R[before, column] * parameters[3 + 3 * after + column]
        for i in range(n):
            velocity += J[axis, i] * qd[i]
            rate += J[3 + axis, i] * qd[i]
        force = STIFFNESS[0] * (parameters[axis] - computed.translation[axis]) - DAMPING[0] * velocity
        moment = 0.5 * STIFFNESS[1] * turn - DAMPING[1] * rate
        for i in range(n):
            out[i] += J[axis, i] * force + J[3 + axis, i] * moment


def impedance_of_batch(t, q, qd, parameters, computed):
    """Compute the torques of `impedance` for all samples."""
    J, goal = computed.jacobian, parameters[..., 3:].reshape(*parameters.shape[:-1], 3, 3)
    velocity = (J @ qd[..., None])[..., 0]
    turn = 0.5 * np.cross(computed.rotation, goal, axis=-2).sum(-1)
    force = STIFFNESS[0] * (parameters[..., :3] - computed.translation) - DAMPING[0] * velocity[..., :3]
    moment = STIFFNESS[1] * turn - DAMPING[1] * velocity[..., 3:]
    spring = (J.mT @ np.concatenate([force, moment], -1)[..., None])[..., 0]
    return computed.bias_forces - JOINT_DAMPING * qd + spring


def damp(t, q, qd, parameters, out):
    """Damp the joints: a function that needs nothing."""
    for i in range(out.shape[0]):
        out[i] = -JOINT_DAMPING * qd[i]


def motion_with(function, needs=None):
    """Return a function that simulates the arms with a controller."""
    arm, rng = rb.load(Path(__file__).parents[1] / "examples" / "seven_joint_arm.toml"), np.random.default_rng(0)
    arms = arm.vary(mass=arm.mass * rng.uniform(0.95, 1.05, (SAMPLES, arm.n_bodies)))
    q = START + rng.uniform(-0.1, 0.1, (SAMPLES, arm.nq))
    pose = arm.frame_poses(START, "tool")
    goals = np.broadcast_to(np.append(pose.translation, pose.rotation.ravel()), (SAMPLES, 12)).copy()
    goals[:, :3] += MOVE * rng.uniform(-1.0, 1.0, (SAMPLES, 3))
    drive = rb.Sampled(rb.UserForces(function, parameters=goals), period=PERIOD, needs=needs)
    duration = PERIODS * PERIOD
    return lambda: arms.simulate(q, duration=duration, method="rk4", step=PERIOD, drives=[drive], save_at=2)


def main():
    rb.set_num_threads(1)
    contestants = {
        "compiled": motion_with(impedance, NEEDS),
        "plain Python": motion_with(impedance_of_batch, NEEDS),
        "a compiled function that needs nothing": motion_with(damp),
    }
    ends = {name: call() for name, call in contestants.items()}
    assert all(motion.success for motion in ends.values())
    difference = np.abs(ends["compiled"].end_q - ends["plain Python"].end_q).max()
    seconds = medians(contestants, ROUNDS, time.process_time)
    without = seconds.pop("a compiled function that needs nothing")
    print(f"{processor()}; Python {platform.python_version()}; {SAMPLES} samples, {PERIODS} periods, one thread")
    per_period = 1e6 / (SAMPLES * PERIODS)
    print(f"motion without needs: {without * per_period:.2f} us per sample and period")
    for name, of in seconds.items():
        print(f"impedance control, {name}: {(of - without) * per_period:.2f} us per sample and period more")
    print(f"largest difference of the two motions at the end: {difference:.1e} rad")


if __name__ == "__main__":
    main()
