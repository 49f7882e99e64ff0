"""Ask users' functions for the votes of blocks of people, once the lines of a bucket have met."""

import copy
import functools
import types
from collections.abc import Sequence

from apache_beam.internal import pickler

from beam_dp.mechanisms.summaries import owner_lines
from beam_dp.mechanisms.summaries.block_votes import BlockFunction, BlockRelation
from beam_dp.mechanisms.summaries.owner_lines import Owned


def with_votes(lines: Owned, measures: Sequence[object]) -> Owned:
    """Return lines in which those of a user's function have become the votes of its blocks.

    Args:
        lines: all lines of some partitions.
        measures: all measures of the program.
    """
    for index, measure in enumerate(measures):
        own = lines.relation == index
        if isinstance(measure, BlockRelation) and own.any():
            fresh = functools.partial(made, pickler.dumps(measure.function))
            votes = measure.votes(lines.take(own), fresh)
            lines = owner_lines.merge([lines.take(~own), votes])
    return lines


def made(content: bytes) -> BlockFunction:
    """Return a function as it was pickled, new for each block.

    A function of a module is pickled by its name, so state in its default arguments would stay
    between blocks: the function is copied, with new defaults. State that it keeps in its module, in
    a class or in its attributes is out of reach.
    """
    function: BlockFunction = pickler.loads(content)
    if not isinstance(function, types.FunctionType):
        return function
    parts = function.__code__, function.__globals__, function.__name__
    copied = types.FunctionType(*parts, copy.deepcopy(function.__defaults__), function.__closure__)
    copied.__kwdefaults__ = copy.deepcopy(function.__kwdefaults__)
    return copied
