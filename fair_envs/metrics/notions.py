"""The notions that the package measures: one name each, its other names in the literature, what its extremes mean."""

from dataclasses import dataclass
from typing import Literal

from fair_envs.parameters import meant

Kind = Literal["group", "individual", "welfare", "cost"]


@dataclass(frozen=True, kw_only=True)
class Notion:
    """One definition among several; `docs/fairness.md` has the equation, the harm and the assumptions."""

    name: str  # also the function in `fair_envs.metrics`, or the name of one of its notions on histories of decisions
    aliases: tuple[str, ...]
    kind: Kind
    question: str
    extremes: str
    source: str


NOTIONS: tuple[Notion, ...] = (
    Notion(
        name="demographic_parity",
        aliases=("statistical parity", "group parity", "independence", "dp"),
        kind="group",
        question="Do agents with the sensitive attribute earn as much as those without it?",
        extremes="0 is parity; as a ratio, 1 or -1 when one side earns nothing",
        source="Dwork et al. 2012; for returns: La Malfa et al. 2024",
    ),
    Notion(
        name="conditional_parity",
        aliases=("conditional statistical parity", "conditional demographic parity", "csp"),
        kind="group",
        question="Do they, among agents with the same value of a legitimate factor?",
        extremes="0 is parity; one number for each value of the factor",
        source="Corbett-Davies et al. 2017; for returns: La Malfa et al. 2024",
    ),
    Notion(
        name="counterfactual_fairness",
        aliases=("counterfactual disparity", "twin disparity", "cf"),
        kind="individual",
        question="Would the same agent earn as much without the attribute, everything else equal?",
        extremes="0 is fair; as a ratio, 1 or -1 when it earns nothing in one of the worlds",
        source="Kusner et al. 2017; for returns: La Malfa et al. 2024",
    ),
    Notion(
        name="individual_fairness",
        aliases=("fairness through awareness", "lipschitz fairness", "if"),
        kind="individual",
        question="Are people who are alike treated alike?",
        extremes="0 is fair, 1 if people of the same features are treated in opposite ways; needs action probabilities",
        source="Dwork et al. 2012; as an objective: Cimpean et al. 2025",
    ),
    Notion(
        name="consistency",
        aliases=("consistency score complement", "nearest neighbour consistency", "csc"),
        kind="individual",
        question="Are the people nearest to each one decided on alike?",
        extremes="0 is fair, 1 if the nearest of everybody are decided on otherwise",
        source="Zemel et al. 2013; as an objective: Cimpean et al. 2025",
    ),
    Notion(
        name="equal_opportunity",
        aliases=("true positive rate parity", "false negative error rate balance", "eo"),
        kind="group",
        question="Of those who should be decided for, is the same share in each group?",
        extremes="0 is fair, 1 if all in one group and none in another; needs feedback",
        source="Hardt, Price and Srebro 2016",
    ),
    Notion(
        name="predictive_equality",
        aliases=("false positive rate parity", "false positive error rate balance", "pe"),
        kind="group",
        question="Of those who should not be decided for, is the same share in each group?",
        extremes="0 is fair, 1 if all in one group and none in another; needs feedback",
        source="Corbett-Davies et al. 2017",
    ),
    Notion(
        name="equalised_odds",
        aliases=("equalized odds", "disparate mistreatment", "eqodds"),
        kind="group",
        question="Do both hold, equal opportunity and predictive equality?",
        extremes="0 is fair, 1 the other extreme of the larger of the two gaps, if both are defined; needs feedback",
        source="Hardt, Price and Srebro 2016",
    ),
    Notion(
        name="predictive_parity",
        aliases=("outcome test", "positive predictive value parity", "pp"),
        kind="group",
        question="Of those decided for, is the decision right as often in each group?",
        extremes="0 is fair, 1 if always in one group and never in another; needs feedback",
        source="Chouldechova 2017",
    ),
    Notion(
        name="conditional_use_accuracy_equality",
        aliases=("cuae",),
        kind="group",
        question="Are decisions for and decisions against each right as often in each group?",
        extremes="0 is fair, 1 the other extreme of the larger of the two gaps, if both are defined; needs feedback",
        source="Berk et al. 2018",
    ),
    Notion(
        name="overall_accuracy_equality",
        aliases=("accuracy parity", "oae"),
        kind="group",
        question="Are decisions right as often in each group?",
        extremes="0 is fair, 1 if always in one group and never in another; needs feedback",
        source="Berk et al. 2018",
    ),
    Notion(
        name="treatment_equality",
        aliases=("te",),
        kind="group",
        question="Are the errors of each group wrong refusals in the same share?",
        extremes="0 is fair, 1 if all errors in one group are wrong refusals and none in another; needs feedback",
        source="Berk et al. 2018, there as the ratio of both kinds of errors, without a bound",
    ),
    Notion(
        name="largest_gap",
        aliases=("largest pairwise gap", "maximum pairwise difference", "max-min gap"),
        kind="group",
        question="How far apart are the two groups that differ most, among any number of groups?",
        extremes="0 is parity; no upper limit, in units of the return",
        source="the usual aggregation for more than two groups (Fairlearn)",
    ),
    Notion(
        name="price_of_fairness",
        aliases=("cost of fairness", "pof"),
        kind="cost",
        question="What does a group gain or lose when the fair method replaces the classic one?",
        extremes="0 % is no price; negative is a loss, -100 % a loss of everything",
        source="Bertsimas, Farias and Trichakis 2011; per group: La Malfa et al. 2025",
    ),
    Notion(
        name="utilitarian",
        aliases=("utilitarian welfare", "social welfare", "efficiency", "mean return"),
        kind="welfare",
        question="How much does an agent have on average?",
        extremes="larger is more; blind to who has it",
        source="Bentham 1789",
    ),
    Notion(
        name="maximin",
        aliases=("minimum", "egalitarian welfare", "rawlsian welfare", "worst-off"),
        kind="welfare",
        question="How much does the worst-off agent have?",
        extremes="larger is better for the worst-off; at most the mean",
        source="Rawls 1971",
    ),
    Notion(
        name="nash_welfare",
        aliases=("nash social welfare", "geometric mean", "proportional fairness"),
        kind="welfare",
        question="How much do agents have, counting relative gains alike?",
        extremes="0 if one agent has nothing; the mean at equality",
        source="Nash 1950; Kaneko and Nakamura 1979",
    ),
    Notion(
        name="gini",
        aliases=("gini coefficient", "gini index"),
        kind="welfare",
        question="How unequally is the whole shared out?",
        extremes="0 is equality; (n - 1) / n is one agent with everything",
        source="Gini 1912",
    ),
    Notion(
        name="jain",
        aliases=("jain's index", "jain index", "jain's fairness index"),
        kind="welfare",
        question="What share of the agents would an equal split of this concentration serve?",
        extremes="1 is equality; 1 / n is one agent with everything",
        source="Jain, Chiu and Hawe 1984",
    ),
    Notion(
        name="atkinson",
        aliases=("atkinson index", "atkinson's index"),
        kind="welfare",
        question="What share of the whole could an equal split give up at no loss of welfare?",
        extremes="0 is equality; 1 is the other extreme",
        source="Atkinson 1970",
    ),
    Notion(
        name="theil",
        aliases=("theil index", "theil's t", "generalised entropy of order 1"),
        kind="welfare",
        question="How unequally is the whole shared out, between groups and within them?",
        extremes="0 is equality; log n is one agent with everything",
        source="Theil 1967",
    ),
    Notion(
        name="wasserstein",
        aliases=("1-wasserstein distance", "earth mover's distance", "w1"),
        kind="group",
        question="How far apart have decisions brought the groups, on an ordered scale such as a score?",
        extremes="0 if the groups' shares are equal; the length of the scale if they stand at its ends",
        source="Kantorovich 1942; as a long-term notion: Hu, Lear and Zhang 2024",
    ),
    Notion(
        name="total_variation_of_shares",
        aliases=("total variation of groups", "dissimilarity index"),
        kind="group",
        question="What share of a group would have to change its state for the groups to be alike?",
        extremes="0 if the groups' shares are equal; 1 if they have no state in common",
        source="Duncan and Duncan 1955",
    ),
    Notion(
        name="share_deviation",
        aliases=("demographic parity of shares",),
        kind="group",
        question="How far is the share of what is given out from an equal one, where it is furthest?",
        extremes="0 is an equal split; (n - 1) / n is one place with everything",
        source="Hu, Lear and Zhang 2024",
    ),
    Notion(
        name="vaccination_gap",
        aliases=("vaccinations for each newly infected",),
        kind="group",
        question="Does each group get as many vaccinations for each of its newly infected?",
        extremes="0 is fair; no upper limit",
        source="Hu, Lear and Zhang 2024",
    ),
    Notion(
        name="delayed_impact",
        aliases=("long-term improvement", "active harm", "stagnation"),
        kind="group",
        question="Do decisions leave a group better off than it was, as it was, or worse?",
        extremes="above 0 is improvement, 0 stagnation, below 0 harm, in units of the feature",
        source="Liu et al. 2018",
    ),
)


def find_notion(name: str) -> Notion:
    """Return the notion of that name or alias; case, hyphens and underscores make no difference."""
    wanted = _plain(name)
    for notion in NOTIONS:
        if wanted in map(_plain, (notion.name, *notion.aliases)):
            return notion
    known = [notion.name for notion in NOTIONS]
    names = {own: notion.name for notion in NOTIONS for own in (notion.name, *notion.aliases)}
    raise ValueError(f"notion must be one of {', '.join(known)}, got {name!r}{meant(name, names)}")


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
