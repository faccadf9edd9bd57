"""What the pictures of FairEpidemic show; no test needs a screen."""

import builtins
from typing import Any

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest

from fair_envs.envs.drawing import MARGIN, PLAIN_BELOW, Stock
from fair_envs.envs.epidemic import render
from fair_envs.envs.epidemic.networks import KARATE_PLACES, arranged, on_a_circle
from fair_envs.envs.epidemic.rules import INFECTED, Epidemic
from fair_envs.support.aliases import Floats
from tests.helpers import assert_same, begun, plain, uncompiled

pygame = pytest.importorskip("pygame")

PAIRS = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)]
OWN: dict[str, Any] = {"network": PAIRS, "communities": ["west", "west", "west", "east", "east"]}


def played(*people: int, **parameters: Any) -> tuple[Any, Any]:
    """Return the renderer and the lane after steps in which these people were vaccinated."""
    lanes = begun(Epidemic(**parameters), seed=3)
    for person in people:
        lanes.advance(np.array([[person]]))
    return lanes.rules.renderer(), lanes.records[0]


def grey(figure: Any, size: int) -> Floats:
    """Return the lightness of each pixel of a figure on white, 0 to 255."""
    surface = pygame.Surface((size, size), depth=32)
    surface.fill((255, 255, 255))
    surface.blit(Stock(plain=size < PLAIN_BELOW).tile((figure,), size, None), (0, 0))
    return np.asarray(pygame.surfarray.array3d(surface) @ np.array([0.299, 0.587, 0.114]))


@pytest.mark.parametrize("size", [40, 24])
def test_states_communities_and_vaccines_look_different_without_colour_too(size: int) -> None:
    figures = [
        render.Person(community, state, treated, changed)
        for community in (0, 1)
        for state in range(len(render.STATES))
        for treated in (False, True)
        for changed in ((False, True) if state == INFECTED else (False,))
    ]
    pictures = [grey(figure, size) for figure in figures]
    for i, one in enumerate(pictures):
        for other in pictures[:i]:
            assert np.abs(one - other).mean() > 1.5


def test_the_corner_of_a_figure_lets_the_edges_show() -> None:
    assert (grey(render.Person(0, INFECTED), 32)[[0, 0, -1, -1], [0, -1, 0, -1]] == 255).all()


def test_everybody_is_drawn_in_their_place_in_the_colour_of_their_state() -> None:
    renderer, lane = played(33, 2)
    frame = renderer.frame(lane)
    assert frame.dtype == np.uint8 and frame.shape[0] % 16 == frame.shape[1] % 16 == 0
    free = render.SIDE - renderer._size
    for person, (x, y) in zip(renderer.people(lane), KARATE_PLACES, strict=True):
        below_the_sign = frame[round(MARGIN + renderer._size / 2 + free * y) + 8]
        if not person.changed:  # those have a second outline there
            pixel = below_the_sign[round(MARGIN + renderer._size / 2 + free * x)]
            assert tuple(pixel.tolist()) == render.COLOURS[person.state]


def test_the_figures_tell_who_is_what() -> None:
    renderer, lane = played(33, 5, 5)
    people = renderer.people(lane)
    assert [person.community for person in people] == renderer._network.community.tolist()
    assert people[33].state == render.IMMUNISED and not people[33].treated
    assert people[5].treated
    assert [person.state for person in people] == [
        render.IMMUNISED if immune else health for immune, health in zip(lane["immunised"], lane["health"], strict=True)
    ]
    assert [person.changed for person in people] == (lane["change"] == -1).tolist()


def test_at_the_start_nobody_has_been_vaccinated() -> None:
    renderer, lane = played()
    assert not any(person.treated for person in renderer.people(lane))
    assert "vaccinated: -" in plain(renderer.text(lane))


def test_the_picture_changes_with_the_lane_and_drawing_changes_nothing() -> None:
    renderer, lane = played(33)
    frame = renderer.frame(lane)
    assert np.array_equal(frame, renderer.frame(lane))
    other, later = played(33, 2)
    assert not np.array_equal(frame, other.frame(later))


@uncompiled
def test_the_text_says_how_each_community_fares() -> None:
    renderer, lane = played(4, 4, 0, infection=1.0, recovery=0.0, burn_in=0, **OWN)
    text = plain(renderer.text(lane))
    assert "FairEpidemic, step 3 of 20" in text
    rows = [line.split() for line in text.splitlines()[1:3]]
    assert rows == [["west", "X", "X", "X"], ["east", "X", "v"]]
    assert "west: 3 people, 0 susceptible, 3 infected, 0 recovered, 0 vaccinated in time; " in text
    assert "3 caught it, 1 doses, 1 without effect" in text
    assert "east: 2 people, 0 susceptible, 1 infected, 0 recovered, 1 vaccinated in time; " in text
    assert "1 caught it, 2 doses, 1 without effect" in text
    assert "vaccinated: 0" in text and "infected in this step: 0" in text


@uncompiled
def test_a_vaccine_for_nobody_is_named_so_and_people_by_their_names() -> None:
    graph = nx.Graph([("Ann", "Bob"), ("Bob", "Cem")])
    own = {"network": graph, "communities": [0, 0, 1]}
    assert "vaccinated: nobody" in plain(played(3, **own)[0].text(played(3, **own)[1]))
    assert "vaccinated: Cem" in plain(played(2, **own)[0].text(played(2, **own)[1]))


@pytest.mark.parametrize("mode", ["rgb_array", "ansi", "human"])
def test_every_mode_draws_and_leaves_the_episode_as_it_was(mode: str) -> None:
    env: Any = gym.make("FairEpidemic-v0", render_mode=mode)
    env.reset(seed=0)
    env.step(33)
    before = env.unwrapped.get_state()
    picture = env.render()
    assert {"rgb_array": np.ndarray, "ansi": str, "human": type(None)}[mode] is type(picture)
    assert_same(env.unwrapped.get_state(), before)
    env.close()


@pytest.mark.parametrize(
    "parameters",
    [
        {"network": "chain", "chain_people": 2},
        {"network": "chain", "chain_people": 900},
        {"network": nx.star_graph(5), "communities": [0, 1, 2, 3, 4, 5]},
        {"vaccines": 3},
    ],
)
def test_networks_of_any_size_fit(parameters: dict[str, Any]) -> None:
    rules = Epidemic(**parameters)
    height, width, _ = rules.renderer().frame(np.zeros(1, rules.dtype)[0]).shape
    assert height <= 720 and width <= 1008


def test_networks_of_ones_own_are_laid_out_with_springs_or_without_networkx_on_a_circle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = Epidemic(**OWN).network
    assert network.places is None
    springs = arranged(network)
    assert springs.shape == (5, 2) and springs.min() == 0 and springs.max() == 1
    known = builtins.__import__

    def without(name: str, *rest: Any, **keywords: Any) -> Any:
        if name == "networkx":
            raise ImportError(name)
        return known(name, *rest, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    assert np.array_equal(arranged(network), on_a_circle(network.community))


def test_on_a_circle_communities_stand_together() -> None:
    places = on_a_circle(np.array([0, 1, 0, 1]))
    assert (places[[0, 2], 0] < 0.5).all() and (places[[1, 3], 0] > 0.5).all()
    np.testing.assert_allclose(np.linalg.norm(places - 0.5, axis=1), 0.5)
