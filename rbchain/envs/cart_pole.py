"""Swing up of a pole on a cart."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box

from ..common.real_arrays import whole_number
from ..errors import ArgumentError
from ..facade.builder import ModelBuilder
from ..facade.model import Model
from ..model.inertia import Inertia
from ..model.joint import Prismatic, Revolute
from ..simulate.stepper import Stepper
from .vector_env import VectorEnv

CART, POLE, LENGTH = 1.0, 0.1, 1.0  # kg, kg, m
LARGEST_FORCE, RAIL = 10.0, 2.4  # N, m
STEP, STEPS = 0.01, 2  # s; actions are held for 0.02 s


def cart_pole() -> Model:
    """Return a cart of 1 kg on a rail, with a pole: a uniform rod of 0.1 kg and 1 m.

    The positions are the position of the cart along the rail, m, and the angle of the pole from upright, rad. With the
    mass M of the cart and m of the pole, and half the length l of the pole, the equations of motion for a force F on
    the cart are

        (M + m) x'' + m l (theta'' cos theta - theta'^2 sin theta) = F,
        4/3 l theta'' + x'' cos theta = g sin theta.

    References
    ----------
    Barto, Sutton and Anderson (1983), "Neuronlike adaptive elements that can solve difficult learning control
    problems".
    """
    builder = ModelBuilder(name="cart-pole")
    builder.add_body("cart", joint=Prismatic((1, 0, 0)), inertia=Inertia(mass=CART))
    rod = Inertia.rod(LENGTH, mass=POLE, axis=(0, 0, 1), cg=(0, 0, 0.5 * LENGTH))
    builder.add_body("pole", parent="cart", joint=Revolute((0, 1, 0)), inertia=rod)
    return builder.build()


def cart_pole_swing_up(num_envs: int = 1, max_episode_steps: int = 500, **settings: Any) -> VectorEnv:
    """Return the environment "rbchain/CartPoleSwingUp-v0": a hanging pole that must be swung up.

    The action, from -1 to 1, times 10 N is the force on the cart; larger actions are clipped. It is held for 0.02 s.
    The observations are x (m), x', cos(theta), sin(theta) and theta' (rad/s). The reward is (1 + cos(theta)) / 2 for
    each step. An episode terminates if the cart leaves the rail, at abs(x) > 2.4 m.

    Parameters
    ----------
    num_envs : int
    max_episode_steps : int
    **settings
        Further arguments of `VectorEnv`, such as `autoreset_mode`.

    Examples
    --------
    >>> import gymnasium, rbchain.envs
    >>> envs = gymnasium.make_vec("rbchain/CartPoleSwingUp-v0", num_envs=3)
    >>> observations, infos = envs.reset(seed=1)
    >>> observations.shape
    (3, 5)
    """
    hanging = np.zeros((whole_number("num_envs", num_envs, ArgumentError, least=1), 2))
    hanging[:, 1] = np.pi
    stepper = cart_pole().stepper(hanging, method="rk4", step=STEP, on_failure="ignore")
    return VectorEnv(
        stepper,
        _observe,
        lambda s, actions: 0.5 * (1.0 + np.cos(s.q[:, 1])),
        lambda s: np.abs(s.q[:, 0]) > RAIL,
        act=_act,
        begin=_begin,
        steps=STEPS,
        max_episode_steps=max_episode_steps,
        action_space=Box(-1.0, 1.0, (1,), np.float64),
        **settings,
    )


def _observe(stepper: Stepper) -> np.ndarray:
    (x, angle), (xd, rate) = stepper.q.T, stepper.qd.T
    return np.stack([x, xd, np.cos(angle), np.sin(angle), rate], -1)


def _act(stepper: Stepper, actions: np.ndarray) -> None:
    stepper.tau[:, 0] = LARGEST_FORCE * np.clip(actions[:, 0], -1.0, 1.0)


def _begin(stepper: Stepper, samples: np.ndarray, rng: np.random.Generator) -> None:
    noise = rng.uniform(-0.05, 0.05, (samples.size, 4))
    stepper.reset(samples, q=noise[:, :2] + [0.0, np.pi], qd=noise[:, 2:])
