"""The rules of FairLending on one lane: `start` begins an episode; a step is `describe`, `step`, then `observe`."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules, feedback, rule
from fair_envs.core.compilation import record_of
from fair_envs.core.interactions import FairSpec
from fair_envs.core.randomness import random_words, to_unit_interval
from fair_envs.envs.lending.params import (
    DISTRIBUTIONS,
    GROUPS,
    NAMED_TABLES,
    OBSERVE_AUTHORS,
    OBSERVE_GYM,
    PROFILES,
    REPAYMENTS,
    TERMINATE,
    USER_TABLE,
    LendingParams,
    checked_distributions,
    checked_repayment,
    is_named_table,
)
from fair_envs.support.aliases import Facts, Flags, Floats, Floats32, Lane, Record
from fair_envs.support.parameters import encode

REJECT, ACCEPT = range(2)
ACTION_NAMES = ("reject", "accept")
APPLICANT = 0  # the only site of random numbers

# Expected repayments are summed as integers (1.0 = 2**40 units), because float sums drift when decisions leave the
# window.
UNITS = 2**40
MAX_FLOAT32 = float(np.finfo(np.float32).max)
PLOT_POINTS = 96  # largest number of points of the plot of the cash


# ------------------------------------------------------------------------------------------- the applicants


@rule
def start(lane: Lane, params: Record) -> None:
    """Set the bank's cash and the groups' scores, and draw the first applicant."""
    lane.cash = params.starting_cash
    for group in range(lane.score_shares.shape[0]):
        for score in range(lane.score_shares.shape[1]):
            lane.score_shares[group, score] = params.score_shares[group, score]
    draw_applicant(lane, params, random_words(lane.key, 0, APPLICANT, 0))


@rule
def draw_applicant(lane: Lane, params: Record, words: tuple[int, int, int, int]) -> None:
    """Draw the applicant of the next step from three of the four random 32-bit words."""
    set_applicant(lane, params, to_unit_interval(words[0]), to_unit_interval(words[1]), to_unit_interval(words[2]))


@rule
def set_applicant(lane: Lane, params: Record, uniform_group: float, uniform_score: float, uniform_label: float) -> None:
    """Set group, score and whether the applicant will repay, in this order, each from a random number in [0, 1)."""
    lane.group = (uniform_group >= params.advantaged_share) ^ (lane.flipped[0] != 0)
    lane.score = score_at(lane.score_shares[lane.group], uniform_score)
    # An applicant repays if the number is among the highest `repayment_probability` of [0, 1).
    lane.repays = uniform_label >= 1.0 - params.repayment_probability[lane.score]


@rule
def score_at(score_shares: Floats, uniform: float) -> int:
    """Return the first score whose cumulative share is above a random number in [0, 1)."""
    score, cumulative = 0, score_shares[0]
    while cumulative <= uniform and score < score_shares.shape[0] - 1:
        score += 1
        cumulative += score_shares[score]
    return score


# --------------------------------------------------------------------------------------------------- a step


@rule
def step(lane: Lane, action: NDArray[Any], params: Record, reward: Floats, facts: Facts) -> bool:
    """Decide on the applicant, shift the group's scores, draw the next applicant; return whether it terminates."""
    # Random words of the next applicant. Drawn before the decision because that is faster; the order has no effect.
    words = random_words(lane.key, lane.time + 1, APPLICANT, 0)
    accepted = action[0] == ACCEPT
    facts.action[0] = accepted
    feedback.reveal(lane, params, facts, lane.repays)
    if accepted:
        reward[0] = settle_loan(lane, params)
        facts.outcome[0] = shift_scores(lane, params)
    record_decision(lane, params, accepted)
    draw_applicant(lane, params, words)
    return lane.cash < params.loan_amount or (params.at_horizon == TERMINATE and lane.time + 1 >= params.horizon)


@rule
def settle_loan(lane: Lane, params: Record) -> float:
    """Lend to the applicant and return what the bank earns."""
    earned = params.loan_amount * params.interest_rate if lane.repays else -params.loan_amount
    lane.cash = min(lane.cash + earned, params.max_cash)
    return earned


