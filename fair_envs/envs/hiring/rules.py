"""The rules of FairHiring on one lane, in the order in which they are applied."""

import math
from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules, feedback, rule
from fair_envs.core.compilation import kernel, readable
from fair_envs.core.interactions import FairSpec
from fair_envs.core.randomness import normal, uniform
from fair_envs.core.weights import cumulative
from fair_envs.envs.hiring.bias import BIASES, find_bias, tabulated
from fair_envs.envs.hiring.params import DECIDED, DIFFERENCE, DOUBLE, NEXT_APPLICANT, PROFILES, TERMINATE, HiringParams
from fair_envs.envs.hiring.population import (
    AGE,
    DEGREE,
    DUTCH,
    EDUCATIONS,
    EXPERIENCE,
    EXTRA,
    FEATURES,
    GENDER,
    GENDERS,
    GERMAN,
    LANGUAGES,
    NATIONALITIES,
    NATIONALITY,
    OWN,
    POPULATIONS,
    TRAITS,
    YEARS,
    YOUNGEST,
    checked_people,
    language_shares,
    most_experience,
    people,
)
from fair_envs.support.aliases import Facts, Flags, Floats, Floats32, Ints, Lane, Records
from fair_envs.support.parameters import encode

REJECT, HIRE = range(2)
ACTION_NAMES = ("reject", "hire")

# Random streams
PERSON, YEARS_WORKED, SPOKEN, CANDIDATE_NOISE, REWARD_NOISE, TEAM_NOISE, LEAVING = range(7)

COMPANY = (
    *("team_potential", "team_degrees", "team_extra_degrees", "team_experience"),
    *("team_dutch", "team_french", "team_english", "team_german"),
    *("team_men", "team_women", "team_belgian", "team_foreign"),
)
SHARED_LANGUAGES, SHARED_GENDERS, SHARED_NATIONALITIES = 4, 8, 10  # where these begin in COMPANY
TERMS = 5  # of the skill score
LANGUAGE_SETS = 2**LANGUAGES
NEVER = 2**31 - 1
LARGEST_NORMAL = 9.0  # upper bound of the normal numbers of `probability`

KNOWN: Mapping[str, tuple[str, ...]] = {"population": POPULATIONS, "reward_bias": tuple(BIASES)}
GROUPS = tuple(f"{nationality} {gender}" for gender in GENDERS for nationality in NATIONALITIES)


# ------------------------------------------------------------------------------------------- the applicants


@rule
def start(lane: Lane, params: Any) -> None:
    """Start with a company without employees and draw the first applicant."""
    lane.next_departure = NEVER
    meet(lane, params, 0)


@rule
def meet(lane: Lane, params: Any, time: int) -> None:
    """Draw the applicant of the given time."""
    draw_traits(lane, params, time)
    draw_experience(lane, time)
    draw_languages(lane, params, time)
    lane.candidate_noise = params.noise * normal(lane.key, time, CANDIDATE_NOISE, 0)
    lane.reward_noise = params.noise * normal(lane.key, time, REWARD_NOISE, 0)
    judge(lane, params)


@rule
def draw_traits(lane: Lane, params: Any, time: int) -> None:
    """Draw age, gender, education, nationality and marital status from the population; flip the gender in a twin."""
    kind = position(params.tables, 0, params.kinds, uniform(lane.key, time, PERSON, 0))
    place = params.traits_from + len(TRAITS) * kind
    for trait in range(len(TRAITS)):
        lane.applicant[trait] = int(params.tables[place + trait])
    if lane.flipped[0]:
        lane.applicant[GENDER] = 1 - lane.applicant[GENDER]


