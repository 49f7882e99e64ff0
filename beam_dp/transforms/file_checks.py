"""Look at files as a release would read them, before a budget is spent on them. NOT PRIVATE.

It tells what a release must not tell: how many rows are dropped by which rule, who has most rows,
which keys are there. The rows are read by the reader of the release, and judged by its layout.
"""

import collections
import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beam_dp.mechanisms.bounding.table import Role
from beam_dp.mechanisms.numerics import checks
from beam_dp.transforms import rehearsal
from beam_dp.transforms.aggregate import PrivateAggregate
from beam_dp.transforms.columns import ids, plain_values, row_fields, written_forms
from beam_dp.transforms.columns.layout import Layout, check_forms, check_types, column_of
from beam_dp.transforms.io import csv_files
from beam_dp.transforms.io.file_format import cells_of
from beam_dp.transforms.io.read_rows import ReadRows
from beam_dp.transforms.sql import person_queries, query_steps, row_queries

SHOWN = 5
"""So many people, keys and forms are named."""
_LONG = 40
"""Keys of more letters are shortened."""
SCANNED = 10_000
"""So many rows of a batch, or of JSON, say how a column is written."""
_BATCHES = 10
_TEST, _FAR = 100, 20
"""Who has more than 1 / 100 of all rows, or more than 20 times the 99th percentile of rows of a
person, may be a test. Among 100 people or fewer nobody is taken for one."""
_BETWEEN = "\0"  # the parts of a key
_FACTS = ("person", "period", "partition", "why")
_NONE = pa.table({name: pa.array([], pa.string()) for name in _FACTS})
_KEPT, _UNLISTED = "kept", "a key that is not in the list"


@dataclasses.dataclass
class FileScan:
    """What one file holds.

    Attributes:
        path: the file.
        refused: why the run would not take it; "" for a good file.
        elements: its rows, as a query makes them.
        kinds: how the cells of each column are written at the start.
        left: how many records are no rows, by the reason.
        no_numbers: what is said of cells that are no numbers, or no dates, by column.
        facts: for each table of the run, the unit, the partition, and the reason for which it does
            not count, of each row.
    """

    path: str
    refused: str = ""
    elements: Sequence[Any] = ()
    kinds: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    left: Mapping[str, int] = dataclasses.field(default_factory=dict)
    no_numbers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    facts: Sequence[pa.Table] = ()


def scans_of(
    reader: ReadRows, query: row_queries.Query | None, releases: Sequence[PrivateAggregate]
) -> list[FileScan]:
    """Return what the releases of one run would find in each of the files of its reader.

    As in a run, a column that is nulls in one file has its type of the others.
    """
    laid = [release._laid_out(release._program.columns) for release in releases]
    paths, parts = reader.paths(), list[Any]()
    scans = [FileScan(path, facts=[_NONE] * len(laid)) for path in dict.fromkeys(paths)]
    for found in scans:
        with _refusing([found]):
            reader.sniff([found.path])
    good = {found.path: found for found in scans if not found.refused}
    with _refusing(good.values()):
        together = [path for path in paths if path in good]
        sniffed = reader.sniff(together)
        for each in laid if query is None else ():
            for types in sniffed.types:
                check_types(each, types)
            check_forms(each, sniffed.forms)
        parts = reader.parts(together)
    for found in scans:
        with _refusing([found]):
            read, found.left = reader.of_file(found.path, parts)
            found.elements, out = (
                (read, 0) if query is None else _queried(query, read, reader.columns)
            )
            found.left = {**found.left, "left out by the query": out}
            found.kinds = {name: _kind(read, name) for name in reader.columns if read}
            found.no_numbers = dict(_no_numbers(found.path, reader, read))
            found.no_numbers |= {
                name: _no_dates(cells_of(read, name))
                for name, kind in found.kinds.items()
                if {written_forms.DATE, written_forms.TEXT} <= kind
            }
            found.facts = [pa.concat_tables([_NONE, *_judged(one, found.elements)]) for one in laid]
    return scans


@contextlib.contextmanager
def _refusing(scans: Iterable[FileScan]) -> Iterator[None]:
    """Keep the first reason of each, and go on."""
    try:
        yield
    except (TypeError, ValueError) as error:
        for found in scans:
            found.refused = found.refused or str(error)


def _queried(
    query: row_queries.Query, read: Sequence[Any], columns: Sequence[str] = ()
) -> tuple[list[Any], int]:
    """Return the rows that a query makes of these columns, and how many it leaves out."""
    if isinstance(query, person_queries.PersonQuery):
        grouped, sent = person_queries.grouped_here(query, read)
        made, out = _queried(query.outer, grouped)
        return made, sum(map(_size, read)) - sent + out
    step = query_steps.RunQuery(query, columns)
    step.setup()
    made = list(rehearsal.bundle(step, read))
    return made, sum(map(_size, read)) - sum(map(_size, made))


def _size(element: Any) -> int:
    return 1 if isinstance(element, dict) else len(element)


