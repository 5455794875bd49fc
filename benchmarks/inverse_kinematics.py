"""Measure how many poses inverse kinematics reaches, and how long it takes.

    taskset -c 0 python benchmarks/inverse_kinematics.py

Targets are the poses of random positions within the limits of a Panda, from example-robot-data, and of two arms without
limits. The search starts in the middle of the limits, or at zero. Times are medians of the processor time of one
thread. Solutions are counted if `frame_poses` and a rotation vector confirm the tolerance.
"""

import platform
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

import rbchain as rb

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.timing import medians, processor
from tests.mechanisms import MECHANISMS

SAMPLES, ROUNDS, STARTS, TOLERANCE, SINGLE_CALLS = 10_000, 5, (1, 8, 32), 1e-10, 100


def arms():
    """The arms, with the frame that has the targets."""
    warnings.simplefilter("ignore", UserWarning)  # names in the file of the Panda
    panda = MECHANISMS["panda"]().lock({"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0})
    seven = rb.load(Path(__file__).parents[1] / "examples" / "seven_joint_arm.toml")
    return {
        "Panda": (panda, "panda_hand_tcp"),
        "seven_joint_arm.toml": (seven, "tool"),
        "serial_chain(7)": (rb.Model.serial_chain(7), "link7"),
    }


def reached(model, frame, q, goal):
    """The share of the positions q that reach their goals."""
    pose = model.frame_poses(q, frame)
    turn = Rotation.from_matrix(np.swapaxes(goal.rotation, -1, -2) @ pose.rotation).magnitude()
    return np.mean((np.linalg.norm(pose.translation - goal.translation, axis=-1) <= TOLERANCE) & (turn <= TOLERANCE))


def solve_each(model, targets):
    """Solve targets in calls of their own."""
    for target in targets:
        model.inverse_kinematics(target)


def main():
    rb.set_num_threads(1)
    print(f"{processor()}; Python {platform.python_version()}; {SAMPLES} poses, tolerance {TOLERANCE:g}, one thread")
    for name, (model, frame) in arms().items():
        lower, upper = np.clip(model.position_limits, -np.pi, np.pi).T
        goal = model.frame_poses(np.random.default_rng(0).uniform(lower, upper, (SAMPLES, model.nq)), frame)
        calls = {count: partial(model.inverse_kinematics, {frame: goal}, starts=count) for count in STARTS}
        for count, seconds in medians(calls, ROUNDS, time.process_time).items():
            found = calls[count]()
            share = reached(model, frame, found.q, goal)
            assert share >= found.success.mean()
            print(
                f"{name}, {count} starts: {share:.2%} reached, {share * SAMPLES / seconds:,.0f} solutions per second, "
                f"{found.iterations.mean():.1f} iterations per pose"
            )
        ones = [{frame: rb.Pose(goal.translation[i], goal.rotation[i])} for i in range(SINGLE_CALLS)]
        seconds = medians({"single": partial(solve_each, model, ones)}, ROUNDS, time.process_time)
        print(f"{name}, single calls: {1e3 * seconds['single'] / SINGLE_CALLS:.2f} ms")


if __name__ == "__main__":
    main()
