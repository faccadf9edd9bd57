"""The notions that the package measures: the name, other names in the literature, and what extreme values mean."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from fair_envs.support.parameters import meant

Kind = Literal["group", "individual", "welfare", "cost"]


@dataclass(frozen=True, kw_only=True)
class Notion:
    """One fairness notion among several; `docs/fairness.md` has its equation, harm and assumptions."""

    name: str  # also the name of a function in `fair_envs.metrics`, or of a notion on histories of decisions
    aliases: tuple[str, ...]
    kind: Kind
    question: str
    extremes: str
    source: str


NOTIONS: tuple[Notion, ...] = (
    Notion(
        name="demographic_parity",
        aliases=("statistical parity", "group parity", "independence", "dp", "sp"),
        kind="group",
        question="Are all groups selected equally often? Of agents: do all groups earn equally much?",
        extremes="0 is parity; of agents, positive: those without it earn more (form 'sum': less), ratio 1: everything",
        source="Dwork et al. 2012; for returns: La Malfa et al. 2024",
    ),
    Notion(
        name="conditional_parity",
        aliases=("conditional statistical parity", "conditional demographic parity", "csp"),
        kind="group",
        question="Do they earn as much among agents with the same value of a legitimate factor?",
        extremes="0 is parity; one number for each value of the factor",
        source="Corbett-Davies et al. 2017; for returns: La Malfa et al. 2024",
    ),
    Notion(
        name="counterfactual_fairness",
        aliases=("counterfactual disparity", "twin disparity", "cf"),
        kind="individual",
        question="Would the same agent earn as much without the attribute, all else being equal?",
        extremes="0 is fair; as a ratio, 1 or -1 when it earns nothing in one of the worlds",
        source="Kusner et al. 2017; for returns: La Malfa et al. 2024",
    ),
    Notion(
        name="individual_fairness",
        aliases=("fairness through awareness", "lipschitz fairness", "if"),
        kind="individual",
        question="Are similar people treated similarly?",
        extremes="0 is fair, 1 if people with equal features are treated in opposite ways; needs action probabilities",
        source="Dwork et al. 2012; as an objective: Cimpean et al. 2025",
    ),
    Notion(
        name="consistency",
        aliases=("consistency score complement", "nearest neighbour consistency", "csc"),
        kind="individual",
        question="Do people get the same decision as their nearest neighbours?",
        extremes="0 is fair, 1 if everyone's nearest neighbours get another decision",
        source="Zemel et al. 2013; as an objective: Cimpean et al. 2025",
    ),
    Notion(
        name="equal_opportunity",
        aliases=("true positive rate parity", "false negative error rate balance", "eo"),
        kind="group",
        question="Of the people who should be selected, is the same share selected in each group?",
        extremes="0 is fair, 1 if all in one group and none in another; needs labels",
        source="Hardt, Price and Srebro 2016",
    ),
    Notion(
        name="predictive_equality",
        aliases=("false positive rate parity", "false positive error rate balance", "pe"),
        kind="group",
        question="Of the people who should not be selected, is the same share selected in each group?",
        extremes="0 is fair, 1 if all in one group and none in another; needs labels",
        source="Corbett-Davies et al. 2017",
    ),
    Notion(
        name="equalized_odds",
        aliases=("equalised odds", "disparate mistreatment", "eqodds"),
        kind="group",
        question="Do both equal opportunity and predictive equality hold?",
        extremes="0 is fair, 1 is unfair; the larger of the two gaps, if both are defined; needs labels",
        source="Hardt, Price and Srebro 2016",
    ),
    Notion(
        name="predictive_parity",
        aliases=("outcome test", "positive predictive value parity", "pp"),
        kind="group",
        question="Of the selected people, is the decision correct equally often in each group?",
        extremes="0 is fair, 1 if always in one group and never in another; needs labels",
        source="Chouldechova 2017",
    ),
    Notion(
        name="conditional_use_accuracy_equality",
        aliases=("cuae",),
        kind="group",
        question="Are positive decisions, and also negative ones, correct equally often in each group?",
        extremes="0 is fair, 1 is unfair; the larger of the two gaps, if both are defined; needs labels",
        source="Berk et al. 2018",
    ),
    Notion(
        name="overall_accuracy_equality",
        aliases=("accuracy parity", "oae"),
        kind="group",
        question="Are decisions correct equally often in each group?",
        extremes="0 is fair, 1 if always in one group and never in another; needs labels",
        source="Berk et al. 2018",
    ),
    Notion(
        name="treatment_equality",
        aliases=("te",),
        kind="group",
        question="Are wrong rejections the same share of the errors in each group?",
        extremes="0 is fair, 1 if all errors in one group are wrong rejections and none in another; needs labels",
        source="Berk et al. 2018, there as the unbounded ratio of both kinds of errors",
    ),
    Notion(
        name="largest_gap",
        aliases=("largest pairwise gap", "maximum pairwise difference", "max-min gap"),
        kind="group",
        question="Among any number of groups, how far apart are the two that differ most?",
        extremes="0 is parity; no upper limit, in units of the return",
        source="the usual aggregation for more than two groups (Fairlearn)",
    ),
    Notion(
        name="price_of_fairness",
        aliases=("cost of fairness", "pof"),
        kind="cost",
        question="What does a group gain or lose when the fair method replaces the classic one?",
        extremes="0 % is no change; negative is a loss, -100 % a loss of everything",
        source="Bertsimas, Farias and Trichakis 2011; per group: La Malfa et al. 2025",
    ),
    Notion(
        name="utilitarian",
        aliases=("utilitarian welfare", "social welfare", "efficiency", "mean return"),
        kind="welfare",
        question="How much does an agent get on average?",
        extremes="larger is more; ignores how it is distributed",
        source="Bentham 1789",
    ),
    Notion(
        name="maximin",
        aliases=("minimum", "egalitarian welfare", "rawlsian welfare", "worst-off"),
        kind="welfare",
        question="How much does the worst-off agent get?",
        extremes="larger is better for the worst-off; at most the mean",
        source="Rawls 1971",
    ),
    Notion(
        name="nash_welfare",
        aliases=("nash social welfare", "geometric mean", "proportional fairness"),
        kind="welfare",
        question="How much do agents get, if equal relative gains count equally?",
        extremes="0 if one agent gets nothing; the mean at equality",
        source="Nash 1950; Kaneko and Nakamura 1979",
    ),
    Notion(
        name="gini",
        aliases=("gini coefficient", "gini index"),
        kind="welfare",
        question="How unequally is the total distributed?",
        extremes="0 is equality; (n - 1) / n is one agent with everything",
        source="Gini 1912",
    ),
    Notion(
        name="jain",
        aliases=("jain's index", "jain index", "jain's fairness index"),
        kind="welfare",
        question="An equal split among which share of the agents would be as concentrated?",
        extremes="1 is equality; 1 / n is one agent with everything",
        source="Jain, Chiu and Hawe 1984",
    ),
    Notion(
        name="atkinson",
        aliases=("atkinson index", "atkinson's index"),
        kind="welfare",
        question="What share of the total could be given up at no loss of welfare if the rest were split equally?",
        extremes="0 is equality; 1 is the greatest inequality",
        source="Atkinson 1970",
    ),
    Notion(
        name="theil",
        aliases=("theil index", "theil's t", "generalised entropy of order 1"),
        kind="welfare",
        question="How unequally is the total distributed, between groups and within them?",
        extremes="0 is equality; log n is one agent with everything",
        source="Theil 1967",
    ),
    Notion(
        name="wasserstein",
        aliases=("1-wasserstein distance", "earth mover's distance", "w1"),
        kind="group",
        question="How far apart are the groups after the decisions, on an ordered scale such as a score?",
        extremes="0 if the groups' shares are equal; the length of the scale if they are at opposite ends",
        source="Kantorovich 1942; as a long-term notion: Hu, Lear and Zhang 2024",
    ),
    Notion(
        name="total_variation_of_shares",
        aliases=("total variation of groups", "dissimilarity index"),
        kind="group",
        question="What share of a group would have to change state for the groups to be distributed alike?",
        extremes="0 if the groups' shares are equal; 1 if they have no state in common",
        source="Duncan and Duncan 1955",
    ),
    Notion(
        name="share_deviation",
        aliases=("demographic parity of shares",),
        kind="group",
        question="How far is the most unequal share of what is handed out from an equal share?",
        extremes="0 is an equal split; (n - 1) / n if one place gets everything",
        source="Hu, Lear and Zhang 2024",
    ),
    Notion(
        name="vaccination_gap",
        aliases=("vaccinations for each newly infected",),
        kind="group",
        question="Does each group get the same number of vaccinations per newly infected member?",
        extremes="0 is fair; no upper limit",
        source="Hu, Lear and Zhang 2024",
    ),
    Notion(
        name="delayed_impact",
        aliases=("long-term improvement", "active harm", "stagnation"),
        kind="group",
        question="Do decisions leave a group better off, unchanged, or worse off?",
        extremes="above 0 is improvement, 0 stagnation, below 0 harm, in units of the feature",
        source="Liu et al. 2018",
    ),
)


def find_notion(name: str) -> Notion:
    """Return the notion with that name or alias; case, hyphens and underscores make no difference.

    Raises:
        ValueError: The name is unknown.
    """
    return _BY_NAME[canonical_name("notion", name, [notion.name for notion in NOTIONS])]


_BY_NAME = {notion.name: notion for notion in NOTIONS}

LONGEST_ABBREVIATION = 6  # letters; shorter ones are too similar for suggestions, such as "eo" and "eqodds" for "EOd"


def canonical_name(argument: str, name: Any, known: Iterable[str]) -> str:
    """Return the one of the known names that a name or alias of a notion stands for.

    Args:
        argument: The name of the argument, for the error message.
        name: A name or alias such as ``"SP"``; case, hyphens and underscores make no difference.
        known: The names that are allowed.

    Raises:
        ValueError: The name stands for none of them.

    Example:
        >>> canonical_name("notion", "Equalised-Odds", ["equal_opportunity", "equalized_odds"])
        'equalized_odds'
    """
    names = list(known)
    meanings = {_plain(own): own for own in names}
    for own in filter(_BY_NAME.__contains__, names):
        meanings |= {_plain(alias): own for alias in _BY_NAME[own].aliases}
    if isinstance(name, str) and _plain(name) in meanings:
        return meanings[_plain(name)]
    raise ValueError(f"{argument} must be one of {', '.join(names)}, got {name!r}{_hint(name, names)}")


def _hint(name: Any, known: list[str]) -> str:
    """Return what is wrong with a name, or which one was probably meant; empty if unclear."""
    other = isinstance(name, str) and [own.name for own in NOTIONS if _plain(name) in map(_plain, _spellings(own))]
    if other:
        return f": {other[0]} is a notion on other data, see `fair-envs show notions`"
    spellings = [spelling for own in known for spelling in (_spellings(_BY_NAME[own]) if own in _BY_NAME else [own])]
    found = meant(name, [spelling for spelling in spellings if len(spelling) > LONGEST_ABBREVIATION])
    own = {repr(alias): notion for notion in known if notion in _BY_NAME for alias in _BY_NAME[notion].aliases}
    return next((f"; did you mean {own[alias]!r}?" for alias in own if alias in found), found)


def _spellings(notion: Notion) -> tuple[str, ...]:
    return notion.name, *notion.aliases


class OneOf:
    """The annotation of a setting that names one of several notions: ``Annotated[str, OneOf("gini", "jain")]``."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def __call__(self, argument: str, name: Any) -> str:
        """Return the canonical name, see `canonical_name`."""
        return canonical_name(argument, name, self.names)


def notions_table() -> str:
    """Return the table that `fair-envs show notions` prints."""
    return "\n\n".join(_entry(notion) for notion in NOTIONS)


def _entry(notion: Notion) -> str:
    return "\n".join(
        (
            f"{notion.name} ({notion.kind})",
            f"  asks      {notion.question}",
            f"  extremes  {notion.extremes}",
            f"  aliases   {', '.join(notion.aliases)}",
            f"  source    {notion.source}",
        )
    )


def _plain(name: str) -> str:
    return name.lower().replace("-", " ").replace("_", " ").strip()
