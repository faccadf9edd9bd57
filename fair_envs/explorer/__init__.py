"""The explorer: one HTML file about some policies, for people who decide and do not program."""

from fair_envs.explorer.page import explore

__all__ = ["explore"]
