"""What the pictures of the transactions show; no test needs a screen."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from fair_envs.core import Lanes
from fair_envs.envs.drawing import Rgb
from fair_envs.envs.fraud import render
from fair_envs.envs.fraud.rules import CANCELLED, CAUGHT, CONFIRMED, MISSED, OUTCOMES, PAID, RECENT
from tests.envs.fraud_scenes import NA, decide, scene
from tests.helpers import plain

pygame = pytest.importorskip("pygame")

US: dict[str, Any] = {
    "month": 1,
    "day": 5,
    "weekday": 1,
    "hour_now": 14,
    "card_now": 37,
    "merchant_now": 3,
    "country_now": 118,
}
US |= {"continent_now": NA, "amount_now": 25.0, "currency_now": 0}


def drawn(batch: Lanes) -> tuple[render.FraudRenderer, Any]:
    """Return the renderer and the first lane."""
    return batch.rules.renderer(), batch.records[0]


def count(picture: Any, colour: Rgb) -> int:
    """Return how many pixels have a colour."""
    return int((picture == colour).all(-1).sum())


def test_the_waiting_transaction_in_words() -> None:
    renderer, lane = drawn(scene(transaction=US))
    waiting = renderer.waiting(lane)
    assert waiting is not None
    country = renderer._tables.countries[118]
    assert waiting.place == f"{country}, North America"
    assert (waiting.card, *waiting.lines()) == ("card 0037", "25.00 USD", "at merchant 3", "Tuesday 5 January, 14 h")
    text = plain(renderer.text(lane))
    assert f"card 0037 ({country}, North America): 25.00 USD, at merchant 3, Tuesday 5 January, 14 h" in text


def test_the_truth_of_the_waiting_transaction_is_not_shown() -> None:
    frames, texts = [], []
    for fraud in (0, 1):
        batch = scene(transaction=US)
        batch.records["fraud"] = fraud
        renderer, lane = drawn(batch)
        frames.append(renderer.frame(lane))
        texts.append(renderer.text(lane))
    assert (frames[0] == frames[1]).all()
    assert texts[0] == texts[1]


def test_the_card_has_the_colour_of_its_continent() -> None:
    for continent, colour in enumerate(render.CONTINENT_COLOURS):
        renderer, lane = drawn(scene(transaction={**US, "continent_now": continent}))
        assert count(renderer.frame(lane), colour) > 20_000


def test_shares_by_continent() -> None:
    batch = scene()
    batch.records["outcomes"] = 0
    batch.records["outcomes"][0, NA] = np.array([6, 1, 1, 1, 3])
    rows = drawn(batch)[0].rows(batch.records[0])
    assert rows[NA] == (NA, 12, 3 / 12, 1 / 8, 3 / 4)
    assert np.isnan(rows[0][2:]).all()


@pytest.mark.parametrize("outcome", [PAID, CONFIRMED, CANCELLED, CAUGHT, MISSED])
def test_the_last_transaction_shows_what_became_of_it(outcome: int) -> None:
    fraud, action = outcome in (CAUGHT, MISSED), outcome in (CONFIRMED, CANCELLED, CAUGHT)
    batch = scene(fraud=fraud, transaction={**US, "patience": float(outcome == CONFIRMED)}, patience_weight=1.0)
    renderer, lane = drawn(batch)
    look = render.LOOKS[outcome]
    before = count(renderer.frame(lane), look.ground)
    decide(batch, int(action))
    assert list(renderer.recent(lane)) == [(NA, outcome)]
    assert count(renderer.frame(lane), look.ground) > before + 300
    assert f"[{look.symbol}]" in plain(renderer.text(lane))
    assert OUTCOMES[outcome] in plain(renderer.text(lane))


def test_looks_differ_in_lightness() -> None:
    """So that those who tell few colours apart can read them."""
    lightness = sorted(float(np.dot(look.ground, (0.299, 0.587, 0.114))) for look in render.LOOKS.values())
    assert np.diff(lightness).min() > 12


def test_only_the_last_transactions_are_kept() -> None:
    env: Any = gym.make("FairFraud-v0", render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    for _ in range(RECENT + 5):
        env.step(0)
    renderer = env.lanes.rules.renderer()
    recent = list(renderer.recent(env.lanes.records[0]))
    assert len(recent) == RECENT
    env.step(0)
    assert list(renderer.recent(env.lanes.records[0]))[:-1] == recent[1:]
    assert env.render().shape == (render.HEIGHT, render.WIDTH, 3)


def test_the_end_of_the_week_is_drawn() -> None:
    env: Any = gym.make("FairFraud-v0", render_mode="rgb_array", hours=168, transactions_per_year=0.0).unwrapped
    env.reset(seed=0)
    env.step(0)
    renderer = env.lanes.rules.renderer()
    assert "the week is over" in renderer.text(env.lanes.records[0])
    assert env.render().dtype == np.uint8
    assert "hour 168 of 168" in plain(renderer.text(env.lanes.records[0]))


def test_the_sizes_suit_video_codecs() -> None:
    assert render.WIDTH % 16 == render.HEIGHT % 16 == 0
