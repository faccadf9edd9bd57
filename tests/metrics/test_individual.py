"""Individual notions on histories: worked cases of the FAReL study, and agreement with comparing everybody anew."""

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fair_envs.core.interactions import FairSpec, columns, facts_dtype
from fair_envs.metrics.distances import RAW, Distance
from fair_envs.metrics.group import GroupNotion
from fair_envs.metrics.history import Discounted, Full, History, Memory, SlidingWindow
from fair_envs.metrics.individual import (
    HEOM,
    HMOM,
    BrayCurtis,
    Consistency,
    Given,
    IndividualFairness,
    Minkowski,
    hellinger,
    total_variation,
)

GENDER = {"gender": ("man", "woman")}
SIMILARITY: dict[str, Any] = {"scaling": "similarity"}


def spec_of(
    features: int, *, nominal: tuple[int, ...] = (), sensitive: tuple[int, ...] = (), people: int = 1
) -> FairSpec:
    names = tuple(f"x{c}" for c in range(features))
    return FairSpec(
        individuals=people,
        actions=2,
        features=names,
        nominal_features=tuple(names[c] for c in nominal),
        sensitive_features=tuple(names[c] for c in sensitive),
        sensitive=GENDER,
        groups=GENDER["gender"],
        feedback="full",
    )


def told(
    memory: Memory, features: Any, action: Any, probs: Any = None, *, spec: FairSpec | None = None, **settings: Any
) -> History:
    """Return a history that was told of these people."""
    features = np.asarray(features, float)
    history = History(memory, spec or spec_of(features.shape[1]), **settings)
    add(history, features, action, probs)
    return history


def add(history: History, features: Any, action: Any, probs: Any = None) -> None:
    people = len(action)
    history.add_rows(action=action, features=features, action_probs=probs, sensitive=np.zeros((people, 1), int))


def steps(memory: Memory, features: Any, action: Any, probs: Any, *notions: Any, **settings: Any) -> list[list[float]]:
    """Return minus the gap of each notion after each person."""
    history = told(memory, np.zeros((0, len(features[0]))), [], **settings)
    values: list[list[float]] = [[] for _ in notions]
    for n in range(len(action)):
        add(history, [features[n]], [action[n]], [probs[n]])
        for told_so_far, notion in zip(values, notions, strict=True):
            told_so_far.append(-float(notion.gap(history)[0]))
    return values


# ------------------------------------------------------------------------------- distances: cases of the FAReL study

APPLICANTS = [1, 1, 10 / 47, 1, 1, 0, 0], [1, 0, 20 / 47, 1, 1, 0, 0]  # D3: degree, extra degree, experience, languages
TRANSACTIONS = (  # D4: month, day, weekday, hour, amount, merchant, currency
    [1 / 11, 5 / 30, 1 / 6, 14 / 23, 25 / 8000, 3 / 6, 0],
    [1 / 11, 6 / 30, 2 / 6, 20 / 23, 120 / 8000, 0, 1 / 4],
)


def test_hellinger_of_the_studys_cases() -> None:  # D1
    p = np.array([[0, 1], [0.5, 0.5], [0.9, 0.1]])
    q = np.array([[1, 0], [0, 1], [0.6, 0.4]])
    assert hellinger(p, q) == pytest.approx(np.array([1, 0.541196100146197, 0.2552510081567682]), abs=1e-15)
    assert hellinger((0.2, 0.3, 0.5), (0.5, 0.3, 0.2)) == pytest.approx(0.25989318568658965, abs=1e-15)
    assert total_variation((0.2, 0.3, 0.5), (0.5, 0.3, 0.2)) == pytest.approx(0.3)


@pytest.mark.parametrize("between", [hellinger, total_variation])
@pytest.mark.parametrize(
    "odd", [np.log([0.9, 0.1]), [0.9, 0.2], [math.nan, 1], [1.5, -0.5], [0, 0], [math.inf, 0]], ids=str
)
def test_what_is_no_distribution_is_refused(between: Callable[..., Any], odd: Any) -> None:  # D2
    with pytest.raises(ValueError, match="q must be distributions: at least 0 and summing to 1, got"):
        between([0.5, 0.5], odd)


@pytest.mark.parametrize(
    ("distance", "applicants", "transactions"),
    [
        (HEOM(variant="code", scaling="raw"), 1.045269352648257, 2.0970828345705996),
        (HEOM(variant="code", **SIMILARITY), 0.9007505351259236, 0.8108207412973056),
        (HEOM(variant="code"), 1 - 0.9007505351259236, 1 - 0.8108207412973056),
        (HEOM(scaling="raw"), math.sqrt(1.045269352648257), math.sqrt(2.0970828345705996)),
        (HEOM(variant="paper", scaling="raw"), 1.2127659574468086, 2.472744565217391),
        (HMOM(scaling="raw"), 1.2127659574468086, 2.472744565217391),
        (HMOM(**SIMILARITY), 0.8857889202599901, 0.7809263337912008),
        (BrayCurtis(), 0.15877437325905294, 0.37110547570771535),
    ],
)
def test_distances_of_the_studys_people(distance: Any, applicants: float, transactions: float) -> None:  # D3, D4
    u, v = APPLICANTS
    assert distance([u], v, nominal=[3, 4, 5, 6]) == pytest.approx([applicants], abs=1e-12)
    u, v = TRANSACTIONS
    assert distance([u], v, nominal=[5, 6]) == pytest.approx([transactions], abs=1e-12)