def _kind(read: Sequence[Any], name: str) -> frozenset[str]:
    """Return how the first cells of a column are written; the type of columns of numbers."""
    if isinstance(read[0], dict):
        forms = written_forms.of_values([row[name] for row in read[:SCANNED]])
        return forms - written_forms.JSON_TYPES or forms
    kind = ids.stored(read[0].schema.field(name).type)
    if not ids.is_text(kind):
        return frozenset([str(kind)])
    texts = [batch.column(name)[:SCANNED].cast(pa.string()) for batch in read[:_BATCHES]]
    return written_forms.of_texts(pa.concat_arrays(texts))


def _no_numbers(path: str, reader: ReadRows, read: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Yield the columns of numbers with cells that are none, and how these look."""
    written = None if reader.format.typed else reader.csv
    if written and reader.numbers:
        read, _ = reader.of_file(path, as_text=True)
    for name in reader.numbers:
        texts = pa.array([cell for cell in cells_of(read, name) if type(cell) is str], pa.string())
        bad = texts.filter(csv_files.to_numbers(texts, written).is_null()) if written else texts
        if len(bad):
            hint = written and csv_files.format_hint(texts, written)
            text = f"; all numbers are read by {hint}" if hint else ""
            yield name, f"{len(bad):,} cells are no numbers: {_examples(bad)}{text}"


def _no_dates(cells: Iterable[object]) -> str:
    """Return how the cells of a column of dates look that are written otherwise."""
    texts = pa.array([cell for cell in cells if type(cell) is str], pa.string())
    bad = texts.filter(pc.invert(written_forms.are(texts, written_forms.DATE)))
    return f"{len(bad):,} cells are no such dates: {_examples(bad)}"


def _examples(texts: pa.Array) -> str:
    """Return how many texts are alike but for their digits, each with an example."""
    forms = pc.replace_substring_regex(texts, r"\p{Nd}+", "9")
    examples = dict(zip(forms.to_pylist(), texts.to_pylist(), strict=True))
    return ", ".join(f"{n:,} like {examples[form]!r}" for form, n in _counted(forms)[:SHOWN])


def _judged(laid: Layout, elements: Sequence[Any]) -> Iterator[pa.Table]:
    """Yield the facts of rows."""
    owners = [laid.person, *(each.name for each in laid.columns if each.role is Role.OWNER)]
    for cells in _columns(elements, laid):
        size = len(cells[laid.person])
        person = pc.coalesce(*(_texts(cells[name]) for name in owners))
        period = _texts(cells[laid.period]) if laid.period else pa.nulls(size, pa.string())
        keys = [cells[name] for name in laid.partition]
        parts = list(map(_texts, keys)) or [pa.repeat(pa.scalar("all rows"), size)]
        rules = [(f"no {' or '.join(owners)}", ids.validity(person))]
        if laid.period:
            rules.append((f"no {laid.period}", ids.validity(period)))
        if laid.only is not None and laid.period:
            dated = laid.only.indexes([cells[laid.period]], laid.key) >= 0
            rules.append(("another period than ledger_period", dated))
        for name, part in zip(laid.partition, parts, strict=False):
            rules.append((f"no {name}", ids.validity(part)))
        for by, listed in laid.also_listed:
            known = listed.indexes([cells[name] for name in by], laid.key) >= 0
            rules.append(("a key that is not in the list of another table", known))
        if laid.public is not None:
            rules.append((_UNLISTED, laid.public.indexes(keys, laid.key) >= 0))
        why = np.full(size, _KEPT, object)
        for reason, good in reversed(rules):
            why[~good] = reason
        joined = pc.binary_join_element_wise(*parts, _BETWEEN)
        yield pa.table([person, period, joined, pa.array(why, pa.string())], list(_FACTS))


def _columns(elements: Iterable[Any], laid: Layout) -> Iterator[dict[str, pa.Array]]:
    """Yield the columns of batches; rows that are dicts are one batch, and have no types."""
    rows = row_fields.FieldLists(laid.names)
    for element in elements:
        if isinstance(element, dict):
            rows.add(element)
        elif element.schema.metadata == row_fields.OF_DICTS:
            rows.extend(plain_values.to_list(column_of(element, name)) for name in laid.names)
        else:
            cells = {name: column_of(element, name) for name in laid.names}
            check_types(laid, {name: column.type for name, column in cells.items()})
            yield cells
    if len(rows):
        yield dict(zip(laid.names, map(ids.ids_of, rows.drain()), strict=True))


def _texts(column: pa.Array) -> pa.Array:
    """Return the canonical ids of a column as text."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    known = map(ids.canonical, plain_values.to_list(coded.dictionary))
    return pa.array(known, pa.string()).take(coded.indices)


def _counted(*columns: Any) -> list[tuple[Any, ...]]:
    """Return the different rows of some columns, each with how often it occurs, most first."""
    names = [str(at) for at in range(len(columns))]
    counts = pa.table(list(columns), names).group_by(names).aggregate([([], "count_all")])
    order = [("count_all", "descending"), *((name, "ascending") for name in names)]
    return list(zip(*(column.to_pylist() for column in counts.sort_by(order).columns), strict=True))


def lines(scans: Sequence[FileScan], releases: Mapping[str, PrivateAggregate]) -> Iterator[str]:
    """Yield what is to say of all files, line by line, for each table of the run by its title."""
    files = f"{len(scans)} files" if len(scans) > 1 else scans[0].path
    left = sum(n for each in scans for n in each.left.values())
    for at, (title, release) in enumerate(releases.items()):
        facts = pa.concat_tables([each.facts[at] for each in scans])
        kept = facts.filter(pc.equal(facts["why"], _KEPT))
        what = f"{files}, {title}" if len(releases) > 1 else files
        yield f"{what}: {len(kept):,} of {len(facts) + left:,} rows count"
        yield from _dropped(scans, at)
        yield from _described(scans) if at == 0 else ()
        if len(kept):
            yield from _people(kept, release)
            yield from _partitions(kept, facts, release) if release.partition else ()
            if release.period:
                periods = sorted(kept["period"].unique().to_pylist())
                first, last = _key(periods[0]), _key(periods[-1])
                yield f"{release.period}: {len(periods):,} periods from {first} to {last}"


def _dropped(scans: Sequence[FileScan], at: int) -> Iterator[str]:
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for each in scans:
        for reason, number in [*each.left.items(), *_counted(each.facts[at]["why"])]:
            counts[reason][each.path] += number
    counts.pop(_KEPT, None)
    for reason, found in counts.items():
        of_files = +found
        where = f", all in {next(iter(of_files))}" if len(of_files) == 1 < len(scans) else ""
        if of_files:
            yield f"  {of_files.total():,} dropped: {reason}{where}"


def _described(scans: Sequence[FileScan]) -> Iterator[str]:
    """Yield how each column is written, and the files that write it otherwise than most."""
    for name in dict.fromkeys(name for each in scans for name in each.kinds):
        kinds = {each.path: each.kinds[name] for each in scans if name in each.kinds}
        [(usual, _)] = collections.Counter(kinds.values()).most_common(1)
        yield f"{name}: {_all(usual)}"
        for path, kind in kinds.items():
            if kind and kind.isdisjoint(usual):
                yield f"  in {path}: {_all(kind)}"
        for each in scans:
            if name in each.no_numbers:
                where = f", in {each.path}" * (len(scans) > 1)
                yield f"  {each.no_numbers[name]}{where}"


def _all(kind: frozenset[str]) -> str:
    return " and ".join(sorted(kind)) or "empty"


def _people(kept: pa.Table, release: PrivateAggregate) -> Iterator[str]:
    people, units = _counted(kept["person"]), _counted(kept["person"], kept["period"])
    what = f", {len(units):,} of one {release.period}" if release.period else ""
    rows = f"{units[len(units) // 2][-1]:,} in the middle, {units[0][-1]:,} at most"
    yield f"people: {len(people):,}{what}; rows of one: {rows}"
    most = min(len(kept) / _TEST, _FAR * people[len(people) // _TEST][1])
    tests = {person: n for person, n in people[:SHOWN] if n > most}
    if tests and len(people) > _TEST:
        named = ", ".join(f"{person!r} ({n:,})" for person, n in tests.items())
        yield f"  far more rows than others have, as a test has: {named}"
        listed = ", ".join("'{}'".format(person.replace("'", "''")) for person in tests)
        where = f"{release.people_columns[0]} NOT IN ({listed})"
        yield f"  a query leaves these out, but names them in the record: SELECT * FROM rows WHERE {where}"


def _partitions(kept: pa.Table, facts: pa.Table, release: PrivateAggregate) -> Iterator[str]:
    people = _counted(kept.group_by(["partition", "person"]).aggregate([])["partition"])
    (most, largest), (least, smallest) = people[0], people[-1]
    ends = f"people of one: {smallest:,} ({_key(least)}) to {largest:,} ({_key(most)})"
    yield f"partitions: {len(people):,}; {ends}"
    public = release._laid_out(()).public
    if public is not None:
        there = {key for key, _ in people}
        listed = (_BETWEEN.join(str(ids.canonical(part)) for part in key) for key in public.keys)
        others = _counted(facts.filter(pc.equal(facts["why"], _UNLISTED))["partition"])
        yield from _few("keys of the list that never occur", [k for k in listed if k not in there])
        yield from _few("keys that the list lacks", [key for key, _ in others])


def _few(what: str, keys: Sequence[str]) -> Iterator[str]:
    if keys:
        shown = ", ".join(map(_key, keys[:SHOWN])) + ", ..." * (len(keys) > SHOWN)
        yield f"  {what} ({len(keys):,}): {shown}"


def _key(key: str) -> str:
    """Return a key on one line, shortened where it is long."""
    text = key.replace(_BETWEEN, "/")
    return text if text.isprintable() and len(text) <= _LONG else checks.shown(text)
