"""What every test run needs before the first import: no window, one thread a process, repeatable examples."""

import os

import hypothesis

for variable, value in {"SDL_VIDEODRIVER": "dummy", "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}.items():
    os.environ.setdefault(variable, value)

# No deadline: the first example of a compiled rule pays for the compilation.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")
