"""A batch of lanes: seeds, restarts, snapshots, threads; each lane is what it would be alone."""

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, ClassVar, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray

import fair_envs
from fair_envs.core import CLOCK, Lanes, Rules, Step, Worlds, check_seeds, draws, randomness, variant_of
from fair_envs.core.compilation import COMPILED
from fair_envs.envs.harvest.rules import Harvest
from fair_envs.support.aliases import Ints
from fair_envs.support.parameters import Range
from tests.choices import Boxed
from tests.helpers import assert_same, digest
from tests.toys import Countdown

EVEN = {"initial_rates": "even", "increase_rates": "as_decrease"}
SMALL: dict[str, Any] = {"width": 4, "height": 3, "agents": 2, "red_bushes": 2, "blue_bushes": 1, "horizon": 5}


def batch(count: int, *, seed: int | None = 3, threads: int = 1, **parameters: Any) -> Lanes:
    """Return a small batch; it is seeded, and started if it is."""
    lanes = Lanes(Harvest(**{**SMALL, **parameters}), count, threads=threads)
    if seed is not None:
        lanes.seed(seed)
        lanes.restart()
    return lanes


def actions(count: int, time: int) -> Ints:
    """Return actions that depend on the lane's seed (from 3 on), the agent and the time alone."""
    lane = np.arange(3, 3 + count)[:, np.newaxis]
    return np.array((lane * 5 + np.array([[0, 3]]) + time * time * 7) % 8)


def play(lanes: Lanes, steps: int, *, begin: int = 0) -> list[Step]:
    """Return what happens, the lanes that are over beginning anew."""
    played = []
    for time in range(begin, begin + steps):
        played.append(lanes.advance(actions(lanes.count, time)))
        over = played[-1].terminated | played[-1].truncated
        if over.any():
            played.append(lanes.restart(mask=over, out=lanes.blank_step()))
    return played


# ------------------------------------------------------------------------------------------------------ seeds


def test_one_seed_is_counted_up_over_the_lanes() -> None:
    assert check_seeds(5, 3).tolist() == [5, 6, 7]
    assert check_seeds(np.int64(5), 3).tolist() == [5, 6, 7]
    assert check_seeds([9, 1, 9], 3).tolist() == [9, 1, 9]
    assert check_seeds(np.array([9, 1, 9]), 3).tolist() == [9, 1, 9]


def test_the_largest_seed_fits() -> None:
    assert check_seeds(2**63 - 1, 1).tolist() == [2**63 - 1]
    assert check_seeds([2**63 - 1, 0], 2).tolist() == [2**63 - 1, 0]


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        (-1, "seed must be between 0 and 2"),
        (2**63 - 1, "seed must be between 0 and 2"),  # the second lane's is too large
        (2**70, "seed must be between 0 and 2"),
        ([1, -2], "seed must be between 0 and 2"),
        ([1, 2, 3], r"seed must be one integer or 2 of them, got \[1, 2, 3\]"),
        ([], r"seed must be one integer or 2 of them, got \[\]"),
        ([[1, 2]], "seed must be one integer or 2 of them"),
        (3.7, "seed must be an integer, got 3.7"),
        ([1, 2.5], "seed must be an integer, got 2.5"),
        (True, "seed must be an integer, got True"),
        ("7", "seed must be an integer, got '7'"),
        ([1, None], "seed must be an integer, got None"),
    ],
)
def test_a_bad_seed_is_refused_and_changes_nothing(seeds: Any, message: str) -> None:
    lanes = batch(2)
    before = lanes.snapshot()
    with pytest.raises(ValueError, match=message):
        lanes.seed(seeds)
    assert_same(lanes.snapshot(), before)


def test_without_a_seed_two_batches_meet_different_luck() -> None:
    one, other = batch(2, seed=None), batch(2, seed=None)
    one.restart()
    other.restart()
    keys = [*one.records["key"].tolist(), *other.records["key"].tolist()]
    assert len(set(keys)) == 4
    assert one.seeded


