"""Reproductions of papers: experiments as cells that run once and in parallel, and the resulting tables."""

from fair_envs.support.extras import need

need("fair_envs.reproduction", "stable_baselines3", "torch", "matplotlib", "pandas", extra="baselines")
