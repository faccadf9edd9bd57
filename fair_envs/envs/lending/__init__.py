"""FairLending: a bank whose lending decisions change the credit scores of two groups."""

from fair_envs.envs.lending.rules import Lending
from fair_envs.faces.parallel import AgentsEnv, module_of
from fair_envs.faces.single import SingleEnv
from fair_envs.faces.vector import BatchEnv


class Env(SingleEnv):
    """FairLending as a Gymnasium environment; see `Lending` for the rules and parameters."""

    rules = Lending


class Vector(BatchEnv):
    """FairLending as a Gymnasium vector environment; see `Lending` for the rules and parameters."""

    rules = Lending


class Parallel(AgentsEnv):
    """FairLending as a PettingZoo environment; see `Lending` for the rules and parameters."""

    rules = Lending


parallel_env, env, raw_env = module_of(Parallel)
