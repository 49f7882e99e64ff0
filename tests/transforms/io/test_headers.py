"""Headers of local files are compared with the wanted columns; no cell of a row is shown."""

import contextlib
import decimal
import gzip
import io
import itertools
import os
import random
import zipfile
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import beam_dp as dp
from beam_dp.transforms.io import csv_files, open_files, read_rows
from beam_dp.transforms.io.file_format import Wanted
from beam_dp.transforms.io.parquet import Parquet

WANTED = ["who", "spent"]
SECRET = "canary-7f3a"
ROW_OF_TWO = (WANTED, [SECRET, "2"])
FINE = b"who,day,spent\n1,2,3\n"


def read(pattern: object, quotes: bool = True) -> None:
    _ = beam.Pipeline("FnApiRunner") | dp.ReadRows(
        str(pattern), WANTED, csv=dp.CsvFormat(quotes=quotes)
    )


def refusal(path: Path, content: bytes) -> str:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    with pytest.raises(ValueError) as raised:
        read(path)
    said = str(raised.value)
    assert SECRET not in said and "\n" not in said
    return said


def test_a_header_that_has_another_name_is_shown(tmp_path: Path) -> None:
    said = refusal(tmp_path / "in.csv.gz", b'who,day,"amount, net"\n1,2,3\n')
    assert "ReadRows: column 'spent' must stand once in every file of" in said
    assert said.endswith("; it has 'who', 'day', 'amount, net'.")


def test_what_is_wrong_with_a_header_is_said_but_a_first_line_that_may_be_a_row_is_not_shown(
    tmp_path: Path,
) -> None:
    assert "'who', 'spent', 'who'" in refusal(tmp_path / "in.csv", b"who,spent,who\n1,2,3\n")
    said = refusal(tmp_path / "in.csv", f"{SECRET},2,3\n".encode())
    rule = "none of the wanted columns in its first line, which must be a header"
    assert f"; it has {rule} (capitals count)" in said and SECRET not in said
    assert "whos" not in refusal(tmp_path / "in.csv", b"whos,2\n1,2\n")
    said = refusal(tmp_path / "in.csv", f" Who,{SECRET}\n1,2\n".encode())
    assert said.endswith("(capitals count). Did you mean ' Who'?") and SECRET not in said
    said = refusal(tmp_path / "in.csv", f"who;spend;day\n{SECRET};2;3\n".encode())
    assert said.endswith("; it has 'who', 'spend', 'day'. Did you mean spend?")


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_the_delimiter_is_that_of_the_header(tmp_path: Path, mark: str) -> None:
    for quote, start in itertools.product(("", '"'), ("", "\ufeff", "\n\r\n")):
        header, row = (mark.join(f"{quote}{cell}{quote}" for cell in cells) for cells in ROW_OF_TWO)
        (tmp_path / "in.csv").write_text(f"{start}{header}\n{row}\n")
        asked = dp.ReadRows(f"{tmp_path}/in.csv", WANTED)
        assert asked.here()[0].to_pylist() == [{"who": SECRET, "spent": "2"}]
        assert asked.taken() == [f"{tmp_path}/in.csv: {mark!r} between cells, as its header has it"]


@pytest.mark.parametrize("rows", [b"a;b,c;d", b"x\ty;z"])
def test_no_row_says_what_the_delimiter_is(rows: bytes) -> None:
    """With any rows below it, a header is read in one way."""
    for header, names in ((b"spent,who", ","), (b'"a,b";who;spent', ";"), (b"who\tspent", "\t")):
        wanted = Wanted("rows", WANTED)
        assert csv_files._delimiter(header + b"\n" + rows, wanted, ",") == names


def test_parquet_names_the_columns_of_its_schema(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"who": [1], "amount": [SECRET]}), path)
    with pytest.raises(ValueError, match=r"'spent' must stand .*; it has 'who', 'amount'\."):
        read(path)


def test_what_cannot_be_seen_from_here_is_left_to_the_run(tmp_path: Path) -> None:
    read(f"{tmp_path}/none/*.csv")
    read("gs://no-such-bucket-of-ours/*.parquet,gs://no-such-bucket-of-ours/more/*.parquet")


LATIN = f"who,spent,café\n{SECRET},1,2\n".encode("latin-1")
ROWS = b"".join(b"%d,%d\n" % (number, number**9) for number in range(30_000))
ZIP = io.BytesIO()
with zipfile.ZipFile(ZIP, "w") as packed:
    packed.writestr("who,spent", SECRET * 1000)
