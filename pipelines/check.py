"""Look at your own files before a budget is spent on them: what would be dropped, and why.

    beam-dp check visits.csv --person visitor_id --partition day --public_partitions 1,2,3

It prints TRUE facts of the rows: how many are dropped by which rule, cells that are no numbers, who
has most rows, which keys occur. NOTHING OF THIS IS PRIVATE: only who may see the rows may see it. It
takes the options of `beam-dp aggregate`, and names what corrects a file, never a bound or a clip:
these must not be chosen from the rows. No ledger is charged, and no file is written.
"""

import sys
from collections.abc import Sequence

from beam_dp.mechanisms.numerics import checks
from beam_dp.results.view import NOT_PRIVATE
from beam_dp.transforms import file_checks
from beam_dp.transforms.sql.person_queries import PersonQuery
from pipelines import command_line, messages, releasing, terminal
from pipelines.description import Description

HEAD = f"{NOT_PRIVATE}: true facts of the rows, for who may see them; choose no bound by them"
_ASKED = {"metrics": ["count"], "budget": {"epsilon": 1, "delta": 1e-9}}


def main(given: Sequence[str] | None = None) -> int:
    """Look at files; returns 0, or 1 where a run would refuse one of them."""
    line = command_line.parser("check", __doc__)
    line.usage = "%(prog)s [--config FILE] --person COLUMN ... FILE"
    line.add_argument("files", metavar="FILE", nargs="*", type=command_line.file, help="as --input")
    options = line.only(given)
    with line.refusing(options.config):
        described = command_line.described(options)
        usual = _ASKED if "select" not in described else {"budget": _ASKED["budget"]}
        files = {"input": options.files} if options.files else {}
        once = not (files and described.get("input"))
        asked = Description({**usual, **described, **files})
        rule = "be given once, as FILE, or by --input, or in the file of --config"
        checks.require(once and bool(asked.input), "release", "input", rule)
        scans = scanned(asked)
    sys.stdout.write(text_of(asked, scans))
    return int(any(each.refused for each in scans))


def scanned(asked: Description) -> list[file_checks.FileScan]:
    """Return what the files of a release hold."""
    reader, parsed = releasing.reader_of(asked), asked.parsed
    together = isinstance(parsed, PersonQuery)
    rule = "be one file of CSV or Parquet where a query has WITH: a person's rows of all files meet"
    whole = not together or (len(reader.paths()) == 1 and reader.format.element is not dict)
    checks.require(whole, "release", "input", rule)
    with terminal.warned():
        return file_checks.scans_of(reader, parsed, [table.release for table in asked.tables])


def text_of(asked: Description, scans: Sequence[file_checks.FileScan]) -> str:
    """Return what is to say of the files."""
    releases = {table.release.title: table.release for table in asked.tables}
    lines = map(messages.flagged, file_checks.lines(scans, releases))
    refused = {each.refused: f"REFUSED: {messages.translated(each.refused)}" for each in scans}
    refused.pop("", None)
    return "".join(f"{line}\n" for line in (HEAD, *lines, *refused.values()))


if __name__ == "__main__":
    sys.exit(main())