HIRING = (  # D3: all features as the environment scales them
    [22 / 47, 0, 1, 1, 0, 0, 10 / 47, 1, 1, 0, 0],
    [23 / 47, 1, 1, 0, 1, 1, 20 / 47, 1, 1, 0, 0],
)
FRAUD = (  # D4: month, day, weekday, hour, card, merchant, country, continent, amount, currency
    [1 / 11, 5 / 30, 1 / 6, 14 / 23, 37 / 10_000, 3 / 6, 118 / 124, 2 / 5, 25 / 8000, 0],
    [1 / 11, 6 / 30, 2 / 6, 20 / 23, 40 / 10_000, 0, 37 / 124, 1 / 5, 120 / 8000, 1 / 4],
)


@pytest.mark.parametrize(
    ("distance", "applicants", "transactions"),
    [
        (HEOM(variant="code", **SIMILARITY), 0.9007505351259236, 0.8108207412973056),
        (HMOM(**SIMILARITY), 0.8857889202599901, 0.7809263337912008),
        (BrayCurtis(), 0.15877437325905294, 0.37110547570771535),
    ],
)
def test_distances_between_people_of_the_studys_environments(
    distance: Any, applicants: float, transactions: float
) -> None:  # D3, D4: nominal and left out is what the environments say
    for name, (u, v), expected in (
        ("FairHiring-v0", HIRING, applicants),
        ("FairFraud-v0", FRAUD, transactions),
    ):
        history = History(SlidingWindow(2), gym.make(name).unwrapped.fair_spec)  # type: ignore[attr-defined]
        codes = {"sensitive": history.spec.sensitive, "legitimate": history.spec.legitimate}
        people: dict[str, Any] = {kind: np.zeros((2, len(codes[kind])), int) for kind in codes}
        history.add_rows(**people, features=[u, v], action=[1, 1], action_probs=[(0, 1)] * 2)  # treated alike
        gap = IndividualFairness(distance=distance, form="paper").gap(history)[0]
        assert 1 - gap == pytest.approx(expected, abs=1e-6)  # features are single precision


def test_distances_agree_with_scipy() -> None:
    spatial = pytest.importorskip("scipy.spatial.distance")
    rng = np.random.default_rng(0)
    rows, row = rng.random((40, 6)), rng.random(6)
    for ours, theirs in (
        (BrayCurtis(), spatial.braycurtis),
        (Minkowski(1, scaling="raw"), spatial.cityblock),
        (Minkowski(2, scaling="raw"), spatial.euclidean),
        (Minkowski(3.5, scaling="raw"), lambda u, v: spatial.minkowski(u, v, 3.5)),
    ):
        assert ours(rows, row) == pytest.approx(np.array([theirs(u, row) for u in rows]), abs=1e-12)


@given(rows=st.lists(st.lists(st.sampled_from([0, 0.25, 0.5, 1]), min_size=3, max_size=3), min_size=2, max_size=8))
def test_distances_are_symmetric_bounded_and_zero_of_the_same(rows: list[list[float]]) -> None:
    for distance in (BrayCurtis(), HEOM(), HMOM(), Minkowski(3)):
        apart = np.array([distance(rows, row, nominal=[2]) for row in rows])
        assert np.array_equal(apart, apart.T)
        assert (np.diag(apart) == 0).all()
        assert (apart >= 0).all()
        assert (apart <= 1).all()


# ------------------------------------------------------------------------------------ notions: cases of the study

PEOPLE = [(1, 0), (0, 1), (1, 1), (1, 0), (0, 1)]  # I2, I3, H1
ACTIONS = [1, 0, 1, 0, 1]
PROBS = [(0, 1), (1, 0), (0.5, 0.5), (1, 0), (0, 1)]
PUBLISHED: dict[str, Any] = {"form": "paper", "undefined": "paper"}
CSC = Consistency(k=2, distance=BrayCurtis(), ties="first", undefined="paper")


def fairness(**options: Any) -> IndividualFairness:
    return IndividualFairness(**{"distance": BrayCurtis(), **options})


@pytest.mark.nojit
def test_the_published_values_in_a_window() -> None:  # I1, I2
    published, sound, csc = steps(
        SlidingWindow(10), PEOPLE[:3], ACTIONS[:3], PROBS[:3], fairness(**PUBLISHED), fairness(form="paper"), CSC
    )
    assert published == pytest.approx([0, 0, -1.1385751778752424], abs=1e-12)
    assert sound == pytest.approx([math.nan, -1, -1.1385751778752424], abs=1e-12, nan_ok=True)
    assert csc == pytest.approx([0, -1, -2 / 3])


def test_the_published_values_over_everything() -> None:  # I7
    published, csc = steps(Full(), PEOPLE[:4], ACTIONS[:4], PROBS[:4], fairness(**PUBLISHED), CSC)
    assert published == pytest.approx([0, 0, -1.1385751778752424, -1.1039313834064317], abs=1e-12)
    assert csc == pytest.approx([0, -1, -2 / 3, -0.75])  # the published code raises a TypeError


