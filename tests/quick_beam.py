"""Beam's building of pipelines, with three of its answers kept: the tests build some thousand.

For each step of a pipeline Beam parses the options of a class anew and looks at the signatures of
all methods, several times each: half of what a small pipeline takes. Nothing that these answers
depend on changes. Nor is a thread started for each bundle that samples where time is spent; no
value of a cache is measured, which looks at all that all modules hold; no option asks how wide the
terminal is; and a DuckDB, which takes as long to open as a small query, is used by one after another.
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

from beam_dp.transforms import row_queries


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
        database = lent_databases(row_queries.connected)
        stack.enter_context(mock.patch.object(row_queries, "connected", database))
        forms, form = pipeline_options._BeamArgumentParser, argparse.HelpFormatter("options", 9, 9)
        stack.enter_context(mock.patch.object(forms, "_get_formatter", lambda _: form))
        yield
