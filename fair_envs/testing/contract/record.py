"""What every environment that reports the record promises."""

from typing import Any

from gymnasium.utils.env_checker import check_env

from fair_envs.testing.checks import assert_same, check_facts, check_observations, check_schema
from fair_envs.testing.contract.kinds import HORIZON, Kind, draws, expected_info, play_single, single
from fair_envs.testing.contract.kinds import no_window as no_window
from fair_envs.wrappers.adapters.own import fair_spec_of


def comparable(kind: Kind, played: list[Any]) -> list[Any]:
    """Return an episode without the keys of ``info`` that an environment adds to the record: they may hold anything."""
    if kind.ruled:
        return played
    return [(*rest, {name: info[name] for name in info if name.startswith("fair_")}) for *rest, info in played]


def test_gymnasium_check_env(kind: Kind) -> None:
    check_env(single(kind).unwrapped, skip_render_check=not draws(kind))


def test_the_same_seed_and_actions_give_the_same_episodes(kind: Kind) -> None:
    one, other = (comparable(kind, play_single(single(kind), seed=3, steps=20)) for _ in range(2))
    assert_same(one, other)


def test_what_was_played_before_does_not_matter(kind: Kind) -> None:
    env = single(kind)
    first = comparable(kind, play_single(env, seed=3, steps=20))
    play_single(env, seed=4, steps=5)
    assert_same(comparable(kind, play_single(env, seed=3, steps=20)), first)


def test_info_has_one_schema_at_reset_and_at_every_step(kind: Kind) -> None:
    env = single(kind)
    expected = expected_info(env)
    for played in play_single(env, seed=3, steps=3 * HORIZON):
        check_schema(played[-1], expected, others=not kind.ruled)


def test_the_fair_spec_fits_what_is_reported(kind: Kind) -> None:
    env = single(kind)
    for played in play_single(env, seed=3, steps=3 * HORIZON):
        check_facts(fair_spec_of(env), played[-1], decided=len(played) == 5)


def test_observations_lie_in_their_spaces(kind: Kind) -> None:
    env = single(kind, **({"horizon": 60} if kind.ruled else {}))
    for played in play_single(env, seed=3, steps=120):
        check_observations([played[0]], env.observation_space)