TABLE = pa.BufferOutputStream()
pq.write_table(pa.table({"who": [SECRET] * 9, "spent": range(9)}), TABLE)
PARQUET = TABLE.getvalue().to_pybytes()
NOISE = random.Random(7).randbytes(100_000)
NOT_UTF8 = "must be text in UTF-8, and it is not, in its first 1 MiB. CSV may"
NO_CSV, NO_PARQUET = (
    "must be a CSV file in UTF-8",
    "must be a Parquet file without encryption; it cannot be",
)
NO_JSON = "must hold a JSON object on each line, and it has other lines in its first 1 MiB"
UTF_16 = "must be text, and it is text in UTF-16: save it in UTF-8, as iconv -f UTF-16 -t UTF-8 "
UNREADABLE = {
    "a header in Latin-1.csv": (LATIN, NOT_UTF8),
    "a key in Latin-1.csv": (FINE + "é,1,2\n".encode("latin-1"), NOT_UTF8),
    "a key in Latin-1.jsonl": ('{"who": 1}\n{"who": "é"}\n'.encode("latin-1"), NOT_UTF8),
    "a long header in Latin-1.csv": (b"x," * 600_000 + LATIN, NO_CSV),
    "UTF-16.csv": (FINE.decode().encode("utf-16"), UTF_16),
    "UTF-16 without a mark.csv": (FINE.decode().encode("utf-16-le"), UTF_16),
    "random.csv": (NOISE, NOT_UTF8),
    "a spreadsheet.csv": (ZIP.getvalue(), "it is a zip archive or a spreadsheet: save it as CSV"),
    "Parquet.csv": (PARQUET, "it is a Parquet file: its name must end in .parquet"),
    "CSV.parquet": (FINE, NO_PARQUET),
    "CSV.csv.gz": (FINE, NO_CSV),
    "CSV.jsonl": (FINE, NO_JSON),
    "one array.jsonl": (b'[{"who": 1},\n {"who": 2}]\n', "and it has a list in its first"),
    "gzip.csv": (gzip.compress(FINE), "it is packed by gzip: its name must end in .gz"),
    "cut in its header.csv.gz": (gzip.compress(FINE)[:-9], NO_CSV),
    "cut in its first block.csv.gz": (gzip.compress(b"who,spent\n" + ROWS)[:20_000], NO_CSV),
    "cut in its first line.jsonl.gz": (gzip.compress(b'{"who": 1}')[:-9], "must be JSON Lines in"),
    "of no bytes.parquet": (b"", NO_PARQUET),
    "magic bytes alone.parquet": (b"PAR1" + SECRET.encode(), NO_PARQUET),
    "an open quote.csv": (b'"who,spent\n1,2\n', NO_CSV),
    "a lone CR.csv": (b"w\rho,spent\n1,2\n", NO_CSV),
    "blank lines.csv": (b"\n\n", "it has none of the wanted columns in its first line"),
}


@pytest.mark.parametrize("name", UNREADABLE)
@pytest.mark.filterwarnings("ignore::beam_dp.UnknownColumns")
def test_a_file_that_cannot_be_read_is_refused_when_the_pipeline_is_built(
    tmp_path: Path, name: str
) -> None:
    content, words = UNREADABLE[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError) as raised:
        read(tmp_path / name)
    said = str(raised.value)
    assert said.startswith("ReadRows: ") and words in said
    assert SECRET not in said and "\n" not in said and raised.value.__context__ is None


def test_csv_of_no_bytes_is_refused_unless_another_file_has_a_header(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"")
    with pytest.raises(ValueError, match="pattern must name a file with a header, .* has 0 bytes"):
        read(f"{tmp_path}/*.csv")
    (tmp_path / "b.csv").write_bytes(b"who,spent\n")  # a table of nobody
    read(f"{tmp_path}/*.csv")


@pytest.mark.parametrize(
    "content",
    [b"", b"\n \n", b"\xef\xbb\xbf", b"{}\n", b'\xef\xbb\xbf{"who": 1, "spent": 2}\n',
     b'{"who": "' + b"x" * open_files.SNIFFED + b'"}'],
)  # fmt: skip
def test_json_lines_have_no_header(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "in.jsonl").write_bytes(content)
    with pytest.warns(dp.UnknownColumns, match="ReadRows: JSON Lines like '.*' have no header"):
        read(tmp_path / "in.jsonl")


