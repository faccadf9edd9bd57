"""Lets ``python -m fair_envs.cli`` run the command line."""

from fair_envs.cli import main

if __name__ == "__main__":
    main()
