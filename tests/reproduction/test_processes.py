"""What the study on long-term fairness keeps of an episode, and what it makes of it."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fair_envs.baselines.ppo.massaging import PolicyOutput
from fair_envs.reproduction.hu2024 import processes
from fair_envs.reproduction.hu2024.jobs import AGENTS
from fair_envs.reproduction.hu2024.numbers import SUMMARIES
from fair_envs.reproduction.hu2024.processes import MassagedPolicy, World, noise_floors, series, times_of, watch


def watched(world: World, agent: str, *, episodes: int, steps: int) -> dict[str, NDArray[Any]]:
    """Return what is kept of a designed agent's test."""
    chance = np.random.default_rng(0)
    return watch(
        world,
        AGENTS[world][agent],
        episodes=episodes,
        steps=steps,
        seed=5,
        parameters={},
        rng=chance,
    )


def test_an_episode_is_looked_at_now_and_then_and_before_its_last_step() -> None:
    assert times_of(11, every=5).tolist() == [0, 5, 10]
    assert times_of(10, every=4).tolist() == [0, 4, 8, 9]
    assert times_of(2, every=5).tolist() == [0, 1]


def test_lending_begins_with_the_known_distances_and_all_its_cash() -> None:
    arrays = watched("lending", "accept all", episodes=6, steps=120)
    assert arrays["times"].tolist() == [0, 50, 100, 119]
    found = series("lending", arrays)
    assert found["long"].values[0] == pytest.approx(1.0)
    assert found["long, as plotted"].values[0] == pytest.approx(np.sqrt(0.12))
    assert found["utility"].values[0] == 10_000 and found["mean score, advantaged"].values[0] == pytest.approx(3.6)
    assert np.nan_to_num(found["short"].values[1:]) == pytest.approx(0)  # everybody qualified gets a loan
    assert (arrays["granted_ever"] == arrays["applied_ever"]).all() and arrays["applied_ever"].sum() == 6 * 120
    earned = arrays["last_cash"] - 10_000
    assert np.abs(earned).max() <= 120 and (earned % 2 == 0).all()  # as many wins and losses of 1 as steps


def test_what_is_looked_at_is_of_before_the_step_but_for_decisions() -> None:
    arrays = watched("lending", "accept all", episodes=3, steps=4)
    assert arrays["qualified"][0].sum(axis=1).max() <= 1  # the first applicant's decision is in the first window
    assert arrays["cash"][0].tolist() == [10_000] * 3 and (arrays["cash"][1] != arrays["last_cash"]).any()


def test_the_gap_of_the_published_figure_is_that_of_mean_rates() -> None:
    """Two episodes whose gaps of 0.5 have opposite signs, and then a group of which nobody would have repaid."""
    arrays = {
        "times": np.array([0, 1]),
        "qualified": np.array([[[40, 40], [40, 40]], [[0, 40], [40, 40]]]),
        "granted": np.array([[[40, 20], [20, 40]], [[0, 20], [20, 40]]]),
        "shares": np.full((2, 2, 2, 3), 1 / 3),
        "cash": np.zeros((2, 2)),
    }
    found = series("lending", arrays)
    assert found["short, as plotted"].values == pytest.approx([0.0, 0.5])  # 0 / 0 is 0 there
    assert found["short"].values == pytest.approx([0.5, 0.5])  # undefined episodes are left out
    arrays["qualified"], arrays["granted"] = arrays["qualified"] // 10, arrays["granted"] // 10
    assert np.isnan(series("lending", arrays)["short"].values).all()  # of so few no rate is told


def test_attention_begins_with_the_known_spread_of_rates() -> None:
    arrays = watched("attention", "round-robin", episodes=4, steps=40)
    found = series("attention", arrays)
    assert found["long, as plotted"].values[0] == 3.5
    assert found["long"].values[0] == pytest.approx(0.2222, abs=1e-4)
    assert arrays["reward"].shape == (40, 4) and (arrays["discovered"] <= arrays["incidents"]).all()
    assert arrays["units"][-1].sum(axis=-1).tolist() == [40 * 6] * 4
    assert found["short, as plotted"].values[-1] == pytest.approx(0, abs=1e-9)


