"""Arrow's kernels by another name, loaded when one of them is asked for."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from beam_dp.transforms.inputs import kernels


def test_kernels_are_those_of_arrow() -> None:
    assert kernels.fill_null is pc.fill_null
    assert kernels.max(pa.array([1, 3, 2])).as_py() == 3
    with pytest.raises(AttributeError, match="no_such_kernel"):
        _ = kernels.no_such_kernel


def test_they_are_loaded_at_their_first_use() -> None:
    program = (
        "import sys; sys.modules['pandas'] = None  # which loads them too\n"
        "from beam_dp.transforms.columns import ids, public_keys\n"
        "assert 'pyarrow.compute' not in sys.modules\n"
        "del sys.modules['pandas']\n"
        "assert public_keys.KeyList.of_plain([1, 2, 1]) == ((1,), (2,))\n"
        "assert 'pyarrow.compute' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
