"""scipy is loaded once, at the first use."""

from beam_dp.mechanisms.optimization import scipy_loader


def test_what_is_loaded_is_scipy():
    assert scipy_loader.solvers() is scipy_loader.solvers()
    assert scipy_loader.solvers().__name__ == "scipy.sparse.csgraph"
    assert scipy_loader.sparse().__name__ == "scipy.sparse"
    assert scipy_loader.matrix(([5], ([0], [1])), (1, 2)).toarray().tolist() == [[0, 5]]
