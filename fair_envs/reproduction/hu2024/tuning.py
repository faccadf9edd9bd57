"""The choice of each arm's one tuned setting, with the same budget for every arm, on seeds that no result uses.

The scale ``tuning`` of the study trains PPO, and every tuned arm with each of the four values of its knob, with two
seeds from 1000 on. `chosen` applies one rule to all arms.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fair_envs.experiments import tables
from fair_envs.experiments.seeds import Arm
from fair_envs.reproduction import study
from fair_envs.reproduction.claims import Claim
from fair_envs.reproduction.hu2024.jobs import KNOBS, SCALES, TUNED, WORLDS, Key, Label, Scale, tried_name
from fair_envs.reproduction.hu2024.processes import World
from fair_envs.reproduction.study import Picture, Size

KEPT = 0.9  # share of PPO's utility that a setting must keep
UTILITIES: Mapping[World, str] = {"lending": "profit", "attention": "utility", "epidemic": "utility"}


def unfairness(arm: Arm, classic: Arm) -> float:
    """Return the mean of short-term and long-term unfairness, each divided by PPO's."""
    parts = [arm.values(name).mean() / max(classic.values(name).mean(), 1e-9) for name in ("short", "long")]
    return float(sum(parts) / 2)


def keeps(arm: Arm, classic: Arm, world: World) -> float:
    """Return an arm's utility divided by PPO's."""
    name = UTILITIES[world]
    return float(arm.values(name).mean() / max(classic.values(name).mean(), 1e-9))


def chosen(arms: Mapping[Key, Arm], world: World, name: Label) -> float:
    """Return the value of an arm's knob that is least unfair among those that keep 90 % of PPO's utility.

    If none does, it is the one with the highest utility.
    """
    classic = arms[Key(world, "PPO")]
    found = {value: arms[Key(world, tried_name(name, value))] for value in KNOBS[name].values}
    enough = {value: arm for value, arm in found.items() if keeps(arm, classic, world) >= KEPT}
    if not enough:
        return max(found, key=lambda value: keeps(found[value], classic, world))
    return min(enough, key=lambda value: unfairness(enough[value], classic))


@dataclass(frozen=True, kw_only=True)
class TuningReport(study.Report[Scale]):
    """The results of the tuning, and the chosen values."""

    paper = "hu2024"
    scales = SCALES

    def question(self) -> str:
        """Return what is tuned."""
        return "This is no result: it chooses one setting of each arm, before the study is run."

    def runs(self) -> str:
        """Return the rule."""
        return (
            f"Each arm has one knob with four values, and {self.scale.seeds} seeds from {self.scale.first_seed} on, "
            "which no result uses. The chosen value has the lowest mean of short-term and long-term unfairness, each "
            f"divided by PPO's, among those that keep {KEPT:.0%} of PPO's utility; if none does, it is the one with "
            "the highest utility."
        )

    def sizes(self) -> list[Size]:
        """Return the steps of the trainings."""
        return [Size(f"steps of a training, {world}", steps, None) for world, steps in self.scale.steps.items()]

    def claims(self) -> list[Claim]:
        """Return no claims."""
        return []

    def limitations(self) -> str:
        """Return what the runs cannot show, and how they differ from the paper's."""
        return "* The choice is noisy: two seeds a value, and no intervals are used."

    def sections(self) -> dict[str, str]:
        """Return the chosen values, and all results."""
        choice = {world: {name: chosen(self.arms, world, name) for name in TUNED[world]} for world in WORLDS}
        rows: list[list[tables.Cell]] = []
        for world in WORLDS:
            classic = self.arms[Key(world, "PPO")]
            rows += [
                [
                    str(key),
                    *(arm.estimate(name) for name in ("short", "long", UTILITIES[world])),
                    f"{unfairness(arm, classic):.3f}",
                    f"{keeps(arm, classic, world):.3f}",
                ]
                for key, arm in self.arms.items()
                if key.world == world
            ]
        header = ["arm", "short-term", "long-term", "utility", "unfairness / PPO's", "utility / PPO's"]
        lines = [f"    {world!r}: {values!r}," for world, values in choice.items()]
        return {
            "The chosen values, for `TUNED`": "\n".join(["```python", "{", *lines, "}", "```"]),
            "All values": tables.markdown(header, rows),
        }

    def draw(self) -> list[Picture]:
        """Return no figures."""
        return []