@pytest.mark.parametrize(
    ("name", "value"), [("count", 0), ("count", -2), ("count", 1.5), ("count", True), ("threads", 0)]
)
def test_a_batch_needs_at_least_one_lane_and_thread(name: str, value: Any) -> None:
    keywords = {"count": 2, "threads": 1, name: value}
    with pytest.raises(ValueError, match=f"{name} must be an integer of at least 1, got {value}"):
        Lanes(Harvest(**SMALL), keywords["count"], threads=keywords["threads"])


@pytest.mark.parametrize(
    ("env_id", "parameters", "message"),
    [
        ("FairAttention-v0", {"window": 2**31, "horizon": 2**31 - 2}, "window .* 64 MiB, got 2147483648, .* 40 GiB"),
        ("FairAttention-v0", {**EVEN, "locations": 1000, "window": 10**5, "horizon": 10**5}, "locations .*, got 1000,"),
        ("FairFraud-v0", {"transactions_per_year": 1e9}, "transactions_per_year .*, got 1000000000.0, .* 360 MiB"),
    ],
)
def test_a_lane_that_is_too_large_names_the_parameter_that_makes_it_so(
    env_id: str, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        fair_envs.make_rules(env_id, **parameters)


def test_a_lane_of_ones_own_that_is_too_large_is_named_too() -> None:
    class Huge(Harvest):
        def lane(self, params: Any) -> list[tuple[Any, ...]]:
            return [*super().lane(params), ("more", np.int64, (2**20, 2**40))]

    with pytest.raises(ValueError, match=r"parameters must be such that a lane takes at most 64 MiB, got 8\.389e"):
        Huge()


@pytest.mark.parametrize("count", [2**40, 10**400])
def test_a_batch_that_is_too_large_is_named_before_anything_is_allocated(count: int) -> None:
    told = "an integer of 1329 bits" if count > 2**40 else str(count)
    makers: dict[str, Callable[[], Any]] = {
        "count": lambda: Lanes(Harvest(**SMALL), count),
        "num_envs": lambda: gym.make_vec("FairHarvest-v0", num_envs=count),
        "n_envs": lambda: fair_envs.make_sb3("FairHarvest-v0", n_envs=count),
    }
    for name, make in makers.items():
        if name == "n_envs":
            pytest.importorskip("stable_baselines3")
        with pytest.raises(ValueError, match=rf"{name} must be at most \d+ \(16 GiB; a lane of harvest .*got {told}"):
            make()


@pytest.mark.parametrize(
    ("env_id", "name"),
    [
        ("FairLending-v0", "distributions"),
        ("FairLending-v0", "repayment"),
        ("FairAttention-v0", "initial_rates"),
        ("FairAttention-v0", "increase_rates"),
        ("FairEpidemic-v0", "initial_number"),
        ("FairAttention-v0", "window"),
        ("FairHarvest-v0", "agents"),
    ],
)
def test_an_endless_integer_is_refused_by_name(env_id: str, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be .*, got an integer of 1329 bits"):
        fair_envs.make_rules(env_id, **{name: 10**400})


# --------------------------------------------------------------------------------------------- clocks, restarts


@pytest.mark.nojit
def test_a_restart_sets_the_clock_and_zeroes_the_rest() -> None:
    lanes = batch(2, seed=7)
    play(lanes, 4)
    start = lanes.restart()
    assert lanes.records["seed"].tolist() == [7, 8]
    assert lanes.records["episode"].tolist() == [1, 1]
    assert lanes.records["time"].tolist() == [0, 0]
    assert lanes.records["over"].tolist() == [0, 0]
    assert lanes.records["total"].sum() == lanes.records["last_reward"].sum() == 0
    keys = [int(randomness.episode_key(np.uint64(seed), np.uint64(1))) for seed in (7, 8)]
    assert lanes.records["key"].tolist() == keys
    assert start.reward.sum() == 0 and not start.terminated.any() and not start.truncated.any()
    assert start.facts["decided"].tolist() == [0, 0]


def test_an_episode_is_a_function_of_seed_and_episode_not_of_what_was_played_before() -> None:
    idle, busy = batch(1), batch(1)
    play(busy, 3)
    assert_same(idle.restart(), busy.restart())
    assert_same(idle.snapshot(), busy.snapshot())


def test_seeding_again_begins_the_seeds_first_episode_again() -> None:
    lanes = batch(2)
    first = lanes.snapshot()
    play(lanes, 9)
    lanes.seed(3)
    lanes.restart()
    assert_same(lanes.snapshot(), first)


def test_the_horizon_truncates_and_never_terminates() -> None:
    lanes = batch(2, horizon=3)
    steps = [lanes.advance(actions(2, time)) for time in range(3)]
    assert [step.truncated.tolist() for step in steps] == [[False] * 2, [False] * 2, [True] * 2]
    assert not any(step.terminated.any() for step in steps)
    assert lanes.records["over"].tolist() == [1, 1]
    assert lanes.records["time"].tolist() == [3, 3]


@pytest.mark.nojit
def test_an_episode_that_terminates_at_the_horizon_is_not_truncated() -> None:
    lanes = Lanes(Countdown(horizon=2), 3)  # they would terminate after 1, 2 and 3 steps
    lanes.seed(0)
    lanes.restart()
    idle = np.zeros((3, 2), np.int64)
    first, second = lanes.advance(idle), lanes.advance(idle, mask=np.array([False, True, True]))
    assert (first.terminated.tolist(), first.truncated.tolist()) == ([True, False, False], [False] * 3)
    assert (second.terminated.tolist(), second.truncated.tolist()) == ([False, True, False], [False, False, True])
    assert lanes.records["over"].tolist() == [1, 1, 1]


def test_lanes_outside_the_mask_stay_as_they_are() -> None:
    lanes = batch(3)
    before = lanes.snapshot()
    lanes.restart(mask=np.array([False, True, False]))
    lanes.advance(actions(3, 0), mask=np.array([True, False, False]))
    assert lanes.records["episode"].tolist() == [0, 1, 0]
    assert lanes.records["time"].tolist() == [1, 0, 0]
    assert_same(lanes.records[2].copy(), before[2])


def test_a_step_reports_in_fresh_memory() -> None:
    lanes = batch(2)
    one, other = lanes.advance(actions(2, 0)), lanes.advance(actions(2, 1))
    for a, b in zip(one, other, strict=True):
        assert not np.shares_memory(a, b)
        assert not np.shares_memory(a, lanes.records)


# --------------------------------------------------------------------------------- lanes are what they are alone


@pytest.mark.parametrize(("count", "threads"), [(1, 1), (2, 2), (7, 1), (7, 3), (7, 16)])
def test_a_lane_is_the_same_whatever_the_batch_and_the_threads(count: int, threads: int) -> None:
    one_by_one = [batch(1, seed=3 + i) for i in range(count)]
    together = batch(count, threads=threads)
    for time in range(4):
        given = actions(count, time)
        step = together.advance(given)
        for i, alone in enumerate(one_by_one):
            for whole, own in zip(step, alone.advance(given[i : i + 1]), strict=True):
                assert_same(whole[i : i + 1], own)
    assert_same(together.snapshot(), np.concatenate([alone.snapshot() for alone in one_by_one]))


def test_masked_lanes_are_the_same_on_several_threads() -> None:
    mask = np.array([True, False, True, True, False])
    one, other = batch(5), batch(5, threads=2)
    for lanes in (one, other):
        lanes.advance(actions(5, 0), mask=mask)
        lanes.restart(mask=~mask)
    assert_same(one.snapshot(), other.snapshot())


def forked(connection: Any) -> None:
    """Send the digest of a batch that this process plays with two threads."""
    lanes = batch(4, threads=2)
    play(lanes, 3)
    connection.send(digest(lanes.snapshot()))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_threads_work_in_a_forked_process_too() -> None:
    lanes = batch(4, threads=2)
    play(lanes, 3)  # the pool has threads now; a fork has none of them
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=forked, args=(sender,))
    child.start()
    try:
        assert receiver.poll(60), "the forked process waits for threads that it does not have"
        assert receiver.recv() == digest(lanes.snapshot())
    finally:
        child.kill()
        child.join()


# -------------------------------------------------------------------------------------- snapshots, copies


def test_a_batch_goes_on_from_a_snapshot_as_it_did() -> None:
    lanes = batch(3)
    play(lanes, 2)
    kept = lanes.snapshot()
    first = play(lanes, 6, begin=2)
    lanes.restore(kept)
    assert_same(play(lanes, 6, begin=2), first)


def test_a_snapshot_is_a_copy(tmp_path: Any) -> None:
    lanes = batch(2)
    kept = lanes.snapshot()
    np.save(tmp_path / "lanes.npy", kept)
    play(lanes, 2)
    assert kept["time"].tolist() == [0, 0]
    saved = np.load(tmp_path / "lanes.npy")
    lanes.restore(saved)
    lanes.advance(actions(2, 0))
    assert saved["time"].tolist() == [0, 0]


def test_a_snapshot_goes_into_another_batch_of_the_same_rules() -> None:
    one, other = batch(2), batch(2, seed=None)
    play(one, 2)
    other.restore(one.snapshot())
    assert_same(play(other, 6, begin=2), play(one, 6, begin=2))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: batch(3).snapshot(), r"snapshot must have shape \(2,\), got \(3,\)"),
        (lambda: np.zeros(2), "snapshot must be a record array of these rules' lanes"),
        (lambda: batch(2).snapshot().tolist(), "snapshot must be a record array of these rules' lanes"),
        (lambda: np.zeros(2, Harvest(**{**SMALL, "agents": 3}).dtype), "snapshot must be a record array"),
        (lambda: Lanes(Harvest(**SMALL), 2).snapshot(), "snapshot must be of episodes that have begun"),
    ],
)
def test_a_snapshot_that_does_not_fit_is_refused(make: Callable[[], Any], message: str) -> None:
    lanes = batch(2)
    before = lanes.snapshot()
    with pytest.raises(ValueError, match=message):
        lanes.restore(make())
    assert_same(lanes.snapshot(), before)


