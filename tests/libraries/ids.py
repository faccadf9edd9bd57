"""What the tests of other libraries share: the ids, and what the record of an id's steps contains."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from fair_envs import TABLE

SINGLE = [*TABLE, *(f"focal-{env_id}" for env_id, entry in TABLE.items() if entry.agents)]
"""Every id with one reward."""

OBJECTIVES = [f"mo-{env_id}" for env_id in TABLE]
"""Every id with a vector of rewards."""

every_id = pytest.mark.parametrize("env_id", [*TABLE])
every_single = pytest.mark.parametrize("env_id", SINGLE)
every_objectives = pytest.mark.parametrize("env_id", OBJECTIVES)
agents_ids = pytest.mark.parametrize("env_id", [env_id for env_id, entry in TABLE.items() if entry.agents])


def check_record(env_id: str, record: Mapping[str, Any]) -> None:
    """Check the record of some steps of an id: each entry has an axis for the steps before its own.

    Args:
        env_id: The id.
        record: Entries of ``info`` with their prefix, which a library returned.
    """
    with gym.make(env_id) as env:
        spec = env.unwrapped.fair_spec
        _, info = env.reset(seed=0)
    rows = {name: np.asarray(record[name]) for name in info if name.startswith("fair_")}
    for name, value in info.items():
        if name in rows:
            assert rows[name].shape[1:] == np.shape(value), name
    assert len(rows["fair_decided"]) > 0
    assert (rows["fair_decided"] == 1).all()  # a row of zeros would be a step without a decision
    assert set(rows["fair_group"].ravel().tolist()) <= set(range(len(spec.groups)))
    for column, (name, codes) in enumerate(spec.sensitive.items()):
        found = set(rows["fair_sensitive"][..., column].ravel().tolist())
        assert found <= set(range(len(codes))), name
    assert rows["fair_action"].max() > -1  # there was a decision about a person