def test_the_short_term_of_attention_forgets_what_was_long_ago() -> None:
    times = np.array([0, 100, 299, 300, 350])
    sent = np.zeros((5, 1, 2))
    sent[:, 0, 0] = [1, 101, 300, 300, 300]  # all units to the first place for 300 steps, then to the second
    sent[:, 0, 1] = [0, 0, 0, 1, 51]
    arrays = {"times": times, "units": sent, "rates": np.ones((5, 1, 2)), "reward": np.zeros((351, 1))}
    found = series("attention", arrays)
    assert found["short, as plotted"].values == pytest.approx([0.5, 0.5, 0.5, 300 / 301 - 0.5, 300 / 351 - 0.5])
    assert found["short"].values[-2:] == pytest.approx([299 / 300 - 0.5, 299 / 350 - 0.5])


def test_the_epidemic_begins_with_the_known_distance_and_counts_everybody() -> None:
    arrays = watched("epidemic", "nobody", episodes=400, steps=20)
    assert (arrays["heads"].sum(axis=-1) == [15, 19]).all()
    found = series("epidemic", arrays)
    assert found["long, as plotted"].values[0] == pytest.approx(11.6, abs=0.5)
    assert (found["short"].values == 0).all() and (found["short, as plotted"].values == 0).all()
    assert (np.diff(arrays["infected"], axis=0) >= 0).all()
    sick = arrays["heads"][1:, ..., 1].sum(axis=-1)
    assert found["utility"].values[:-1] == pytest.approx(1 - sick.mean(axis=1) / 34, abs=1e-5)  # after the step


def test_vaccines_without_effect_count_in_the_published_gap_alone() -> None:
    arrays = watched("epidemic", "Max", episodes=50, steps=20)
    assert (arrays["given"] >= arrays["effective"]).all() and (arrays["given"][-1].sum(axis=1) == 20).all()
    found = series("epidemic", arrays)
    assert found["short, as plotted"].values[-1] > found["short"].values[-1]


@pytest.mark.parametrize("world", SUMMARIES)
def test_every_column_of_the_tables_is_measured(world: World) -> None:
    names = set(series(world, watched(world, next(iter(AGENTS[world])), episodes=2, steps=40)))
    assert {summary.series for summary in SUMMARIES[world].values()} <= names


def lent(granted: tuple[int, int]) -> dict[str, NDArray[Any]]:
    """Return 60 equal windows of 40 qualified people of each group, of whom so many got a loan."""
    shape = (60, 4, 2)
    return {
        "times": np.arange(60) * 300,
        "qualified": np.full(shape, 40),
        "granted": np.full(shape, granted),
        "shares": np.full((*shape, 3), 1 / 3),
        "cash": np.zeros((60, 4)),
    }


def test_the_floor_of_a_gap_is_that_of_groups_dealt_at_random() -> None:
    unfair, fair, none = (noise_floors("lending", lent(granted)) for granted in ((30, 10), (20, 20), (0, 0)))
    expected = np.sqrt(2 / np.pi) * 2 * np.sqrt(40 * 0.5 * 0.5 * 40 / 79) / 40  # of a hypergeometric number, twice
    for found in (unfair, fair):  # what counts is how many got loans, not who
        assert found["short"].values.mean() == pytest.approx(expected, rel=0.1)
        assert (found["long"].values == 0).all() and (found["long, as plotted"].values == 0).all()
    assert (none["short"].values == 0).all()
    assert series("lending", lent((30, 10)))["short"].values == pytest.approx([0.5] * 60)
    assert fair["of all"].values[-1] < fair["short"].values.mean() / 4  # of many more people


def test_the_gap_of_all_applicants_counts_each_window_once() -> None:
    arrays = {**lent((30, 10)), "times": np.arange(60) * 150}
    arrays["granted"] = arrays["granted"].copy()
    arrays["granted"][1::2] = 40  # those between are not counted
    found = series("lending", arrays)["of all"].values
    assert np.isnan(found[:2]).all() and found[2:] == pytest.approx([0.5] * 58)


