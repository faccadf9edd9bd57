"""Search for a configuration of an environment with smaller gaps between groups, and for what it costs."""

from importlib.util import find_spec

for _library in ("optuna", "cmaes", "matplotlib", "sklearn"):
    if find_spec(_library) is None:
        raise ImportError(f"fair_envs.search needs {_library}; install it with: pip install 'fair-envs[search]'")
