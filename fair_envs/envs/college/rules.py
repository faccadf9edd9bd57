"""The rules of FairCollege on one lane, in the order in which they are applied."""

from collections import namedtuple
from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules, rule
from fair_envs.core.compilation import kernel, readable
from fair_envs.core.feedback import reveal_at_once
from fair_envs.core.interactions import FairSpec
from fair_envs.core.randomness import normal_of, random_words, to_unit_interval, uniform
from fair_envs.envs.college.params import (
    ALL_NOISY,
    BETA,
    LEVELS,
    NOISY_SCORES,
    NOISY_THRESHOLDS,
    PROFILES,
    PUBLISHED,
    THRESHOLD_EPSILON,
    CollegeParams,
)
from fair_envs.support.aliases import Facts, Flags, Floats, Floats32, Ints, Lane, Records
from fair_envs.support.parameters import encode

REJECT, ADMIT = range(2)
GROUPS = ("advantaged", "disadvantaged")
ADVANTAGED, DISADVANTAGED = range(2)

APPLICANT, LOTTERY = range(2)  # random streams

TOLERANCE = 1e-6  # points that a change may exceed `largest_change` by, as in G: 0.8 - 0.7 is more than 0.1
QUANTILES = 1024  # number of steps in the table of the beta distribution
EVERYBODY = len(GROUPS)  # the row of counts for all groups
COUNTED = ("applied", "admitted", "known", "known_qualified")  # quantities counted in a round
APPLIED, ADMITTED, KNOWN, KNOWN_QUALIFIED = range(4)
PUBLIC = ("threshold", "epsilon")
RATES = ("share", "score", "admitted", "known", "qualified")
OBSERVED = (*PUBLIC, *(f"{rate}_{of}" for of in (*GROUPS, "all") for rate in RATES))


# ------------------------------------------------------------------------------------------- the applicants


@rule
def start(lane: Lane, params: Any) -> None:
    """Draw the first applicants."""
    meet(lane, params, 0)


@rule
def meet(lane: Lane, params: Any, time: int) -> None:
    """Draw the applicants of the given round."""
    for i in range(params.applicants):
        group_word, merit_word, score_word, aim_word = random_words(lane.key, time, APPLICANT, i)
        group = int(to_unit_interval(group_word) < params.disadvantaged_share)
        lane.group[i] = group = 1 - group if lane.flipped[0] else group
        merit = clipped(mean_of(params, group) + spread_of(params, group) * normal_of(merit_word), 0.0, 1.0)
        lane.merit[i] = lane.score[i] = merit
        lane.qualified[i] = merit >= bar_of(params, group)
        if params.noise == NOISY_SCORES or params.noise == ALL_NOISY:
            lane.score[i] = clipped(merit + noise_of(params, score_word), 0.0, 1.0)
        if params.noise == NOISY_THRESHOLDS or params.noise == ALL_NOISY:
            lane.aim[i] = noise_of(params, aim_word)


@rule
def clipped(value: float, low: float, high: float) -> float:
    """Return the value, clipped to the bounds."""
    return min(high, max(low, value))


@rule
def mean_of(params: Any, group: int) -> float:
    """Return the mean of a group's true scores before they are clipped."""
    return params.disadvantaged_mean if group == DISADVANTAGED else params.advantaged_mean


@rule
def spread_of(params: Any, group: int) -> float:
    """Return the standard deviation of a group's true scores before they are clipped."""
    return params.disadvantaged_spread if group == DISADVANTAGED else params.advantaged_spread


@rule
def bar_of(params: Any, group: int) -> float:
    """Return the true score from which on a member of a group is qualified."""
    return (1.0 + params.qualified_above) * mean_of(params, group)


@rule
def noise_of(params: Any, word: int) -> float:
    """Return the noise for a random word; a larger word gives larger noise."""
    if params.noise_distribution == BETA:
        signed = 2.0 * to_unit_interval(word) - 1.0
        size = quantile(params.quantiles, abs(signed))
        return size if signed >= 0 else -size
    return clipped(params.noise_mean + params.noise_spread * normal_of(word), params.noise_low, params.noise_high)


@rule
def quantile(table: Floats, level: float) -> float:
    """Return the quantile at a level in [0, 1], interpolated from the table."""
    place = level * (table.shape[0] - 1)
    below = min(int(place), table.shape[0] - 2)  # the word 0 has the level 1, whose quantile is the last
    return table[below] + (place - below) * (table[below + 1] - table[below])


