"""FairHarvest: a harvest game in which some agents have half the turns."""

from fair_envs.envs.harvest.melting_pot import MeltingPotHarvest
from fair_envs.envs.harvest.rules import Harvest
from fair_envs.faces.parallel import AgentsEnv, module_of
from fair_envs.faces.single import SingleEnv
from fair_envs.faces.vector import BatchEnv

Harvest.variants = {"melting_pot": MeltingPotHarvest}


class Env(SingleEnv):
    """FairHarvest as a Gymnasium environment; see `Harvest` for the rules and parameters."""

    rules = Harvest


class Vector(BatchEnv):
    """FairHarvest as a Gymnasium vector environment; see `Harvest` for the rules and parameters."""

    rules = Harvest


class Parallel(AgentsEnv):
    """FairHarvest as a PettingZoo environment; see `Harvest` for the rules and parameters."""

    rules = Harvest


parallel_env, env, raw_env = module_of(Parallel)