def test_a_step_is_the_same_however_actions_are_laid_out_and_whatever_came_before() -> None:
    """Types that were looked at once are not mixed up with others: of precision, of order, of what can be written."""
    numbers = np.random.default_rng(0).uniform(-1, 1, (4, 2, 2))
    frozen = numbers.astype(np.float32)
    frozen.flags.writeable = False
    kinds: list[Any] = [
        numbers.astype(np.float32),
        numbers,
        np.asfortranarray(numbers, np.float32),
        np.repeat(numbers, 2, axis=0).astype(np.float32)[::2],
        frozen,
        np.sign(numbers).astype(np.int64),
    ]
    played, checked = Lanes(Boxed(), 4), Lanes(Boxed(), 4)
    for lanes in (played, checked):
        lanes.seed(3)
        lanes.restart()
    for k in [0, 0, 1, 2, 3, 4, 5, 0, 5, 4, 3, 2, 1, 0]:
        step = played.advance(kinds[k])
        expected = np.floor(8 * kinds[k][..., 0] - 4 * kinds[k][..., 1]) / 8
        assert step.reward.tolist() == expected.tolist()
        general = checked.advance(kinds[k], mask=np.ones(4, bool))
        assert all(map(np.array_equal, step, general)) and np.array_equal(played.records, checked.records)
        assert not np.shares_memory(step.observation, played.advance(kinds[k]).observation)
        checked.advance(kinds[k], mask=np.ones(4, bool))