def test_log_probabilities_are_no_probabilities() -> None:  # I4
    with np.errstate(divide="ignore"):
        logs = np.log(PROBS[:4])
    with pytest.raises(ValueError, match="action_probs must be distributions: at least 0 and summing to 1, got"):
        told(SlidingWindow(10), PEOPLE[:4], ACTIONS[:4], logs)
    published, csc = steps(SlidingWindow(10), PEOPLE[:4], ACTIONS[:4], logs, fairness(**PUBLISHED), CSC, scores=True)
    assert published == [0, 0, -1, -1]
    assert csc == pytest.approx([0, -1, -2 / 3, -0.75])
    assert np.isnan(fairness().gap(told(SlidingWindow(10), PEOPLE[:4], ACTIONS[:4], logs, scores=True)))


def test_the_same_people_treated_the_same_are_fair_and_the_published_form_says_minus_one() -> None:  # I5
    history = told(SlidingWindow(10), [(1, 0)] * 3, [1] * 3, [(0.3, 0.7)] * 3)
    assert -fairness(**PUBLISHED).gap(history) == -1
    assert -IndividualFairness(distance=HMOM(**SIMILARITY), **PUBLISHED).gap(history) == 0
    for distance in (BrayCurtis(), HMOM(), HMOM(**SIMILARITY)):
        assert IndividualFairness(distance=distance).gap(history) == 0
        assert Consistency(distance=distance, k=2).gap(history) == 0


def test_neighbours_by_a_similarity_are_the_farthest() -> None:  # I6
    features = [(0, 0), (0.1, 0), (0.2, 0), (10, 0), (10.1, 0), (10.2, 0)]
    history = told(SlidingWindow(10), features, [1, 1, 1, 0, 0, 0])
    for distance, expected in (
        (Minkowski(1, **SIMILARITY), -1),
        (Minkowski(1), 0),
        (Minkowski(1, scaling="raw"), 0),
    ):
        for ties in ("shared", "first"):
            assert -Consistency(k=2, distance=distance, ties=ties).gap(history) == expected


def test_bray_curtis_of_nothing_and_nothing() -> None:  # I8
    history = told(SlidingWindow(10), np.zeros((3, 2)), [1, 0, 1], PROBS[:3])
    code = BrayCurtis(variant="code")
    assert np.isnan(code([[0, 0]], [0, 0]))
    assert BrayCurtis()([[0, 0]], [0, 0]) == 0
    assert -fairness(distance=code, **PUBLISHED).gap(history) == -1
    assert np.isnan(fairness(distance=code).gap(history))
    assert fairness().gap(history) == pytest.approx((1 + 2 * math.sqrt(1 - math.sqrt(0.5))) / 3)


def test_bray_curtis_of_opposites_is_infinite() -> None:
    spatial = pytest.importorskip("scipy.spatial.distance")
    rows, row = [[-1, 2], [0, 0], [1, -2], [1, 2]], [1.0, -2.0]
    with np.errstate(divide="ignore"):
        expected = [float(spatial.braycurtis(other, row)) for other in rows]
    for variant in ("sound", "code"):
        assert BrayCurtis(variant=variant)(rows, row).tolist() == expected == [math.inf, 1, 0, 2]
    history = told(SlidingWindow(10), [(1, -2), (-1, 2), (0, 0)], [1, 0, 0], PROBS[:3])
    assert fairness().gap(history) == 0
    assert Consistency(k=1, distance=BrayCurtis()).gap(history) == 0.5  # (1, 0 and, of two as near, 1/2) / 3


def step_of(history: History, features: Any, action: Any, probs: Any, *, first: int = 0) -> None:
    """Add the people of one step."""
    people = {"features": features, "action": action, "action_probs": probs}
    shown = {f"fair_{name}": np.asarray(value) for name, value in people.items()}
    none = np.full(history.spec.late_rows, -1)
    m = len(action)
    shown |= {
        "fair_individual": first + np.arange(m),
        "fair_sensitive": np.zeros((m, 1), int),
        "fair_outcome": np.zeros(m),
    }
    shown |= {"fair_legitimate": np.zeros((m, 0), int), "fair_feedback": np.full(m, -1), "fair_decided": np.int8(1)}
    history.add(shown | {"fair_late_count": np.int64(0), "fair_late_individual": none, "fair_late_feedback": none})


def test_individual_fairness_of_the_current_step() -> None:  # I9
    history = History(SlidingWindow(10), spec_of(2, people=3))
    now = IndividualFairness(distance=lambda u, v: 0.25, form="paper", current_step=True)
    step_of(history, np.ones((3, 2)), [0, 0, 0], [(1, 0)] * 3)
    step_of(history, np.zeros((3, 2)), [1, 0, 1], PROBS[:3])
    assert -now.gap(history) == pytest.approx(-1.444130733430798, abs=1e-12)
    assert Consistency(k=5, distance=BrayCurtis(), current_step=True).gap(history) == pytest.approx(2 / 3)
    history.begin()
    assert np.isnan(now.gap(history))
    step_of(history, np.zeros((3, 2)), [1, -1, -1], PROBS[:3])
    assert np.isnan(now.gap(history))
    assert IndividualFairness(form="paper", undefined="paper", current_step=True).gap(history) == 0


