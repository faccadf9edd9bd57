"""Lets ``python -m fair_envs.cli`` run the command line."""

from fair_envs.cli import main

main()
