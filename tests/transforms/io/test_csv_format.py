"""CSV with other delimiters, decimal points and encodings gives the same rows as plain CSV."""

import gzip
from pathlib import Path
from typing import Any

import pytest

import beam_dp as dp
from beam_dp.transforms.io.file_format import DELIMITERS, CsvFormat, Wanted
from beam_dp.transforms.io.formats import FORMATS
from pipelines import aggregate

COLUMNS = ["who", "spent"]
# Cells with every delimiter, quotes and line ends; the last has a byte that cp1252 does not have.
CELLS = ["Zoë", "a,b", "a;b", "a\tb", "a|b", 'say "x"', "two\nlines", "'", "€"]


def rows(path: Path, **written: Any) -> list[tuple[object, ...]]:
    wanted = Wanted("rows", COLUMNS, ["spent"], CsvFormat(**written))
    batches = FORMATS[path.suffix].rows(str(path), wanted)
    return [row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True)]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
@pytest.mark.parametrize(("delimiter", "decimal"), [*zip(DELIMITERS, ".,,,", strict=True)])
def test_cells_are_those_of_the_writer(
    tmp_path: Path, delimiter: str, decimal: str, encoding: str
) -> None:
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in CELLS]
    lines = [f"{cell}{delimiter}{number}{decimal}5" for number, cell in enumerate(quoted)]
    path = tmp_path / "in.csv"
    path.write_bytes("\n".join([f"who{delimiter}spent", *lines]).encode(encoding))
    found = rows(path, decimal=decimal, encoding=encoding)
    assert found == [(cell, number + 0.5) for number, cell in enumerate(CELLS)]


def test_a_number_has_its_decimal_point_only(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    wrong = ["1.5", "1.234,5", "1,", ",5", "1,5,5", "1;5", "1 5"]
    path.write_text("who|spent\n" + "".join(f"a|{text}\n" for text in [*wrong, "1,5", "2"]))
    assert [number for _, number in rows(path, decimal=",")] == [*[None] * len(wrong), 1.5, 2.0]


def test_a_byte_that_the_encoding_lacks_empties_its_cell_alone(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b"who,spent\nZo\xeb,1\nx\x81,2\ny,3\n")
    assert rows(path, encoding="cp1252") == [("Zoë", 1.0), (None, 2.0), ("y", 3.0)]


def test_tsv_has_tabs(tmp_path: Path) -> None:
    (tmp_path / "in.tsv").write_text("who\tspent\na,b\t1\n")
    assert rows(tmp_path / "in.tsv") == [("a,b", 1.0)]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"decimal": "'"}, "decimal must be"),
        ({"quotes": "none"}, "quotes must be True or False, not 'none'"),
        *(
            ({"encoding": name}, "encoding must be utf-8 or one of one byte per character")
            for name in ("utf-16", "shift-jis", "cp037", "unicode_escape", "utf-8-sig", "latin-99")
        ),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^CsvFormat: {said}"):
        dp.CsvFormat(**wrong)


@pytest.mark.parametrize("wrong", [{"decimal": ","}, {"encoding": "cp1252"}])
def test_other_files_have_no_csv_format(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="must be left out for 'in.parquet'"):
        dp.ReadRows("in.parquet", COLUMNS, csv=dp.CsvFormat(**wrong))


def test_a_format_is_no_mapping() -> None:
    written: Any = {"decimal": ","}
    with pytest.raises(TypeError, match="csv must be .*CsvFormat"):
        dp.ReadRows("in.csv", COLUMNS, csv=written)


def test_a_decimal_comma_may_stand_in_quotes(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('who,spent\na,"1,5"\nb,2\n')
    assert rows(tmp_path / "in.csv", decimal=",") == [("a", 1.5), ("b", 2.0)]


def test_a_job_reads_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "in.csv.gz", str(tmp_path / "out.tsv")
    lines = [f"{person};Grün;1,5" for person in range(3_000)]
    source.write_bytes(gzip.compress("\n".join(["who;day;spent", *lines]).encode("latin-1")))
    words = ["--input", str(source), "--output", out, "--person", "who", "--partition", "day"]
    words += ["--count", "--sum", "spent,clip=2", "--public_partitions", "Grün", "--epsilon", "3"]
    words += ["--encoding", "latin-1", "--runner", "FnApiRunner"]
    with pytest.raises(SystemExit):
        aggregate.main(words)
    assert 'Write --decimal ","' in capfd.readouterr().err
    assert aggregate.main([*words, "--decimal", ",", "--plan"]) == 0
    said = " ".join(capfd.readouterr().out.split())
    assert f"{source}: ';' between cells, as its header has it" in said
    assert aggregate.main([*words, "--decimal", ","]) == 0
    [released] = dp.Released.read(out).table.to_pylist()
    assert released["day"] == "Grün" and abs(released["sum_spent"] - 4_500) < 100