def discounted(**options: Any) -> Discounted:
    return Discounted(algorithm="paper", **options)


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        (0.5, [0, 0, -1.103931383406432, -0.9462269000626559, -1.127027246385639]),
        (1.0, [0, 0, -1.103931383406432, -1.0831451067251454, -1.0923834519168283]),
    ],
)
def test_the_published_discount(factor: float, expected: list[float]) -> None:  # H1, H2
    memory = discounted(factor=factor, threshold=0, delay=1, minimum=3)
    published, csc = steps(memory, PEOPLE, ACTIONS, PROBS, fairness(**PUBLISHED), CSC)
    assert published == pytest.approx(expected, abs=1e-12)
    assert csc == pytest.approx([0, -1, -2 / 3, -0.75, -0.7])


def test_the_numbers_of_the_discount_stand_in_the_studys_order() -> None:
    assert Discounted(0.9, 1e-3, 2, 7) == Discounted(factor=0.9, threshold=1e-3, delay=2, minimum=7)


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        (discounted(factor=1.0, threshold=1e-5, delay=2, minimum=4), [1, 2, 3, 4, 4, 4, 4, 4]),
        (discounted(factor=0.9, threshold=1e-5, delay=0, minimum=3), [1, 2, 3, 3, 3, 3, 3, 3]),
    ],
)
def test_the_published_discount_forgets_what_changes_little(memory: Memory, expected: list[int]) -> None:  # H3
    history, sizes = told(memory, np.zeros((0, 2)), []), []
    for _ in range(8):
        add(history, [[1, 0]], [1], [(0, 1)])
        sizes.append(fairness(form="paper").sizes(history)[0])
    assert sizes == expected


def test_the_published_discount_forgets_no_group_counts() -> None:  # H4
    rng = np.random.default_rng(0)
    probs = rng.random(60)
    history = told(
        discounted(factor=0.9, threshold=1e-3, delay=1, minimum=2),
        rng.random((60, 3)),
        rng.integers(0, 2, 60),
        np.stack([probs, 1 - probs], 1),
    )
    assert 2 <= fairness(form="paper").sizes(history)[0] < 60
    assert history.counts().sum() == 60
    with pytest.raises(
        ValueError, match="form must be 'paper' and between 'hellinger' on a history with algorithm='pap"
    ):
        fairness().gap(history)


@pytest.mark.parametrize("distance", [BrayCurtis(), lambda u, v: float(abs(u - v).max())], ids=["own", "given"])
def test_the_published_discount_knows_nothing_of_an_episode_that_is_forgotten(distance: Any) -> None:
    notion = IndividualFairness(distance=distance, form="paper")
    kept, fresh = (told(discounted(factor=0.9), np.zeros((0, 2)), [], keep=keep) for keep in (True, False))
    for history in (kept, fresh):
        add(history, PEOPLE, ACTIONS, PROBS)
    before = notion.gap(kept)[0]
    assert notion.gap(fresh)[0] == before > 0
    for history, expected in ((kept, before), (fresh, math.nan)):
        for _ in range(2):  # nothing new came the second time
            history.begin()
            assert notion.gap(history)[0] == pytest.approx(expected, nan_ok=True)
    for n in range(3):
        add(fresh, PEOPLE[n : n + 1], ACTIONS[n : n + 1], PROBS[n : n + 1])
        alone = told(fresh.memory, PEOPLE[: n + 1], ACTIONS[: n + 1], PROBS[: n + 1])
        assert notion.gap(fresh)[0] == pytest.approx(notion.gap(alone)[0], nan_ok=True)


def test_neighbours_are_among_those_whom_the_published_discount_remembers() -> None:
    rng = np.random.default_rng(1)
    features, action, p = rng.random((300, 2)), rng.integers(0, 2, 300), rng.random(300)
    history = told(discounted(factor=1.0, threshold=0.002, delay=0, minimum=2), np.zeros((0, 2)), [])
    notion, sizes = Consistency(k=3), []
    for n in range(300):
        add(history, features[n : n + 1], action[n : n + 1], [(1 - p[n], p[n])])
        now = notion.gap(history)
        sizes.append(notion.sizes(history)[0])
        if sizes[-1] > 1:
            kept = slice(n + 1 - sizes[-1], n + 1)
            assert now == pytest.approx(notion.gap(told(Full(), features[kept], action[kept])), abs=1e-12)
    assert max(sizes) > 10
    assert min(sizes[50:]) < 4


# ------------------------------------------------------------------------------------- everybody compared anew


class Unscaled(Distance):
    """A distance before root and scaling, which keep the order but may make equal what is almost equal."""

    def __init__(self, distance: Any) -> None:
        self.distance, self.overlap = distance, distance.overlap  # type: ignore[misc]

    @property
    def measure(self) -> Any:
        return self.distance.measure._replace(root=1.0, scaling=RAW)


