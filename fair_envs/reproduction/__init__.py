"""Reproductions of papers: experiments as cells that run once and in parallel, and the resulting tables."""

from importlib.util import find_spec

for _library in ("stable_baselines3", "torch", "matplotlib", "pandas"):
    if find_spec(_library) is None:
        raise ImportError(
            f"fair_envs.reproduction needs {_library}; install it with: pip install 'fair-envs[baselines]'"
        )
