"""without_noise: unit tests of users' pipelines that know which numbers come out."""

from contextlib import AbstractContextManager

from beam_dp.transforms.guarding import trial


def without_noise() -> AbstractContextManager[None]:
    """Return a block in which releases have no noise, for unit tests on made-up rows.

        with without_noise(), beam.Pipeline("FnApiRunner") as pipeline:
            assert_that(pipeline | beam.Create(ROWS) | my_release, equal_to([...]))

    THE NUMBERS ARE NOT PRIVATE, and a `NotPrivate` warning says so at the start of the block.
    Build the pipeline in the block, and run it there: after its end, in another process and on
    another runner than the in-memory ones the run fails. Jobs of the command line refuse to start
    in such a block, and nothing else switches it on (see `transforms.guarding.trial`).

    What comes out is what a budget of epsilon 1,000,000 releases when every noise is 0: sums,
    counts, means, extremes and quantiles as they are, up to the grid of their possible values.
    Bounds on contributions hold as always, and who is cut by them is random.
    """
    return trial.block()
