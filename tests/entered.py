"""Count the files and the functions of `beam_dp` that a small release enters, by a profiler.

    python -m tests.entered             # Sum in one partition
    python -m tests.entered --private   # Sum in partitions that are selected privately

Lambdas, comprehensions and bodies of classes are not counted, nor what runs while a module loads.
"""

import inspect
import sys
import threading
from pathlib import Path
from types import FrameType

import apache_beam as beam

import beam_dp as dp

HOME = str(Path(dp.__file__).parent)
ROWS = [{"person": i % 200, "shop": "one", "spent": i % 7} for i in range(600)]


def of_one_partition() -> dp.PrivateAggregate:
    return dp.PrivateAggregate("person", [dp.Sum("spent")], dp.Budget(epsilon=1))


def of_private_partitions() -> dp.PrivateAggregate:
    budget = dp.Budget(epsilon=1, delta=1e-6)
    private = dp.PrivatePartitions()
    return dp.PrivateAggregate("person", [dp.Sum("spent")], budget, ["shop"], partitions=private)


def loads(frame: FrameType | None) -> bool:
    """Return whether a module of the library is being loaded."""
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(HOME)


def entered(private: bool) -> set[tuple[str, str]]:
    """Return the files and the names of functions that one release enters."""
    found = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_function = code.co_flags & inspect.CO_OPTIMIZED and "<" not in code.co_name
        is_ours = is_function and code.co_filename.startswith(HOME)
        if event == "call" and is_ours and not loads(frame):
            found.add((code.co_filename, code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    with beam.Pipeline("DirectRunner") as pipeline:
        release = of_private_partitions() if private else of_one_partition()
        _ = pipeline | beam.Create(ROWS) | release
    sys.setprofile(None)
    return found


if __name__ == "__main__":
    functions = entered("--private" in sys.argv)
    files = {file for file, _ in functions}
    print(f"{len(files)} files, {len(functions)} functions")
