"""Counterfactual twins: the same luck, another attribute."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv

import fair_envs
from fair_envs.core import Lanes, draws
from fair_envs.core.randomness import integer, uniform
from fair_envs.envs.harvest import Env, Parallel, Vector
from fair_envs.envs.harvest.rules import BLUE, GROWTH_CELL, GROWTH_COLOUR, RED, Harvest
from fair_envs.evaluation import policy_of_model
from fair_envs.metrics import counterfactual_fairness
from fair_envs.support.aliases import Floats
from fair_envs.wrappers import (
    Batch,
    HiddenAttribute,
    RecordFairness,
    Setting,
    SwapSensitive,
    Transform,
    Twins,
    choose,
    counterfactual,
    from_probabilities,
)
from fair_envs.wrappers.sensitive import SwappedAttribute
from tests.helpers import LITTLE
from tests.toys import Countdown

SIZE: dict[str, Any] = {**LITTLE}
AGENTS, EPISODES, SEED = 8, 5, 40
CARRIERS = [False, False, True, True, False, False, True, True]  # every second agent of each preference


def weights(observation: NDArray[Any]) -> Floats:
    """Return action probabilities that depend on everything that is seen."""
    scores = np.sin(observation.astype(float) @ np.arange(1.0, observation.shape[-1] * 8 + 1).reshape(-1, 8))
    raised: Floats = np.exp(2 * scores)
    raised /= raised.sum(axis=-1, keepdims=True)
    return raised


POLICY = from_probabilities(weights)


def twins(**settings: Any) -> Twins:
    return Twins(Harvest(**SIZE), **settings)


# The same luck -------------------------------------------------------------------------------------------------------


def test_with_the_attribute_unchanged_the_two_episodes_are_identical() -> None:
    played = twins().run(POLICY, episodes=EPISODES, seed=SEED, flip=[], record_actions=True)
    assert played.factual.values.any()
    assert np.array_equal(played.factual.values, played.counterfactual.values)
    assert np.array_equal(played.factual_actions, played.counterfactual_actions)  # type: ignore[arg-type]
    assert not played.flipped.any()


class Growth(NamedTuple):
    """The bush that grew last."""

    cell: int
    colour: int
    cells_before: list[int]  # that were tried first
    full_before: list[bool]
    red_share: float  # among the other bushes


def last_growth(world: NDArray[np.void], tried: list[int]) -> Growth:
    newest = world["bushes"] - 1
    cell = int(world["bush_x"][newest]) + 7 * int(world["bush_y"][newest])
    before = tried[: tried.index(cell)]
    others = world["colour"][:newest]
    full = [bool(world["cell"][k % 7, k // 7]) for k in before]
    return Growth(cell, int(world["colour"][newest]), before, full, (others == RED).mean())


@pytest.mark.parametrize("seed", range(1, 5))
def test_bushes_grow_by_the_same_luck_although_behaviour_differs(seed: int) -> None:
    env = Env(**SIZE)
    twin = counterfactual(env)
    observations = [world.reset(seed=seed)[0] for world in (env, twin)]
    same, differs = 0, 0
    for time in range(SIZE["horizon"]):
        for place, world in enumerate((env, twin)):
            actions = POLICY.act(observations[place].reshape(1, AGENTS, -1), draws(world.lanes))[0]
            observations[place] = world.step(actions)[0]
        one, other = env.lanes.records[0], twin.lanes.records[0]
        assert one["key"] == other["key"] and one["time"] == other["time"] == time + 1
        if time % 2 == 0:
            luck = uniform(one["key"], time, GROWTH_COLOUR, 0)
            tried = [int(integer(one["key"], time, GROWTH_CELL, k, 35)) for k in range(100)]
            grown = [last_growth(world, tried) for world in (one, other)]
            for growth in grown:  # the first free one of the same cells, coloured by the same number
                assert all(growth.full_before)
                assert growth.colour == (RED if luck < growth.red_share else BLUE)
            same += grown[0].cell == grown[1].cell
        differs += not np.array_equal(one["cell"], other["cell"])
    assert differs > 6
    assert same >= 3


def test_policies_are_sampled_with_the_same_numbers_in_both_worlds() -> None:
    met: list[Floats] = []

    def policy(observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        met.append(uniforms)
        return POLICY.act(observation, uniforms)

    twins(lanes=EPISODES).run(policy, episodes=EPISODES, seed=SEED, flip="all")
    factual, other = met[: SIZE["horizon"]], met[SIZE["horizon"] :]
    assert np.array_equal(factual, other)
    assert len(np.unique(factual)) == SIZE["horizon"] * EPISODES * AGENTS


def test_a_pair_is_the_single_environment_of_its_seed() -> None:
    played = twins().run(POLICY, episodes=EPISODES, seed=SEED, flip="all")
    for episode in range(EPISODES):
        for world, flip in ((played.factual, []), (played.counterfactual, "all")):
            env = counterfactual(Env(**SIZE), flip=flip)
            observation, _ = env.reset(seed=SEED + episode)
            total, over = np.zeros(AGENTS), False
            while not over:
                actions = POLICY.act(observation.reshape(1, AGENTS, -1), draws(env.lanes))[0]
                observation, _, _, over, info = env.step(actions)
                total += info["agent_reward"]
            assert np.array_equal(world.values[episode], total)


@pytest.mark.parametrize("flip", ["each", "all_none", [0, 3]])
def test_how_many_pairs_are_played_at_once_makes_no_difference(flip: Any) -> None:
    one, many = (
        twins(lanes=lanes, threads=threads).run(POLICY, episodes=EPISODES, seed=SEED, flip=flip, record_actions=True)
        for lanes, threads in ((1, 1), (3, 2))
    )
    assert np.array_equal(one.factual.values, many.factual.values)
    assert np.array_equal(one.counterfactual.values, many.counterfactual.values)
    assert np.array_equal(one.counterfactual_actions, many.counterfactual_actions)  # type: ignore[arg-type]


# Episodes that end at different times ---------------------------------------------------------------------------------


class Decisions(Transform):
    """Adds ten for each decision of the lane to what its agents see."""

    def bind(self, setting: Setting) -> None:
        self._count = np.zeros((setting.lanes.count, 1, 1))

    def __call__(self, batch: Batch) -> Batch:
        self._count[batch.decided] += 10
        return batch._replace(observation=batch.observation + self._count)


def test_a_lane_that_has_ended_goes_on_showing_its_end() -> None:
    met: list[NDArray[Any]] = []

    def policy(observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        met.append(observation)
        return np.ones(uniforms.shape, int)

    Twins(Countdown(), transforms=[Decisions()]).run(policy, episodes=3, flip=[0])
    times = [[0, 0, 0], [1, 1, 1], [1, 2, 2]]  # the lanes end after 1, 2 and 3 steps
    for world in (0, 1):
        seen = np.array(met[3 * world : 3 * world + 3])  # (steps, lanes, agents, 2): the attribute and the time
        assert (seen[..., 1] == 11 * np.array(times)[..., np.newaxis]).all()
        assert (seen[..., 0, 0] == world + 10 * np.array(times)).all()


@pytest.mark.parametrize("lanes", [1, 2, 3])
@pytest.mark.parametrize("flip", ["all", "each"])
def test_no_action_is_recorded_after_an_episodes_end(lanes: int, flip: Any) -> None:
    pair = Twins(Countdown(), lanes=lanes, transforms=[Decisions()])
    played = pair.run(lambda _, uniforms: np.ones(uniforms.shape, int), episodes=3, flip=flip, record_actions=True)
    for returns, actions in (
        (played.factual, played.factual_actions),
        (played.counterfactual, played.counterfactual_actions),
    ):
        assert returns.values.tolist() == [[1, 1], [2, 2], [3, 3]]
        assert actions is not None and actions[..., 0].tolist() == [[1, 1, 1], [-1, 1, 1], [-1, -1, 1]]
        assert np.array_equal(actions[..., 0], actions[..., 1])


# Who is flipped ------------------------------------------------------------------------------------------------------


def test_the_chosen_agents_carry_the_other_value() -> None:
    played = twins().run(POLICY, episodes=2, seed=SEED, flip=[0, "agent_2"])
    assert played.flipped.tolist() == [[agent in (0, 2) for agent in range(AGENTS)]] * 2
    assert played.factual.attribute("half_speed").tolist() == [[int(carries) for carries in CARRIERS]] * 2
    assert played.counterfactual.attribute("half_speed")[0].tolist() == [1, 0, 0, 1, 0, 0, 1, 1]
    assert np.array_equal(played.factual.attribute("preference"), played.counterfactual.attribute("preference"))
    assert [returns.agents for returns in played.of_flipped()] == [2, 2]


def test_each_agent_is_flipped_alone_in_a_world_of_its_own() -> None:
    each = twins().run(POLICY, episodes=EPISODES, seed=SEED, flip="each", record_actions=True)
    assert each.flipped.all()
    assert each.counterfactual_actions is not None
    for agent in range(AGENTS):
        alone = twins().run(POLICY, episodes=EPISODES, seed=SEED, flip=[agent], record_actions=True)
        assert alone.counterfactual_actions is not None
        assert np.array_equal(each.counterfactual.values[:, agent], alone.counterfactual.values[:, agent])
        assert np.array_equal(each.counterfactual_actions[..., agent], alone.counterfactual_actions[..., agent])
        assert np.array_equal(each.factual.values, alone.factual.values)


def test_carriers_are_flipped_at_once_and_nobody_else() -> None:
    played = twins().run(POLICY, episodes=2, seed=SEED, flip="protected")
    assert played.flipped.tolist() == [CARRIERS] * 2
    assert not played.counterfactual.attribute("half_speed").any()


def test_all_against_none_are_the_worlds_of_those_fractions() -> None:
    played = twins().run(POLICY, episodes=EPISODES, seed=SEED, flip="all_none")
    for returns, fraction in ((played.factual, 1.0), (played.counterfactual, 0.0)):
        world = Twins(Harvest(**SIZE, sensitive_fraction=fraction)).run(POLICY, episodes=EPISODES, seed=SEED, flip=[])
        assert np.array_equal(returns.values, world.factual.values)
        assert (returns.attribute("half_speed") == fraction).all()
    ratio = counterfactual_fairness(played.factual, played.counterfactual, sensitive=played.sensitive, form="ratio")
    none, everybody = played.counterfactual.values.sum(axis=1), played.factual.values.sum(axis=1)
    assert np.array_equal(ratio, (none - everybody) / (none + everybody))


@pytest.mark.parametrize("flip", ["each", "all", "protected"])
def test_counterfactual_fairness_reads_the_twins_as_they_are(flip: Any) -> None:
    played = twins().run(POLICY, episodes=EPISODES, seed=SEED, flip=flip)
    gap = counterfactual_fairness(played.factual, played.counterfactual, sensitive=played.sensitive)
    lost = played.factual.values[:, CARRIERS] - played.counterfactual.values[:, CARRIERS]
    assert np.array_equal(gap, lost.sum(axis=1))
    assert gap.mean() < 0  # they have half the turns


# Whose policy --------------------------------------------------------------------------------------------------------


def test_each_world_may_have_its_own_policy() -> None:
    idle = from_probabilities(lambda observation: np.eye(8)[np.zeros(observation.shape[:2], int)])
    played = twins().run(POLICY, episodes=2, seed=SEED, flip="all", counterfactual_policy=idle)
    assert played.factual.values.any()
    assert not played.counterfactual.values.any()


@pytest.mark.parametrize(("keep_group", "shown"), [(False, [1, 0]), (True, [0, 1])])
def test_a_flipped_agent_is_shown_the_other_group_or_keeps_its_own(keep_group: bool, shown: list[int]) -> None:
    met: list[NDArray[Any]] = []

    def policy(observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        met.append(observation)
        return np.zeros(observation.shape[:2], int)

    twins(append_group=True).run(policy, episodes=1, seed=SEED, flip="all", keep_group=keep_group)
    assert met[0].shape == (1, AGENTS, 11)
    assert met[0][0, [0, 2], 10].tolist() == [0, 1]  # the factual world
    assert met[-1][0, [0, 2], 10].tolist() == shown
    assert met[-1][0, [0, 2], 2].tolist() == [1, 0]  # the attribute itself is shown as it is


def test_a_flipped_agent_keeps_the_group_it_has_where_all_carry_the_attribute() -> None:
    met: list[NDArray[Any]] = []

    def policy(observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        met.append(observation)
        return np.zeros(observation.shape[:2], int)

    twins(append_group=True).run(policy, episodes=1, seed=SEED, flip="all_none", keep_group=True)
    assert met[0][0, :, 10].tolist() == met[-1][0, :, 10].tolist() == [1] * AGENTS


def test_policies_see_through_transforms() -> None:
    def policy(observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        assert not observation[..., 2].any()
        return POLICY.act(observation, uniforms)

    hidden = twins(transforms=[HiddenAttribute()]).run(policy, episodes=2, seed=SEED, flip="all")
    assert not np.array_equal(hidden.factual.values, twins().run(POLICY, episodes=2, seed=SEED).factual.values)


@pytest.mark.parametrize("rows", ["agents", "lanes"])
def test_a_model_of_stable_baselines3_plays_both_worlds(rows: Any) -> None:
    env = fair_envs.make_sb3("FairHarvest-v0", n_envs=2, rows=rows, seed=0, append_group=rows == "agents", **SIZE)
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=8, seed=0, device="cpu")
    pair = twins(append_group=rows == "agents")
    played = pair.run(policy_of_model(model), episodes=2, seed=SEED, flip="all", record_actions=True)
    again = pair.run(policy_of_model(model), episodes=2, seed=SEED, flip="all", record_actions=True)
    assert np.array_equal(played.factual.values, again.factual.values)
    most_probable = pair.run(
        policy_of_model(model, deterministic=True), episodes=1, seed=SEED, flip="all", record_actions=True
    )
    assert most_probable.factual_actions is not None and played.factual_actions is not None
    lanes = Lanes(Harvest(**SIZE), 1)
    lanes.seed(SEED)
    start = lanes.restart()
    seen = start.observation.reshape(8, 10) if rows == "agents" else start.observation.reshape(1, 80)
    if rows == "agents":
        seen = np.column_stack([seen, start.facts["group"][0]]).astype(np.float32)
    wanted = model.predict(seen, deterministic=True)[0].reshape(AGENTS)
    executed = lanes.advance(wanted.reshape(1, AGENTS)).facts["action"][0]
    assert np.array_equal(most_probable.factual_actions[0, 0], executed)


def test_a_model_trained_on_other_observations_is_refused() -> None:
    env = fair_envs.make_sb3("FairHarvest-v0", n_envs=2, append_group=True, seed=0, **SIZE)
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=8, device="cpu")
    with pytest.raises(ValueError, match=r"model must take observations of shape \(10,\).*, got \(11,\)"):
        twins().run(policy_of_model(model), episodes=1, flip="all")


# Choosing by a uniform number ----------------------------------------------------------------------------------------


def test_an_action_is_chosen_where_the_cumulative_distribution_passes_the_number() -> None:
    probabilities = np.tile([0.2, 0.3, 0.5], (5, 1))
    assert choose(probabilities, np.array([0.0, 0.19, 0.2, 0.49, 0.99])).tolist() == [0, 0, 1, 1, 2]


def test_an_action_without_a_chance_is_never_chosen() -> None:
    almost = np.array([[0.0, 0.1, 0.2, 0.7 - 1e-7, 0.0]], np.float32)
    for number in (0.0, 0.5, 1 - 2**-53):
        assert choose(almost, np.array([number]))[0] in (1, 2, 3)


def test_two_distributions_that_are_close_mostly_choose_alike() -> None:
    uniforms = np.random.default_rng(0).random(20_000)
    one, other = (choose(np.tile(p, (20_000, 1)), uniforms) for p in ([0.5, 0.5], [0.45, 0.55]))
    assert 0.04 < (one != other).mean() < 0.06


# Twins to be played step by step -------------------------------------------------------------------------------------

FACES: dict[str, Callable[[], Any]] = {
    "single": lambda: gym.make("FairHarvest-v0", **SIZE),
    "focal": lambda: gym.make("FairHarvest-v0", control="focal", **SIZE),
    "batch": lambda: Vector(2, **SIZE),
    "agents": lambda: Parallel(**SIZE),
    "rows": lambda: fair_envs.make_sb3("FairHarvest-v0", n_envs=2, **SIZE),
    "wrapped": lambda: RecordFairness(gym.make("FairHarvest-v0", **SIZE)),
}
EACH_FACE = pytest.mark.parametrize("make", FACES.values(), ids=FACES.keys())


def begin(env: Any, seed: int) -> None:
    if isinstance(env, VecEnv):
        env.seed(seed)
        env.reset()
    else:
        env.reset(seed=seed)


def act(env: Any, step: int) -> None:
    actions = (np.arange(env.unwrapped.lanes.count * AGENTS) + step) % 8
    if isinstance(env, Parallel):
        env.step({f"agent_{i}": actions[i] for i in range(AGENTS)})
    elif isinstance(env, gym.vector.VectorEnv):
        env.step(actions.reshape(-1, AGENTS))
    else:
        env.step(actions[0] if isinstance(env, gym.Env) and env.action_space.shape == () else actions)


@EACH_FACE
def test_the_twin_of_an_environment_meets_the_same_luck(make: Callable[[], Any]) -> None:
    env = make()
    twin, same = counterfactual(env, flip=[0, 1]), counterfactual(env, flip=[])
    for world in (env, twin, same):
        begin(world, 3)
    factual, flipped, unchanged = (world.unwrapped.lanes.records for world in (env, twin, same))
    for step in range(10):
        assert np.array_equal(factual, unchanged)
        assert np.array_equal(factual["key"], flipped["key"])
        assert ((flipped["sensitive"] != factual["sensitive"]) == (np.arange(AGENTS) < 2)).all()
        for world in (env, twin, same):
            act(world, step)
    assert not np.array_equal(factual["cell"], flipped["cell"])


@EACH_FACE
def test_a_twin_made_in_mid_episode_is_flipped_now_and_in_later_episodes(make: Callable[[], Any]) -> None:
    env = make()
    env.reset()
    for step in range(3):
        act(env, step)
    kept = env.unwrapped.lanes.snapshot()
    twin = counterfactual(env, flip=["agent_4"])
    assert np.array_equal(env.unwrapped.lanes.records, kept)
    flipped = twin.unwrapped.lanes.records
    assert (flipped["sensitive"] != kept["sensitive"])[:, 4].all()
    assert np.array_equal(flipped["time"], kept["time"]) and np.array_equal(flipped["total"], kept["total"])
    for world in (env, twin):
        world.reset()
    assert (flipped["sensitive"] != env.unwrapped.lanes.records["sensitive"])[:, 4].all()


def test_what_a_twin_in_mid_episode_shows_is_flipped_too() -> None:
    env = Parallel(**SIZE)
    env.reset(seed=1)
    twin = counterfactual(env, flip=[0])
    assert env.state()[2] == 0 and twin.state()[2] == 1
    wrapped: Any = SwapSensitive(Parallel(**SIZE), agents=[0])
    wrapped.reset(seed=1)
    assert counterfactual(wrapped, flip=[0]).state()[2] == 0


def test_twins_of_an_environment_without_a_seed_meet_the_same_luck() -> None:
    env = Env(**SIZE)
    twin = counterfactual(env, flip=[])
    assert np.array_equal(env.reset()[0], twin.reset()[0])
    assert not np.array_equal(Env(**SIZE).reset()[0], env.reset()[0])


def test_the_swapped_world_of_a_wrapper_is_the_counterfactual_one() -> None:
    wrapped, twin = SwapSensitive(Env(**SIZE), where="world", agents=[2]), counterfactual(Env(**SIZE), flip=[2])
    pair = wrapped.reset(seed=3), twin.reset(seed=3)
    assert np.array_equal(pair[0][0], pair[1][0])
    assert np.array_equal(pair[0][1]["fair_group"], pair[1][1]["fair_group"])


# What is refused -----------------------------------------------------------------------------------------------------


class Unmarked(Harvest):
    """A harvest whose lanes do not say who carries the attribute."""

    sensitive_field = "mark"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"episodes": 0}, "episodes must be an integer of at least 1, got 0"),
        ({"episodes": 1.5}, "episodes must be an integer of at least 1, got 1.5"),
        ({"episodes": 1, "keep_group": True}, "keep_group must be False without append_group=True"),
        (
            {"episodes": 1, "flip": "some"},
            "flip must be 'each', 'all', 'protected', 'all_none' or a list of agents, got 'some'",
        ),
        ({"episodes": 1, "flip": None}, "flip must be 'each', 'all', 'protected', 'all_none' or a list of agents"),
        ({"episodes": 1, "flip": 1}, "agents must be a list of indices or names, got 1"),
        ({"episodes": 1, "flip": [8]}, "agents must be among 0 to 7"),
        ({"episodes": 1, "flip": [1.7]}, "agents must be among 0 to 7 or agent_0 to agent_7, got 1.7"),
        ({"episodes": 1, "seed": -1}, "seed must be between 0"),
    ],
)
def test_a_bad_argument_of_a_run_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        twins().run(POLICY, **settings)


def test_a_policys_actions_must_lie_in_the_space() -> None:
    with pytest.raises(ValueError, match="action must be between 0 and 7, got 8"):
        twins().run(lambda observation, uniforms: np.full(uniforms.shape, 8), episodes=1, flip="all")
    with pytest.raises(ValueError, match=r"action must have shape \(1, 8\), got \(8,\)"):
        twins().run(lambda observation, uniforms: np.zeros(8, int), episodes=1, flip="all")


def test_an_environment_without_an_attribute_to_flip_is_refused() -> None:
    with pytest.raises(ValueError, match="harvest has none to flip"):
        Twins(Unmarked(**SIZE))
    with pytest.raises(ValueError, match="lanes must be an integer of at least 1, got 0"):
        twins(lanes=0)


def test_an_environment_of_another_package_has_no_twin() -> None:
    with pytest.raises(TypeError, match="env must be an environment of fair_envs"):
        counterfactual(gym.make("CartPole-v1"))
    for function in (counterfactual, Twins):
        with pytest.raises(TypeError, match="env must be an environment of fair_envs, with any interface, got 3"):
            function(3)


def test_worlds_that_differ_already_have_no_twin() -> None:
    env = fair_envs.make_sb3("FairHarvest-v0", n_envs=1, worlds=[{}, {"sensitive_fraction": 0.0}], **SIZE)
    with pytest.raises(TypeError, match="env must play one world"):
        counterfactual(env)


def test_a_transform_that_swaps_the_world_is_refused() -> None:
    with pytest.raises(ValueError, match="transforms must not change the world: select the agents with flip"):
        twins(transforms=[SwappedAttribute(where="world")])


def test_what_is_given_stays_as_it_came() -> None:
    env = Env(**SIZE)
    env.reset(seed=1)
    kept = copy.deepcopy(env.lanes.records)
    Twins(env).run(POLICY, episodes=1, flip="all")
    counterfactual(env)
    assert np.array_equal(env.lanes.records, kept) and env.lanes.amendments == []
