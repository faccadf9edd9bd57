"""Ids lead to environments, and none is taken over by accident."""

import pytest

import fair_envs
from fair_envs.registration import TABLE


def test_an_id_is_not_given_to_another_package() -> None:
    before = dict(TABLE)
    with pytest.raises(ValueError, match="id must be new, got 'FairHarvest-v0'"):
        fair_envs.register("FairHarvest-v0", "mine.harvest")
    assert before == TABLE
