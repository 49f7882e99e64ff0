"""Headers of local files are compared with the wanted columns; no cell of a row is shown."""

import gzip
import os
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import beam_dp as dp
from beam_dp.transforms.io import headers

WANTED = ["who", "spent"]
SECRET = "canary-7f3a"
FINE = b"who,day,spent\n1,2,3\n"


def read(pattern: object, quotes: bool = True) -> None:
    _ = beam.Pipeline("FnApiRunner") | dp.ReadRows(str(pattern), WANTED, quotes=quotes)


def refusal(path: Path, content: bytes) -> str:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    with pytest.raises(ValueError) as raised:
        read(path)
    said = str(raised.value)
    assert SECRET not in said and "\n" not in said
    return said


@pytest.mark.parametrize("name", ["in.csv", "in.csv.gz"])
def test_a_header_that_has_another_name_is_shown(tmp_path: Path, name: str) -> None:
    said = refusal(tmp_path / name, b'who,day,"amount, net"\n1,2,3\n')
    assert "ReadRows: column 'spent' must stand once in every file of" in said
    assert said.endswith("one of them has 'who', 'day', 'amount, net'.")


def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    assert "'who', 'spent', 'who'" in refusal(tmp_path / "in.csv", b"who,spent,who\n1,2,3\n")


def test_a_first_line_that_may_be_a_row_is_not_shown(tmp_path: Path) -> None:
    said = refusal(tmp_path / "in.csv", f"{SECRET},2,3\n".encode())
    assert "one of them has none of the wanted columns in its first line, which must be" in said


@pytest.mark.parametrize(("mark", "shown"), [(";", "';'"), ("\t", r"'\t'"), ("|", "'|'")])
def test_another_delimiter_is_named(tmp_path: Path, mark: str, shown: str) -> None:
    rows = [["who", "day", "spent"], [SECRET, "1", "2"]]
    said = refusal(tmp_path / "in.csv", "\n".join(map(mark.join, rows)).encode())
    assert f"one of them has {shown} and no comma in its first line: commas must separate" in said


def test_parquet_names_the_columns_of_its_schema(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"who": [1], "amount": [SECRET]}), path)
    with pytest.raises(
        ValueError, match=r"'spent' must stand .*; one of them has 'who', 'amount'\."
    ):
        read(path)


def test_one_of_many_files_is_enough(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.csv").write_bytes(FINE)
    read(f"{tmp_path}/*.csv")
    (tmp_path / "b.csv").write_bytes(b"who,day\n1,2\n")
    with pytest.raises(ValueError, match="column 'spent' must stand once"):
        read(f"{tmp_path}/*.csv")


def test_what_cannot_be_read_now_is_left_to_the_run(tmp_path: Path) -> None:
    read(f"{tmp_path}/none/*.csv")
    read("gs://no-such-bucket-of-ours/*.parquet,gs://no-such-bucket-of-ours/more/*.parquet")
    (tmp_path / "in.parquet").write_bytes(b"PAR1" + SECRET.encode())
    read(tmp_path / "in.parquet")
    (tmp_path / "in.csv.gz").write_bytes(SECRET.encode())
    read(tmp_path / "in.csv.gz")
    for index, content in enumerate([b'"who,spent\n1,2\n', b"w\rho,spent\n1,2\n", b"\n\n"]):
        (tmp_path / f"{index}.csv").write_bytes(content)
        read(tmp_path / f"{index}.csv")


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfwho,day,spent\n1,2,3\n",
        b"\r\n\n" + FINE,
        b"who,day,spent",
        b'"who","a\nb",spent\n1,2,3\n',
        FINE + b"1,2,3\n" * 30_000,
        FINE + b'1,2,"' + b"x" * 100_000 + b'"\n',
    ],
    ids=["mark", "blank lines", "no line end", "line end in a name", "long", "a long cell"],
)
def test_headers_that_the_run_reads_are_fine(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "in.csv").write_bytes(content)
    read(tmp_path / "in.csv")


def test_a_header_longer_than_what_is_looked_at_is_left_to_the_run(tmp_path: Path) -> None:
    names = ",".join(f"column{index}" for index in range(10_000))
    (tmp_path / "in.csv").write_text(f"{names},who,spent\n")
    read(tmp_path / "in.csv")


def test_without_quotes_a_quote_is_part_of_a_name(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b'who,"spent"\n1,2\n')
    read(path)
    with pytest.raises(ValueError, match="one of them has 'who', '\"spent\"'"):
        read(path, quotes=False)


def test_csv_of_no_bytes_is_refused_unless_another_file_has_a_header(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"")
    with pytest.raises(ValueError, match="pattern must name a file with a header, .* has 0 bytes"):
        read(f"{tmp_path}/*.csv")
    (tmp_path / "b.csv").write_bytes(FINE)
    read(f"{tmp_path}/*.csv")


def test_a_table_of_nobody_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b"who,spent\n")
    pq.write_table(pa.table({"who": pa.nulls(0), "spent": pa.nulls(0)}), tmp_path / "in.parquet")
    for name in ("in.csv", "in.parquet"):
        read(tmp_path / name)


def test_json_lines_have_no_header(tmp_path: Path) -> None:
    for content in (b"", b"{}\n", b'{"who": 1, "spent": 2}\n'):
        (tmp_path / "in.jsonl").write_bytes(content)
        with pytest.warns(dp.UnknownColumns, match="ReadRows: JSON Lines like '.*' have no header"):
            read(tmp_path / "in.jsonl")


def test_a_pipe_is_not_opened_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "in.csv")
    read(tmp_path / "in.csv")  # opening it would wait for a writer


def test_a_part_of_many_files_is_looked_at(tmp_path: Path) -> None:
    for index in range(headers.MOST + 1):
        (tmp_path / f"{index:03}.csv").write_bytes(FINE)
    (tmp_path / f"{headers.MOST:03}.csv").write_bytes(b"who\n")
    read(f"{tmp_path}/*.csv")
    with (
        pytest.raises(RuntimeError, match="column 'spent' must stand once"),
        beam.Pipeline("FnApiRunner") as p,
    ):
        _ = p | dp.ReadRows(f"{tmp_path}/*.csv", WANTED)
