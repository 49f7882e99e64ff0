"""Print what Dataflow shows of a Flex Template of the main job: every option, with its help.

    python -m pipelines.template_metadata > metadata.json
    gcloud dataflow flex-template build gs://BUCKET/aggregate.json --image IMAGE \\
        --sdk-language PYTHON --metadata-file metadata.json

A template gives each option once: a metric that is asked for twice needs a template of its own.
Flags are given as `count=true`. A ledger is a file of the machine that starts the job, and a
template starts it on a machine that is thrown away: its options are left out.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from pipelines import aggregate
from pipelines.arguments import command

NAME = "Private statistics per partition"
DESCRIPTION = "Differentially private counts, sums, extremes and quantiles of rows about people."
REQUIRED = ("input", "output", "person")
_LEFT_OUT = ("--help", "--ledger", "--total_epsilon", "--total_rho", "--total_delta", "--planned")
_FLAG = "^(true|false)$"
_TEXT = r"^\S(.*\S)?$"
_OF_TYPE = {
    "whole": "^[0-9]+$",
    "bounds": "^(partitions=auto|[a-z_]+=[0-9]+)(,(partitions=auto|[a-z_]+=[0-9]+))*$",
}
_OF_OPTION = {name: "^[0-9.eE+-]+$" for name in ("epsilon", "rho", "delta")}


def parameters(made: argparse.ArgumentParser) -> Iterator[dict[str, Any]]:
    """Yield what Dataflow is told of each option."""
    for action in made._actions:
        flag = action.option_strings[-1]
        if flag in _LEFT_OUT:
            continue
        name = flag.removeprefix("--")
        yield {
            "name": name,
            "label": name.replace("_", " ").capitalize(),
            "helpText": _help(action),
            "isOptional": name not in REQUIRED,
            "regexes": [_regex(action, name)],
            "paramType": "TEXT",
        }


def _help(action: argparse.Action) -> str:
    """Return the help of an option, with the form of its value before it."""
    text = " ".join((action.help or "").split()).replace("%%", "%")
    return f"{action.metavar}: {text}" if isinstance(action.metavar, str) else text


def _regex(action: argparse.Action, name: str) -> str:
    """Return what a value must match, in the part of the syntax that Java and Python share."""
    if action.nargs == 0:
        return _FLAG
    if action.choices is not None:
        return f"^({'|'.join(re.escape(str(choice)) for choice in action.choices)})$"
    return _OF_OPTION.get(name, _OF_TYPE.get(getattr(action.type, "__name__", ""), _TEXT))


def metadata() -> dict[str, Any]:
    """Return the metadata of the template."""
    return {
        "name": NAME,
        "description": DESCRIPTION,
        "parameters": list(parameters(aggregate.parser())),
    }


def main(given: Sequence[str] | None = None) -> int:
    """Print the metadata; returns the exit code."""
    command.alone("template_metadata", __doc__).read_alone(given)
    sys.stdout.write(f"{json.dumps(metadata(), indent=2)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
