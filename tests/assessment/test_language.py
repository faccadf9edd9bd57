"""A language model is asked in words, and its answer is an action."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import numpy as np
import pytest

from fair_envs import make_rules
from fair_envs.assessment import evaluate
from fair_envs.evaluation import InWords, chat


def test_a_question_says_what_is_observed_and_what_can_be_decided() -> None:
    rules = make_rules("FairLending-v0")
    observation = np.zeros(25)
    observation[[4, 7]] = 1
    question = InWords(rules, str).question(observation)
    assert "A bank that lends" in question and "score_4: 1\nadvantaged: 1" in question
    assert "Possible decisions: reject, accept." in question and "score_3" not in question


@pytest.mark.parametrize(
    ("answer", "action"),
    [
        ("accept", 1),
        ("I would Reject.", 0),
        ("**Decision:** accept", 1),
        ("The score is low, so I cannot accept.\n\nFinal answer: reject", 0),
        ("acceptable", None),
        ("reject or accept", None),
        ("I would not accept this", None),
        ("cannot accept", None),
        ("I do not reject", None),
        ("", None),
    ],
)
def test_an_answer_must_name_one_decision(answer: str, action: int | None) -> None:
    assert InWords(make_rules("FairLending-v0"), str).decision(answer) == action


def test_decisions_without_names_have_numbers() -> None:
    assert InWords(make_rules("FairFraud-v0"), str).decision("Decision 1") == 1


def test_a_model_that_reads_the_group_is_found_unfair_and_asked_once_for_each_question() -> None:
    asked: list[str] = []

    def biased(question: str) -> str:
        asked.append(question)
        return "reject" if "disadvantaged: 1" in question else "accept"

    policy = InWords(make_rules("FairLending-v0"), biased)
    found = evaluate("FairLending-v0", policy, episodes=2, parameters={"horizon": 60}, shuffles=0)
    assert found.worst_off == "disadvantaged" and found.gap.value == 1
    assert len(asked) == len(set(asked)) == len(policy.answers)
    assert found.row("twin", of="disadvantaged").value > 0.9  # they would get a loan as members of the other group


def test_answers_without_a_decision_are_asked_again_and_then_refused() -> None:
    answers = iter(["hm", "accept"])
    policy = InWords(make_rules("FairLending-v0"), lambda question: next(answers))
    assert policy.act(np.zeros((1, 1, 25)), np.zeros((1, 1))).tolist() == [[1]]
    never = InWords(make_rules("FairLending-v0"), lambda question: "perhaps", attempts=2)
    with pytest.raises(RuntimeError, match="must be one of reject, accept, got 'perhaps' after 2 attempts"):
        never.act(np.zeros((1, 1, 25)), np.zeros((1, 1)))


def test_a_question_without_an_answer_can_have_a_decision_that_is_counted() -> None:
    asked: list[str] = []

    def perhaps(question: str) -> str:
        asked.append(question)
        return "perhaps"

    policy = InWords(make_rules("FairLending-v0"), perhaps, attempts=2, otherwise="reject")
    assert policy.act(np.zeros((3, 1, 25)), np.zeros((3, 1))).tolist() == [[0], [0], [0]]
    assert policy.unclear == 1 and len(asked) == 2 and "Your last answer was 'perhaps'." in asked[1]
    with pytest.raises(ValueError, match="otherwise must be one of reject, accept or None, got 'deny'"):
        InWords(make_rules("FairLending-v0"), str, otherwise="deny")


@pytest.mark.parametrize("env_id", ["FairHarvest-v0", "FairAttention-v0"])
def test_other_decisions_are_refused(env_id: str) -> None:
    with pytest.raises(ValueError, match="env must have one decision-maker, discrete decisions"):
        InWords(make_rules(env_id), str)


class Model(BaseHTTPRequestHandler):
    """A chat model that repeats what it was sent."""

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = {"choices": [{"message": {"content": json.dumps([self.path, self.headers["Authorization"], sent])}}]}
        content = json.dumps(said if sent["model"] == "good" else {}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_chat_model_gets_the_question_the_instruction_and_the_key(url: str) -> None:
    path, key, sent = json.loads(chat(url, "good", key="secret", instruction="Be brief.")("Whom?"))
    assert (path, key) == ("/v1/chat/completions", "Bearer secret")
    assert [message["content"] for message in sent["messages"]] == ["Be brief.", "Whom?"]
    assert json.loads(chat(url, "good")("Whom?"))[1] is None


def test_an_address_that_answers_otherwise_is_an_error(url: str) -> None:
    with pytest.raises(RuntimeError, match="must answer like a chat model, got KeyError"):
        chat(url, "bad")("Whom?")
    with pytest.raises(ValueError, match="url must begin with http:// or https://, got 'file:///etc/passwd'"):
        chat("file:///etc/passwd", "good")
