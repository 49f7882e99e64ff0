"""ReadRows: what is read, what is dropped, and which calls are refused."""

import base64
import datetime as dt
import gzip
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet import encryption

from beam_dp.transforms.io import csv_files, open_files, parquet, records
from beam_dp.transforms.io.file_format import CsvFormat, Wanted
from beam_dp.transforms.io.formats import FORMATS, READ
from beam_dp.transforms.io.read_rows import ReadRows
from tests.hostile import support
from tests.hostile.inserted import readers


def read_jsonl_bytes(tmp_path: Path, content: bytes) -> list[Any]:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    return readers.json_rows(path, ("who", "what"))


def read_all(pattern: str, columns: list[str], numbers: tuple[str, ...] = ()) -> list[Any]:
    """The rows of a whole pipeline, sorted."""
    with beam.Pipeline(runner="FnApiRunner") as p:
        found = support.keep(p | ReadRows(pattern, columns, numbers))
    rows = (e.to_pylist() if isinstance(e, pa.RecordBatch) else [e] for e in found)
    return sorted(tuple(row.values()) for each in rows for row in each)


def failure_of(pattern: str, columns: list[str], numbers: tuple[str, ...] = ()) -> BaseException:
    with pytest.raises(Exception) as raised:
        read_all(pattern, columns, numbers)
    return raised.value


# --- Parquet


def write_parquet(path: Path, table: pa.Table, rows: int = 100) -> str:
    pq.write_table(table, path, row_group_size=rows)
    return str(path)


def test_parquet_gives_every_row_of_every_file_once(tmp_path: Path) -> None:
    for part in range(3):
        table = pa.table({"who": range(part * 250, part * 250 + 250), "other": ["x"] * 250})
        write_parquet(tmp_path / f"part-{part}.parquet", table)
    other = write_parquet(tmp_path / "other.parquet", pa.table({"who": [750]}))
    assert read_all(f"{tmp_path}/part*.parquet,{other}", ["who"]) == [(n,) for n in range(751)]


