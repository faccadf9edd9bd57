"""fair-envs: environments for fairness in reinforcement learning.

Importing this package registers its environments with Gymnasium and, from PettingZoo 1.27 on, with PettingZoo:

    import gymnasium as gym, fair_envs
    env = gym.make("FairHarvest-v0")
"""

from fair_envs.registration import TABLE, make_rules, make_sb3, register, register_all

__version__ = "0.1.0"
__all__ = ["TABLE", "__version__", "make_rules", "make_sb3", "register"]

register_all()
