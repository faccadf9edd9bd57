"""FairCollege: a college publishes an admission threshold, and applicants respond to it."""

from fair_envs.envs.college.rules import College
from fair_envs.faces.parallel import AgentsEnv, module_of
from fair_envs.faces.single import SingleEnv
from fair_envs.faces.vector import BatchEnv


class Env(SingleEnv):
    """FairCollege as a Gymnasium environment; see `College` for the rules and parameters."""

    rules = College


class Vector(BatchEnv):
    """FairCollege as a Gymnasium vector environment; see `College` for the rules and parameters."""

    rules = College


class Parallel(AgentsEnv):
    """FairCollege as a PettingZoo environment; see `College` for the rules and parameters."""

    rules = College


parallel_env, env, raw_env = module_of(Parallel)