@rule
def position(tables: Floats, first: int, count: int, level: float) -> int:
    """Return the index of the first of ``count`` cumulative shares, starting at ``first``, that is above the level."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if tables[first + middle] > level:
            high = middle
        else:
            low = middle + 1
    return low


@rule
def draw_experience(lane: Lane, time: int) -> None:
    """Draw the years worked, from 0 to the most that age and studies allow; y years have a weight of y + 1.

    The probability of at most y years, (y + 1)(y + 2) / ((most + 1)(most + 2)), is inverted.
    """
    most = most_experience(lane.applicant[AGE], lane.applicant[DEGREE], lane.applicant[EXTRA])
    level = uniform(lane.key, time, YEARS_WORKED, 0) * (most + 1) * (most + 2)
    lane.applicant[EXPERIENCE] = min(most, int((math.sqrt(1.0 + 4.0 * level) - 1.0) / 2.0))


@rule
def draw_languages(lane: Lane, params: Any, time: int) -> None:
    """Draw the set of languages, which depends on the education."""
    education = lane.applicant[DEGREE] + lane.applicant[EXTRA]
    first = params.languages_from + LANGUAGE_SETS * education
    spoken = position(params.tables, first, LANGUAGE_SETS, uniform(lane.key, time, SPOKEN, 0))
    for k in range(LANGUAGES):
        lane.applicant[DUTCH + k] = spoken >> k & 1


# ---------------------------------------------------------------------------------------- the ground truth


@rule
def judge(lane: Lane, params: Any) -> None:
    """Set the applicant's goodness, the label, and the reward of hiring."""
    lane.goodness = goodness_of(lane, params)
    lane.qualified = lane.goodness >= params.threshold
    earned = lane.goodness - params.threshold + lane.reward_noise + params.reward_bias_size * bias_of(lane, params)
    lane.hire_reward = min(1.0, max(-1.0, earned))


@rule
def goodness_of(lane: Lane, params: Any) -> float:
    """Return what the applicant would add to the team, between -1 and 1."""
    goodness = (1.0 - params.diversity_weight) * skill_of(lane, params)
    if params.diversity_weight > 0:
        goodness += params.diversity_weight * diversity_of(lane, params)
    return min(1.0, max(-1.0, goodness))


@rule
def skill_of(lane: Lane, params: Any) -> float:
    """Return the mean of five terms: potential, degree, extra degree, experience, languages of the team."""
    degree, extra, years = lane.applicant[DEGREE], lane.applicant[EXTRA], lane.applicant[EXPERIENCE]
    potential = (degree + extra + (years > 0)) / 3 + lane.candidate_noise - lane.team_noise
    languages = language_entropy(lane, weight_of_team(params), 1)
    if params.language_term == DIFFERENCE:
        languages -= language_entropy(lane, 1, 0)
    return (potential + degree + extra + years / YEARS + languages) / TERMS


@rule
def diversity_of(lane: Lane, params: Any) -> float:
    """Return the mean of the entropies of gender and nationality in the team with the applicant."""
    weight = weight_of_team(params)
    total = weight * lane.employees + 1
    women = weight * lane.sums[GENDER] + lane.applicant[GENDER]
    foreign = weight * lane.sums[NATIONALITY] + lane.applicant[NATIONALITY]
    return (binary_entropy(women, total) + binary_entropy(foreign, total)) / 2


@rule
def weight_of_team(params: Any) -> int:
    """Return how often an employee counts beside a candidate; the code C counts employees twice."""
    return 2 if params.company_counts == DOUBLE else 1


@rule
def language_entropy(lane: Lane, team: int, candidate: int) -> float:
    """Return the entropy of the languages spoken, 0 to 1; each employee's languages count ``team`` times."""
    total, parts = 0, 0.0
    for k in range(DUTCH, GERMAN + 1):
        count = team * lane.sums[k] + candidate * lane.applicant[k]
        total += count
        parts += count_log(count)
    return max(0.0, math.log(total) - parts / total) / math.log(LANGUAGES) if total > 0 else 0.0


@rule
def binary_entropy(count: int, total: int) -> float:
    """Return the entropy in bits of two kinds, one of which has ``count`` of ``total``."""
    return max(0.0, math.log(total) - (count_log(count) + count_log(total - count)) / total) / math.log(2)


@rule
def count_log(count: int) -> float:
    """Return the count times its logarithm, 0 for 0."""
    return count * math.log(count) if count > 0 else 0.0


@rule
def bias_of(lane: Lane, params: Any) -> float:
    """Return the share of the bias that applies to the applicant."""
    place = params.bias_from
    for feature in range(len(FEATURES)):
        place += params.bias_steps[feature] * lane.applicant[feature]
    return params.tables[place]


