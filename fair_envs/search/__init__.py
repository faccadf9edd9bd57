"""Search for a configuration of an environment with smaller gaps between groups, and for what it costs."""

from fair_envs.support.extras import need

need("fair_envs.search", "optuna", "cmaes", "matplotlib", "sklearn", extra="search")
