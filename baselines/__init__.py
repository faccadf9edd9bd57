"""Baselines: Stable-Baselines3 algorithms and their fair variants."""
