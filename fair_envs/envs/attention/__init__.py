"""FairAttention: a decision-maker sends a few units to locations where incidents happen."""

from fair_envs.envs.attention.rules import Attention
from fair_envs.faces.parallel import AgentsEnv, module_of
from fair_envs.faces.single import SingleEnv
from fair_envs.faces.vector import BatchEnv


class Env(SingleEnv):
    """FairAttention as a Gymnasium environment; see `Attention` for the rules and parameters."""

    rules = Attention


class Vector(BatchEnv):
    """FairAttention as a Gymnasium vector environment; see `Attention` for the rules and parameters."""

    rules = Attention


class Parallel(AgentsEnv):
    """FairAttention as a PettingZoo environment; see `Attention` for the rules and parameters."""

    rules = Attention


parallel_env, env, raw_env = module_of(Parallel)