def test_a_copied_batch_plays_on_after_steps_as_the_first_does() -> None:
    """What was looked up of machine code belongs to a batch, and to its process."""
    lanes = Lanes(Boxed(), 2)
    lanes.seed(3)
    lanes.restart()
    actions = np.full((2, 2, 2), 0.5, np.float32)
    lanes.advance(actions)
    for other in (copy.deepcopy(lanes), pickle.loads(pickle.dumps(lanes))):
        before = np.array(lanes.records)
        other.advance(actions)
        other.advance(actions)
        assert np.array_equal(lanes.records, before) and (other.records["time"] == before["time"] + 2).all()


def test_a_pickled_batch_goes_on_as_the_first_does() -> None:
    lanes = batch(3, threads=2)
    play(lanes, 2)
    copied = pickle.loads(pickle.dumps(lanes))
    assert_same(play(copied, 6, begin=2), play(lanes, 6, begin=2))


# ------------------------------------------------------------------------------------- amendments, flips, worlds


def test_a_pickled_batch_has_the_layouts_that_numba_finds_fastest() -> None:
    first = batch(2)
    other = pickle.loads(pickle.dumps(first))
    assert other.records.dtype is other.rules.dtype is first.rules.dtype
    assert other._blank.dtype is first._blank.dtype
    assert not COMPILED or other.rules.code.dtype is first.rules.code.dtype


