"""The episode that the explorer shows is the evaluated one, and a change has no effect before it is made."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("pygame")

from fair_envs.assessment import evaluate
from fair_envs.evaluation import scripted
from fair_envs.evaluation.deciders import Rejecting
from fair_envs.explorer.played import play, with_other_attribute, with_other_decision
from fair_envs.registration import TABLE
from fair_envs.tasks import task_of

SEED = 11


def played(env_id: str, policy: Any = None, *, steps: int = 20, **given: Any) -> Any:
    """Return the rules, a function that makes the policy, and its episode."""
    rules: Any = task_of(env_id).rules(**given)
    make = policy or (lambda: scripted(rules, task_of(env_id).scripted[0]))
    return rules, make, play(rules, make(), seed=SEED, steps=steps)


@pytest.mark.parametrize("env_id", ["FairLending-v0", "FairHarvest-v0"])
def test_the_episode_is_the_first_test_episode(env_id: str) -> None:
    _, make, episode = played(env_id, horizon=20)
    found = evaluate(env_id, make(), episodes=1, seed=SEED, parameters={"horizon": 20}, twins=False, shuffles=0)
    assert episode.reward.mean() == pytest.approx(found.performance.value)


def test_an_episode_ends_where_it_ends_and_has_its_pictures() -> None:
    rules, make, _ = played("FairLending-v0", horizon=5)
    episode = play(rules, make(), seed=SEED, steps=20, frames=3)
    assert len(episode.action) == len(episode.observation) == len(episode.truth) == 5
    assert len(episode.frames) == 3 and episode.frames[0].dtype == np.uint8
    assert set(np.unique(episode.truth)) <= {0, 1}


def test_labels_that_nobody_is_told_are_known_as_the_truth() -> None:
    rules: Any = task_of("FairLending-v0").rules(horizon=30, feedback="none")
    episode = play(rules, scripted(rules, "always"), seed=SEED, steps=30)
    assert (episode.label == -1).all() and (episode.truth >= 0).all()


def test_long_observations_are_left_out() -> None:
    assert played("FairEpidemic-v0")[2].observation.shape == (20, 0)
    assert played("FairLending-v0")[2].observation.shape == (20, 25)


@pytest.mark.parametrize("env_id", [name for name in TABLE if name not in ("FairAttention-v0", "FairPursuit-v0")])
def test_another_decision_changes_nothing_before_it(env_id: str) -> None:
    rules, make, episode = played(env_id)
    changed = with_other_decision(rules, make(), seed=SEED, steps=len(episode.action))
    assert changed is not None
    for place in range(len(changed.places)):
        assert np.array_equal(changed.action[place, :place], episode.action[:place])
    if rules.spec.one_person:
        now = changed.action[changed.places, changed.places, 0]
        assert (now == 1 - episode.action[:, 0]).all()


def test_continuous_actions_and_units_have_no_other_decision() -> None:
    for env_id in ("FairAttention-v0", "FairPursuit-v0"):
        rules, make, _ = played(env_id, steps=2)
        assert with_other_decision(rules, make(), seed=SEED, steps=2) is None


def test_another_attribute_changes_the_decision_of_a_policy_that_reads_it() -> None:
    rules: Any = task_of("FairLending-v0").rules()
    _, _, episode = played("FairLending-v0", lambda: Rejecting(rules))
    changed = with_other_attribute(rules, Rejecting(rules), episode, seed=SEED)
    assert changed is not None and changed.kind == "attribute"
    for place in range(20):
        assert np.array_equal(changed.action[place, :place], episode.action[:place])
        assert changed.action[place, place, 0] == 1 - episode.action[place, 0]


def test_another_attribute_changes_no_decision_of_a_policy_that_ignores_it() -> None:
    rules, make, episode = played("FairLending-v0")
    changed = with_other_attribute(rules, make(), episode, seed=SEED)
    assert changed is not None
    assert (changed.action[changed.places, changed.places, 0] == episode.action[:, 0]).all()


def test_each_agent_can_have_the_other_attribute() -> None:
    rules, make, episode = played("FairHarvest-v0")
    changed = with_other_attribute(rules, make(), episode, seed=SEED)
    assert changed is not None and changed.action.shape == (40, 20, 40)
    slow = int(np.flatnonzero(episode.group[0] == 1)[0])
    assert (changed.action[slow, :, slow] >= 0).sum() > (episode.action[:, slow] >= 0).sum()  # it has every turn now


def test_people_whose_rules_define_no_other_attribute_are_not_changed() -> None:
    rules, make, episode = played("FairEpidemic-v0")
    assert with_other_attribute(rules, make(), episode, seed=SEED) is None
