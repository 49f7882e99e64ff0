"""The graphs of the benchmarks: as many rows as asked for, and every triangle is one."""

import itertools

import numpy as np
import pytest

from benchmarks import relations


def test_all_triangles_of_a_graph_are_found_once() -> None:
    generator = np.random.default_rng(1)
    for people in (3, 6, 20):
        pairs = generator.integers(0, people, (2, 3 * people))
        edges = {frozenset(pair) for pair in pairs.T.tolist()}
        expected = [
            three
            for three in itertools.combinations(range(people), 3)
            if all(frozenset(two) in edges for two in itertools.combinations(three, 2))
        ]
        found = relations._triangles(pairs, people)
        assert sorted(tuple(sorted(three)) for three in found.T.tolist()) == expected
        assert expected or people == 3


def test_as_many_triangles_are_made_as_are_asked_for() -> None:
    columns = relations.triangles(5000, 2000)
    rows = np.sort(np.stack([columns[name] for name in "abc"]), axis=0)
    assert rows.shape == (3, 5000) and (rows[1:] > rows[:-1]).all()
    assert len(np.unique(rows, axis=1).T) == 5000
    assert rows.min() >= 0 and rows.max() < 2000


@pytest.mark.parametrize("name", ["zipf", "road"])
def test_graphs_have_two_owners_a_row(name: str) -> None:
    columns = relations.MAKERS[name](900, 1500)
    assert {*columns} == {"from", "to"} and {len(column) for column in columns.values()} == {900}
