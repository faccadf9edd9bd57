"""FairFraud: card payments, some of them frauds, and customers who leave if they are checked too often."""

from fair_envs.envs.fraud.rules import Fraud
from fair_envs.faces.parallel import AgentsEnv, module_of
from fair_envs.faces.single import SingleEnv
from fair_envs.faces.vector import BatchEnv


class Env(SingleEnv):
    """FairFraud as a Gymnasium environment; see `Fraud` for the rules and parameters."""

    rules = Fraud


class Vector(BatchEnv):
    """FairFraud as a Gymnasium vector environment; see `Fraud` for the rules and parameters."""

    rules = Fraud


class Parallel(AgentsEnv):
    """FairFraud as a PettingZoo environment; see `Fraud` for the rules and parameters."""

    rules = Fraud


parallel_env, env, raw_env = module_of(Parallel)
