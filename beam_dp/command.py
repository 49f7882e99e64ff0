"""The command `beam-dp`: `beam-dp aggregate --help` is `python -m pipelines.aggregate --help`.

The jobs are the folder `pipelines` beside this package. They are taken from there: a folder of that
name where the command is called is somebody else's.
"""

import importlib
import importlib.util
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from beam_dp import __version__

COMMANDS = {
    "aggregate": ("aggregate", "release counts, sums, means, quantiles, ... per partition"),
    "select": ("select", "release what one SELECT asks for"),
    "ledger": ("ledger", "print who has spent what, and what is left"),
    "table": ("table", "print a released file again, and write its page"),
    "card": ("card", "write the deployment card of a release from its record"),
    "check": ("check", "show how your files are read, before you spend a budget: NOT PRIVATE"),
    "audit": ("audit", "look for a privacy violation on made-up rows; costs nothing"),
    "rehearse": ("rehearse", "try a release many times on public or old data: NOT PRIVATE"),
    "demo": ("demo", "generate 1.5 million orders, and release numbers of them per nation"),
    "serve": ("expansion_service", "offer a release to pipelines in Java, Go and TypeScript"),
}
"""The module of each command, and what it does."""


def main() -> int:
    """Run the command that the first word names; returns its exit code."""
    word, *rest = sys.argv[1:] or ["--help"]
    if word == "help":
        word, rest = (rest[0], ["--help"]) if rest else ("--help", [])
    if word == "--version":
        sys.stdout.write(f"beam_dp {__version__}\n")
        return 0
    if word in ("-h", "--help"):
        lines = [f"  {name:<12}{says}" for name, (_, says) in COMMANDS.items()]
        sys.stdout.write("\n".join(["usage: beam-dp COMMAND [options]", "", *lines, "", _MORE]))
        return 0
    if word not in COMMANDS:
        sys.stderr.write(f"beam-dp: error: must name one of {', '.join(COMMANDS)}, not {word!r}\n")
        return 2
    sys.argv = [f"beam-dp {word}", *rest]
    sys.path.append(os.getcwd())  # for functions of the user's own
    _load_jobs()
    code: int = importlib.import_module(f"pipelines.{COMMANDS[word][0]}").main()
    return code


_MORE = "beam-dp COMMAND --help lists the options of one, beam-dp --version prints the version.\n"


def _load_jobs() -> None:
    """Import the package `pipelines` that stands beside this one."""
    spec: Any = PathFinder.find_spec("pipelines", [str(Path(__file__).parents[1])])
    sys.modules["pipelines"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["pipelines"])


if __name__ == "__main__":
    sys.exit(main())