@rule
def shift_scores(lane: Lane, params: Record) -> int:
    """Move part of the group from the applicant's score to the next one, up or down; return the change of score."""
    score_shares, score = lane.score_shares[lane.group], np.int64(lane.score)
    new_score = min(score + 1, score_shares.shape[0] - 1) if lane.repays else max(score - 1, 0)
    moved_share = min(params.mass_shift, score_shares[score])
    score_shares[score] -= moved_share
    score_shares[new_score] += moved_share
    return new_score - score


# ------------------------------------------------------------------------------- the window of decisions


@rule
def record_decision(lane: Lane, params: Record, accepted: bool) -> None:
    """Add the decision to the window in place of the oldest one, and record the cash for the picture."""
    lane.tally[lane.group, lane.repays, np.int64(accepted)] += 1
    index = lane.time % lane.window.shape[0]
    if lane.time >= lane.window.shape[0]:
        update_window_sums(lane, params, lane.window[index], -1)
    lane.window[index] = pack_decision(lane.score, lane.group, accepted, lane.repays)
    update_window_sums(lane, params, lane.window[index], 1)
    if lane.time == params.plot_stride * lane.plot_length and lane.plot_length < PLOT_POINTS:
        lane.plot_cash[lane.plot_length] = lane.cash
        lane.plot_length += 1


@rule
def pack_decision(score: int, group: int, accepted: bool, repays: int) -> int:
    """Return a decision as one number."""
    return 8 * np.int64(score) + 4 * np.int64(group) + 2 * np.int64(accepted) + np.int64(repays)


@rule
def update_window_sums(lane: Lane, params: Record, decision: int, sign: int) -> None:
    """Add a decision to the sums over the window (`sign` 1), or subtract it (-1)."""
    score, group, accepted, repays = decision >> 3, decision >> 2 & 1, decision >> 1 & 1, decision & 1
    lane.group_counts[group] += sign
    lane.score_counts[group, score] += sign
    if params.observation == OBSERVE_AUTHORS:
        lane.repaying_count[group, accepted] += sign * repays
    else:
        expected = sign * params.repayment_units[score]
        lane.expected_all[group] += expected
        lane.expected_accepted[group] += accepted * expected


# ------------------------------------------------------------------------------- observations and feedback


@rule
def observe(lane: Lane, params: Record, observation: Floats32) -> None:
    """Write the applicant's features and the statistics of both groups."""
    out = observation[0]
    if params.observation == OBSERVE_GYM:
        out[0] = lane.cash
        write_applicant(lane, out, 1)
        return
    scores = lane.score_shares.shape[1]
    write_applicant(lane, out, 0)
    if params.observation == OBSERVE_AUTHORS:
        write_true_positive_rates_from_labels(lane, out, scores + 2)
        # One more than the applicants of both groups together; used for each group.
        divisor = min(lane.time, lane.window.shape[0]) + 1
        write_score_shares(lane, 0, divisor, out, scores + 4)
        write_score_shares(lane, 1, divisor, out, 2 * scores + 4)
    else:
        write_estimated_true_positive_rates(lane, out, scores + 2)
        write_score_shares(lane, 0, lane.group_counts[0], out, scores + 4)
        write_score_shares(lane, 1, lane.group_counts[1], out, 2 * scores + 4)


@rule
def write_applicant(lane: Lane, out: Floats32, first: int) -> None:
    """Write score and group, each as a one-hot vector, starting at entry `first`."""
    scores = lane.score_shares.shape[1]
    for k in range(scores + 2):
        out[first + k] = 0.0
    out[first + lane.score] = 1.0
    out[first + scores + lane.group] = 1.0


@rule
def write_estimated_true_positive_rates(lane: Lane, out: Floats32, first: int) -> None:
    """Write each group's expected true positive rate in the window; 0 if the group has no applicants there."""
    for group in range(2):
        out[first + group] = lane.expected_accepted[group] / max(lane.expected_all[group], 1)