def anew(history: History, lane: int, distance: Any, *, k: int = 2) -> tuple[float, float, float]:
    """Return the gap of both forms of individual fairness, and of consistency, by comparing everybody."""
    rows = history.columns(lane)
    weight, people, action = rows["weight"], rows["features"][:, :3].astype(float), rows["action"]
    n, roots = len(weight), np.sqrt(rows["action_probs"].astype(float))
    if n < 2:
        return math.nan, math.nan, math.nan
    apart = np.array([distance(people, person, nominal=[2]) for person in people])
    order = np.array([Unscaled(distance)(people, person, nominal=[2]) for person in people])
    treated = np.sqrt(0.5 * ((roots[:, None] - roots[None]) ** 2).sum(-1))
    known = roots.any(1)
    pairs = np.triu(weight[:, None] * weight * (known[:, None] & known), 1)
    score = np.zeros(n)
    for i in range(n):
        others = np.flatnonzero(np.arange(n) != i)
        edge = np.sort(order[i, others])[min(k, n - 1) - 1]
        nearer, tied = others[order[i, others] < edge], others[order[i, others] == edge]
        each = (min(k, n - 1) - len(nearer)) / len(tied)
        otherwise = (action[nearer] != action[i]).sum() + each * (action[tied] != action[i]).sum()
        score[i] = otherwise / min(k, n - 1)
    with np.errstate(invalid="ignore"):
        violation = (pairs * np.maximum(0, treated - apart)).sum() / pairs.sum()
        paper = 1 - (pairs * (apart - treated)).sum() / pairs.sum()
    return violation, paper, (weight * score).sum() / weight.sum()


DISTANCES = [BrayCurtis(), HEOM(scaling="raw"), HEOM(variant="code"), HMOM(), Minkowski(3)]
MEMORIES = [
    SlidingWindow(3),
    SlidingWindow(7),
    Full(),
    Discounted(0.8, threshold=0.02, minimum=3),
    Discounted(0.01, threshold=0),
]
VALUES = st.sampled_from([0, 0.25, 0.3, 1])
EVENT = st.one_of(
    st.tuples(
        st.just("step"),
        st.lists(
            st.tuples(
                st.tuples(VALUES, VALUES, st.integers(0, 2)), st.integers(-1, 1), st.sampled_from([None, 0.0, 0.2, 0.9])
            ),
            min_size=2,
            max_size=2,
        ),
    ),
    st.tuples(st.just("begin"), st.none()),
    st.tuples(st.just("late"), st.integers(0, 60)),
    st.tuples(st.just("look"), st.none()),
)


@settings(max_examples=150, deadline=None)
@given(
    memory=st.sampled_from(MEMORIES),
    distance=st.sampled_from(DISTANCES),
    keep=st.booleans(),
    events=st.lists(EVENT, max_size=40),
)
def test_incremental_is_as_comparing_everybody_anew(
    memory: Memory, distance: Any, keep: bool, events: list[Any]
) -> None:
    history = History(memory, spec_of(4, nominal=(2,), sensitive=(3,), people=2), keep=keep)
    decided: list[int] = []  # in this episode
    for time, (kind, what) in enumerate(events):
        if kind == "step":
            features, action, chosen = zip(*what, strict=True)
            probs = [(0, 0) if p is None else (1 - p, p) for p in chosen]
            step_of(history, [(*row, 0.5) for row in features], action, probs, first=2 * time)
            decided += [2 * time + m for m in range(2) if action[m] >= 0]
        elif kind == "begin":
            history.begin()
            decided = []
        elif kind == "late" and decided:
            history.add_feedback([decided[what % len(decided)]], [what % 2])
        else:
            same_as_anew(history, distance)
    same_as_anew(history, distance)
    assert history.counts()[0].sum(0) == pytest.approx(counted(history), rel=1e-9, abs=1e-12)


def counted(history: History) -> Any:
    """Return the weight of each decision and correct decision (0, 1, unknown), row by row."""
    rows, counts = history.columns(), np.zeros((2, 3))
    np.add.at(counts, (rows["action"], np.where(rows["feedback"] < 0, 2, rows["feedback"])), rows["weight"])
    return counts