# -------------------------------------------------------------------------------------------------- a round


@rule
def step(lane: Lane, action: NDArray[Any], params: Any, reward: Floats, facts: Facts) -> Any:
    """Publish the threshold, let applicants respond, admit, and draw the next ones; it never terminates."""
    publish(lane, action.reshape(-1), params)
    clear(lane)
    total = 0.0
    for i in range(params.applicants):
        respond(lane, params, i)
        lane.admitted[i] = is_admitted(lane, i)
        facts.action[i] = lane.admitted[i]
        facts.outcome[i] = lane.admitted[i] - lane.paid[i]
        facts.features[i, 0] = lane.presented[i]  # the decision uses it; there is none before
        reveal_at_once(params, facts, i, lane.qualified[i], ADMIT)
        count(lane, params, i, facts.feedback[i])
        total += worth(params, lane.qualified[i], lane.admitted[i])
    reward[0] = total / params.applicants
    keep(lane, params)
    meet(lane, params, lane.time + 1)
    return False


@rule
def publish(lane: Lane, numbers: NDArray[Any], params: Any) -> None:
    """Set the threshold and the probability of admission below it."""
    lane.threshold = numbers[0] / (params.levels - 1) if params.action == LEVELS else numbers[0]
    lane.epsilon = numbers[1] if params.action == THRESHOLD_EPSILON else params.epsilon


@rule
def respond(lane: Lane, params: Any, i: int) -> None:
    """Set the score that an applicant presents, and its cost."""
    score, rate = lane.score[i], cost_of(params, lane.group[i])
    seen = clipped(lane.threshold + lane.aim[i], 0.0, 1.0)
    lane.presented[i], lane.paid[i] = score, 0.0
    if params.manipulation and is_worth_it(lane, params, score, seen, rate):
        lane.presented[i], lane.paid[i] = seen, rate * (seen - score)


@rule
def is_worth_it(lane: Lane, params: Any, score: float, seen: float, rate: float) -> bool:
    """Return whether an applicant with this score pays to present the threshold that they see.

    Applicants who reach it are certainly admitted, others with the probability epsilon. With
    ``noise_response="published"`` this differs if the applicant sees another threshold than the true one. Those who
    reach the true one keep their score. The others know whether what they see would suffice, and they receive money
    for presenting less than they have.
    """
    change, gain = seen - score, 1.0 - lane.epsilon
    if params.noise_response == PUBLISHED:
        gain = (seen >= lane.threshold) - lane.epsilon
        short = score < lane.threshold and gain - rate * change <= 1.0
    else:
        short = change > 0.0
    return short and rate * change <= gain and change <= params.largest_change + TOLERANCE


@rule
def cost_of(params: Any, group: int) -> float:
    """Return the cost for a member of a group to raise a score from 0 to 1."""
    if group == ADVANTAGED:
        return params.advantaged_cost
    return params.disadvantaged_cost * (params.subsidy_beta if params.subsidy else 1.0)


@rule
def is_admitted(lane: Lane, i: int) -> int:
    """Return whether an applicant reaches the threshold or wins the lottery."""
    if lane.presented[i] >= lane.threshold:
        return ADMIT
    return int(lane.epsilon > 0.0 and uniform(lane.key, lane.time, LOTTERY, i) < lane.epsilon)


@rule
def worth(params: Any, qualified: int, admitted: int) -> float:
    """Return the jury's reward for a decision."""
    if admitted == ADMIT:
        return params.true_admission if qualified else params.false_admission
    return params.false_rejection if qualified else params.true_rejection


# ------------------------------------------------------------------------------------------------- the counts


@rule
def clear(lane: Lane) -> None:
    """Reset the counts of a round."""
    lane.counts[:] = 0
    lane.presented_sum[:] = 0.0


@rule
def count(lane: Lane, params: Any, i: int, feedback: int) -> None:
    """Add an applicant to the counts of the round and of the episode."""
    group, admitted, qualified = lane.group[i], lane.admitted[i], lane.qualified[i]
    lane.presented_sum[group] += lane.presented[i]
    lane.counts[group, APPLIED] += 1
    lane.counts[group, ADMITTED] += admitted
    lane.counts[group, KNOWN] += feedback >= 0
    lane.counts[group, KNOWN_QUALIFIED] += feedback == ADMIT
    lane.tally[group, qualified, admitted] += 1
    lane.paid_sum[group] += lane.paid[i]
    if qualified and params.manipulation:
        lane.burden_sum[group] += cost_of(params, group) * max(0.0, lane.threshold - lane.score[i])


