"""Short names for types in annotations; a comment or docstring gives the shapes of arrays."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats32 = NDArray[np.float32]
Pixels = NDArray[np.uint8]
"""Red, green and blue, shape (height, width, 3)."""

Columns = Mapping[str, NDArray[Any]]
"""Columns of a table by name, such as the ``fair_*`` entries of ``info``."""

OnProgress = Callable[[], object]
"""Called after each part of longer work, to move a progress bar."""

Lane = Any
"""The state of one episode: a record whose fields compiled code reads as attributes."""

Facts = Any
"""The record of one step: the decisions and the people they affected; a record like `Lane`."""

Record = Any
"""Any other record, such as that of an environment's parameters."""

Records = Any
"""An array of records."""