@pytest.mark.parametrize("encoding", ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
@pytest.mark.parametrize("texts", [["a"] * 200, ["a"] * 200 + ["x" * 9000]])
def test_parquet_text_may_have_any_encoding(
    tmp_path: Path, encoding: str, texts: list[str]
) -> None:
    """Whether it is read as a dictionary depends on its length, and Arrow reads no deltas so."""
    path = str(tmp_path / "a.parquet")
    table = pa.table({"who": texts})
    pq.write_table(table, path, use_dictionary=False, column_encoding={"who": encoding})
    assert read_all(path, ["who"]) == [(text,) for text in texts]


def test_categories_in_a_delta_encoding_are_refused_before_a_row_is_read(tmp_path: Path) -> None:
    path, texts = str(tmp_path / "a.parquet"), pa.array(["a", "b"]).dictionary_encode()
    encoding = {"column_encoding": {"who": "DELTA_BYTE_ARRAY"}}
    pq.write_table(pa.table({"who": texts}), path, use_dictionary=False, **encoding)
    with pytest.raises(ValueError, match="must not be a category in a delta encoding"):
        parquet.Parquet().sniff([path], Wanted(path, ["who"]))


def test_times_of_any_year_are_read(tmp_path: Path) -> None:
    """Spark writes INT96, which Arrow reads as nanoseconds if nothing is said."""
    path, times = str(tmp_path / "a.parquet"), [dt.datetime(year, 1, 2) for year in (1, 2026, 9999)]
    pq.write_table(pa.table({"at": times}), path, use_deprecated_int96_timestamps=True)
    assert read_all(path, ["at"]) == [(time,) for time in times]


class _Kms(encryption.KmsClient):
    """Wraps no key."""

    def __init__(self, config: encryption.KmsConnectionConfig) -> None:
        encryption.KmsClient.__init__(self)

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return base64.b64encode(key_bytes).decode()


def test_a_page_that_is_not_what_its_checksum_says_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    plain = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(pa.table({"spent": [1.0, 2.0]}), path, **plain)
    one, other = struct.pack("<2d", 1, 2), struct.pack("<2d", 77, 2)
    path.write_bytes(path.read_bytes().replace(one, other))
    with pytest.raises(ValueError, match="it cannot be read"):
        ReadRows(str(path), ["spent"]).here()


@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_files_with_encrypted_columns_are_refused(plaintext_footer: bool, tmp_path: Path) -> None:
    """Arrow ends the process where it is asked for such a column below a footer in plain text."""
    table, path = pa.table({"who": [1], "spent": [2]}), tmp_path / "a.parquet"
    keys = {"footer_key": "f", "column_keys": {"k": ["spent"]}}
    asked = encryption.EncryptionConfiguration(**keys, plaintext_footer=plaintext_footer)
    made = encryption.CryptoFactory(_Kms)
    written = made.file_encryption_properties(encryption.KmsConnectionConfig(), asked)
    with pq.ParquetWriter(path, table.schema, encryption_properties=written) as writer:
        writer.write_table(table)
    with pytest.raises(ValueError, match="must be a Parquet file without encryption; it cannot"):
        parquet.Parquet().sniff([str(path)], Wanted(str(path), ["who"]))


def test_parquet_batches_have_at_most_a_slice_and_fewer_rows_of_long_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A nested column counts as well; one that is not asked for does not."""
    rows = 3 * parquet.SLICE + 1
    path = write_parquet(tmp_path / "a.parquet", pa.table({"who": range(rows)}), rows)
    sizes = [batch.num_rows for batch in readers.parquet_batches(path, ["who"])]
    assert sum(sizes) == rows and max(sizes) <= parquet.SLICE
    monkeypatch.setattr(parquet, "BATCH_BYTES", 1 << 16)
    for length, most in ((36, 512), (40_000, 1)):
        texts = [f"{row:0{length}}" for row in range(1 << 18 >> length.bit_length())]
        table = pa.table({"who": texts, "what": [[text] for text in texts], "other": texts})
        pq.write_table(table, path, use_dictionary=False)
        batches = readers.parquet_batches(path, ["who", "what"])
        assert max(batch.num_rows for batch in batches) == most
        assert [row["who"] for batch in batches for row in batch.to_pylist()] == texts


def test_the_footer_of_a_file_is_read_once_for_all_its_ranges_and_anew_in_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once per range, time would grow with the square of the rows."""
    monkeypatch.setattr(parquet, "RANGE_ROWS", 100)
    for rows in (1000, 700):
        path = write_parquet(tmp_path / "a.parquet", pa.table({"who": range(rows)}), 50)
        before = parquet.footer_of.cache_info().misses
        assert read_all(path, ["who"]) == [(who,) for who in range(rows)]
        # When it is looked at, and for all of its ranges.
        assert parquet.footer_of.cache_info().misses == before + 2


@pytest.mark.parametrize(
    "other", [pa.table({"who": range(20)}), pa.table({"what": range(1000)})], ids=["few", "column"]
)
def test_a_file_that_is_replaced_after_it_was_listed_is_no_parquet_file(
    other: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "RANGE_ROWS", 100)
    path = write_parquet(tmp_path / "a.parquet", pa.table({"who": range(1000)}), 50)
    kind, wanted = FORMATS[".parquet"], Wanted(path, ["who"])
    *_, last = kind.parts([path], wanted)
    write_parquet(tmp_path / "a.parquet", other, 50)
    parquet.footer_of.cache_clear()  # a worker of another process
    with pytest.raises(ValueError, match="must be a Parquet file"):
        list(kind.rows(last, wanted))


def test_parquet_text_is_a_dictionary_where_it_repeats_only(tmp_path: Path) -> None:
    table = pa.table(
        {
            "day": ["Monday", "Tuesday"] * 5000,
            "id": [f"a-long-identifier-{row}" for row in range(10_000)],
        }
    )
    path = write_parquet(tmp_path / "a.parquet", table, 10_000)
    [batch] = readers.parquet_batches(path, ["day", "id"])
    assert pa.types.is_dictionary(batch.schema.field("day").type)
    assert batch.schema.field("id").type == pa.string()
    assert batch.to_pydict() == table.to_pydict()


KEPT = [
    pa.array([1.5, None, float("nan")]),
    pa.array(["a", None, "a"], pa.large_string()),
    pa.array(["a", None, "a"]).dictionary_encode(),
    pa.array(["a", None, "a"], pa.string_view()),
    pa.array([f"{n}-long-and-different" for n in range(500)], pa.string_view()),
    pa.array([b"a", None, b"b"], pa.binary_view()),
    pa.array([True, None, False]),
    pa.array([1, None, 2], pa.timestamp("us", "UTC")),
    pa.array([1, None, 2]).cast(pa.decimal128(21, 2)),
    pa.array([], pa.int64()),
]


@pytest.mark.parametrize("values", KEPT, ids=lambda values: f"{values.type}-{len(values)}")
def test_parquet_keeps_types_and_nulls(tmp_path: Path, values: pa.Array) -> None:
    path = write_parquet(tmp_path / "a.parquet", pa.table({"what": values}))
    batches = readers.parquet_batches(path, ["what"])
    cells = [cell for batch in batches for cell in batch.column(0).to_pylist()]
    assert not any("view" in str(batch.schema.field(0).type) for batch in batches)
    assert [repr(cell) for cell in cells] == [repr(cell) for cell in values.to_pylist()]


@pytest.mark.parametrize(
    ("kind", "indices"), [(pa.string(), pa.int8()), (pa.large_string(), pa.uint16())], ids=str
)
def test_parquet_text_that_is_not_utf8_spoils_no_dictionary_column(
    tmp_path: Path, indices: pa.DataType, kind: pa.DataType
) -> None:
    """Such are the category columns of pandas."""
    cells = [b"a", b"Jos\xe9", b"b", None]
    text = pa.array(cells[:3], pa.binary()).view(pa.string())
    if kind == pa.large_string():
        text = pa.array(cells[:3], pa.large_binary()).view(kind)
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None], indices), text)
    path = write_parquet(tmp_path / "a.parquet", pa.table({"what": column}))
    [batch] = readers.parquet_batches(path, ["what"])
    assert batch.column(0).cast(pa.binary()).to_pylist() == cells