@rule
def keep(lane: Lane, params: Any) -> None:
    """Add up the counts of the groups, and store the round's applicants for pictures."""
    for group in range(len(GROUPS)):
        lane.presented_sum[EVERYBODY] += lane.presented_sum[group]
        for what in range(len(COUNTED)):
            lane.counts[EVERYBODY, what] += lane.counts[group, what]
    for i in range(params.applicants):
        lane.past_group[i], lane.past_score[i], lane.past_qualified[i] = lane.group[i], lane.score[i], lane.qualified[i]


@rule
def observe(lane: Lane, params: Any, observation: Floats32) -> None:
    """Write what was published in the last round and its results, for each group and for all."""
    observation[0, 0], observation[0, 1] = lane.threshold, lane.epsilon
    for row in range(EVERYBODY + 1):
        place = len(PUBLIC) + len(RATES) * row
        applied, known = lane.counts[row, APPLIED], lane.counts[row, KNOWN]
        observation[0, place] = applied / params.applicants
        observation[0, place + 1] = lane.presented_sum[row] / max(applied, 1)
        observation[0, place + 2] = lane.counts[row, ADMITTED] / max(applied, 1)
        observation[0, place + 3] = known / max(applied, 1)
        observation[0, place + 4] = lane.counts[row, KNOWN_QUALIFIED] / max(known, 1)


@rule
def describe(lane: Lane, params: Any, facts: Facts) -> None:
    """Write the applicants' records; they choose the presented scores in `step`."""
    for i in range(params.applicants):
        facts.individual[i] = lane.time * params.applicants + i
        facts.sensitive[i, 0] = facts.group[i] = lane.group[i]


@kernel
def meet_again(params: Any, lanes: Records, places: Ints) -> None:
    """Draw the applicants of these lanes again."""
    for b in places:
        meet(lanes[b], params, lanes[b].time)


# ------------------------------------------------------------------------------------------ the environment

Code = namedtuple("Code", (*CollegeParams._fields, "quantiles"))  # type: ignore[misc]
"""What compiled rules receive: the parameters as numbers, and the quantiles of the noise's beta distribution."""


def quantiles_of(params: CollegeParams) -> Floats:
    """Return the quantiles of the noise's magnitude at evenly spaced levels, shape (1025,); (2,) if unused."""
    if params.noise == "none" or params.noise_distribution != "beta":
        return np.zeros(2)
    from scipy.special import betaincinv

    table: Floats = betaincinv(params.noise_alpha, params.noise_beta, np.linspace(0, 1, QUANTILES + 1))
    return table


