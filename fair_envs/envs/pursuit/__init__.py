"""FairPursuit: pursuers who catch evaders as a team, on a torus."""

from fair_envs.envs.pursuit.rules import Pursuit
from fair_envs.faces.parallel import AgentsEnv, module_of
from fair_envs.faces.single import SingleEnv
from fair_envs.faces.vector import BatchEnv


class Env(SingleEnv):
    """FairPursuit as a Gymnasium environment; see `Pursuit` for the rules and parameters."""

    rules = Pursuit


class Vector(BatchEnv):
    """FairPursuit as a Gymnasium vector environment; see `Pursuit` for the rules and parameters."""

    rules = Pursuit


class Parallel(AgentsEnv):
    """FairPursuit as a PettingZoo environment; see `Pursuit` for the rules and parameters."""

    rules = Pursuit


parallel_env, env, raw_env = module_of(Parallel)
