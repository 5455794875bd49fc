"""Vector environments for Gymnasium: batches that a policy steps. They need the `env` extra.

The import registers "rbchain/CartPoleSwingUp-v0" and "rbchain/Reacher-v0".
"""

import importlib.util

from ..errors import missing_package

if importlib.util.find_spec("gymnasium") is None:
    raise ImportError(missing_package("vector environments need the package gymnasium", "env"))

import gymnasium

from .cart_pole import cart_pole, cart_pole_swing_up
from .reacher import reacher, seven_joint_arm
from .vector_env import VectorEnv

__all__ = ["VectorEnv", "cart_pole", "cart_pole_swing_up", "reacher", "seven_joint_arm"]

gymnasium.register("rbchain/CartPoleSwingUp-v0", vector_entry_point=cart_pole_swing_up, max_episode_steps=500)
gymnasium.register("rbchain/Reacher-v0", vector_entry_point=reacher, max_episode_steps=100)