class College(Rules):
    """A college that publishes an admission threshold, to which applicants respond, after D'Amour et al. (2020).

    **Description.** A Stackelberg game. In each round 20 new applicants of two groups come. The jury publishes a
    threshold. Applicants below it raise their score if that costs no more than admission is worth. The jury admits by
    the presented scores. Points cost the disadvantaged more. A higher threshold excludes some unqualified applicants,
    but it also makes qualified applicants pay.

    **Who decides and who is affected.** The jury decides (one agent); the applicants are affected, each in one round.
    For an applicant the harms are being rejected and paying for admission. You can measure how often each group is
    admitted, also among the qualified (equal opportunity), how often decisions about a group are wrong (stratified
    accuracy), and how much the qualified of a group must pay for admission (social burden,
    `fair_envs.metrics.strategic`). The environment does not model people who never apply, nor why a point costs one
    group more.

    **Applicants.** An applicant belongs to the group ``disadvantaged`` with probability 0.4. True scores are normal
    (mean 0.8, standard deviation 0.1; the disadvantaged 0.6 and 0.3) and clipped to 0 to 1. An applicant is qualified
    with at least 1.1 times the mean of the group: 0.88, and 0.66. Since no threshold suits both groups, no jury decides
    correctly about all applicants.

    **Response.** Applicants who reach the threshold are admitted, others with the probability epsilon. Reaching it is
    therefore worth 1 - epsilon. Raising a score by d points costs 0.8 d, for the disadvantaged 1.2 d, or
    ``subsidy_beta`` times that with a ``subsidy``. Applicants below the threshold raise their score to it if that costs
    at most what it is worth and takes at most ``largest_change`` points. At the default costs nearly all applicants can
    afford any threshold; in ``profile="fat2020"`` the costs (5 and 10) make the threshold matter more.

    **Noise.** On the scores (``noise="scores"``): the score that applicants have before they respond differs from the
    true score, which determines whether they are qualified. On the threshold (``"thresholds"``): each applicant sees a
    different threshold, believes in it, and may pay too much, or in vain.

    **Sensitive attribute and legitimate factors.** ``group``: advantaged, disadvantaged. No legitimate factors. In a
    counterfactual twin all applicants have the other group and the same random numbers, and their scores change
    accordingly. `assign` changes only the group: the cost and the qualifying score follow, the scores do not.

    **Action space.** ``action="threshold"``: ``Box`` of one number, the threshold, 0 to 1. ``"threshold_epsilon"``: of
    two numbers, the second is epsilon. ``"levels"``: ``Discrete(levels)``, evenly spaced thresholds from 0 to 1.

    **Observation space.** ``Box`` of 17 numbers between 0 and 1 about the last round: threshold, epsilon; then for the
    advantaged, for the disadvantaged, and for all: the share among the applicants, the mean presented score, the
    admitted share, the share whose labels were revealed to the jury, and the qualified share of these. All are 0 before
    the first round, and where there were no applicants.

    **Rewards.** The mean over the round's applicants of ``true_admission``, ``true_rejection``, ``false_admission`` or
    ``false_rejection``; by default the share of correct decisions. Costs to applicants do not count.

    **Interactions.** 20 individuals per round, new ones each time, numbered through the episode. ``fair_features``: the
    presented score. ``fair_action``: 1 admitted. ``fair_feedback``: 1 if qualified; revealed for the admitted, for all
    or for none (``feedback``). ``fair_outcome``: 1 if admitted, minus what the applicant paid. For the applicants of
    the coming round, the oracle returns who is qualified (``"feedback"``), true scores (``"merit"``), scores before any
    response (``"score"``), and the cost of a point (``"cost"``).

    **Starting state.** The first applicants; nothing has been published.

    **Episode end.** Truncation after ``horizon`` rounds.

    **Arguments.** The fields of `CollegeParams`, each with its default and source. ``profile="ml-fairness-gym"``
    selects the published environment's defaults, ``"fat2020"`` and ``"fat2020_noisy"`` those of the experiments on it.

    **Differences from the published code**:

    * Each applicant's group is drawn separately, and applicants come in random order. In the code they are sorted by
      group. The number of applicants of each group has the same distribution.
    * Observations describe one round. In the code they combine the groups of the next round's applicants with the
      scores of the last round's; its robust jury confuses the two.
    * Applicants believe in the noisy threshold that they see. In the code they know whether it would suffice, those who
      reach the true one never respond, and presenting less than one has earns money: ``noise_response="published"``.
    * The code divides the social burden by all members of a group, not by the qualified: an option of the metric.
    * Reaching the horizon is truncation; in the code episodes end one round after ``max_steps``.
    * Beta noise is looked up in 1024 steps of its quantiles.
    * A figure of the paper calls the group with the higher costs the advantaged one.

    **References.** A. D'Amour, H. Srinivasan, J. Atwood, P. Baljekar, D. Sculley, Y. Halpern, "Fairness is not static:
    deeper understanding of long term fairness via simulation studies", FAT* 2020. L. Hu, N. Immorlica, J. W. Vaughan,
    "The disparate effects of strategic manipulation", FAT* 2019. S. Milli, J. Miller, A. D. Dragan, M. Hardt, "The
    social cost of strategic classification", FAT* 2019. M. Hardt, N. Megiddo, C. Papadimitriou, M. Wootters, "Strategic
    classification", ITCS 2016.

    **Version history.** v0: first version.
    """

    name: ClassVar[str] = "college"
    drawn_by: ClassVar[str] = "fair_envs.envs.college.render:CollegeRenderer"
    policies: ClassVar[Mapping[str, str]] = {
        "fixed-threshold": "fair_envs.envs.college.policies:Jury",
        "naive-jury": "fair_envs.envs.college.policies:NaiveJury",
        "robust-jury": "fair_envs.envs.college.policies:RobustJury",
    }
    Params: ClassVar[type] = CollegeParams
    presets = PROFILES
    fps: ClassVar[int] = 2
    sensitive_field: ClassVar[str] = "flipped"
    sensitive_features: ClassVar[tuple[str, ...]] = tuple(f"{rate}_{group}" for group in GROUPS for rate in RATES)
    start, step, observe, describe = map(staticmethod, (start, step, observe, describe))

    def encoded(self, params: CollegeParams) -> Any:
        """Return the parameters as numbers, and the quantiles of the noise."""
        return Code._make((*encode(params), quantiles_of(params)))

    def check(self, params: CollegeParams) -> None:
        """Raise ValueError if the noise bounds are contradictory, or if epsilon would have no effect."""
        if params.noise_low > params.noise_high:
            raise ValueError(f"noise_low must be at most noise_high ({params.noise_high:g}), got {params.noise_low:g}")
        if params.action == "threshold_epsilon" and params.epsilon > 0:
            raise ValueError(f"epsilon must be 0 where it is part of the action, got {params.epsilon:g}")

    def lane(self, params: CollegeParams) -> list[tuple[Any, ...]]:
        """Return the fields of one lane."""
        people, rows = params.applicants, EVERYBODY + 1
        return [
            ("flipped", np.int8, (1,)),  # 1: all have the other group, as in a counterfactual twin
            ("group", np.int8, people),  # of the applicants of the coming round
            ("qualified", np.int8, people),
            ("merit", np.float64, people),  # true scores
            ("score", np.float64, people),  # before any response
            ("aim", np.float64, people),  # noise of the threshold that each applicant sees
            ("past_group", np.int8, people),  # of the applicants of the last round
            ("past_qualified", np.int8, people),
            ("past_score", np.float64, people),
            ("presented", np.float64, people),
            ("paid", np.float64, people),
            ("admitted", np.int8, people),
            ("threshold", np.float64),  # of the last round
            ("epsilon", np.float64),
            ("counts", np.int32, (rows, len(COUNTED))),  # of the last round
            ("presented_sum", np.float64, rows),
            ("tally", np.int32, (len(GROUPS), 2, 2)),  # so far by group, qualified or not, admitted or not
            ("paid_sum", np.float64, len(GROUPS)),  # so far
            ("burden_sum", np.float64, len(GROUPS)),  # cost for the qualified to reach the threshold, paid or not
        ]

    def fair_spec(self, params: CollegeParams) -> FairSpec:
        """Return who is affected: the applicants of a round."""
        return FairSpec(
            individuals=params.applicants,
            actions=2,
            features=("score",),
            sensitive={"group": GROUPS},
            groups=GROUPS,
            favourable_action=ADMIT,
            feedback=params.feedback,
        )

    def observation_space(self, params: CollegeParams) -> gym.spaces.Box:
        """Return the bounds of the results of the last round."""
        return gym.spaces.Box(0.0, 1.0, (len(OBSERVED),), np.float32)

    def observed_features(self, params: CollegeParams) -> tuple[str, ...]:
        """Return the names of all entries of an observation."""
        return OBSERVED

    def action_space(self, params: CollegeParams) -> gym.spaces.Discrete | gym.spaces.Box:
        """Return the space of what can be published."""
        if params.action == "levels":
            return gym.spaces.Discrete(params.levels)
        return gym.spaces.Box(0.0, 1.0, (2 if params.action == "threshold_epsilon" else 1,), np.float32)

    def flip(self, records: NDArray[np.void], who: Flags) -> None:
        """Flip the group of the coming and all later applicants, in place; the random numbers stay the same.

        Changes by `assign` in a flipped lane are lost; other lanes keep theirs.

        Args:
            records: Lanes, shape (B,).
            who: Which lanes are flipped, shape (B, 1).
        """
        records["flipped"] ^= who.astype(np.int8)
        meet_again(self.code, readable(records), np.flatnonzero(who[:, 0]))

    def assign(self, records: NDArray[np.void], attribute: str, code: int) -> None:
        """Set the group of the coming round's applicants, in place; they keep their scores."""
        if attribute != "group":
            raise ValueError(f"attribute must be 'group', got {attribute!r}")
        if code not in (ADVANTAGED, DISADVANTAGED):
            raise ValueError(f"code must be 0 or 1, got {code!r}")
        records["group"] = code
        records["qualified"] = records["merit"] >= bar_of(self.params, code)

    def oracle(self, records: NDArray[np.void]) -> dict[str, NDArray[Any]]:
        """Return who of the coming round's applicants is qualified, both scores, and the cost of a point."""
        costs = np.array([cost_of(self.params, group) for group in range(len(GROUPS))])
        return {
            "feedback": records["qualified"].astype(np.int64),
            "merit": np.array(records["merit"]),
            "score": np.array(records["score"]),
            "cost": costs[records["group"]],
        }
