"""Play the planner of FairPursuit at four speeds: ``python benchmarks/planner.py``.

The pursuers are as fast as the evader or slower; greedy pursuers never capture it then. The planner and the greedy
pursuers play the same episodes at every speed.
"""

import time

import numpy as np
from rich.console import Console
from rich.table import Table

from fair_envs.baselines.team.play import TeamPlay, play_team
from fair_envs.envs.pursuit.policies import Greedy, Planner
from fair_envs.envs.pursuit.rules import Pursuit

EPISODES, SEED = 40, 0
# Captures in 40 episodes and their median length, from a planner without refinement in a separate simulation
KNOWN = {1.0: (39, 74), 0.9: (40, 98), 0.7: (40, 104), 0.5: (40, 121)}


def summary(plays: TeamPlay) -> dict[str, float]:
    """Return the number of captures and their median length; 0 if there are none."""
    steps = plays.steps[plays.captured]
    return {"captures": len(steps), "median_steps": float(np.median(steps)) if len(steps) else 0.0}


def measured(speed: float) -> dict[str, float]:
    """Return the results of the planner and of greedy pursuers at a speed, and the planner's time."""
    rules = Pursuit()
    greedy = play_team(Greedy(), rules, episodes=EPISODES, seed=SEED, speed=speed)
    begin = time.perf_counter()
    planned = play_team(Planner(), rules, episodes=EPISODES, seed=SEED, speed=speed)
    seconds = time.perf_counter() - begin
    return {
        "speed": speed,
        **summary(planned),
        "seconds_an_episode": seconds / EPISODES,
        "milliseconds_a_plan": 1e3 * seconds / np.ceil(planned.steps / Planner().every).sum(),
        "greedy_captures": summary(greedy)["captures"],
    }


def main() -> None:
    """Print the table."""
    play_team(Planner(samples=1), Pursuit(horizon=1), episodes=1, seed=SEED)  # compiles
    rows = [measured(speed) for speed in KNOWN]
    table = Table("speed", "captured", "steps", "s an episode", "ms a plan", "known", "greedy")
    for row in rows:
        captures, steps = KNOWN[row["speed"]]
        table.add_row(
            f"{row['speed']:g}",
            f"{row['captures']}",
            f"{row['median_steps']:g}",
            f"{row['seconds_an_episode']:.3f}",
            f"{row['milliseconds_a_plan']:.2f}",
            f"{captures}, {steps}",
            f"{row['greedy_captures']}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
