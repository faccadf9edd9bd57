"""The settings behind the FAReL tables, and the numbers that these print."""

import pytest

from fair_envs.reproduction.cimpean2025.published import MEASURES, printed, printed_value, tables


def test_every_printed_group_of_rows_has_a_setting_and_the_other_way_round() -> None:
    assert {number: list(groups) for number, groups in tables().items()} == {
        number: list(groups) for number, groups in printed().items()
    }


def test_tables_that_repeat_a_block_share_its_setting() -> None:  # as the paper's blocks repeat
    of = tables()
    assert of[3]["R:SP:IF"] == of[5]["HEOM"] == of[6]["Belgian"] == of[7]["none"] == of[10]["500"]
    assert of[8]["none"] == of[6]["gender"] and of[9]["none"] == of[6]["nationality and gender"]
    assert of[10]["1000"] == of[2]["R:SP:IF"] and of[12]["theta 0.0001"] == of[11]["gamma 1.0"]
    assert of[15]["R:SP:IF"] == of[18]["none"] == of[19]["500"] and of[14]["R:SP:IF"] == of[19]["1000"]


def test_rewards_are_what_they_were_before_each_table_took_its_constant() -> None:
    assert printed_value(1, "R", "R", "best") == pytest.approx(46.52, abs=0.005)
    assert printed_value(13, "R", "R", "best") == pytest.approx(824)
    assert printed_value(14, "R:SP:IF", "R", "best") in (906 - 82, 906 - 90, pytest.approx(824))


def test_tables_with_three_distances_have_a_column_for_each() -> None:
    found = [printed_value(4, "R:SP", "IF", "best", distance=own) for own in ("Bray-Curtis", "HEOM", "HMOM")]
    assert found == [-69.99872, -40.43677, -40.43677]
    assert printed_value(4, "R:SP", "CSC", "worst", distance="Bray-Curtis") == -69.42762
    assert printed_value(4, "R:SP", "CSC", "mean") is None


def test_no_best_value_is_below_the_worst() -> None:
    for number, groups in printed().items():
        for group in groups:
            for measure in MEASURES:
                best, worst = (printed_value(number, group, measure, span) for span in ("best", "worst"))
                assert best is not None and worst is not None and best >= worst, (number, group, measure)


def test_settings_have_readable_names_of_their_own() -> None:
    settings = {own for groups in tables().values() for own in groups.values()}
    assert len(settings) == 62
    names = {str(own) for setting in settings for own in (setting, setting.as_printed)}
    assert len(names) == 124
    assert "fraud, R:SP:IF, window 500, HEOM, as printed" in names
