"""Beam's building of pipelines, with some of its answers kept: the tests build some thousand.

For each step of a pipeline Beam parses the options of a class anew, looks at the signatures of all
methods and at the text of one, several times each: half of what a small pipeline takes. Nothing
that these answers depend on changes. Of rows whose cells have the same types Beam looks at one.
Nor is a thread started for each bundle that samples where time is spent; no value of a cache is
measured, which looks at all that all modules hold; no option asks how wide the terminal is; and a
DuckDB, which takes as long to open as a small query, is used by one after another. Where nothing is
known of the input, people are cut into 8 shards, not 64, each of which takes milliseconds; their
number changes no bit (`test_shard_number`).
What is exhaustive and the jobs that run as programs use Beam as it is.
"""

import argparse
import contextlib
import functools
import types
import weakref
from collections.abc import Callable, Iterator
from inspect import Signature
from typing import Any
from unittest import mock

import duckdb
from apache_beam.options import pipeline_options
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.worker import statecache, statesampler
from apache_beam.transforms import core, ptransform, userstate, util
from apache_beam.typehints import decorators

from beam_dp.transforms.sql import databases
from beam_dp.transforms.stages import shard_number

FEW_SHARDS = 8
PLAIN = {int, float, str, bytes, bool, type(None)}


def kept_signatures(get_signature: Callable[[Any], Signature]) -> Callable[[Any], Signature]:
    """Return a function that gives the same signatures and keeps those of functions and methods."""

    @functools.cache
    def kept(function: types.FunctionType, bound: bool) -> Signature:
        return get_signature(types.MethodType(function, object()) if bound else function)

    def signature(given: Any) -> Signature:
        bound = isinstance(given, types.MethodType)
        function = given.__func__ if bound else given
        plain = isinstance(function, types.FunctionType)
        return kept(function, bound) if plain else get_signature(given)

    return signature


def kept_views(view_as: Callable[[Any, type], Any]) -> Callable[[Any, type], Any]:
    """Return a method that gives one view per class of options; all views share their values."""
    kept: dict[tuple[int, type], tuple[Any, Any]] = {}

    def view(options: Any, kind: type) -> Any:
        values = vars(options)["_all_options"]
        key = id(values), kind
        if key not in kept:  # the values are kept too, so that no others get their address
            kept[key] = values, view_as(options, kind)
        return kept[key][1]

    return view


def kept_specs(get_dofn_specs: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that looks for states and timers once per class of `DoFn`."""
    kept: dict[type, Any] = {}

    def specs(given: Any) -> Any:
        if any(isinstance(each, types.MethodType) for each in vars(given).values()):
            return get_dofn_specs(given)
        if type(given) not in kept:
            kept[type(given)] = get_dofn_specs(given)
        return kept[type(given)]

    return specs


def few_shards(number_of: Callable[..., int]) -> Callable[..., int]:
    """Return a function that gives fewer shards where nothing is known of the input."""

    def number(rows: Any, given: int | None = None) -> int:
        found = number_of(rows, given)
        return FEW_SHARDS if given is None and found == shard_number.FEWEST else found

    return number


def types_of_few(infer_output_type: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a method that infers the type of `Create` from one of all values of the same types."""

    def infer(create: Any, given: Any) -> Any:
        alike = {kind_of(value): value for value in create.values}
        return infer_output_type(types.SimpleNamespace(values=[*alike.values()]), given)

    return infer


def kind_of(value: Any) -> Any:
    """Return the types of a value or of a dict's keys and cells; a number of its own for others."""
    if type(value) is dict:
        kinds = frozenset(map(type, value)), frozenset(map(type, value.values()))
        return kinds if value and PLAIN.issuperset(kinds[0] | kinds[1]) else id(value)
    return type(value) if type(value) in PLAIN else id(value)


def kept_looks(look: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a function that looks at the text of a step's method once."""
    kept = functools.cache(look)
    return lambda method: kept(getattr(method, "__func__", method))


def _tracked(sampler: Any, tracked: bool) -> None:
    """Name the sampler of this thread, which counters ask for; it samples nothing."""
    statesampler.set_current_tracker(sampler if tracked else None)


LEFT = """SELECT 'VIEW', view_name FROM duckdb_views() WHERE NOT internal
    UNION ALL SELECT 'TABLE', table_name FROM duckdb_tables()"""


class Lent:
    """A DuckDB that goes back to the others when nobody has it any more."""

    def __init__(self, database: Any, others: list[Any]) -> None:
        self._database = database
        weakref.finalize(self, others.append, database)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


def lent_databases(connected: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that makes a DuckDB, or empties one that nobody has any more."""
    others: list[Any] = []

    def database() -> Any:
        with contextlib.suppress(IndexError, duckdb.Error):  # one that failed is not used again
            made = others.pop()
            for kind, name in made.execute(LEFT).fetchall():
                made.execute(f'DROP {kind} "{name}"')
            return Lent(made, others)
        return Lent(connected(), others)

    return database


@contextlib.contextmanager
def kept_answers() -> Iterator[None]:
    """Let Beam keep its answers while the block runs."""
    signature = kept_signatures(decorators.get_signature)
    with contextlib.ExitStack() as stack:
        for module in (decorators, core, ptransform, util):
            stack.enter_context(mock.patch.object(module, "get_signature", signature))
        view = kept_views(PipelineOptions.view_as)
        stack.enter_context(mock.patch.object(PipelineOptions, "view_as", view))
        specs = kept_specs(userstate.get_dofn_specs)
        stack.enter_context(mock.patch.object(userstate, "get_dofn_specs", specs))
        for method, tracked in (("start", True), ("stop", False)):
            quiet = functools.partialmethod(_tracked, tracked)
            stack.enter_context(mock.patch.object(statesampler.StateSampler, method, quiet))
        stack.enter_context(mock.patch.object(statecache, "get_deep_size", lambda *_: 1))
        for module, name, kept in (
            (shard_number, "number_of", few_shards),
            (core.Create, "infer_output_type", types_of_few),
            (core, "_check_fn_use_yield_and_return", kept_looks),
        ):
            stack.enter_context(mock.patch.object(module, name, kept(getattr(module, name))))
        database = lent_databases(databases.connected)
        stack.enter_context(mock.patch.object(databases, "connected", database))
        forms, form = pipeline_options._BeamArgumentParser, argparse.HelpFormatter("options", 9, 9)
        stack.enter_context(mock.patch.object(forms, "_get_formatter", lambda _: form))
        yield
