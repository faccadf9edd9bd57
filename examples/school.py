"""Your own environment with fair-envs: a teacher passes or fails students of two groups.

The environment does not depend on fair-envs. `Annotate` says where the record of each decision comes from: the group is
an entry of the observation, and the label (whether the student was prepared) is in ``info``. Then notions can be
measured, and wrappers and learners work. `add_task` says what is measured in it, and names teachers for comparison.

Run it with ``python examples/school.py``; it takes less than half a minute. After ``import school``,
``gym.make("School-v0")`` makes the environment. In the folder of this file, ``fair-envs train ppo school:School-v0``
trains on it; ``docs/own-environment.md`` shows further commands.
"""

from collections.abc import Callable, Iterator
from statistics import mean
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.baselines import PCN, PCNSettings, cover
from fair_envs.metrics import GroupNotion, History, SlidingWindow
from fair_envs.metrics.history import Full
from fair_envs.tasks import Task, add_task
from fair_envs.wrappers import Annotate, FairnessObjectives, FairnessPenalty

FAIL, PASS = range(2)
GROUPS = ("day", "evening")
NOTIONS = ("demographic_parity", "equal_opportunity")
MEMORY = SlidingWindow(200)  # gaps in rewards compare the last 200 students

Teacher = Callable[[NDArray[Any]], NDArray[Any]]
"""Decides from observations (..., 3): score, whether it is an evening student, share of prepared classmates.

The second argument, uniform random numbers, is not used; `fair_envs.evaluate` passes it to policies.
"""


# ------------------------------------------------------------------------------------------------- the environment


class School(gym.Env[NDArray[np.float32], int]):
    """A teacher sees one exam after another, and passes or fails the student.

    Passing a prepared student earns 1, passing an unprepared one costs 2. Exams of evening students are scored too low.
    A prepared student who passes encourages the group: more of its next students are prepared. One who fails
    discourages it. So a teacher who corrects the scores is fairer, and earns more in the long term.

    Args:
        students: Number of students in a term, which is one episode.
        penalty: How much lower evening students score than day students who are equally prepared.
        influence: How much the share of prepared students changes after each prepared student.
    """

    observation_space = gym.spaces.Box(0, 1, (3,), np.float32)
    action_space: Any = gym.spaces.Discrete(2)

    def __init__(self, *, students: int = 30, penalty: float = 0.2, influence: float = 0.02) -> None:
        self.students, self.penalty, self.influence = students, penalty, influence

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start a term in which half of each group is prepared."""
        super().reset(seed=seed)
        self.graded, self.shares = 0, np.array([0.5, 0.5])
        return self.next_student(), {}

    def next_student(self) -> NDArray[np.float32]:
        """Return what the teacher sees of the next student."""
        self.evening = int(self.np_random.random() < 0.4)
        self.prepared = bool(self.np_random.random() < self.shares[self.evening])
        score = self.np_random.normal(0.3 + 0.4 * self.prepared - self.penalty * self.evening, 0.1)
        return np.array([np.clip(score, 0, 1), self.evening, self.shares[self.evening]], np.float32)

    def step(self, action: int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Pass or fail the student."""
        info, passed = {"prepared": self.prepared}, int(action) == PASS
        reward = (1.0 if self.prepared else -2.0) if passed else 0.0
        if self.prepared:
            self.shares[self.evening] += self.influence * (passed - self.shares[self.evening])
        self.graded += 1
        return self.next_student(), reward, False, self.graded == self.students, info


def annotated_school(**parameters: Any) -> Annotate:
    """Return the school with the record of its decisions in ``info``."""
    return Annotate(
        School(**parameters),
        sensitive={"group": GROUPS},
        sources={"group": 1},
        label="prepared",
        features=("score", "evening", "prepared classmates"),
    )


