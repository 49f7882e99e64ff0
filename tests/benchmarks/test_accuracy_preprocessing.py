"""The table of private means and medians: right rivals, right truths, and a picture of the table."""

import itertools
import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import accuracy_preprocessing as figures
from benchmarks import rivals, tpch

SPAN = (0.0, 5.0)
VALUES = np.array([1.0, 2.0, 2.5, 4.0, 9.0])  # clipped: median 2.5, mean 2.9


@pytest.fixture(autouse=True)
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the tables where those of tpchgen-cli are looked for: 300 customers of 3 nations."""
    monkeypatch.setattr(tpch, "FOLDER", tmp_path)
    money = pa.decimal128(15, 2)
    prices = [Decimal(1000 + 7 * order % 900) for order in range(600)]
    found = {
        "lineitem": {"l_orderkey": [1]},
        "orders": {
            "o_custkey": [order % 300 for order in range(600)],
            "o_totalprice": pa.array(prices, money),
        },
        "customer": {
            "c_custkey": list(range(400))[::-1],
            "c_nationkey": [customer % 3 for customer in range(400)][::-1],
        },
    }
    for name, columns in found.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")


def databases(domain: list[float], most: int) -> list[tuple[float, ...]]:
    sizes = range(most + 1)
    return [c for n in sizes for c in itertools.combinations_with_replacement(domain, n)]


def neighbours(values: tuple[float, ...], domain: list[float]) -> list[tuple[float, ...]]:
    less = [values[:place] + values[place + 1 :] for place in range(len(values))]
    return [*less, *(tuple(sorted((*values, value))) for value in domain)]


def median(values: tuple[float, ...]) -> float:
    return float(np.median(values)) if values else sum(SPAN) / 2


def test_the_smooth_sensitivity_is_smooth_and_at_least_the_local_one() -> None:
    found, domain = rivals.SmoothMedian(), [0.0, 1.0, 2.0, 5.0]
    bounds = {x: found.sensitivity(np.array(x), SPAN) for x in databases(domain, 6)}
    for x, bound in bounds.items():
        near = neighbours(x, domain)
        assert bound >= max(abs(median(x) - median(y)) for y in near) - 1e-12
        assert all(bound <= math.exp(found.beta) * bounds[y] + 1e-12 for y in near if y in bounds)


def test_the_noise_of_the_smooth_median_is_of_its_epsilon() -> None:
    found = rivals.SmoothMedian()
    assert 3**0.75 * found.alpha + 3 * found.beta == pytest.approx(1.0)

    def log_density(z: np.ndarray) -> np.ndarray:
        return -np.log1p(z**4)

    z = np.linspace(-30, 30, 60_001)
    for sign, other in itertools.product((-1, 1), repeat=2):
        moved = np.exp(sign * found.beta) * (z + other * found.alpha)
        ratio = sign * found.beta + log_density(moved) - log_density(z)
        assert np.abs(ratio).max() <= 1.0


# P(|z| < 1) is within 0.03 of the share of 20,000 draws but for 2 e^-36 (DKW).
def test_the_draws_of_the_quartic_density_are_right() -> None:
    drawn = rivals.quartic(20_000, np.random.default_rng(1))
    grid = np.linspace(-200, 200, 400_001)
    weights = 1 / (1 + grid**4)
    inside = weights[np.abs(grid) < 1].sum() / weights.sum()
    assert len(drawn) == 20_000
    assert abs((np.abs(drawn) < 1).mean() - inside) < 0.03


# Of 20,000 Laplace draws of scale b the mean is within b / 10 of its own but for 2 e^-40.
@pytest.mark.parametrize("draw", [rivals.clipped_median, rivals.clipped_mean])
def test_clipping_is_around_the_clipped_truth(draw: rivals.Draw) -> None:
    values = np.repeat(VALUES, 400)
    found = draw(values, SPAN, 20_000, np.random.default_rng(1))
    if draw is rivals.clipped_median:
        assert abs(found.mean() - 2.5) < 0.25
        assert np.abs(found - 2.5).mean() == pytest.approx(2.5, rel=0.1)
    else:
        assert abs(found.mean() - 2.9) < 0.001
        assert np.abs(found - 2.9).mean() == pytest.approx(2 * 2.5 / 2000, rel=0.1)


# Each candidate's share of 20,000 draws is within 0.04 of its chance but for 2 e^-64 (DKW).
def test_the_exponential_mechanism_has_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rivals, "CANDIDATES", 6)
    found = rivals.exponential_median(VALUES, SPAN, 20_000, np.random.default_rng(1))
    shares = np.array([(found == place).mean() for place in range(6)])
    expected = [abs(sum(VALUES > c) - sum(np.minimum(VALUES, 5) < c)) for c in range(6)]
    expected[5] = 4  # nobody above, four below: the one beyond the range stands at its end
    weights = np.exp(-np.array(expected) / 2)
    assert np.abs(shares - weights / weights.sum()).max() < 0.04


def test_a_person_is_a_customer_and_their_mean_order() -> None:
    nations, prices = figures.orders()
    assert len(nations) == 300 and (nations == np.arange(300) % 3).all()
    expected = [1000 + (7 * c % 900 + 7 * (c + 300) % 900) / 2 for c in range(300)]
    assert prices.tolist() == expected
    whole, *skewed = figures.questions((50, 60), (1.0,))
    assert whole.name == "TPC-H, 100" and len(whole.partitions) == 3
    assert [one.name for one in skewed] == [
        "lognormal, 50", "lognormal, 60", "Cauchy, 50", "Cauchy, 60"
    ]  # fmt: skip


def test_ranges_are_wrong_by_ten() -> None:
    found = figures.Question("x", (np.array([3.0, 20.0]), np.array([7.0])))
    spans = [(3.0, 20.0), (0.0, 200.0), (0.0, 2.0)]
    assert found.spans() == dict(zip(figures.RANGES, spans, strict=True))
    both = figures.Question("x", (np.array([-3.0, 20.0]),))
    assert both.spans()["10 x narrower"] == pytest.approx((-0.3, 2.0))


def test_with_a_large_budget_ours_release_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of scale 10^-3 and less is below 0.1 but for e^-100."""
    monkeypatch.setattr(figures, "EPSILON", 10_000.0)
    parts = tuple(np.random.default_rng(k).normal(20.0 * k, 3.0, 400) for k in (1, 2))
    question = figures.Question("x", parts)
    for statistic, metrics in figures.OURS.items():
        truths = [figures.TRUTHS[statistic](part) for part in parts]
        for name, metric in metrics.items():
            found = figures.ours(question, metric, 2)
            assert found.shape == (2, 2)
            # The candidates of a rank search are 1% apart.
            near = np.abs(found - truths).max() if statistic != "maximum" else 0.0
            assert near < (0.6 if "rank" in name else 0.2), name


def test_every_mechanism_has_a_line_and_the_best_are_marked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figures.main(["--runs", "5", "--sizes", "200", "--shares", "1"])
    text = capsys.readouterr().out
    mean, middle, most = (block.splitlines() for block in text.strip().split("\n\n"))
    assert len(mean) == len(most) == 2 + 2 + 3 and len(middle) == 2 + 2 + 9
    for block in (mean, middle, most):
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in block]
        assert cells[0][1:] == ["TPC-H, 100", "lognormal, 200", "Cauchy, 200"]
        for column in range(1, 4):
            numbers = [line[column].split(" / ")[0] for line in cells[2:]]
            plain = [float(number.strip("*").replace(",", "")) for number in numbers]
            [best] = [n for n, number in enumerate(numbers) if number.startswith("**")]
            assert plain[best] == min(plain)


def test_the_best_without_the_true_range_is_marked_apart() -> None:
    found = {
        name: np.full(5, error)
        for name, error in {"a": 3.0, "b, true range": 1.0, "b, 10 x wider": 2.0}.items()
    }
    assert figures.marked(found) == {"b, true range": "**", "b, 10 x wider": "*"}
    assert figures.marked(found | {"a": np.zeros(5)})["a"] == "**"
