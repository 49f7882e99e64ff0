"""Beam's building of pipelines, with three of its answers kept: the tests build some thousand.

For each step of a pipeline Beam parses the options of a class anew and looks at the signatures of
all methods, several times each: half of what a small pipeline takes. Nothing that these answers
depend on changes. Nor is a thread started for each bundle that samples where time is spent.
What is exhaustive and the jobs that run as programs use Beam as it is.
"""

import contextlib
import functools
import types
from collections.abc import Callable, Iterator
from inspect import Signature
from typing import Any
from unittest import mock

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.worker import statesampler
from apache_beam.transforms import core, ptransform, userstate, util
from apache_beam.typehints import decorators


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
        yield
