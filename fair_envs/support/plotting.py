"""Pictures without a screen."""

from pathlib import Path
from typing import Any


def pyplot() -> Any:
    """Return matplotlib's pyplot with a backend that does not need a screen.

    Raises:
        ImportError: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError as error:
        needed = "plots need matplotlib; install it with: pip install 'fair-envs[baselines]'"
        raise ImportError(needed) from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def save_figure(figure: Any, path: Path) -> None:
    """Save a figure in a folder, which is created, and close it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot().close(figure)
