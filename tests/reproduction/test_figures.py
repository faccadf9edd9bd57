"""The figures are drawn from the numbers of the arms."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from fair_envs.assessment import plots
from fair_envs.experiments import figures
from fair_envs.experiments.seeds import Curve
from fair_envs.metrics import Estimate, mean_interval

ONE, OTHER = mean_interval([1.0, 2.0, 4.0]), mean_interval([3.0, 3.5, 5.0])


def test_every_figure_is_saved_as_a_picture(tmp_path: Path) -> None:
    new = tmp_path / "new"
    plots.dot_plot({"parity": {"PPO": {"reward": ONE, "floor": OTHER}, "fair": {}}}, new / "dots.png", label="r")
    curve = Curve(np.arange(3), np.arange(6.0).reshape(2, 3))
    figures.course_plot({"a": {"PPO": curve}}, new / "course.png", points={"a": {"PPO": {1: 2.0}}})
    figures.exchange_plot({"a": {"PPO": (ONE, OTHER)}}, new / "exchange.png", labels=("x", "y"))
    for name in ("dots", "course", "exchange"):
        assert (new / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_changes_with_the_numbers(tmp_path: Path) -> None:
    for name, number in (("a", ONE), ("b", OTHER)):
        plots.dot_plot({"p": {"PPO": {"r": number}}}, tmp_path / f"{name}.png", label="r")
    assert (tmp_path / "a.png").read_bytes() != (tmp_path / "b.png").read_bytes()


def test_an_undefined_number_or_interval_is_drawn_as_a_gap(tmp_path: Path) -> None:
    undefined = mean_interval([])
    plots.dot_plot({"p": {"a": {"r": mean_interval([1.0])}, "b": {"r": undefined}}}, tmp_path / "a.png", label="r")
    assert (tmp_path / "a.png").exists()


def test_many_numbers_and_ends_that_are_off_by_rounding_are_drawn(tmp_path: Path) -> None:
    numbers = {
        f"a group with a long name {k}": Estimate(value=0.1, low=0.1 + 1e-17 * k, high=0.1, n=9) for k in range(16)
    }
    numbers["other"] = Estimate(value=0.1, low=0.1 + 4e-17, high=0.1 - 4e-17, n=9)
    plots.dot_plot({"p": {"a": numbers}}, tmp_path / "a.png", label="r")
    assert (tmp_path / "a.png").exists()


def test_the_legend_fits_into_the_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(plots, "save_figure", lambda figure, path: drawn.append(figure))
    plots.dot_plot({"": {"a": {f"foreign woman {k}": ONE for k in range(5)}}}, tmp_path / "a.png", label="r")
    (figure,) = drawn
    figure.savefig(tmp_path / "a.png", dpi=110)
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1
    assert len({line.get_color() for line in legend.get_lines()}) == 5


def test_crosses_are_inside_the_panel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr(figures, "save_figure", lambda figure, path: drawn.append(figure))
    curve = Curve(np.array([0, 1]), np.array([[1.0, 1.4], [1.0, 1.2]]))
    figures.course_plot({"a": {"PPO": curve}}, tmp_path / "a.png", points={"a": {"PPO": {1: 9.0}}})
    low, high = drawn[0].axes[0].get_ylim()
    assert low < 1 and high > 9


def test_the_legend_of_curves_names_those_of_all_panels_and_lines_are_labelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    monkeypatch.setattr(figures, "save_figure", lambda figure, path: drawn.append(figure))
    curve = Curve(np.array([0, 1]), np.array([[1.0, 1.4], [1.0, 1.2]]))
    second = {f"arm {k}": curve for k in range(11)}
    points = {"a": {"PPO": {1: 1.0}, "CPO": {1: 1.0}}}
    figures.course_plot(
        {"a": {"PPO": curve}, "b": second}, tmp_path / "a.png", points=points, lines={"b": {"random": 9.0}}
    )
    (figure,) = drawn
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["PPO", *second, "CPO (paper)"]
    looks = [(line.get_color(), line.get_linestyle()) for line in legend.get_lines()]
    assert len(set(looks)) == len(looks)
    _, axis = figure.axes
    assert [text.get_text() for text in axis.texts] == ["random"]
    assert axis.get_ylim()[1] > 9


def test_single_policies_are_drawn_in_the_colour_of_their_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr(figures, "save_figure", lambda figure, path: drawn.append(figure))
    dots = (np.array([1.0, 2.0]), np.array([7.0, 8.0]))
    panels = {"p": {"a": (ONE, OTHER), "b": (ONE, OTHER)}, "q": {"b": (ONE, OTHER)}}
    figures.exchange_plot(panels, tmp_path / "a.png", labels=("x", "y"), singles={"p": {"b": dots}})
    (figure,) = drawn
    first, second = ([line for line in axis.lines if line.get_marker() == "."] for axis in figure.axes)
    (own,) = first
    assert own.get_xydata().tolist() == [[1, 7], [2, 8]] and own.get_color() == "C1" and not second


def test_a_figure_grows_with_the_names_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr(figures, "save_figure", lambda figure, path: drawn.append(figure))
    for names in ("abc", [f"a policy with a long name {k}" for k in range(30)]):
        arms = {name: (ONE, OTHER) for name in names}
        figures.exchange_plot({"p": arms}, tmp_path / "a.png", labels=("x", "y"))
    few, many = drawn
    assert many.get_figwidth() > few.get_figwidth() and many.get_figheight() > few.get_figheight()
    many.savefig(tmp_path / "a.png", dpi=110)
    box = many.legends[0].get_window_extent()
    assert box.y0 >= 0 and box.x1 <= many.bbox.x1
    assert many.axes[0].get_window_extent().width > 200
