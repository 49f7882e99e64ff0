"""Files are read and written alike on every runner."""

from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from beam_dp.transforms.io.read_rows import ReadRows
from beam_dp.transforms.io.write_rows import WriteRows


def counted(batch: pa.RecordBatch) -> beam.Row:
    return beam.Row(rows=batch.num_rows, days=len(batch["day"].unique()))


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_rows_are_read_and_results_written(
    tmp_path: Path, pipeline_options: PipelineOptions, kind: str
) -> None:
    table = pa.table({"day": ["Monday", "Tuesday"] * 50, "spent": range(100)})
    for part in range(3):
        path = tmp_path / f"part-{part}.{kind}"
        if kind == "parquet":
            pq.write_table(table, path)
        else:
            lines = [f"{row['day']},{row['spent']}\n" for row in table.to_pylist()]
            path.write_text("".join(["day,spent\n", *lines]))
    with beam.Pipeline(options=pipeline_options) as p:
        batches = p | ReadRows(f"{tmp_path}/part-*.{kind}", ["spent", "day"], ["spent"])
        results = batches | "Count" >> beam.Map(counted)
        _ = results | WriteRows(str(tmp_path / "out.csv"), ["rows", "days"])
    assert (tmp_path / "out.csv").read_text() == "rows,days\n" + "100,2\n" * 3