# ----------------------------------------------------------------------------------------------- a step


@rule
def step(lane: Lane, action: Ints, params: Any, reward: Floats, facts: Facts) -> bool:
    """Decide on the applicant, let employees leave, draw the next applicant; return whether it terminates."""
    decide(lane, action[0], params, reward, facts)
    complete = lane.employees >= params.team_size
    if lane.time >= lane.next_departure and not complete:
        leave(lane, params)
    meet(lane, params, lane.time + 1)
    if params.alignment == NEXT_APPLICANT:
        mistake_for_next(lane, params, facts)
    return complete or (params.at_horizon == TERMINATE and lane.time + 1 >= params.horizon)


@rule
def decide(lane: Lane, action: int, params: Any, reward: Floats, facts: Facts) -> None:
    """Hire or reject the applicant."""
    facts.action[0] = action
    facts.outcome[0] = action
    if params.alignment == DECIDED:
        feedback.reveal(lane, params, facts, lane.qualified)
    lane.tally[group_of(lane), lane.qualified, action] += 1
    if action == HIRE:
        reward[0] = lane.hire_reward
        hire(lane, params)
    else:
        reward[0] = -lane.hire_reward


@rule
def hire(lane: Lane, params: Any) -> None:
    """Add the applicant to the team."""
    for feature in range(len(FEATURES)):
        lane.team[lane.employees, feature] = lane.applicant[feature]
    count_employee(lane, lane.employees, 1)
    departure = departure_of(lane, params)
    lane.leaves_at[lane.employees] = departure
    lane.next_departure = min(lane.next_departure, departure)
    lane.employees += 1
    lane.team_noise = params.noise * normal(lane.key, lane.time, TEAM_NOISE, 0)


@rule
def count_employee(lane: Lane, employee: int, sign: int) -> None:
    """Add an employee to the sums over the team, or take one out."""
    for feature in range(len(FEATURES)):
        lane.sums[feature] += sign * lane.team[employee, feature]
    if lane.team[employee, EXPERIENCE] > 0:
        lane.experienced += sign


@rule
def departure_of(lane: Lane, params: Any) -> int:
    """Return the time at whose end the applicant, hired now, will leave.

    An employee leaves at the end of each step with a constant probability, from the step after the hiring on. The
    number of steps is therefore geometric: one draw replaces one draw for each employee and step.
    """
    probability = yearly_chance(lane.applicant[AGE], params) / params.steps_per_year
    if not params.leaving or probability <= 0.0:
        return NEVER
    if probability >= 1.0:
        return lane.time + 1
    stays = math.log1p(-uniform(lane.key, lane.time, LEAVING, 0)) / math.log1p(-probability)
    return lane.time + 1 + int(min(stays, float(NEVER - lane.time - 2)))


@rule
def yearly_chance(age: int, params: Any) -> float:
    """Return the probability of leaving within a year at this age."""
    if age < 25:
        return params.leave_18_24
    if age < 35:
        return params.leave_25_34
    if age < 45:
        return params.leave_35_44
    if age < 55:
        return params.leave_45_54
    return params.leave_55_64


@rule
def leave(lane: Lane, params: Any) -> None:
    """Remove the employees who leave now, and record the time of the next departure."""
    lane.next_departure = NEVER
    employee = 0
    while employee < lane.employees:
        if lane.leaves_at[employee] <= lane.time:
            remove(lane, employee)
        else:
            lane.next_departure = min(lane.next_departure, lane.leaves_at[employee])
            employee += 1
    lane.team_noise = 0.0
    if lane.employees > 0:
        lane.team_noise = params.noise * normal(lane.key, lane.time, TEAM_NOISE, 0)


@rule
def remove(lane: Lane, employee: int) -> None:
    """Remove an employee; the last one moves to the free place."""
    count_employee(lane, employee, -1)
    lane.employees -= 1
    lane.departures += 1
    lane.leaves_at[employee] = lane.leaves_at[lane.employees]
    for feature in range(len(FEATURES)):
        lane.team[employee, feature] = lane.team[lane.employees, feature]