gym.register("School-v0", entry_point=annotated_school)
add_task(
    Task(
        env_id="School-v0",
        summary="Prepared students should pass equally often in both groups.",
        short="equal_opportunity",
        rate="equal_opportunity",
        scripted=("school:one_threshold", "school:corrected_threshold"),
        steps=20_000,
    )
)


# --------------------------------------------------------------------------------------- measuring scripted teachers


def pass_everyone(observation: NDArray[Any], uniforms: Any = None) -> NDArray[Any]:
    """Pass every student."""
    return np.full(observation.shape[:-1], PASS)


def one_threshold(observation: NDArray[Any], uniforms: Any = None) -> NDArray[Any]:
    """Pass scores above the middle between prepared and unprepared day students."""
    return np.where(observation[..., 0] > 0.5, PASS, FAIL)


def corrected_threshold(observation: NDArray[Any], uniforms: Any = None) -> NDArray[Any]:
    """Correct the scores of evening students before comparing them."""
    return np.where(observation[..., 0] + 0.2 * observation[..., 1] > 0.5, PASS, FAIL)


TEACHERS: dict[str, Teacher] = {
    "pass everyone": pass_everyone,
    "one threshold": one_threshold,
    "corrected threshold": corrected_threshold,
}


def measured(teacher: Teacher, *, terms: int = 40) -> dict[str, float]:
    """Return the reward per student, and the gap of each notion over all decisions: 0 is fair, 1 the largest."""
    env: Any = gym.make("School-v0")
    history, rewards = History(Full(), env.get_wrapper_attr("fair_spec"), keep=True), []
    for term in range(terms):
        for reward, info in played(env, teacher, seed=term):
            history.add(info)
            rewards.append(reward)
    return {"reward": mean(rewards), **{name: float(GroupNotion(name=name).gap(history)[0]) for name in NOTIONS}}


def played(env: Any, teacher: Teacher, *, seed: int) -> Iterator[tuple[float, dict[str, Any]]]:
    """Yield the reward and the info of each step of a term."""
    observation, _ = env.reset(seed=seed)
    ended = False
    while not ended:
        observation, reward, _, ended, info = env.step(int(teacher(observation)))
        yield float(reward), info


# ------------------------------------------------------------------------------------------- fairness in the reward


def penalised(teacher: Teacher, *, alpha: float = 1.0, terms: int = 40) -> float:
    """Return the mean reward if ``alpha`` times the gap in equal opportunity is subtracted from each reward."""
    env = FairnessPenalty(gym.make("School-v0"), notions="equal_opportunity", history=MEMORY, alpha=alpha)
    return mean([reward for term in range(terms) for reward, _ in played(env, teacher, seed=term)])


# ------------------------------------------------------------------------- learning trade-offs from a vector reward


def learned(steps: int, *, seed: int = 0) -> list[dict[str, float]]:
    """Train Pareto Conditioned Networks, and return the result of each learned trade-off on test terms.

    The reward is the vector [performance, -gap in equal opportunity].
    """
    env = FairnessObjectives(gym.make_vec("School-v0", num_envs=20), "equal_opportunity", MEMORY)
    settings = PCNSettings(episodes=20, updates=100, learning_rate=3e-3)
    found = cover(PCN(env, settings=settings, seed=seed).learn(steps), episodes=20)
    return [
        {"reward": float(reward), "equal_opportunity": -float(gap)}
        for reward, gap in found.means / found.lengths.mean()
    ]


# ------------------------------------------------------------------------------------------------------- all of it


def main(steps: int = 20_000) -> dict[str, dict[str, float]]:
    """Print the report and the results of scripted and learned teachers, and return the results."""
    print(annotated_school().found(), end="\n\n")
    found = {name: {**measured(own), "penalised reward": penalised(own)} for name, own in TEACHERS.items()}
    found |= {f"PCN, trade-off {number}": values for number, values in enumerate(learned(steps), start=1)}
    for name, values in found.items():
        print(f"{name:20}", "  ".join(f"{key} {value:.3f}" for key, value in values.items()))
    return found


if __name__ == "__main__":
    main()
