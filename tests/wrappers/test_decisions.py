"""Would it be decided otherwise about the same person with another attribute, on the ferry?"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.wrappers import OrderEnforcing, RecordEpisodeStatistics, TimeLimit, TransformObservation
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

from fair_envs.core import draws
from fair_envs.envs.fraud.rules import Fraud
from fair_envs.envs.harvest.rules import Harvest
from fair_envs.envs.hiring.rules import Hiring
from fair_envs.evaluation import FromSB3
from fair_envs.faces.sb3 import LanesVecEnv
from fair_envs.wrappers import (
    HiddenAttribute,
    HideSensitive,
    Twins,
    choose,
    counterfactual,
    counterfactual_observation,
    decision_gap,
    from_probabilities,
    twin_decisions,
)
from tests import toys
from tests.ferry import BOARD, REFUSE, Env, Ferry, Parallel, Vector
from tests.ferry import env as by_turns
from tests.helpers import uncompiled

SIZE: dict[str, Any] = {"seats": 4, "horizon": 12}
SEED = 3


def boards(probability: NDArray[Any]) -> NDArray[Any]:
    return np.stack([1 - probability, probability], axis=-1)


def biased(observation: NDArray[Any]) -> NDArray[Any]:
    """Board locals with 0.9 (with a ticket) or 0.6, foreigners with 0.4 or 0.3."""
    foreign, ticket = observation[..., 1], observation[..., 2]
    return boards(np.where(foreign == 1, 0.3 + 0.1 * ticket, 0.6 + 0.3 * ticket))


def blind(observation: NDArray[Any]) -> NDArray[Any]:
    return boards(0.2 + 0.7 * observation[..., 2])


# The person who is waiting -------------------------------------------------------------------------------------------


def test_only_the_attribute_of_the_person_waiting_is_another() -> None:
    env: Any = Env(**SIZE)
    seen, _ = env.reset(seed=SEED)
    before = env.get_state()
    shown = [counterfactual_observation(env, "dialect", value) for value in ("local", "foreign")]
    assert [one[1] for one in shown] == [0, 1]
    assert np.array_equal(shown[int(seen[1])], seen)
    assert np.array_equal(shown[0][[0, 2]], shown[1][[0, 2]])
    assert np.array_equal(env.get_state(), before)
    assert shown[0].shape == seen.shape and shown[0].dtype == seen.dtype


def test_every_face_shows_it_in_its_own_form() -> None:
    batch: Any = Vector(3, **SIZE)
    rows: Any = LanesVecEnv(Ferry(**SIZE), 3)
    agents: Any = Parallel(**SIZE)
    rows.seed(SEED)
    seen, own = batch.reset(seed=SEED)[0], agents.reset(seed=SEED)[0]
    assert np.array_equal(rows.reset(), seen)
    seen[:, 1] = 1
    assert np.array_equal(counterfactual_observation(batch, value="foreign"), seen)
    assert np.array_equal(counterfactual_observation(rows, value=1), seen)
    own["agent_0"][1] = 1
    assert np.array_equal(counterfactual_observation(agents, "dialect", 1)["agent_0"], own["agent_0"])


def test_it_is_seen_through_the_wrappers() -> None:
    env: Any = HideSensitive(Env(**SIZE))
    seen, _ = env.reset(seed=SEED)
    assert np.array_equal(counterfactual_observation(env, "dialect", "foreign"), seen)


def test_it_is_not_seen_through_what_another_library_may_change() -> None:
    plain: Any = Env(**SIZE)
    plain.reset(seed=SEED)
    harmless: Any = RecordEpisodeStatistics(TimeLimit(OrderEnforcing(plain), 9))
    expected = counterfactual_observation(plain, "dialect", "foreign")
    assert np.array_equal(counterfactual_observation(harmless, "dialect", "foreign"), expected)
    rows: Any = LanesVecEnv(Ferry(**SIZE), 3)
    rows.reset()
    assert np.array_equal(counterfactual_observation(VecMonitor(rows)), counterfactual_observation(rows))
    message = "env must have no wrapper of another library that may change observations, got"
    for env in (HideSensitive(TransformObservation(harmless, np.sin, plain.observation_space)), VecNormalize(rows)):
        with pytest.raises(
            ValueError, match=rf"{message} (TransformObservation|VecNormalize): pass the environment below"
        ):
            counterfactual_observation(env)


def test_what_is_not_there_is_named() -> None:
    env: Any = Env()
    with pytest.raises(ResetNeeded, match="counterfactual_observation must follow a reset"):
        counterfactual_observation(env)
    env.reset(seed=1)
    with pytest.raises(ValueError, match="attribute must be one of dialect, got 'age'"):
        counterfactual_observation(env, "age", 1)
    for value in ("welsh", 2, -1, True):
        with pytest.raises(ValueError, match=r"value must be one of 'local', 'foreign' or its code, got"):
            counterfactual_observation(env, "dialect", value)
    harvest: Any = toys.Env()
    harvest.reset(seed=1)
    with pytest.raises(ValueError, match="those of countdown cannot be changed"):
        counterfactual_observation(harvest)
    with pytest.raises(TypeError, match="env must be an environment of fair_envs"):
        counterfactual_observation(3)
    turns: Any = by_turns()
    turns.reset(seed=1)
    with pytest.raises(TypeError, match="env must be parallel: an AEC environment shows one agent at a time, got"):
        counterfactual_observation(turns)


# How differently a policy decides ------------------------------------------------------------------------------------


def test_the_gap_is_the_change_of_probability() -> None:
    gaps = decision_gap(Ferry(**SIZE), biased, attribute="dialect", episodes=20, seed=SEED)
    assert set(gaps.gap.round(6)) == {0.3, 0.5}  # without and with a ticket
    assert np.allclose(gaps.change, np.where(gaps.value == 1, gaps.gap, -gaps.gap))
    assert gaps.values == ("local", "foreign")
    mean = gaps.mean()
    assert mean.n == 20 and mean.low < mean.value < mean.high
    assert gaps.mean(unit="person").value == pytest.approx(gaps.gap.mean())
    assert gaps.mean(unit="person").n == len(gaps.gap)
    changes = gaps.change_by_group()
    assert changes["local"].value < 0 < changes["foreign"].value
    assert gaps.by_group()["local"].value == pytest.approx(-changes["local"].value)


def test_a_policy_that_ignores_the_attribute_has_no_gap() -> None:
    gaps = decision_gap(Env(**SIZE), blind, episodes=5)
    assert not gaps.gap.any() and len(gaps.gap) > 20
    hidden = decision_gap(Env(**SIZE), biased, episodes=5, transforms=[HiddenAttribute()])
    assert not hidden.gap.any()
    assert not hidden.change.any()


def test_an_episode_is_the_single_environment_of_its_seed() -> None:
    gaps = decision_gap(Ferry(**SIZE), biased, episodes=3, seed=SEED)
    for episode in range(3):
        env = Env(**SIZE)
        seen, _ = env.reset(seed=SEED + episode)
        expected, over = [], False
        while not over:
            probs = [biased(counterfactual_observation(env, "dialect", code)) for code in (0, 1)]
            expected.append((seen[1], abs(probs[0] - probs[1])[1]))
            action = choose(biased(seen), draws(env.lanes)[0, 0])
            seen, _, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
        own = gaps.episode == episode
        assert np.array_equal(gaps.individual[own], np.arange(len(expected)))
        assert np.allclose(np.stack([gaps.value[own], gaps.gap[own]], axis=1), expected)


def test_how_many_episodes_are_played_at_once_makes_no_difference() -> None:
    one, many = (decision_gap(Ferry(**SIZE), biased, episodes=7, lanes=lanes) for lanes in (2, 16))
    for name in ("gap", "change", "value", "individual", "episode"):
        assert np.array_equal(getattr(one, name), getattr(many, name))


class Regional(Ferry):
    """A ferry that hears three dialects; the third is that of nobody."""

    def fair_spec(self, params: Any) -> Any:
        return replace(super().fair_spec(params), sensitive={"dialect": ("local", "foreign", "rare")})


@uncompiled
def test_with_more_than_two_values_the_largest_gap_counts() -> None:
    def policy(observation: NDArray[Any]) -> NDArray[Any]:
        return boards(np.array([0.5, 0.4, 0.9])[np.minimum(observation[..., 1], 2).astype(int)])

    gaps = decision_gap(Regional(**SIZE), policy, episodes=4)
    assert set(zip(gaps.value.tolist(), gaps.gap.round(6).tolist(), strict=True)) == {(0, 0.4), (1, 0.5)}
    assert (gaps.change > 0).all()
    assert np.isnan(gaps.by_group()["rare"].value)


def test_a_trained_model_is_asked_for_its_probabilities() -> None:
    model = PPO("MlpPolicy", LanesVecEnv(Ferry(**SIZE), 2), n_steps=8, batch_size=8, seed=0, device="cpu")
    gaps = decision_gap(Ferry(**SIZE), FromSB3(model).probabilities, episodes=2)
    assert (gaps.gap > 0).all() and (gaps.gap < 0.5).all()


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (lambda seen: np.ones((*seen.shape[:2], 2)), "policy must return distributions"),
        (lambda seen: np.full((*seen.shape[:2], 2), np.nan), "policy must return distributions"),
        (lambda seen: np.full((*seen.shape[:2], 3), 1 / 3), r"policy must return shape \(2, 1, 2\), got \(2, 1, 3\)"),
    ],
)
def test_probabilities_must_be_distributions(policy: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decision_gap(Ferry(**SIZE), policy, episodes=2)


def test_bad_arguments_are_named() -> None:
    for settings, message in (
        ({"episodes": 0}, "episodes must be an integer of at least 1, got 0"),
        ({"lanes": 0}, "lanes must be an integer of at least 1, got 0"),
        ({"seed": -1}, "seed must be between 0 and"),
        ({"attribute": "age"}, "attribute must be one of dialect, got 'age'"),
    ):
        with pytest.raises(ValueError, match=message):
            decision_gap(Ferry(), blind, **settings)
    with pytest.raises(ValueError, match="decision_gap needs one decision on one person per step; harvest has other"):
        decision_gap(Harvest(), blind)
    with pytest.raises(ValueError, match="unit must be one of 'episode', 'person', got 'step'"):
        decision_gap(Ferry(), blind, episodes=2).mean(unit="step")  # type: ignore[arg-type]


# Whole episodes ------------------------------------------------------------------------------------------------------


def test_in_the_twin_everybody_speaks_the_other_dialect_with_the_same_luck() -> None:
    env: Any = Env(seats=100)
    twin: Any = counterfactual(env)
    env.reset(seed=SEED), twin.reset(seed=SEED)
    for _ in range(20):
        one, other = env.step(REFUSE)[4], twin.step(REFUSE)[4]
        assert one["fair_sensitive"][0] == 1 - other["fair_sensitive"][0]
        for name in ("fair_individual", "fair_legitimate", "fair_feedback"):
            assert one[name] == other[name]


def test_a_twin_in_mid_episode_is_flipped_from_the_person_waiting_on() -> None:
    env: Any = Env(seats=100)
    env.reset(seed=SEED)
    env.step(BOARD)
    twin: Any = counterfactual(env)
    assert np.array_equal(env.lanes.observe()[..., [0, 2]], twin.unwrapped.lanes.observe()[..., [0, 2]])
    for _ in range(5):
        assert env.step(BOARD)[4]["fair_sensitive"][0] == 1 - twin.step(BOARD)[4]["fair_sensitive"][0]
    back: Any = counterfactual(twin)
    assert np.array_equal(back.unwrapped.get_state(), env.get_state())


def test_twin_episodes_compare_what_was_decided() -> None:
    def locals_only(observation: NDArray[Any]) -> NDArray[Any]:
        return boards(1.0 - observation[..., 1])

    played = twin_decisions(Ferry(seats=100, horizon=15), from_probabilities(locals_only), episodes=10, seed=SEED)
    assert (played.attribute, played.values) == ("dialect", ("local", "foreign"))
    assert played.same_person.all()
    assert played.changed().value == 1
    assert {name: one.value for name, one in played.favoured().items()} == {"local": -1, "foreign": 1}
    assert {name: one.value for name, one in played.outcomes().items()} == {"local": -1, "foreign": 1}
    both = played.factual.returns + played.counterfactual.returns  # everybody boards in one of the worlds
    assert played.returns().value == pytest.approx((both - 2 * played.factual.returns).mean())
    assert played.returns().n == 10


def test_a_policy_blind_to_the_attribute_plays_the_same_episode_twice() -> None:
    played = twin_decisions(Env(**SIZE), from_probabilities(blind), episodes=6)
    assert np.array_equal(played.factual.action, played.counterfactual.action)
    assert np.array_equal(played.factual.returns, played.counterfactual.returns)
    assert played.changed().value == 0
    assert not np.array_equal(played.factual.sensitive["dialect"], played.counterfactual.sensitive["dialect"])


def test_after_the_end_of_an_episode_nobody_is_compared() -> None:
    played = twin_decisions(Ferry(**SIZE), from_probabilities(biased), episodes=9, seed=SEED, lanes=4)
    whole = twin_decisions(Ferry(**SIZE), from_probabilities(biased), episodes=9, seed=SEED)
    one, other = played.factual, played.counterfactual
    assert one.action.shape == other.action.shape and len(set(one.lengths.tolist())) > 1
    for episode, length in enumerate(one.lengths):
        assert (one.action[episode, length:] == -1).all() and (one.action[episode, :length] >= 0).all()
        assert played.same_person[episode].sum() == min(length, other.lengths[episode])
    assert np.array_equal(one.action, whole.factual.action)
    assert played.changed() == whole.changed()


def test_a_pair_is_the_single_environment_of_its_seed() -> None:
    played = twin_decisions(Ferry(**SIZE), from_probabilities(biased), episodes=3, seed=SEED)
    for episode in range(3):
        pair: list[tuple[Any, Any]] = [(played.factual, Env(**SIZE))]
        for world, env in [*pair, (played.counterfactual, counterfactual(Env(**SIZE)))]:
            seen, _ = env.reset(seed=SEED + episode)
            total, over = 0.0, False
            while not over:
                seen, reward, terminated, truncated, _ = env.step(
                    choose(biased(seen), draws(env.unwrapped.lanes)[0, 0])
                )
                total += reward
                over = terminated or truncated
            assert world.returns[episode] == total


def test_the_other_value_by_name_is_the_flip() -> None:
    flipped, named = (
        twin_decisions(Ferry(**SIZE), from_probabilities(biased), episodes=9, seed=SEED, attribute=attribute)
        for attribute in (None, "dialect")
    )
    assert named.attribute == "dialect" and (named.changed().value or 0) > 0
    for side in ("factual", "counterfactual"):
        one, other = getattr(flipped, side), getattr(named, side)
        assert np.array_equal(one.action, other.action) and np.array_equal(one.returns, other.returns)
        assert np.array_equal(one.sensitive["dialect"], other.sensitive["dialect"])


def test_everybody_can_be_given_one_value() -> None:
    played = twin_decisions(Ferry(**SIZE), from_probabilities(biased), episodes=30, seed=SEED, value="foreign")
    world = played.counterfactual
    assert set(world.sensitive["dialect"][world.action >= 0]) == {1}
    assert set(played.factual.sensitive["dialect"][played.factual.action >= 0]) == {0, 1}
    favoured = played.favoured()
    assert (favoured["local"].value or 0) < 0 and favoured[
        "foreign"
    ].value == 0  # a ferry decides on each for themselves


@pytest.mark.parametrize(
    ("rules", "attribute", "value"),
    [
        (Hiring, "gender", None),
        (Hiring, "nationality", "foreign"),
        (Hiring, "nationality", None),
        (Fraud, None, "AS"),
    ],
)
def test_the_worlds_of_the_environments_differ_in_that_attribute(rules: Any, attribute: Any, value: Any) -> None:
    policy = from_probabilities(lambda seen: np.full((*seen.shape[:2], 2), 0.5))
    played = twin_decisions(rules(horizon=30), policy, episodes=3, attribute=attribute, value=value)
    both = played.same_person
    assert both.any()
    names = list(played.factual.sensitive)
    for name in names:
        own, other = (side.sensitive[name][both] for side in (played.factual, played.counterfactual))
        if name != played.attribute:
            assert np.array_equal(own, other)
        elif value is None:
            assert np.array_equal(own, 1 - other)
        else:
            assert set(other) == {played.values.index(value)} and len(set(own)) > 1


def test_twins_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match=r"value must be one of 'EU', .*, got None: continent has 6"):
        twin_decisions(Fraud(), from_probabilities(blind))
    with pytest.raises(ValueError, match="attribute must be one of dialect, got 'age'"):
        twin_decisions(Ferry(), from_probabilities(blind), attribute="age")
    with pytest.raises(ValueError, match="twin_decisions needs one decision on one person per step; harvest has other"):
        twin_decisions(Harvest(), from_probabilities(blind))
    with pytest.raises(
        ValueError, match=r"Twins needs agents .* in ferry one decision-maker .*\. twin_decisions is for"
    ):
        Twins(Ferry())