@rule
def mistake_for_next(lane: Lane, params: Any, facts: Facts) -> None:
    """Describe the next applicant, under the number of the one decided on, as the code C does."""
    describe(lane, params, facts)
    feedback.reveal(lane, params, facts, lane.qualified)


# ------------------------------------------------------------------------------- observations and feedback


@rule
def observe(lane: Lane, params: Any, observation: Floats32) -> None:
    """Write the company's state, then the applicant's features."""
    write_company(lane, params, observation[0])
    write_applicant(lane, observation[0, len(COMPANY) :])


@rule
def write_company(lane: Lane, params: Any, out: Floats32) -> None:
    """Write the team's state: sums of skills divided by the complete team's size, and shares of the employees."""
    skilled = lane.sums[DEGREE] + lane.sums[EXTRA] + lane.experienced
    out[0] = (skilled / 3 + lane.team_noise) / params.team_size
    out[1] = lane.sums[DEGREE] / params.team_size
    out[2] = lane.sums[EXTRA] / params.team_size
    out[3] = lane.sums[EXPERIENCE] / YEARS / params.team_size
    spoken = 0
    for k in range(DUTCH, GERMAN + 1):
        spoken += lane.sums[k]
    for k in range(LANGUAGES):
        out[SHARED_LANGUAGES + k] = lane.sums[DUTCH + k] / max(spoken, 1)
    write_shares(lane.sums[GENDER], lane.employees, out[SHARED_GENDERS:])
    write_shares(lane.sums[NATIONALITY], lane.employees, out[SHARED_NATIONALITIES:])


@rule
def write_shares(ones: int, size: int, out: Floats32) -> None:
    """Write the shares of the codes 0 and 1 in the team; 0 if it has no employees."""
    out[0] = (size - ones) / max(size, 1)
    out[1] = ones / max(size, 1)


@rule
def write_applicant(lane: Lane, out: Floats32) -> None:
    """Write the features, with ages and years scaled to [0, 1]."""
    for feature in range(len(FEATURES)):
        out[feature] = lane.applicant[feature]
    out[AGE] = (lane.applicant[AGE] - YOUNGEST) / YEARS
    out[EXPERIENCE] = lane.applicant[EXPERIENCE] / YEARS


@rule
def describe(lane: Lane, params: Any, facts: Facts) -> None:
    """Write the applicant's record."""
    write_applicant(lane, facts.features[0])
    facts.individual[0] = lane.time
    facts.sensitive[0, 0] = lane.applicant[GENDER]
    facts.sensitive[0, 1] = lane.applicant[NATIONALITY]
    facts.legitimate[0, 0] = lane.applicant[DEGREE] + lane.applicant[EXTRA]
    facts.group[0] = group_of(lane)


@rule
def group_of(lane: Lane) -> int:
    """Return the applicant's index in GROUPS."""
    return len(NATIONALITIES) * lane.applicant[GENDER] + lane.applicant[NATIONALITY]


@kernel
def judge_all(params: Any, lanes: Records) -> None:
    """Judge the applicants of all lanes again."""
    for b in range(lanes.shape[0]):
        judge(lanes[b], params)


# ------------------------------------------------------------------------------------------ the environment

TABLES = ("tables", "kinds", "traits_from", "languages_from", "bias_from", "bias_steps")

Code = namedtuple("Code", (*HiringParams._fields, *TABLES))  # type: ignore[misc]
"""What compiled rules receive: the parameters as numbers, and all tables in one array.

The tables are in one array because each array among the parameters costs every lane a tenth of a microsecond per step.

Attributes:
    tables: Shape (n,). From index 0 the cumulative shares of the kinds of people; from ``traits_from`` each kind's
        traits; from ``languages_from`` the cumulative shares of 16 sets of languages for each education; then the
        values of the bias.
    kinds: Number of kinds of people.
    bias_from: Index of the bias of a person whose features are all 0.
    bias_steps: Change of this index per unit of each feature, see `fair_envs.envs.hiring.bias.Table`.
"""


def is_known(name: str, value: Any) -> bool:
    """Return whether the value of the parameter is the name of something in this package."""
    return isinstance(value, str) and value in KNOWN[name]