def test_rules_may_share_functions_with_others_that_have_a_parameter_more() -> None:
    """Numba would take the longer record for a kind of the shorter one, with a warning, which is an error here."""

    class MoreParams(NamedTuple):
        horizon: Annotated[int, Range(1)] = 3
        shortest: Annotated[int, Range(1)] = 1
        more: float = 0.5

    class More(Countdown):
        Params: ClassVar[type] = MoreParams

    for rules in (Countdown(), More()):
        lanes = Lanes(rules, 1)
        lanes.seed(0)
        lanes.restart()
        assert lanes.advance(np.zeros((1, 2), np.int64)).terminated.tolist() == [True]


def test_an_amendment_changes_lanes_that_start_before_anybody_sees_them() -> None:
    def everyone_is_slow(rules: Rules, records: NDArray[np.void]) -> None:
        records["sensitive"] = 1

    lanes = batch(2, seed=None)
    lanes.amendments.append(everyone_is_slow)
    start = lanes.restart()
    assert start.facts["sensitive"].ravel().tolist() == [1, 1, 1, 1]
    assert start.observation[:, :, 2].ravel().tolist() == [1, 1, 1, 1]
    lanes.records["sensitive"] = 0
    lanes.restart(mask=np.array([True, False]))
    assert lanes.records["sensitive"].tolist() == [[1, 1], [0, 0]]


def test_a_flip_gives_those_agents_the_other_value() -> None:
    lanes = batch(2)
    before = lanes.records["sensitive"].copy()
    lanes.rules.flip(lanes.records, np.array([[True, False], [False, False]]))
    assert (lanes.records["sensitive"] - before).tolist() == [[1 - 2 * before[0, 0], 0], [0, 0]]


def test_worlds_meet_the_same_luck_with_other_parameters() -> None:
    rules = [Harvest(**{**SMALL, "sensitive_fraction": share}) for share in (0.0, 1.0)]
    worlds = Worlds(rules, 3)
    worlds.seed(5)
    start = worlds.restart()
    assert worlds.count == 6
    assert start.facts["group"].tolist() == [[0, 0]] * 3 + [[1, 1]] * 3
    records = worlds.snapshot()
    for field in ("seed", "key", "x", "y", "preference", "bush_x", "bush_y"):
        assert_same(records[field][:3], records[field][3:])
    given = actions(6, 0)
    step = worlds.advance(given)
    own = Lanes(rules[1], 3)
    own.seed(5)
    own.restart()
    for whole, part in zip(step, own.advance(given[3:]), strict=True):
        assert_same(whole[3:], part)