def same_as_anew(history: History, distance: Any) -> None:
    """Compare the notions with comparing everybody anew, in each lane."""
    options: dict[str, Any] = {"distance": distance}
    for lane in range(history.lanes):
        violation, paper, csc = anew(history, lane, distance)
        assert IndividualFairness(**options).gap(history)[lane] == pytest.approx(violation, abs=1e-9, nan_ok=True)
        equation = IndividualFairness(form="paper", **options)
        assert equation.gap(history)[lane] == pytest.approx(paper, abs=1e-9, nan_ok=True)
        assert Consistency(k=2, **options).gap(history)[lane] == pytest.approx(csc, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("distance", [HEOM(), BrayCurtis(), HMOM()], ids=str)
@pytest.mark.parametrize("digits", [0, 1, 6])
def test_a_long_window_does_not_drift(distance: Any, digits: int) -> None:
    rng = np.random.default_rng(digits)
    features, p = np.round(rng.random((400, 3)), digits), rng.random(400)
    history = History(SlidingWindow(40), spec_of(3, nominal=(2,)))
    for n in range(400):
        add(history, features[n : n + 1], [int(p[n] > 0.5)], [(1 - p[n], p[n])])
        fairness, *consistency = (
            notion.gap(history)[0]
            for notion in (
                IndividualFairness(distance=distance),
                *(Consistency(distance=distance, k=k) for k in (1, 5)),
            )
        )
        if n % 10 == 3:
            for k, gap in zip((1, 5), consistency, strict=True):
                violation, _, expected = anew(history, 0, distance, k=k)
                assert (fairness, gap) == pytest.approx((violation, expected), abs=1e-12)


def test_a_short_list_of_neighbours_does_not_drift() -> None:
    rng = np.random.default_rng(0)
    history = History(SlidingWindow(12), spec_of(3, nominal=(2,)))
    for n in range(600):
        add(history, [[rng.random(), 0, 0]], [n % 2])
        gap = Consistency(k=1).gap(history)[0]
        assert gap == pytest.approx(anew(history, 0, HEOM(), k=1)[2], abs=1e-12, nan_ok=True)
        pool: Any = next(iter(history._followers.values()))._pool  # type: ignore[attr-defined]
        features = pool.features[0, :, : len(history)].astype(float)
        for i in range(len(history)):
            apart = ((features - features[:, i : i + 1]) ** 2).sum(0)
            assert pool.heads["held"][0, i] == (apart <= pool.cut[0, i]).sum() - 1


def test_neighbours_agree_with_scikit_learn() -> None:
    neighbors = pytest.importorskip("sklearn.neighbors")
    rng = np.random.default_rng(3)
    features, action = rng.random((80, 4)).astype(np.float32), rng.integers(0, 2, 80)
    near = neighbors.NearestNeighbors(n_neighbors=6).fit(features.astype(float))
    chosen = near.kneighbors(features.astype(float), return_distance=False)[:, 1:]
    expected = abs(action - action[chosen].mean(1)).mean()
    history = told(SlidingWindow(80), features, action)
    assert Consistency(distance=Minkowski(2)).gap(history) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(order=st.permutations(range(9)), levels=st.integers(1, 5))
def test_no_order_within_the_window_matters(order: list[int], levels: int) -> None:
    rng = np.random.default_rng(levels)
    features, p = rng.integers(0, levels, (9, 2)), rng.random(9)
    probs, action = np.stack([1 - p, p], 1), (p > 0.5).astype(int)
    one = told(SlidingWindow(9), features, action, probs)
    other = told(SlidingWindow(9), features[order], action[order], probs[order])
    for notion in (IndividualFairness(), Consistency(k=3)):
        assert notion.gap(one) == pytest.approx(notion.gap(other), abs=1e-12)
        assert 0 <= notion.gap(one)[0] <= 1


@given(group=st.lists(st.integers(0, 1), min_size=12, max_size=12))
def test_the_names_of_groups_do_not_matter(group: list[int]) -> None:
    one, other = (random_history(SlidingWindow(20), 0) for _ in range(2))
    rng = np.random.default_rng(5)
    p, features, truth = rng.random(12), rng.random((12, 3)), rng.integers(0, 2, 12)
    for history, codes in ((one, np.array(group)), (other, 1 - np.array(group))):
        probs = np.stack([1 - p, p], 1)
        history.add_rows(
            action=(p > 0.5).astype(int),
            features=features,
            action_probs=probs,
            feedback=truth,
            sensitive=codes[:, np.newaxis],
        )
    notions: list[Any] = [GroupNotion(name=name) for name in ("SP", "EO", "OAE", "PP", "PE", "EqOdds", "CUAE", "TE")]
    for notion in (*notions, IndividualFairness(), Consistency()):
        assert np.array_equal(notion.gap(one), notion.gap(other), equal_nan=True)


def test_notions_of_one_distance_share_the_comparison() -> None:
    notions = [
        *(Consistency(k=k) for k in (2, 7, 1)),
        *(IndividualFairness(lipschitz=slope) for slope in (1, 0.5)),
        IndividualFairness(between="total_variation"),
        IndividualFairness(form="paper"),
    ]
    history = random_history(SlidingWindow(9), 5)
    for n in range(30):
        add(
            history, np.random.default_rng(n).integers(0, 3, (1, 3)) / 2, [n % 2], [(0.2, 0.8) if n % 3 else (0.6, 0.4)]
        )
        for notion in notions:
            alone = notion.gap(bare(history))
            assert notion.gap(history) == pytest.approx(alone, abs=1e-12)
            assert 0 < alone[0] < 2
    assert len(history._followers) == 1


def test_a_treatment_of_opposites_by_total_variation() -> None:
    history = told(SlidingWindow(9), [(1, 0)] * 2, [1, 0], [(0.1, 0.9), (0.8, 0.2)])
    assert fairness(between="total_variation").gap(history) == pytest.approx(0.7)


# ----------------------------------------------------------------------------------------------- lanes and copies


def random_history(memory: Memory, people: int = 12, **settings: Any) -> History:
    rng = np.random.default_rng(1)
    p = rng.random(people)
    return told(memory, rng.random((people, 3)), rng.integers(0, 2, people), np.stack([1 - p, p], 1), **settings)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))])
@pytest.mark.parametrize(
    "memory", [SlidingWindow(8), Full(), discounted(factor=0.9, threshold=0.05, minimum=4, delay=1)]
)
def test_evaluation_on_a_copy_leaves_the_original_alone(copied: Any, memory: Memory) -> None:
    notions = IndividualFairness(form="paper"), Consistency(k=3)
    history = random_history(memory)
    before = [notion.gap(history) for notion in notions]
    other = copied(history)
    add(other, np.ones((5, 3)), [1] * 5, [(0, 1)] * 5)
    assert [notion.gap(other) for notion in notions] != before
    assert [notion.gap(history) for notion in notions] == before
    add(history, np.ones((5, 3)), [1] * 5, [(0, 1)] * 5)
    for notion in notions:
        assert notion.gap(history) == notion.gap(other)