def test_types_of_parquet_are_known_when_the_pipeline_is_built(tmp_path: Path) -> None:
    for name, kind in (("a", pa.null()), ("b", pa.float64())):
        table = pa.table({"who": pa.nulls(1), "spent": pa.nulls(1, kind)})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    types = dp.ReadRows(f"{tmp_path}/*.parquet", WANTED)._sniff()
    assert types.types == [{"who": pa.null(), "spent": pa.float64()}] * 2
    asked = dp.PrivateAggregate("spent", [dp.Sum("who")], dp.Budget(1.0))
    pq.write_table(pa.table({"who": ["x"], "spent": [1]}), tmp_path / "d.parquet")
    with pytest.raises(TypeError, match="column 'who' must hold numbers, not string"):
        _ = (
            beam.Pipeline("FnApiRunner")
            | dp.ReadRows(f"{tmp_path}/d.parquet", WANTED)
            | "Release" >> asked
        )


@pytest.mark.parametrize(
    ("select", "later", "said"),
    [
        ("spent, count(*) AS n {} GROUP BY spent", pa.decimal128(2, 1), "must hold integers"),
        ("count(*) AS n {} WHERE spent > 0", pa.decimal256(40, 0), "query must fit"),
        ("sum(spent * spent) AS s {}", pa.decimal128(38, 30), "query must fit"),
        ("sum(spent) AS s {}", pa.decimal128(2, 1), None),
    ],
)
def test_the_types_of_a_later_file_are_looked_at(select, later, said, tmp_path: Path) -> None:
    """One cell, as 1.5 among whole numbers, gives its file another type."""
    for name, kind in (("a", pa.decimal128(1, 0)), ("b", later)):
        spent = pa.array([decimal.Decimal(1)], kind)
        pq.write_table(pa.table({"who": [1], "spent": spent}), tmp_path / f"{name}.parquet")
    text = "SELECT " + select.format(f"FROM '{tmp_path}/*.parquet'")
    asked = {"person": "who", "budget": dp.Budget(1.0, 1e-6)}
    with pytest.raises((TypeError, ValueError), match=said) if said else contextlib.nullcontext():
        assert len(dp.select(text, **asked).table) == 1


def test_a_pipe_is_not_opened_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "in.csv")
    read(tmp_path / "in.csv")  # opening it would wait for a writer


def test_a_part_of_many_files_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_rows, "MOST", 2)
    for index, content in enumerate((FINE, FINE, b"who\n")):
        (tmp_path / f"{index}.csv").write_bytes(content)
    read(f"{tmp_path}/*.csv")
    with (
        pytest.raises(RuntimeError, match="column 'spent' must stand once"),
        beam.Pipeline("FnApiRunner") as p,
    ):
        _ = p | dp.ReadRows(f"{tmp_path}/*.csv", WANTED)


KINDS = [
    (pa.array([1]), pa.array(["1"]), "an integer and text"),
    (pa.array([1.5]), pa.array([1]), "a float and an integer"),
    (pa.array(["a"]).dictionary_encode(), pa.array([b"a"]), "bytes and text"),
]


@pytest.mark.parametrize(("first", "second", "kinds"), KINDS)
def test_a_column_has_one_kind_in_all_files(first, second, kinds, tmp_path: Path) -> None:
    """Else the ids 1 and "1" would be two people."""
    for name, column in (("a", first), ("b", second)):
        pq.write_table(pa.table({"who": column}), tmp_path / f"{name}.parquet")
    wanted = Wanted(str(tmp_path / "*.parquet"), ("who",))
    paths = [str(tmp_path / f"{name}.parquet") for name in "ab"]
    for refused in (Parquet().sniff, Parquet().parts):
        with pytest.raises(ValueError, match=f"one type in all files of .*, not {kinds}"):
            refused(paths, wanted)


def test_nulls_and_other_widths_are_no_other_kind(tmp_path: Path) -> None:
    columns = [pa.nulls(1), pa.array([1], pa.int16()), pa.array([2], pa.int64())]
    paths = [str(tmp_path / f"{number}.parquet") for number in range(3)]
    for path, column in zip(paths, columns, strict=True):
        pq.write_table(pa.table({"who": column}), path)
    wanted = Wanted(str(tmp_path / "*.parquet"), ("who",))
    types = [each["who"] for each in Parquet().sniff(paths, wanted).types]
    assert types == [pa.int16(), pa.int16(), pa.int64()]
    assert len(Parquet().parts(paths, wanted)) == 3
