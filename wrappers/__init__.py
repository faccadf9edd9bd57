"""Wrappers: transforms of observations, rewards and records, with one adapter for each face."""