def test_a_history_that_grows_keeps_its_comparisons() -> None:
    history = random_history(Full(), 10)
    notions = IndividualFairness(), Consistency(), IndividualFairness(distance=lambda u, v: abs(u - v).max())
    for _ in range(3):
        add(history, np.random.default_rng(2).random((50, 3)), [1, 0] * 25, [(0.2, 0.8)] * 50)
        for notion in notions:
            assert notion.gap(history) == pytest.approx(notion.gap(bare(history)), abs=1e-12)


def bare(history: History) -> History:
    """Return a copy that nothing is kept beside."""
    other = copy.deepcopy(history)
    other._followers.clear()
    return other


def test_lanes_are_compared_each_for_itself() -> None:
    rng = np.random.default_rng(0)
    history = History(SlidingWindow(4), spec_of(3, nominal=(2,)), lanes=2)
    for _ in range(9):
        facts = np.zeros(2, facts_dtype(history.spec))
        facts["decided"] = 1, rng.integers(0, 2)
        facts["features"], facts["action"] = rng.random((2, 1, 3)), rng.integers(0, 2, (2, 1))
        p = rng.random((2, 1, 1))
        info = columns(history.spec, facts, np.concatenate([1 - p, p], -1).astype(np.float32))
        history.add({name: np.ascontiguousarray(value) for name, value in info.items()})
        same_as_anew(history, HEOM())


def test_a_distance_of_ones_own() -> None:
    def furthest(u: Any, v: Any) -> float:
        return float(abs(u - v).max())

    def furthest_of_many(rows: Any, row: Any) -> Any:
        assert len(rows) > 0
        return abs(rows - row).max(1)

    together = Given(furthest_of_many, vectorised=True)
    history = random_history(SlidingWindow(6), 5)
    for n in range(10):
        add(history, np.random.default_rng(n).random((1, 3)), [n % 2], [(0.4, 0.6)])
        rows = history.columns()
        apart = np.array([[furthest(u, v) for u in rows["features"]] for v in rows["features"]], float)
        treated = [[hellinger(p, q) for p in rows["action_probs"]] for q in rows["action_probs"]]
        above = np.maximum(0, np.array(treated) - apart)
        pairs = len(apart) * (len(apart) - 1)
        near = np.argsort(apart + np.diag([math.inf] * len(apart)), axis=1)[:, :2]  # no two are as far
        otherwise = (rows["action"][near] != rows["action"][:, np.newaxis]).mean()
        for distance in (furthest, together):
            assert IndividualFairness(distance=distance).gap(history) == pytest.approx(above.sum() / pairs, abs=1e-7)
            assert Consistency(k=2, distance=distance).gap(history)[0] == pytest.approx(otherwise, abs=1e-12)
    assert together(np.zeros((0, 3)), np.zeros(3)).shape == (0,)
    with pytest.raises(ValueError, match="distance must return numbers of at least 0, one for each person, got"):
        IndividualFairness(distance=lambda u, v: -1.0).gap(history)


def test_neighbours_of_the_first_kind_count_by_their_weights_too() -> None:
    features, action = (
        [(0.0, 0.0), (0.1, 0.0), (0.4, 0.0), (0.9, 0.0)],
        [0, 1, 1, 0],
    )  # no ties: both kinds are the same
    history = told(Discounted(0.5, threshold=0), features, action)
    first, shared = (Consistency(k=1, ties=ties).gap(history)[0] for ties in ("first", "shared"))
    assert first == pytest.approx(shared) == pytest.approx((0.125 * 1 + 0.25 * 1 + 0.5 * 0 + 1 * 1) / 1.875)


def test_the_published_discount_forgets_once_a_step_with_a_distance_of_ones_own_too() -> None:
    rng = np.random.default_rng(3)
    memory = discounted(factor=0.9, threshold=0.05, delay=1, minimum=4)
    histories = [History(memory, spec_of(2, people=3)) for _ in range(2)]
    own, known = (
        fairness(distance=d, **PUBLISHED) for d in (lambda u, v: float(abs(u - v).sum()), Minkowski(1.0, scaling="raw"))
    )
    sizes = []
    for t in range(30):
        features, p = rng.random((3, 2)).astype(np.float32), rng.random(3)
        for history in histories:
            step_of(history, features, rng.integers(0, 2, 3), np.stack([p, 1 - p], 1), first=3 * t)
        found = own.gap(histories[0]), known.gap(histories[1])
        assert found[0] == pytest.approx(found[1], abs=1e-6)
        sizes.append((int(own.sizes(histories[0])[0]), int(known.sizes(histories[1])[0])))
        assert sizes[-1][0] == sizes[-1][1]
    assert min(one for one, _ in sizes[5:]) < 3 * 6  # some were forgotten


# --------------------------------------------------------------------------------------------- undefined, bad input


