"""What the tables share: options of a command, lines of Markdown, short numbers.

It imports nothing heavy: see `measure`.
"""

import argparse
import math
import sys
from collections.abc import Iterable, Sequence


def options(about: str, words: Sequence[str] | None, **defaults: object) -> argparse.Namespace:
    """Return the options of a command line, each named with its default.

    False is the default of an option without a value; a type stands for None.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    for name, default in defaults.items():
        if default is False:
            parser.add_argument(f"--{name}", action="store_true")
        elif isinstance(default, type):
            parser.add_argument(f"--{name}", type=default)
        else:
            parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args(words)


def say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def heads(names: Sequence[str]) -> str:
    return line(names) + line(["---"] * len(names))


def judged(missed: Sequence[str]) -> str:
    """Return the last cell of a line with goals; `main` looks for "NO" to return 1."""
    return f"NO: {', '.join(missed)}" if missed else "yes"


def short(number: float) -> str:
    """Return two digits of a number."""
    return f"{number:,.0f}" if abs(number) >= 9.95 else f"{number:.2g}"


def geometric(numbers: Iterable[float]) -> float:
    """Return the geometric mean; infinite if one number is, else 0 if one is."""
    numbers = [float(number) for number in numbers]
    if math.inf in numbers:
        return math.inf
    if 0 in numbers:
        return 0.0
    return math.exp(sum(map(math.log, numbers)) / len(numbers))
