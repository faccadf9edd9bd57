"""FairEpidemic: allocating vaccines against a disease that spreads through a social network."""

from fair_envs.envs.epidemic.rules import Epidemic
from fair_envs.faces.parallel import AgentsEnv, module_of
from fair_envs.faces.single import SingleEnv
from fair_envs.faces.vector import BatchEnv


class Env(SingleEnv):
    """FairEpidemic as a Gymnasium environment; see `Epidemic` for the rules and parameters."""

    rules = Epidemic


class Vector(BatchEnv):
    """FairEpidemic as a Gymnasium vector environment; see `Epidemic` for the rules and parameters."""

    rules = Epidemic


class Parallel(AgentsEnv):
    """FairEpidemic as a PettingZoo environment; see `Epidemic` for the rules and parameters."""

    rules = Epidemic


parallel_env, env, raw_env = module_of(Parallel)
