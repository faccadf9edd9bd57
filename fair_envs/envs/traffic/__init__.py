"""FairTraffic: cars that drive through a city, some driven by people."""

from fair_envs.envs.traffic.rules import Traffic
from fair_envs.faces.parallel import AgentsEnv, module_of
from fair_envs.faces.single import SingleEnv
from fair_envs.faces.vector import BatchEnv


class Env(SingleEnv):
    """FairTraffic as a Gymnasium environment; see `Traffic` for the rules and parameters."""

    rules = Traffic


class Vector(BatchEnv):
    """FairTraffic as a Gymnasium vector environment; see `Traffic` for the rules and parameters."""

    rules = Traffic


class Parallel(AgentsEnv):
    """FairTraffic as a PettingZoo environment; see `Traffic` for the rules and parameters."""

    rules = Traffic


parallel_env, env, raw_env = module_of(Parallel)
