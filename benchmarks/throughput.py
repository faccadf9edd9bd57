"""Measures the table of speeds and keeps it beside this file: ``python benchmarks/throughput.py [options]``."""

import sys
from pathlib import Path

from fair_envs.cli import app, new_path

RESULTS = Path(__file__).parent / "results"

if __name__ == "__main__":
    app(["bench", "--out", str(new_path(None, stem="throughput", suffix=".json", folder=RESULTS)), *sys.argv[1:]])
