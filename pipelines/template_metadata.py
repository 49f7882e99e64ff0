"""Print what Dataflow shows of a Flex Template of the main job: every option, with its help.

    python -m pipelines.template_metadata > metadata.json
    gcloud dataflow flex-template build gs://BUCKET/aggregate.json --image IMAGE \\
        --sdk-language PYTHON --metadata-file metadata.json

A template takes each option once: name a metric that you need twice in the file of `config`. Flags
are given as `count=true`. The options of a ledger are left out: a ledger is a file of the machine
that starts the job, and a template starts it on a machine that is thrown away.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

from pipelines import aggregate, command_line

NAME = "Private statistics per partition"
DESCRIPTION = "Differentially private counts, sums, extremes and quantiles of rows about people."
_LEFT_OUT = ("help", "version", "ledger", "total_epsilon", "total_delta")


def metadata() -> dict[str, Any]:
    """Return the metadata of the template."""
    parameters = []
    for action in aggregate.parser()._actions:
        name = action.option_strings[-1].removeprefix("--")
        form = "true or false" if action.nargs == "?" else action.metavar
        if name not in _LEFT_OUT:
            parameters.append(
                {
                    "name": name,
                    "label": name.replace("_", " ").capitalize(),
                    "helpText": f"{form}: {action.help}".replace("%%", "%"),
                    "isOptional": True,
                    "paramType": "TEXT",
                }
            )
    return {"name": NAME, "description": DESCRIPTION, "parameters": parameters}


def main(given: Sequence[str] | None = None) -> int:
    """Print the metadata; returns the exit code."""
    command_line.alone("template_metadata", __doc__).read_alone(given)
    sys.stdout.write(f"{json.dumps(metadata(), indent=2)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
