"""A template: the files of a new environment in a package of its own, with tests."""

from fair_envs.template.files import new_environment

__all__ = ["new_environment"]