def code_of(params: HiringParams, own: Mapping[str, Any]) -> Any:
    """Return what compiled rules receive.

    Args:
        params: The parameters.
        own: The user-defined ``"population"`` or ``"reward_bias"``, if any.
    """
    applicants = checked_people(own["population"]) if "population" in own else people(params.population)
    bias = tabulated(find_bias(own["reward_bias"]) if "reward_bias" in own else BIASES[params.reward_bias])
    parts = (applicants.cumulative(), applicants.traits, cumulative(language_shares()), bias.values)
    _, traits_from, languages_from, bias_from = np.cumsum([0, *(part.size for part in parts[:-1])]).tolist()
    tables = np.concatenate([part.ravel() for part in parts], dtype=np.float64)
    places = (len(applicants.weights), traits_from, languages_from, bias_from + bias.first, tuple(bias.steps.tolist()))
    return Code._make((*encode(params), tables, *places))


class Hiring(Rules):
    """A company that decides on one applicant after another, after Cimpean et al. (2025).

    **Description.** A company builds a team of 100. In each step one applicant comes, drawn from a population: age,
    gender, education, nationality and marital status together, then years of experience and languages. The company
    hires or rejects. The goodness of an applicant, the value to the team, depends only on skills unless
    ``diversity_weight`` is raised. Hiring is correct if the goodness reaches a threshold. Employees leave now and then.

    **Who decides and who is affected.** The company decides (one agent); the applicants are affected, one per step,
    each once. For an applicant the harm is not being hired. You can measure how much less often one group is hired
    (statistical parity), also among the qualified (equal opportunity: qualified people rejected), how often decisions
    about a group are wrong (overall accuracy equality), and how often a hired member of a group is not qualified
    (predictive parity and equality). The environment does not model people who never apply, nor later effects of being
    rejected.

    **Population.** Shares of 1,120 kinds of people aged 18 to 64, from counts of the Belgian statistical office (see
    ``data/README.md``). The paper calls it the Belgian population; its totals (712,488 people, 38 % of them foreign)
    fit the Brussels-Capital Region. Groups differ: foreign women hold extra degrees most often (43 %), foreign men
    least (34 %), and 41 % of foreign men have no degree. A policy that ignores groups therefore does not hire equal
    shares of them. ``population``: ``"belgian"``; ``"gender"``: 70 % men; ``"nationality_gender"``: 40 % each Belgian
    men and women, 15 % foreign men, 5 % foreign women; ``"gender_married"``: 25 % unmarried and 30 % married men, 20 %
    unmarried and 25 % married women; or your own table: columns ``age``, ``gender``, ``degree``, ``extra_degree``,
    ``nationality``, ``married`` and ``weight``, as a mapping, a DataFrame or the path of a CSV file.

    Experience: y years have a weight of y + 1, up to the maximum for the age and studies (age - 18, less 3 for a degree
    and 2 for an extra one). Languages: Dutch, French, English, German, depending on education; all applicants speak
    Dutch or French.

    **Goodness.** The mean of five terms, each comparing the team with the applicant to the team without:
    potential (how many of degree, extra degree, any experience, divided by 3, with noise), degree, extra degree,
    experience / 47, and the entropy (base 4) of the languages in the team with the applicant. With ``diversity_weight``
    w it is (1 - w) times this plus w times the mean entropy (base 2) of gender and nationality in that team. It lies
    between -1 and 1.

    **Sensitive attribute and legitimate factors.** ``gender`` (man, woman) and ``nationality`` (Belgian, foreign);
    groups are their four combinations. Legitimate factor: ``education`` (none, degree, extra_degree).

    **Action space.** ``Discrete(2)``: 0 reject, 1 hire.

    **Observation space.** ``Box`` of 23 numbers. First the company: potential, degrees, extra degrees, experience of
    the team (sums divided by ``team_size``); shares of Dutch, French, English, German among the languages spoken in it;
    shares of men, women, Belgians, foreigners in it. All are 0 in an empty team. Then the applicant: age ((age - 18) /
    47), gender (1: woman), degree, extra degree, nationality (1: foreign), married, experience (/ 47), Dutch, French,
    English, German (1: speaks it).

    **Rewards.** Hiring: goodness - ``threshold`` + noise, plus ``reward_bias_size`` for applicants favoured by the
    bias, between -1 and 1. Rejecting: the negative of the reward for hiring. ``reward_bias``: ``"none"``, ``"men"``,
    ``"belgian_men"``, or a function that takes features by name and returns the share of the size to add, given
    directly or by its import path: ``lambda age, married: age > 50 and married``. The bias changes only the reward,
    never the label. The return does not measure how often decisions are correct. If no employee leaves, rejecting all
    applicants earns about 39 in 1,000 steps, more than correct decisions do (33, after which the team is complete).
    Hiring from a goodness of 0.7 on earns about 45, with single episodes above 50. The paper's maximum of 46.53 is not
    an upper bound.

    **Interactions.** One individual per step: the applicant decided on, numbered by the step. ``fair_features``: the
    eleven numbers of the applicant. ``fair_action``: 1 hired. ``fair_feedback``: 1 if hiring was correct; revealed for
    all, for the hired, for all with a delay, or for none (``feedback``). ``fair_outcome``: 1 if hired. The oracle also
    gives the goodness (``"score"``).

    **Starting state.** A company without employees, and the first applicant.

    **Episode end.** Termination when the team is complete; truncation after ``horizon`` steps.

    **Order of a step.** First the decision; a hired applicant joins the team. Then employees leave (``leaving``), each
    with the yearly probability of their age divided by ``steps_per_year``, from the step after the hiring on. No
    employee leaves a complete team. Then the next applicant comes. By default one applicant comes on each of the 250
    working days of a year. An employee's age does not change.

    **Arguments.** The fields of `HiringParams`, each with its default and source. ``profile="authors"`` selects the
    published code's rules.

    **Differences from the paper and its code**, with the switches that restore their behaviour (together:
    ``profile="authors"``):

    * The record of a step describes the applicant decided on. The published code describes the next one, which nearly
      hides the fairness of a policy: ``alignment="next_applicant"``.
    * Employees leave, as the paper says. In its experiments they did not: ``leaving=False``. (Its unused code for
      leaving applies the yearly probability in each step, to one employee.)
    * An employee counts once in the entropies of the team with a candidate; in the code, twice:
      ``company_counts="double"``.
    * Reaching the horizon is truncation; in the code it is termination: ``at_horizon="terminate"``.
    * The noise of the potential is divided by the team's size, as in the code. The paper adds it undivided. The
      goodness of every applicant would then have a noise of 0.28, more than the differences between applicants.
    * The language term is the entropy itself, as in the code; the paper uses its increase:
      ``language_term="difference"``.
    * Goodness biases, which the code has but never uses, are left out.

    **References.** A. Cimpean, C. Orzan, C. Jonker, P. Libin, A. Nowé, "FAReL: A Framework for Fairness-Aware
    Reinforcement Learning", arXiv 2509.22232, 2025. Statbel, statbel.fgov.be.

    **Version history.** v0: first version.
    """

    name: ClassVar[str] = "hiring"
    drawn_by: ClassVar[str] = "fair_envs.envs.hiring.render:HiringRenderer"
    policies: ClassVar[Mapping[str, str]] = {
        "always": "fair_envs.evaluation.deciders:Always",
        "never": "fair_envs.evaluation.deciders:Never",
        "correct": "fair_envs.evaluation.deciders:Correct",
        "random-rate": "fair_envs.evaluation.deciders:RandomRate",
        "graduates": "fair_envs.envs.hiring.policies:Graduates",
        "alternate": "fair_envs.envs.hiring.policies:Alternating",
    }
    action_names: ClassVar[Sequence[str]] = ACTION_NAMES
    Params: ClassVar[type] = HiringParams
    presets = PROFILES
    sensitive_field: ClassVar[str] = "flipped"
    sensitive_features: ClassVar[tuple[str, ...]] = ("gender", "nationality")
    start, step, observe, describe = map(staticmethod, (start, step, observe, describe))

    def __init__(self, **given: Any) -> None:
        own = {name: given[name] for name in KNOWN.keys() & given.keys() if not is_known(name, given[name])}
        super().__init__(**{**given, **dict.fromkeys(own, OWN)})
        self.code = code_of(self.params, own)

    def lane(self, params: HiringParams) -> list[tuple[Any, ...]]:
        """Return the fields of one lane."""
        features, size = len(FEATURES), params.team_size
        return [
            ("applicant", np.int32, features),  # the one decided on next; ages and experience in years
            ("candidate_noise", np.float64),  # on the team's potential with the applicant
            ("reward_noise", np.float64),  # on the applicant's reward
            ("goodness", np.float64),  # of the applicant
            ("hire_reward", np.float64),
            ("qualified", np.int8),  # 1: hiring is correct
            ("flipped", np.int8, (1,)),  # 1: every applicant has the other gender, as in a counterfactual twin
            ("employees", np.int32),  # in the team
            ("team", np.int8, (size, features)),  # the first `employees` rows are the employees
            ("leaves_at", np.int32, size),  # time at whose end each employee leaves
            ("next_departure", np.int32),  # the earliest of these times
            ("departures", np.int32),  # so far
            ("sums", np.int32, features),  # sums of features over the team
            ("experienced", np.int32),  # employees with any experience
            ("team_noise", np.float64),  # on the team's potential
            ("tally", np.int32, (len(GROUPS), 2, 2)),  # applicants so far by group, qualified or not, hired or not
            *feedback.fields(params),
        ]

    def fair_spec(self, params: HiringParams) -> FairSpec:
        """Return who is affected: the applicants."""
        nominal = ("gender", "nationality", "married", "dutch", "french", "english", "german")
        return FairSpec(
            individuals=1,
            actions=len(ACTION_NAMES),
            features=FEATURES,
            nominal_features=nominal,
            sensitive_features=("age", "gender", "nationality", "married"),
            sensitive={"gender": GENDERS, "nationality": NATIONALITIES},
            legitimate={"education": EDUCATIONS},
            groups=GROUPS,
            favourable_action=HIRE,
            feedback=params.feedback,
            delay=params.delay if params.feedback == "delayed" else 0,
        )

    def observation_space(self, params: HiringParams) -> gym.spaces.Box:
        """Return the bounds of the company's state and of the applicant's features."""
        low, high = np.zeros(len(COMPANY) + len(FEATURES)), np.ones(len(COMPANY) + len(FEATURES))
        noise = LARGEST_NORMAL * params.noise / params.team_size
        low[0], high[0] = -noise, 1 + noise
        return gym.spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)

    def observed_features(self, params: HiringParams) -> tuple[str, ...]:
        """Return the names of all entries of an observation."""
        return (*COMPANY, *FEATURES)

    def action_space(self, params: HiringParams) -> gym.spaces.Discrete:
        """Return reject and hire."""
        return gym.spaces.Discrete(len(ACTION_NAMES))

    def flip(self, records: NDArray[np.void], who: Flags) -> None:
        """Flip the gender of the current and all later applicants, in place; the random numbers stay the same.

        Args:
            records: Lanes, shape (B,).
            who: Which lanes are flipped, shape (B, 1).
        """
        records["flipped"] ^= who.astype(np.int8)
        records["applicant"][:, GENDER] ^= who[:, 0].astype(np.int32)
        self._judge(records)

    def assign(self, records: NDArray[np.void], attribute: str, code: int) -> None:
        """Set the gender or nationality of the current applicants, all else equal, in place.

        Goodness, label and reward change where they depend on it.
        """
        columns = {"gender": GENDER, "nationality": NATIONALITY}
        if attribute not in columns:
            raise ValueError(f"attribute must be one of {', '.join(map(repr, columns))}, got {attribute!r}")
        if code not in (0, 1):
            raise ValueError(f"code must be 0 or 1, got {code!r}")
        records["applicant"][:, columns[attribute]] = code
        self._judge(records)

    def oracle(self, records: NDArray[np.void]) -> dict[str, NDArray[Any]]:
        """Return the labels of the current applicants as ``"feedback"`` and their goodness as ``"score"``."""
        return {
            "feedback": records["qualified"][:, np.newaxis].astype(np.int64),
            "score": np.array(records["goodness"])[:, np.newaxis],
        }

    def _judge(self, records: NDArray[np.void]) -> None:
        judge_all(self.code, readable(records))
