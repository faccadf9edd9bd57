"""FairHiring: a company that decides on one applicant after another."""

from fair_envs.envs.hiring.rules import Hiring
from fair_envs.faces.parallel import AgentsEnv, module_of
from fair_envs.faces.single import SingleEnv
from fair_envs.faces.vector import BatchEnv


class Env(SingleEnv):
    """FairHiring as a Gymnasium environment; see `Hiring` for the rules and parameters."""

    rules = Hiring


class Vector(BatchEnv):
    """FairHiring as a Gymnasium vector environment; see `Hiring` for the rules and parameters."""

    rules = Hiring


class Parallel(AgentsEnv):
    """FairHiring as a PettingZoo environment; see `Hiring` for the rules and parameters."""

    rules = Hiring


parallel_env, env, raw_env = module_of(Parallel)
