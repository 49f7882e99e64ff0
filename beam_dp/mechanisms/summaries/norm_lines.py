"""Owner lines of which the count is a norm: who owns a value, and how much they own in all."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from beam_dp.mechanisms.bounding.ordering import pick
from beam_dp.mechanisms.summaries import owner_lines
from beam_dp.mechanisms.summaries.histograms import Contributions, Measure
from beam_dp.mechanisms.summaries.owner_lines import Owned, Relation
from beam_dp.mechanisms.summaries.partition_view import places_of


def with_norms(
    lines: Owned, people: Contributions, measures: Sequence[Measure | Relation], key: bytes
) -> Owned:
    """Return the lines; those of a relation by a norm have that of their person as their count.

    Args:
        lines: merged lines, of whole people.
        people: the contributions of these people, for the norm of the measure before the relation.
        measures: what is summarised.
        key: the run's key.
    """
    counts = lines.count
    for index, relation in enumerate(measures):
        if not (isinstance(relation, Relation) and relation.by_norm):
            continue
        measure = measures[index - 1]
        assert isinstance(measure, Measure)
        vectors = people.vectors(measure)
        if len(vectors.starts):
            first = pick(people.of(measure).person, vectors.present[vectors.starts])
            places = places_of(lines.person, owner_lines.owners(first, key))
            counts = np.where(lines.relation == index, vectors.norms[places], counts)
    return dataclasses.replace(lines, count=counts)