def test_worlds_restart_the_lanes_of_the_mask() -> None:
    worlds = Worlds([Harvest(**SMALL), Harvest(**SMALL, sensitive_fraction=1)], 2)
    worlds.restart()
    worlds.restart(mask=np.array([True, False, False, True]))
    assert worlds.snapshot()["episode"].tolist() == [1, 0, 0, 1]


def test_worlds_go_on_from_a_snapshot_as_they_did() -> None:
    worlds = Worlds([Harvest(**SMALL), Harvest(**SMALL, sensitive_fraction=1)], 2)
    worlds.restart()
    kept = worlds.snapshot()
    first = worlds.advance(actions(4, 0))
    worlds.restore(kept)
    assert_same(worlds.advance(actions(4, 0)), first)


def test_worlds_show_what_each_of_them_shows() -> None:
    worlds = Worlds([Harvest(**SMALL), Harvest(**SMALL, sensitive_fraction=1)], 2)
    worlds.restart()
    for whole, *parts in zip(worlds.show(), *(world.show() for world in worlds.worlds), strict=True):
        assert_same(whole, np.concatenate(parts))


def test_worlds_need_one_layout() -> None:
    with pytest.raises(ValueError, match="rules must have lanes of the same layout"):
        Worlds([Harvest(**SMALL), Harvest(**{**SMALL, "agents": 3})], 2)


def test_worlds_need_facts_that_mean_the_same() -> None:
    other = Harvest(**SMALL)
    other.spec = replace(other.spec, favourable_action=0)
    with pytest.raises(ValueError, match="rules must have one fair_spec in all worlds, got favourable_action 1 and 0"):
        Worlds([Harvest(**SMALL), other], 2)


# ------------------------------------------------------------------------------------------- policies' draws


def test_a_policys_draws_belong_to_key_time_and_agent() -> None:
    lanes = batch(3)
    first = draws(lanes)
    assert first.shape == (3, 2)
    assert len(np.unique(first)) == 6
    assert_same(draws(lanes), first)
    assert first[1, 1] == randomness.uniform(lanes.records["key"][1], 0, randomness.POLICY, 1)
    twin = batch(3)
    twin.records["sensitive"] ^= 1
    lanes.advance(actions(3, 0))
    twin.advance(actions(3, 5))
    assert_same(draws(twin), draws(lanes))
    assert (draws(lanes) != first).all()
    assert (draws(lanes, site=randomness.KEYS) != draws(lanes)).all()


# ------------------------------------------------------------------------------------------------- the rules


def test_every_lane_begins_with_the_clock() -> None:
    names = Harvest(**SMALL).dtype.names or ()
    assert names[: len(CLOCK)] == tuple(name for name, _ in CLOCK)


def test_an_unknown_variant_is_refused() -> None:
    class Varied(Harvest):
        variants = {"other": Harvest}  # noqa: RUF012

    assert type(variant_of(Varied, {})) is Varied
    assert type(variant_of(Varied, {"variant": None})) is Varied
    assert type(variant_of(Varied, {"variant": "other"})) is Harvest
    with pytest.raises(ValueError, match="variant must be one of 'other' or None, got 'bare'"):
        variant_of(Varied, {"variant": "bare"})
    with pytest.raises(ValueError, match="variant must be one of 'other' or None, got"):
        variant_of(Varied, {"variant": ["other"]})


def test_choosing_a_variant_leaves_the_keywords_as_they_came() -> None:
    given = {"variant": None, "horizon": 3}
    variant_of(Harvest, given)
    assert given == {"variant": None, "horizon": 3}


def test_batches_of_equal_layout_share_one_layout() -> None:
    """Numba finds what it compiled by the layout, much faster if that is the very same object."""
    one, other = (Lanes(Harvest(), 2) for _ in range(2))
    assert one.records.dtype is other.records.dtype
    assert one.blank_step().facts.dtype is other.blank_step().facts.dtype
