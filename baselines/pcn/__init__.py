"""Pareto Conditioned Networks, their coverage sets, and single-objective learners on the same objectives."""
