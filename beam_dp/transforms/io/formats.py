"""The formats of files that are read and written: a new one is one file and one line here."""

from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms.io.csv_files import Csv
from beam_dp.transforms.io.file_format import Format
from beam_dp.transforms.io.json_lines import JsonLines
from beam_dp.transforms.io.parquet import Parquet

FORMATS: dict[str, Format] = {
    ".parquet": Parquet(),
    ".csv": Csv(),
    ".tsv": Csv("\t"),
    ".jsonl": JsonLines(),
}
"""All formats, by the end of a file's name."""
READ = FORMATS | {f"{end}.gz": kind for end, kind in FORMATS.items() if kind.packed}
"""The ends of names of files that are read."""

SHEETS = "Save a sheet (.xlsx, .ods) as CSV."
"""What to do with a file that no format reads."""


def written(subject: str, path: object) -> Format:
    """Return the format of a file that this package writes.

    Raises:
        ValueError: for a name that ends in none of `FORMATS`.
    """
    ends = [end for end in FORMATS if type(path) is str and path.endswith(end)]
    rule = f"end in {', '.join(FORMATS)}, not {checks.shown(path)}"
    checks.require(bool(ends), subject, "path", rule, "Spreadsheets open .csv.")
    return FORMATS[ends[0]]