# --- CSV

NUMBERS = {
    "1": 1.0,
    "-1": -1.0,
    "+2.50": 2.5,
    "1e3": 1000.0,
    "1.5E-2": 0.015,
    "007": 7.0,
    "0.1": 0.1,
    "9007199254740993": 9007199254740992.0,
    "1e999": float("inf"),
    "-1e999": float("-inf"),
    "1e-999": 0.0,
    "9" * 1000: float("inf"),
}
NO_NUMBERS = (
    *(" 1", "1 ", "1_000", "nan", "NaN", "inf", "-infinity", "١٢", "１", "0x10", "1,5"),
    *("1.", ".5", ".", "+", "-", "e5", "1e", "--1", "1e1.5", "true", "1d", "1\n", "1\x00", "½"),
    *("9" * 1001, "", "1L", "1 000", "\u22121"),
)


def test_csv_numbers_are_the_nearest_floats_and_text_outside_the_grammar_is_null() -> None:
    cells = pa.array([*NUMBERS, *NO_NUMBERS, None])
    nulls = [None] * (len(NO_NUMBERS) + 1)
    assert csv_files.to_numbers(cells, CsvFormat()).to_pylist() == [*NUMBERS.values(), *nulls]


def test_gzip_is_unpacked_in_bounded_pieces(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(64):
            file.write(b"x" * (1 << 20))
        file.write(b"\n")
    assert path.stat().st_size < 1 << 17
    tracemalloc.start()
    with pytest.raises(ValueError, match="a header of at most 1 MiB"):
        readers.csv_rows(path, ("who",))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 48 << 20


# --- JSON Lines

JSONL_CASES = [
    (b'{"who": 1, "what": "x", "other": [1]}', (1, "x")),
    (b'{"who": 1}', (1, None)),
    (b'{"who": null, "what": true}', (None, True)),
    (b'{"who": 0.1, "what": 1e3}', (0.1, 1000.0)),
    (b'{"who": 1e999, "what": -1e999}', (float("inf"), float("-inf"))),
    (b'{"who": ' + b"1234567890" * 3 + b', "what": -1}', (int("1234567890" * 3), -1)),
    (b'{"who": NaN, "what": -Infinity}', (None, None)),
    (b'{"who": {"a": 1}, "what": [1]}', (None, None)),
    (b'{"who": 1, "who": 2, "what": 3}', (2, 3)),
    (b'{"who": "\\ud800", "what": "\\u00e9"}', (None, "\u00e9")),
    (b'\r{"who"\r:\r1, "what": 2}\r\r', (1, 2)),
    (
        '{"who": "a\u2028b\u2029", "what": "c\u0085d\u007f"}'.encode(),
        ("a\u2028b\u2029", "c\u0085d\u007f"),
    ),
    (b'{"who": "a\\u0000", "what": 1}', ("a\0", 1)),
]
JSONL_DROPPED = (
    *(b"", b"[1]", b"1", b'"who"', b"null", b"{", b'{"who": 1,}', b"{'who': 1}", b'{"who": 01}'),
    *(b'{"who": "\xff"}', b'{"who": ' + b"9" * 5000 + b"}", b"[" * 100_000, b'{"who":' * 100_000),
    *(b'{"who": "' + b"x" * (2 * records.RECORD_LIMIT) + b'"}', b" " * (1 << 20) + b'{"who": 1}'),
    '{"who": 1}'.encode("utf-16"),
    *(b'{"who":1}\r{"who":2}', b'{"who": "a\r"}', b'{"who":1}\f{"who":2}', b'{"who":1}\v'),
    *(b'{"who":1}\x1c{"who":2}', b'{"who": "\0"}', b'{"who":1}\0', b"\0", b"\x1a"),
    *('{"who":1}\u2028{"who":2}'.encode(), '{"who":1}\u0085'.encode(), '\ufeff{"who":1}'.encode()),
)


def test_jsonl_rows(tmp_path: Path) -> None:
    lines, rows = zip(*JSONL_CASES, strict=True)
    assert read_jsonl_bytes(tmp_path, b"\n".join([*lines, *lines])) == [*rows, *rows]


@pytest.mark.parametrize("line", JSONL_DROPPED, ids=range(len(JSONL_DROPPED)))
def test_jsonl_bad_line_drops_alone(tmp_path: Path, line: bytes) -> None:
    good = b'{"who": 1, "what": 2}'
    content = records.BYTE_ORDER_MARK + b"\n".join([good, line, good])
    assert read_jsonl_bytes(tmp_path, content) == [(1, 2), (1, 2)]


def test_jsonl_byte_order_mark_may_come_in_pieces(tmp_path: Path) -> None:
    content = records.BYTE_ORDER_MARK + b'{"who": 1, "what": 2}\n'
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(b"".join(gzip.compress(content[at : at + 1]) for at in range(len(content))))
    assert ReadRows(str(path), ["who"]).here() == [{"who": 1}]


# --- The transform


@pytest.mark.parametrize("quotes", [True, False])
def test_quotes_are_those_that_the_reader_was_told(tmp_path: Path, quotes: bool) -> None:
    path = tmp_path / "rows.csv"
    unsniffed = b"\n" * open_files.SNIFFED  # what is looked at first must be well written
    path.write_bytes(b"who,what\n" + unsniffed + b'q,"oops\n"a",1\n')
    [batch] = ReadRows(str(path), ["who", "what"], csv=CsvFormat(quotes=quotes)).here()
    rows = [tuple(row.values()) for row in batch.to_pylist()]
    assert rows == ([("a", "1")] if quotes else [("q", '"oops'), ('"a"', "1")])


def test_packed_csv_and_jsonl_through_a_pipeline(tmp_path: Path) -> None:
    text = {"csv": b"who,what\na,1\nb,x\n", "jsonl": b'{"who": "a", "what": 1}\n{"who": "b"}\n'}
    for kind, content in text.items():
        path = tmp_path / f"rows.{kind}.gz"
        path.write_bytes(gzip.compress(content))
        found = read_all(str(path), ["who", "what"], ("what",))
        assert found == [("a", 1), ("b", None)]


UNQUOTED = CsvFormat(quotes=False)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("rows.txt", ["a"]), f"pattern must end in one of {', '.join(READ)}"),
        (("directory/", ["a"]), 'For a directory write "directory/*.parquet"'),
        (("a.csv,b.parquet", ["a"]), "the same for all its parts"),
        (("", ["a"]), "pattern must end in"),
        ((None, ["a"]), "pattern must be a string"),
        (("a.csv", []), "columns must name a column"),
        (("a.csv", "a"), "columns must be a list"),
        (("a.csv", ["a", "a"]), "columns must name each column once"),
        (("a.csv", ["a", 1]), "columns must be the name of a column"),
        (("a.csv", ["a"], ["b"]), "numbers must be among columns, not 'b'"),
        (("a.parquet", ["a"], (), UNQUOTED), "quotes must be left out for 'a.parquet': only"),
        (("a.jsonl.gz", ["a"], (), UNQUOTED), "quotes must be left out for 'a.jsonl.gz': only"),
    ],
)
def test_wrong_parameters_are_refused_at_construction(arguments: Any, rule: str) -> None:
    with pytest.raises((TypeError, ValueError), match="^ReadRows: ") as raised:
        ReadRows(*arguments)
    assert rule in str(raised.value)


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl.gz"])
def test_pattern_that_matches_nothing_fails_the_job_in_one_line(tmp_path: Path, kind: str) -> None:
    pattern = f"{tmp_path}/none-*.{kind}"
    said = str(failure_of(pattern, ["who"]))
    assert f"ReadRows: pattern must match a file, and {pattern!r} matches none." in said


# --- Nothing of the content gets out