def test_the_floor_of_a_distance_is_that_of_one_group_in_other_episodes() -> None:
    arrays = lent((20, 20))
    arrays["shares"] = np.tile([[[1.0, 0, 0], [0, 0, 1.0]], [[0, 1.0, 0], [0, 0, 1.0]]], (60, 2, 1, 1))
    floor, found = noise_floors("lending", arrays), series("lending", arrays)
    assert floor["long"].values == pytest.approx([0.5] * 60)  # one group differs by 1 between episodes, the other by 0
    assert found["long"].values == pytest.approx([1.5] * 60)


def test_the_floor_in_attention_is_that_of_the_same_units_sent_at_random() -> None:
    sent = watched("attention", "round-robin", episodes=20, steps=300)
    floor, random = (
        noise_floors("attention", sent),
        series("attention", watched("attention", "uniform", episodes=20, steps=300)),
    )
    assert floor["short"].values[-1] == pytest.approx(random["short"].values[-1], rel=0.3)
    assert series("attention", sent)["short"].values[-1] < floor["short"].values[-1] and "long" not in floor


def test_the_floor_of_the_epidemic_is_that_of_people_dealt_to_communities() -> None:
    arrays = watched("epidemic", "nobody", episodes=100, steps=20)
    floor = noise_floors("epidemic", arrays)
    assert (floor["short"].values == 0).all() and floor["long"].values[1] < series("epidemic", arrays)["long"].values[1]
    everyone = np.tile([[0.0, 15, 0], [0, 19, 0]], (20, 100, 1, 1))
    assert (noise_floors("epidemic", {**arrays, "heads": everyone})["long"].values == 0).all()
    given = watched("epidemic", "Max", episodes=50, steps=20)
    floor = noise_floors("epidemic", given)
    assert 0 < floor["short"].values[-1] < series("epidemic", given)["short"].values[-1]


def test_every_process_has_a_policy_that_never_changes() -> None:
    units = watched("attention", "constant", episodes=2, steps=40)["units"][-1]
    assert units.tolist() == [[80, 40, 40, 40, 40]] * 2


class Sure:
    """A policy that says no with a probability of 0.6."""

    def __call__(self, observation: NDArray[Any]) -> PolicyOutput:
        return PolicyOutput(probabilities=np.tile([0.6, 0.4], (len(observation), 1)))


def test_behind_the_shield_actions_are_massaged_and_its_measure_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    import gymnasium as gym

    from fair_envs.metrics import OpportunityGap

    monkeypatch.setattr(processes, "policy_function", lambda policy: policy)
    asked: list[float] = []

    def grant(observation: Any, action: Any, policy: Any, short: Any, *, threshold: float) -> Any:
        asked.append(threshold)
        return np.ones_like(action)

    env: Any = gym.make_vec("FairLending-v0", num_envs=3, horizon=20)
    short, chance = OpportunityGap(3, qualified=env.unwrapped.lanes.rules.repayment), np.random.default_rng(0)
    player = MassagedPolicy(Sure(), env, chance, massager=grant, threshold=0.25, short=short)
    for step in processes.steps_of(env, player, seed=0, rng=chance):
        assert (step.info["fair_action"] == 1).all()
    assert asked == [0.25] * 20 and short.counts[..., 0].sum() == 0 and short.counts[..., 1].sum() > 0
    alone = MassagedPolicy(Sure(), env, chance, short=short)
    said = np.concatenate([step.info["fair_action"] for step in processes.steps_of(env, alone, seed=0, rng=chance)])
    assert 0 < said.mean() < 1


def test_without_a_shield_the_likeliest_actions_may_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    import gymnasium as gym

    monkeypatch.setattr(processes, "policy_function", lambda policy: policy)
    env: Any = gym.make_vec("FairLending-v0", num_envs=3, horizon=9)
    chance = np.random.default_rng(0)
    player = MassagedPolicy(Sure(), env, chance, most_probable=True)
    steps = list(processes.steps_of(env, player, seed=0, rng=chance))
    assert len(steps) == 9 and all((step.info["fair_action"] == 0).all() for step in steps)
