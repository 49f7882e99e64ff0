"""Write the deployment card of a release, an entry of OpenDP's registry of deployments, in YAML.

    beam-dp card released.csv.json > deployment.yaml

The card is made of the record of the release; the ledger that paid for it adds what other releases
cost, and what `beam-dp audit` printed of it how it was tested. What only people know is marked:
FILL IN. It costs nothing.
"""

import json
import re
import sys
from collections.abc import Sequence
from typing import Any

import yaml
from apache_beam.io.filesystems import FileSystems

from beam_dp.mechanisms.numerics import checks
from beam_dp.results.card import card
from pipelines import command_line, ledger

_AUDITED = re.compile(
    r"beam_dp \S+: largest share of the budget spent: [\d.]+ in \d+ pairs; nothing else differed"
)


class _Dumper(yaml.SafeDumper):
    """YAML in which a text of several lines stands as it is."""


def _text(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def main(given: Sequence[str] | None = None) -> int:
    """Write the card; returns the exit code."""
    line = command_line.alone("card", __doc__, "[-h] path [--ledger FILE] [--audit FILE]")
    line.add_argument("path", help="the record of the release, released.csv.json")
    line.add_argument("--ledger", metavar="FILE", help="the ledger that the release was charged to")
    line.add_argument("--audit", metavar="FILE", help="what beam-dp audit printed of the release")
    options = line.parse_args(given)
    with line.refusing():
        balance = ledger.balance_of(options.ledger) if options.ledger else None
        audited = _audited(options.audit) if options.audit else ""
        made = card(_record(options.path), balance, audited)
    written = yaml.dump(made, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    sys.stdout.write(written)
    return 0


def _audited(path: str) -> str:
    """Return the line of an audit that found nothing."""
    with FileSystems.open(path) as file:
        line = file.read().decode().strip()
    rule = "be what beam-dp audit printed, of a release of which it found nothing"
    checks.require(_AUDITED.fullmatch(line) is not None, "card", "audit", rule)
    return str(line)


def _record(path: str) -> dict[str, Any]:
    """Return what a file holds; nothing, which is no record, where that is no JSON."""
    try:
        with FileSystems.open(path) as file:
            record = json.loads(file.read())
    except ValueError:
        record = {}
    return record if isinstance(record, dict) else {}


if __name__ == "__main__":
    sys.exit(main())
