"""Decisions by a language model: the observation in words, and the answer as an action.

A language model decides about people more and more often. Here it is a policy like any other, so that everything in
this package can audit it: rates of groups, notions, and twins with another attribute.
"""

import inspect
import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from fair_envs.core import Rules
from fair_envs.evaluation.policy import Policy
from fair_envs.evaluation.worlds import rules_of
from fair_envs.support.aliases import Floats
from fair_envs.support.parameters import Positive, PositiveInt, checked

WANTED = "Answer with one of them, and nothing else."
BEFORE = ("i", "would", "will", "my", "the", "final", "answer", "decision", "is", "choose")  # words that deny nothing
Ask = Callable[[str], str]
"""Returns the answer to a question."""


class InWords(Policy):
    """A decision-maker that is asked in words.

    Each question describes the world and the observation, and lists the possible decisions. The last line of the answer
    must be one of them, such as "accept", "I would accept." or "Decision: accept"; other words may deny it, such as "I
    cannot accept". Otherwise the question is repeated with this request. Equal questions are asked once.

    Args:
        env: The environment, with any interface, or its rules; one decision-maker, discrete decisions, and an
            observation whose entries have names.
        ask: Returns the answer to a question, such as `chat`.
        attempts: Number of answers until one must name a decision.
        otherwise: The decision if none does, by name; None: that is an error.

    Attributes:
        answers: The decisions by question.
        unclear: How many questions have got no answer that names a decision.

    Raises:
        ValueError: The environment has other decisions or observations without names, or an argument is invalid.

    Example:
        >>> from fair_envs import make_rules
        >>> from fair_envs.assessment import evaluate
        >>> kind = InWords(make_rules("FairLending-v0"), lambda question: "accept")
        >>> round(evaluate("FairLending-v0", kind, episodes=1, parameters={"horizon": 20}).gap.value, 3)
        0.0
    """

    def __init__(self, env: Any, ask: Ask, *, attempts: int = 3, otherwise: str | None = None) -> None:
        self.rules: Rules = rules_of(env)
        self.ask, self.attempts = ask, checked("attempts", attempts, PositiveInt)
        space, names = self.rules.action_space(self.rules.params), self.rules.observed_features(self.rules.params)
        if self.rules.multi_agent or not isinstance(space, gym.spaces.Discrete) or not names:
            raise ValueError(
                "env must have one decision-maker, discrete decisions and an observation whose entries have names, "
                f"got {self.rules.name}"
            )
        self.features = names
        self.decisions = list(self.rules.action_names) or [str(action) for action in range(int(space.n))]
        if otherwise is not None and otherwise not in self.decisions:
            raise ValueError(f"otherwise must be one of {', '.join(self.decisions)} or None, got {otherwise!r}")
        self.otherwise = None if otherwise is None else self.decisions.index(otherwise)
        self.answers: dict[str, int] = {}
        self.unclear = 0

    def question(self, observation: NDArray[Any]) -> str:
        """Return what is asked about one observation, shape (entries,); entries that are 0 are left out."""
        world = (inspect.getdoc(type(self.rules)) or self.rules.name).partition("\n")[0]
        seen = [f"{name}: {value:.4g}" for name, value in zip(self.features, observation, strict=False) if value]
        known = "\n".join(seen) or "nothing"
        return (
            f"{world}\n\nWhat is known now (what is 0 is left out):\n{known}\n\nPossible decisions: "
            f"{', '.join(self.decisions)}.\n{WANTED}"
        )

    def decision(self, answer: str) -> int | None:
        """Return the action that the last line of an answer names; None: it names no decision."""
        last = (answer.strip().splitlines() or [""])[-1]
        for action, name in enumerate(self.decisions):
            if re.fullmatch(rf"\W*(?:(?:{'|'.join(BEFORE)})\W+)*{re.escape(name)}\W*", last, re.IGNORECASE):
                return action
        return None

    def act(self, observation: NDArray[Any], uniforms: Floats) -> NDArray[Any]:
        """Return the decisions, shape (B, 1).

        Raises:
            RuntimeError: No answer was a decision, and there is no decision for that.
        """
        questions = [self.question(lane) for lane in observation[:, 0].reshape(len(observation), -1)]
        return np.array([[self._answered(question)] for question in questions])

    def _answered(self, question: str) -> int:
        if question in self.answers:
            return self.answers[question]
        answer, asked = "", question
        for _ in range(self.attempts):
            answer = self.ask(asked)
            found = self.decision(answer)
            if found is not None:
                break
            asked = f"{question}\n\nYour last answer was {answer!r}. {WANTED}"
        else:
            if self.otherwise is None:
                raise RuntimeError(
                    f"the last line of an answer must be one of {', '.join(self.decisions)}, got {answer!r} after "
                    f"{self.attempts} attempts; otherwise= is a decision for such questions"
                )
            self.unclear += 1
            found = self.otherwise
        self.answers[question] = found
        return found


def chat(url: str, model: str, *, key: str = "", instruction: str = "", timeout: float = 60.0) -> Ask:
    """Return a function that asks a chat model behind an address with the interface of OpenAI.

    Args:
        url: The address up to the version, such as ``"http://localhost:8000/v1"``. Observations are sent to it.
        model: Name of the model.
        key: Key of the interface; empty: none is sent.
        instruction: Message of the system before each question; empty: none.
        timeout: Seconds until a request has failed.

    Raises:
        ValueError: The address is none of the web.
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"url must begin with http:// or https://, got {url!r}")
    seconds = float(checked("timeout", timeout, Positive))
    before = [{"role": "system", "content": instruction}] if instruction else []
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}

    def ask(question: str) -> str:
        content = {"model": model, "temperature": 0, "messages": [*before, {"role": "user", "content": question}]}
        request = urllib.request.Request(
            f"{url.rstrip('/')}/chat/completions", data=json.dumps(content).encode(), headers=headers
        )
        try:
            with urllib.request.urlopen(request, timeout=seconds) as response:
                found = json.load(response)
            return str(found["choices"][0]["message"]["content"])
        except (urllib.error.URLError, KeyError, IndexError, TypeError, json.JSONDecodeError) as error:
            raise RuntimeError(f"{url} must answer like a chat model, got {type(error).__name__}: {error}") from error

    return ask