@rule
def write_true_positive_rates_from_labels(lane: Lane, out: Floats32, first: int) -> None:
    """Write each group's true positive rate in the window, from hidden labels; 0 if the rate is undefined."""
    for group in range(2):
        accepted, rejected = lane.repaying_count[group, ACCEPT], lane.repaying_count[group, REJECT]
        out[first + group] = accepted / max(accepted + rejected, 1)


@rule
def write_score_shares(lane: Lane, group: int, divisor: int, out: Floats32, first: int) -> None:
    """For each score, write how many of the group's applicants in the window have it, divided by `divisor`."""
    scale = 1.0 / max(divisor, 1)
    for score in range(lane.score_counts.shape[1]):
        out[first + score] = lane.score_counts[group, score] * scale


@rule
def describe(lane: Lane, params: Record, facts: Facts) -> None:
    """Write the record of the next applicant."""
    facts.individual[0] = lane.time
    facts.sensitive[0, 0] = lane.group
    facts.legitimate[0, 0] = lane.score
    facts.group[0] = lane.group
    facts.features[0, 0] = lane.score / (lane.score_shares.shape[1] - 1)
    facts.features[0, 1] = lane.group


# ------------------------------------------------------------------------------------------ the environment


class Lending(Rules):
    """A bank that lends to one applicant after another, after Hu, Lear and Zhang (2024).

    **Description.** In each step one applicant asks for a loan. The applicant belongs to one of two groups and has a
    credit score from 0 to 6. The bank accepts or rejects. A loan that is repaid earns interest and raises the
    applicant's score by one; a loan that is not repaid is lost and lowers it. Applicants are drawn from the current
    score distribution of their group, and each loan moves a small part of this distribution. Today's decisions
    therefore change tomorrow's applicants.

    **Who decides and who is affected.** The bank decides (one agent); the applicants are affected, one per step. Being
    denied a loan you would have repaid is one harm; getting one you cannot repay is another, since the score falls. You
    can measure how much less often applicants who would repay are accepted in one group (equal opportunity; this needs
    ``feedback="full"`` or ``"delayed"``, because by default labels are revealed only for accepted applicants), how
    often a group is accepted (demographic parity), and, over time, how far apart the groups' scores are (the oracle's
    ``"distribution"``). The environment does not model people who never apply, nor effects of a loan beyond the score.

    **Scores.** There are 7 scores by default; 0 is the lowest. The advantaged group begins with shares of 0, .1, .1,
    .2, .3, .3, 0 and the disadvantaged one with .1, .1, .2, .3, .3, 0, 0. These are the same shares one score lower, so
    the 1-Wasserstein distance between the groups is 1. The repayment probabilities are .1, .2, .45, .6, .65, .7, .7,
    the same for both groups: at the default interest of 1 a loan is profitable from a score of 3 on. The argument
    ``distributions`` sets the initial shares: ``"delayed_impact"``, those above; ``"equal"``, the advantaged group's
    for both groups; or your own table, weights of shape (2, scores). ``repayment`` sets the repayment probabilities:
    ``"delayed_impact"``, those above; or your own table, shape (scores,).

    **Sensitive attribute and legitimate factors.** ``group`` (advantaged, disadvantaged); ``advantaged_share`` sets the
    advantaged group's share of the applicants. Legitimate factor: ``score``.

    **Action space.** ``Discrete(2)``: 0 reject, 1 accept.

    **Observation space.** ``Box`` of 25 numbers between 0 and 1 at 7 scores:

    * the applicant's score (7) and group (2), each as a one-hot vector;
    * for each group (2) the expected true positive rate over the window of the last 300 applicants: the sum of the
      accepted applicants' repayment probabilities divided by the sum over all applicants of the group; 0 if the group
      has no applicants in the window. It uses no labels;
    * for each group (7 + 7) the shares of the scores in the window; 0 if the group has no applicants there.

    ``observation="authors"`` has the 25 numbers of the published code. Its true positive rates use the hidden labels:
    the bank sees whether rejected applicants would have repaid. Its counts of scores are divided by one plus the number
    of applicants of both groups in the window. ``"ml-fairness-gym"``: cash, score (7), group (2).

    **Rewards.** The bank's earnings from the decision: ``loan_amount`` times ``interest_rate`` if an accepted applicant
    repays, minus ``loan_amount`` if not, 0 if rejected.

    **Interactions.** One individual per step: the applicant decided on, numbered by the step. ``fair_features``: score
    (divided by the highest) and group. ``fair_action``: 1 a loan. ``fair_feedback``: 1 if the applicant repays;
    revealed for the accepted, for all, for all with a delay, or for none (``feedback``). ``fair_outcome``: the change
    of the applicant's score (-1, 0, 1). The oracle gives who will repay (``"feedback"``), the repayment probability
    (``"score"``), and each group's true shares of scores (``"distribution"``).

    **Starting state.** The bank has ``starting_cash``, the groups have their initial scores, and the first applicant
    waits.

    **Episode end.** Termination when the cash is below ``loan_amount``; truncation after ``horizon`` steps.

    **Order of a step.** First the decision changes the cash. If the applicant is accepted, ``mass_shift`` of the group
    (or what is left there) moves from the applicant's score to the next one: up if the loan is repaid, down if not. At
    the lowest and the highest score it stays. Then the next applicant is drawn: group, score and whether the loan will
    be repaid, in this order. Whether the applicant will repay is thus fixed before the decision; only the oracle has
    access to it.

    **Counterfactual twins.** Every applicant changes group and keeps score, repayment probability and random numbers;
    the groups thus exchange their score distributions. A policy that ignores the group makes the same decisions.

    **Arguments.** The fields of `LendingParams`, each with its default and source. ``profile``: ``"paper"``;
    ``"authors"``, the published code's training; ``"ml-fairness-gym"``, that package's own defaults (its experiments
    use an interest rate of 1 and a starting cash of 100 to 10,000).

    **Differences from the paper and its code.** The argument in parentheses, if there is one, gives the code's
    behaviour; ``profile="authors"`` sets all of them.

    * True positive rates in the observation are expectations. In the code they reveal hidden labels
      (``observation="authors"``). With that argument, as in the code, the rate is 0 if no one in a group would repay;
      our fairness measures give NaN.
    * The code's training computes the true positive rates over 301 applicants and its histograms over 300. Here both
      use ``window``.
    * Shares of scores are within each group. The code divides both groups' counts by the same total plus one
      (``observation="authors"``).
    * Reaching the horizon is truncation. In the code it is termination (``at_horizon="terminate"``).
    * Episodes have 10,000 steps. The code evaluates with 10,000, but trains with 2,000 (``horizon=2000``).
    * Observations are bounded; the code declares a space from minus infinity to infinity.
    * ml-fairness-gym clips the observed cash at ``max_cash`` but lets the cash itself grow; here the cash is clipped.

    **References.** Y. Hu, J. Lear, L. Zhang, "Striking a Balance in Fairness for Dynamic Systems Through Reinforcement
    Learning", arXiv 2401.06318, 2024. A. D'Amour et al., "Fairness is not static", FAT* 2020 (ml-fairness-gym). L. Liu,
    S. Dean, E. Rolf, M. Simchowitz, M. Hardt, "Delayed impact of fair machine learning", ICML 2018.

    **Version history.** v0: first version.
    """

    name: ClassVar[str] = "lending"
    drawn_by: ClassVar[str] = "fair_envs.envs.lending.render:LendingRenderer"
    action_names: ClassVar[Sequence[str]] = ACTION_NAMES
    policies: ClassVar[Mapping[str, str]] = {
        "always": "fair_envs.evaluation.deciders:Always",
        "never": "fair_envs.evaluation.deciders:Never",
        "correct": "fair_envs.evaluation.deciders:Correct",
        "max-reward": "fair_envs.envs.lending.policies:MaxReward",
        "lenient": "fair_envs.envs.lending.policies:Lenient",
        "equal-opportunity": "fair_envs.envs.lending.policies:EqualOpportunityLender",
        "observed-opportunity": "fair_envs.envs.lending.policies:ObservedOpportunityLender",
    }
    Params: ClassVar[type] = LendingParams
    presets = PROFILES
    sensitive_field: ClassVar[str] = "flipped"
    sensitive_features: ClassVar[tuple[str, ...]] = GROUPS
    start, step, observe, describe = map(staticmethod, (start, step, observe, describe))

    def __init__(self, **given: Any) -> None:
        names = NAMED_TABLES.keys() & given.keys()
        user_tables = {name: given[name] for name in names if not is_named_table(name, given[name])}
        self.distributions, self.repayment = resolve_tables(given, user_tables)
        # The parameters contain names only; `encoded` adds the tables.
        super().__init__(**{**given, **dict.fromkeys(user_tables, USER_TABLE)})

    def check(self, params: LendingParams) -> None:
        """Raise ValueError if the starting cash is below a loan or above the limit, or the limit cannot be observed."""
        if not params.loan_amount <= params.starting_cash <= params.max_cash:
            raise ValueError(
                f"starting_cash must be between loan_amount ({params.loan_amount:g}) and max_cash "
                f"({params.max_cash:g}), got {params.starting_cash:g}"
            )
        if params.observation == "ml-fairness-gym" and params.max_cash > MAX_FLOAT32:
            raise ValueError(f"max_cash must be at most {MAX_FLOAT32:g} to be observed, got {params.max_cash:g}")

    def encoded(self, params: LendingParams) -> Any:
        """Return the parameters, as numbers, and the tables in one record."""
        return rule_constants(params, self.distributions, self.repayment)

    def lane(self, params: LendingParams) -> list[tuple[Any, ...]]:
        """Return the fields of one lane."""
        scores = len(self.repayment)
        return [
            ("cash", np.float64),
            ("group", np.uint8),  # of the applicant
            ("score", np.uint16),  # of the applicant
            ("repays", np.uint8),  # 1: the applicant would repay
            ("flipped", np.int8, (1,)),  # 1: every applicant has the other group, as in a counterfactual twin
            ("score_shares", np.float64, (2, scores)),  # share of each score in each group
            # Sums over the window
            ("group_counts", np.int32, 2),  # applicants by group
            ("score_counts", np.int32, (2, scores)),  # applicants by group and score
            ("expected_all", np.int64, 2),  # expected repayments by group, in UNITS; 0 if observation is "authors"
            ("expected_accepted", np.int64, 2),  # the same for accepted applicants
            ("repaying_count", np.int32, (2, 2)),  # would repay, by group and decision; 0 if not "authors"
            ("window", np.int16, params.window),  # the last decisions, see `pack_decision`
            # For the picture
            ("tally", np.int32, (2, 2, 2)),  # applicants so far by group, would repay or not, accepted or not
            ("plot_length", np.uint16),  # points so far
            ("plot_cash", np.float32, PLOT_POINTS),  # the cash after steps 1, 1 + `plot_stride`, ...
            *feedback.fields(params),
        ]

    def fair_spec(self, params: LendingParams) -> FairSpec:
        """Return who is affected: the applicants."""
        return FairSpec(
            individuals=1,
            actions=len(ACTION_NAMES),
            features=("score", "group"),
            nominal_features=("group",),
            sensitive_features=("group",),
            sensitive={"group": GROUPS},
            legitimate={"score": tuple(map(str, range(len(self.repayment))))},
            groups=GROUPS,
            favourable_action=ACCEPT,
            feedback=params.feedback,
            delay=params.delay if params.feedback == "delayed" else 0,
        )

    def observation_space(self, params: LendingParams) -> gym.spaces.Box:
        """Return the bounds of shares (0 to 1) and of the cash."""
        high = np.ones(len(self.observed_features(params)), np.float32)
        if params.observation == "ml-fairness-gym":
            high[0] = params.max_cash
        return gym.spaces.Box(np.zeros_like(high), high, dtype=np.float32)

    def observed_features(self, params: LendingParams) -> tuple[str, ...]:
        """Return the names of all entries of an observation."""
        scores = range(len(self.repayment))
        applicant = (*(f"score_{score}" for score in scores), *GROUPS)
        if params.observation == "ml-fairness-gym":
            return ("cash", *applicant)
        opportunities = (f"opportunity_{group}" for group in GROUPS)
        return (*applicant, *opportunities, *(f"share_{score}_{group}" for group in GROUPS for score in scores))

    def action_space(self, params: LendingParams) -> gym.spaces.Discrete:
        """Return reject and accept."""
        return gym.spaces.Discrete(len(ACTION_NAMES))

    def flip(self, records: NDArray[np.void], who: Flags) -> None:
        """Change every applicant's group, in place: of the current one, of later ones and of those in the window.

        Applicants keep score, repayment probability and random numbers; the groups thus exchange their score
        distributions.

        Args:
            records: Lanes, shape (B,).
            who: Which lanes are flipped, shape (B, 1).
        """
        lanes = who[:, 0]
        records["flipped"] ^= who.astype(np.int8)
        records["group"] ^= lanes.astype(np.uint8)
        records["window"] ^= np.int16(pack_decision(0, 1, 0, 0)) * lanes[:, np.newaxis].astype(np.int16)
        counts = ("group_counts", "score_counts", "repaying_count", "tally")
        for name in ("score_shares", "expected_all", "expected_accepted", *counts):
            records[name][lanes] = records[name][lanes][:, ::-1]

    def assign(self, records: NDArray[np.void], attribute: str, code: int) -> None:
        """Set the applicants' group, all else equal, in place: their scores and labels stay as they are."""
        if attribute != "group":
            raise ValueError(f"attribute must be 'group', got {attribute!r}")
        if code not in (0, 1):
            raise ValueError(f"code must be 0 or 1, got {code!r}")
        records["group"] = code

    def oracle(self, records: NDArray[np.void]) -> dict[str, NDArray[Any]]:
        """Return who will repay, the repayment probabilities, shape (B, 1), and the groups' true scores.

        Returns:
            ``"feedback"``: 1 will repay. ``"score"``: the repayment probability. ``"distribution"``: the share of each
            score in each group, shape (B, 2, scores).
        """
        return {
            "feedback": records["repays"][:, np.newaxis].astype(np.int64),
            "score": self.repayment[records["score"]][:, np.newaxis],
            "distribution": np.array(records["score_shares"]),
        }


