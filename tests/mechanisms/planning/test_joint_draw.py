"""Few public partitions share one draw of noise: what it costs, when it is chosen, and its law."""

from fractions import Fraction

import numpy as np
import pytest

import beam_dp as dp
from beam_dp.mechanisms.histogram_choice.reach import FIRST, Look, StepNoise, choose, edges_up_to
from beam_dp.mechanisms.metrics.clipped import PoolNoise
from beam_dp.mechanisms.noise.one_draw import OneDraw
from beam_dp.mechanisms.noise.sampling import Noise
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.planning.program import TOGETHER, Question, compile_program

ASKED = [dp.Count(), dp.Sum("spent")]
BUDGETS = [dp.Budget(1.0), dp.Budget.zcdp(0.5)]


def programs(budget: dp.Budget, partitions: int = 7, asked: list = ASKED) -> Question:
    edges = edges_up_to(partitions)
    return compile_program(asked, budget, edges, partitions=partitions).question


@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "zCDP"])
def test_a_person_in_all_partitions_pays_the_noise_once(budget: dp.Budget) -> None:
    program = programs(budget).program(7, FIRST, jointly=True)
    assert sum(cost.amount * times for _, cost, times in program.entries) == budget.amount
    noises = [times for label, _, times in program.entries if label.endswith("noise")]
    assert noises == [1, 1] and program.reach == 7
    bound = programs(budget).program(7, FIRST)
    noises = [times for label, _, times in bound.entries if label.endswith("noise")]
    assert noises == [7, 7]


@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "zCDP"])
def test_all_numbers_of_all_partitions_are_one_draw(
    budget: dp.Budget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose theorem holds for a person who moves all of them by up to their clips."""
    drawn: list[OneDraw] = []
    sample = OneDraw.draw

    def seen(self: OneDraw, noise: Noise, size: int = 1) -> list[np.ndarray]:
        drawn.append(self)
        return sample(self, noise, size)

    monkeypatch.setattr(OneDraw, "draw", seen)
    noise = PoolNoise(budget, (False, True), 3)
    clips = [np.array([2, 2, 2]), np.array([5, 5, 5])]
    columns = noise.draw(clips, Noise())
    assert [len(column) for column in columns] == [3, 3]
    [one] = drawn
    assert one == OneDraw(budget, (2, 2, 2, 5, 5, 5), (False,) * 3 + (True,) * 3)


def test_a_part_of_the_partitions_has_no_draw_of_its_own() -> None:
    noise = PoolNoise(dp.Budget(1.0), (False,), 3)
    with pytest.raises(checks.ParameterError, match="be of all partitions"):
        noise.draw([np.array([2, 2])], Noise())


def test_many_numbers_and_what_is_no_sum_have_draws_of_their_own() -> None:
    few = compile_program(ASKED, dp.Budget(1.0), 3)
    assert few.may_draw_jointly(TOGETHER // 2) and not few.may_draw_jointly(TOGETHER // 2 + 1)
    for other in (dp.Max("spent"), dp.Sum("spent", clip="partition"), dp.DistinctCount("item")):
        assert not compile_program([dp.Count(), other], dp.Budget(1.0), 3).may_draw_jointly(3)


@pytest.mark.parametrize("top", [True, False], ids=["many people", "few people"])
def test_it_is_chosen_where_it_errs_less(top: bool) -> None:
    edges = edges_up_to(7)
    counts = np.array([0.0, 0.0, 9e5, 0.0, 0.0, 0.0]) * top
    look = Look(counts, FIRST, dp.Budget(1.0))

    def bound(reach: int) -> StepNoise:
        return StepNoise(float(reach), False)

    chosen = choose(look, edges, bound, 7, StepNoise(2.6, False))
    assert chosen.jointly and chosen.reach == 7 and not chosen.lost_share
    assert chosen.told()["one_draw_for_all_partitions"] is True
    for joint in (StepNoise(3.4, False), None):
        chosen = choose(look, edges, bound, 7, joint)
        assert not chosen.jointly and chosen.reach == 3


def test_its_noise_is_that_of_a_bound_of_a_part_of_the_partitions() -> None:
    """By its deviation: 2.75 of 7 and 9.4 of 31 partitions, for one number."""
    for partitions, bound in ((7, Fraction(26, 10)), (31, Fraction(89, 10))):
        made = programs(dp.Budget(1.0), partitions, [dp.PeopleCount()])
        joint = made.noise_at(FIRST, partitions, jointly=True).scale
        assert joint == pytest.approx(float(bound) * made.noise_at(FIRST, 1).scale, rel=0.1)
