"""A seven-joint arm that reaches points with an unknown payload."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box

from ..acting.drives import PID
from ..acting.inputs import Input
from ..acting.sampled import Sampled
from ..acting.sensors import Encoder
from ..common.real_arrays import whole_number
from ..errors import ArgumentError
from ..facade.builder import ModelBuilder
from ..facade.model import Model
from ..model.inertia import Inertia
from ..model.joint import Fixed, Revolute
from ..model.pose import Pose
from ..simulate.stepper import Stepper
from .vector_env import VectorEnv

LINKS = ((0.34, 4.0), (0.2, 4.0), (0.2, 3.0), (0.2, 2.7), (0.2, 1.7), (0.2, 1.8), (0.1, 0.3))  # m and kg, from the base
NAMES = [f"joint{i + 1}" for i in range(len(LINKS))]
STIFFNESS = np.array([400.0, 400.0, 250.0, 250.0, 80.0, 80.0, 10.0])  # N m/rad
DAMPING = np.array([40.0, 40.0, 25.0, 25.0, 5.0, 5.0, 1.0])  # N m s/rad
ROTOR = 0.1  # of each joint, as reflected by its gear, kg m^2
STEP, STEPS, PERIOD = 2e-3, 10, 4e-3  # s; actions are held for 0.02 s
RESOLUTION, NOISE = 1e-4, 2e-4  # of the encoders, rad
LARGEST_CHANGE, LARGEST_PAYLOAD = 0.03, 3.0  # rad in each step, and kg
HOME = np.array([0.0, 0.5, 0.0, -1.2, 0.0, 0.8, 0.0])


def seven_joint_arm() -> Model:
    """Return an arm with seven joints, whose axes point alternately along and across its links.

    The links are cylinders with a radius of 5 cm. The arm is 1.44 m long and has a mass of 17.5 kg. "tool" is the frame
    at its tip. The rotors of the motors have inertias of 0.1 kg m^2, as reflected by their gears.
    """
    builder = ModelBuilder(name="seven-joint arm")
    parent: str | None = None
    at = 0.0
    for i, (length, mass) in enumerate(LINKS):
        builder.add_body(
            f"link{i + 1}",
            parent=parent,
            joint=Revolute(((0, 0, 1), (0, 1, 0))[i % 2]),
            joint_name=NAMES[i],
            placement=Pose((0, 0, at)),
            inertia=Inertia.cylinder(0.05, length, mass=mass, cg=(0, 0, 0.5 * length)),
            rotor_inertia=ROTOR,
        )
        parent, at = f"link{i + 1}", length
    builder.add_body("tool", parent=parent, joint=Fixed(), placement=Pose((0, 0, at)))
    return builder.build()


def reacher(num_envs: int = 1, max_episode_steps: int = 100, **settings: Any) -> VectorEnv:
    """Return the environment "rbchain/Reacher-v0": an arm whose tool must reach a point, with an unknown payload.

    Each joint has a digital PD controller with a period of 4 ms. It compensates gravity with a model without the
    payload, and measures the angle with a noisy encoder. The action, from -1 to 1 for each joint, changes the reference
    of its controller by up to 0.03 rad; larger actions are clipped.

    An episode draws a payload from 0 to 3 kg at the tool and a target. The observations are the readings of the
    encoders (7, rad), the references (7, rad), and the vector from the tool, according to the readings, to the target
    (3, m). The reward is minus the true distance from the tool to the target in m. infos["payload"] is the payload in
    kg.

    Parameters
    ----------
    num_envs : int
    max_episode_steps : int
    **settings
        Further arguments of `VectorEnv`, such as `autoreset_mode`.
    """
    n = whole_number("num_envs", num_envs, ArgumentError, least=1)
    arm = seven_joint_arm()
    drives = [
        Sampled(
            PID(name, Input(name, HOME[i]), kp=STIFFNESS[i], kd=DAMPING[i], gravity_compensation=True),
            period=PERIOD,
            sensors=[Encoder(name, resolution=RESOLUTION, noise=NOISE)],
        )
        for i, name in enumerate(NAMES)
    ]
    loaded = arm.with_payload("tool", mass=np.zeros(n))
    stepper = loaded.stepper(HOME, method="rk4", step=STEP, drives=drives, on_failure="ignore")
    task = _Task(arm, n)
    return VectorEnv(
        stepper,
        task.observe,
        task.reward,
        lambda s: np.zeros(n, bool),
        act=task.act,
        begin=task.begin,
        info=lambda s: {"payload": task.payload},
        steps=STEPS,
        max_episode_steps=max_episode_steps,
        action_space=Box(-1.0, 1.0, (len(NAMES),), np.float64),
        **settings,
    )


class _Task:
    """The payloads and targets of the current episodes."""

    def __init__(self, arm: Model, samples: int) -> None:
        self.arm, self.payload, self.target = arm, np.zeros(samples), np.zeros((samples, 3))
        self.rng = np.random.default_rng(0)

    def observe(self, stepper: Stepper) -> np.ndarray:
        noisy = stepper.q + self.rng.normal(0.0, NOISE, stepper.q.shape)
        readings = RESOLUTION * np.round(noisy / RESOLUTION)
        references = np.stack([stepper.inputs[name] for name in NAMES], -1)
        return np.concatenate([readings, references, self.target - self._tool(readings)], -1)

    def reward(self, stepper: Stepper, actions: np.ndarray) -> np.ndarray:
        return -np.linalg.norm(self.target - self._tool(stepper.q), axis=-1)

    def act(self, stepper: Stepper, actions: np.ndarray) -> None:
        changes = LARGEST_CHANGE * np.clip(actions, -1.0, 1.0)
        for i, name in enumerate(NAMES):
            stepper.inputs[name] += changes[:, i]

    def begin(self, stepper: Stepper, samples: np.ndarray, rng: np.random.Generator) -> None:
        self.rng, n = rng, samples.size
        self.payload[samples] = rng.uniform(0.0, LARGEST_PAYLOAD, n)
        self.target[samples] = self._tool(HOME + rng.uniform(-0.6, 0.6, (n, len(NAMES))))
        loaded = self.arm.with_payload("tool", mass=self.payload[samples])
        stepper.reset(samples, mass=loaded.mass, cg=loaded.cg, inertia=loaded.inertia)

    def _tool(self, q: np.ndarray) -> np.ndarray:
        return self.arm.frame_poses(q, "tool").translation