def resolve_tables(arguments: Mapping[str, Any], user_tables: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """Return the share of each score in each group, (2, scores), and the repayment probabilities, (scores,).

    Args:
        arguments: Keywords of the constructor.
        user_tables: Those among them that are tables, not names of tables.
    """
    defaults = LendingParams()
    names = {name: arguments.get(name, getattr(defaults, name)) for name in NAMED_TABLES.keys() - user_tables.keys()}
    distributions = checked_distributions(
        user_tables["distributions"] if "distributions" in user_tables else DISTRIBUTIONS[names["distributions"]]
    )
    repayment = user_tables["repayment"] if "repayment" in user_tables else REPAYMENTS[names["repayment"]]
    return distributions, checked_repayment(repayment, scores=distributions.shape[1])


def rule_constants(params: LendingParams, distributions: Floats, repayment: Floats) -> NDArray[np.void]:
    """Return the parameters, as numbers, and the tables, as one record of shape (1,) for compiled rules."""
    return record_of(
        {
            "score_shares": distributions,  # (2, scores)
            "repayment_probability": repayment,  # (scores,)
            "repayment_units": np.round(repayment * UNITS).astype(np.int64),  # (scores,)
            "plot_stride": -(-params.horizon // PLOT_POINTS),  # steps between two points of the plot
            **encode(params)._asdict(),
        }
    )