def test_people_whose_probabilities_are_not_known_are_in_no_pair() -> None:
    history = told(SlidingWindow(9), PEOPLE[:4], ACTIONS[:4], [PROBS[0], (0, 0), PROBS[2], PROBS[3]])
    alone = told(SlidingWindow(9), [PEOPLE[n] for n in (0, 2, 3)], [1, 1, 0], [PROBS[n] for n in (0, 2, 3)])
    assert fairness().gap(history) == pytest.approx(fairness().gap(alone))
    assert [int(count[0]) for count in fairness().pairs(history)] == [3, 3]
    unknown = told(SlidingWindow(9), PEOPLE, ACTIONS)
    assert np.isnan(fairness().gap(unknown))
    assert fairness().pairs(unknown).left_out == 10
    assert Consistency(k=2).gap(unknown)[0] > 0


def test_what_is_undefined_is_what_one_says() -> None:
    history = told(SlidingWindow(9), PEOPLE[:1], [1], PROBS[:1])
    last = np.array([0.4])
    for notion, worst in ((fairness, 1.0), (Consistency, 1.0), (lambda **o: fairness(form="paper", **o), 2.0)):
        got = [notion(undefined=u).gap(history, last=last)[0] for u in ("fair", "unfair", "last", "paper")]
        assert got == [0, worst, 0.4, 0]
        assert np.isnan(notion().gap(history)[0])


def test_sensitive_features_make_nobody_differ_unless_asked() -> None:
    spec = spec_of(2, sensitive=(1,))
    history = told(SlidingWindow(9), [(0.5, 0), (0.5, 1)], [1, 0], [(0, 1), (1, 0)], spec=spec)
    assert fairness().gap(history) == 1
    assert fairness(exclude=()).gap(history)[0] == pytest.approx(0.5)
    assert fairness(exclude=("x0",)).gap(history) == 0


ODD: Any = "odd"


@pytest.mark.parametrize(
    ("memory", "fits"),
    [
        (SlidingWindow(2), False),
        (SlidingWindow(3), True),
        (Full(), True),
        (Discounted(0.9, threshold=0.4, minimum=2), False),
        (Discounted(0.9, threshold=0.4, minimum=3), True),
        (Discounted(0.9, threshold=0.3, minimum=1), True),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [IndividualFairness, Consistency])
def test_the_people_of_a_step_must_have_room_in_the_history(kind: Any, memory: Memory, fits: bool) -> None:
    history = History(memory, spec_of(2, people=3))
    step_of(history, [[0.0, 0.0], [0.1, 0.0], [0.2, 0.0]], [1, 0, 1], [(0.5, 0.5)] * 3)
    now = kind(current_step=True)
    if fits:
        assert now.sizes(history) == 3
        return
    for ask in (now.gap, now.sizes):
        with pytest.raises(ValueError, match="history must hold the 3 people of a step for current_step=True, got"):
            ask(history)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Consistency(k=0), "k must be at least 1, got 0"),
        (lambda: Consistency(ties=ODD), "ties must be one of 'shared', 'first', got 'odd'"),
        (lambda: IndividualFairness(form=ODD), "form must be one of 'violation', 'paper', got 'odd'"),
        (lambda: IndividualFairness(lipschitz=-1), "lipschitz must be at least 0, got -1"),
        (lambda: IndividualFairness(undefined=ODD), "undefined must be one of"),
        (lambda: IndividualFairness(distance=ODD), "distance must be a Distance or a function of two people"),
        (lambda: IndividualFairness(distance=HEOM), r"distance must be an instance, such as HEOM\(\), got the class"),
        (
            lambda: hellinger([[0.5, 0.5]] * 2, [[0.2, 0.8]] * 3),
            r"q must have the shape of p, \(2, 2\), or one that fits it, got \(3, 2\)",
        ),
        (lambda: hellinger([0.5, 0.5], [0.2, 0.3, 0.5]), "q must have as many actions as p, 2, got 3"),
        (lambda: total_variation([0.5, 0.5], [[1.0]] * 4), "q must have as many actions as p, 2, got 1"),
        (lambda: IndividualFairness(exclude="x0"), "exclude must be a list of names or None, got 'x0'"),
        (lambda: Minkowski(0.5), "p must be at least 1, got 0.5"),
        (lambda: HEOM(scaling=ODD), "scaling must be one of"),
        (lambda: HEOM(rate=0), "rate must be at least 1e-12, got 0"),
        (lambda: BrayCurtis(variant=ODD), "variant must be one of 'sound', 'code', got 'odd'"),
        (lambda: BrayCurtis()([[1, 2]], [1]), r"rows must have as many columns as row, \(1,\), got \(1, 2\)"),
        (lambda: Discounted(algorithm=ODD), "algorithm must be one of 'weights', 'paper', got 'odd'"),
        (lambda: Discounted(delay=-1), "delay must be at least 0, got -1"),
        (
            lambda: fairness(exclude=("age",)).check(spec_of(2)),
            r"exclude must be one of the features \(x0, x1\), got 'age'",
        ),
        (
            lambda: fairness(exclude=("x0",)).check(spec_of(1)),
            "individual_fairness needs features that are not excluded",
        ),
        (lambda: Consistency(k=9).gap(random_history(SlidingWindow(9))), "k must be below the window's size, 9, got 9"),
    ],
)
def test_bad_settings_are_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
