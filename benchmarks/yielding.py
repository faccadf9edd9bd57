"""Does it help slow agents if fast ones yield? ``python benchmarks/yielding.py --out FILE`` asks the greedy harvester.

All agents of FairHarvest harvest greedily, and those with full speed stay in a share of the steps. The table shows what
each group earns.
"""

import argparse
from pathlib import Path
from typing import Any

import fair_envs
from fair_envs.envs.harvest.policies import GreedyHarvester
from fair_envs.envs.harvest.rules import STAY
from fair_envs.experiments.tables import markdown
from fair_envs.support.files import replace_file
from fair_envs.tasks import task_of

ENV_ID = "FairHarvest-v0"
SHARES = (0.0, 0.5, 1.0)


class Yielding(GreedyHarvester):
    """The greedy harvester, whose full-speed agents stay in a share of the steps.

    Args:
        rules: FairHarvest's.
        share: The share, in [0, 1].
    """

    def __init__(self, rules: Any, *, share: float) -> None:
        super().__init__(rules)
        self.share = share

    def act(self, observation: Any, uniforms: Any) -> Any:
        """Return the actions, shape (B, agents)."""
        actions = super().act(observation, uniforms)
        actions[(self.lanes.records["sensitive"] == 0) & (uniforms < self.share)] = STAY
        return actions


def main() -> None:
    """Play the episodes, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--out", type=Path, default=Path("runs/yielding.md"), help="File of the table.")
    parser.add_argument("--episodes", type=int, default=8, help="Episodes for each share.")
    given = parser.parse_args()
    rules = task_of(ENV_ID).rules()
    rows = []
    for share in SHARES:
        found = fair_envs.evaluate(ENV_ID, Yielding(rules, share=share), episodes=given.episodes, name="yielding")
        rows.append([f"{share:g}", *found.rates.values()])
    given.out.parent.mkdir(parents=True, exist_ok=True)
    text = markdown(["share of steps in which full-speed agents stay", *found.groups], rows)
    replace_file(given.out, f"{text}\n".encode())
    print(text)


if __name__ == "__main__":
    main()
