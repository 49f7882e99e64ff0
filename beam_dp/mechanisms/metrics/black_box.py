"""The metric `BlackBox`: a user's own function of people, of which nothing is known."""

import dataclasses

from beam_dp.mechanisms.candidates.candidates import Candidates
from beam_dp.mechanisms.metrics.base import UNIT, Metric, check_candidates, check_places, check_unit
from beam_dp.mechanisms.numerics import checks
from beam_dp.mechanisms.numerics.user_functions import check_callable
from beam_dp.mechanisms.summaries import person_value
from beam_dp.mechanisms.summaries.block_votes import BlockFunction


@dataclasses.dataclass(frozen=True)
class BlackBox(Metric):
    """Release any function of one number per person, with nothing asked of it.

    The people of a partition are cut into `blocks` parts by a keyed hash; the function is called on
    each part alone, on the workers, and a private median of its answers is released. One person
    changes one answer, so the release is private for every function, however wild: no bound, no
    sensitivity, no smoothness is asked for. With probability 1 - beta at most half of the answers
    and `<name>_error` more lie below the released value, and at most as many above (answers rounded
    up to the candidates).

    It is an answer about samples of the data: of n people, each block has about n / blocks. It is
    good for what has nearly the same value on such a sample as on everybody (means, quantiles,
    slopes, fitted parameters), and wrong for what grows with the number of people (sums, counts)
    or needs all of them (the largest value, the number of different ones).

    A block on which the function raises, or returns no finite real number (bool, None, NaN, an
    array), has no vote, and neither has a block without people; nothing of the error is kept. Where
    too few blocks vote, any candidate may come out. What a function does besides is not in our
    hands: what it prints or writes and how long it runs leave the worker unprotected. **It must use
    its argument only**: the guarantee rests on one block telling another nothing. A callable object
    or a function of the main program is unpickled anew for each block, and default arguments are
    new; what a function keeps in its module, a class or its attributes is not forgotten.

    Attributes:
        column: the value column.
        function: takes a float64 array, one value per person in increasing order, and returns a
            number. It must be picklable, and must not remember: it may use its argument only.
        blocks: how many; more than twice the error bound. None: four times that, a public number
            that depends on the budget and the candidates only.
        person_value: what a person with several rows counts as: "mean", "sum", "max", "min" or
            "last".
        last_by: for "last": the column that says when, as in `Variance`.
        candidates: the public outputs; None: as for `Median`.
        beta: how often the guarantee may fail.
        unit: the grid of values.

    Source: Nissim, Raskhodnikova, Smith, "Smooth Sensitivity and Sampling in Private Data Analysis"
    (STOC 2007), section 4; on black boxes at large, Linder, Raskhodnikova, Smith, Steinke,
    "Privately Evaluating Untrusted Black-Box Functions" (2025).
    """

    column: str
    function: BlockFunction
    _: dataclasses.KW_ONLY
    blocks: int | None = None
    person_value: str = "mean"
    last_by: str | None = None
    candidates: Candidates | None = None
    beta: float = 0.05
    unit: checks.Real = UNIT

    def __post_init__(self) -> None:
        super().__post_init__()
        owner = "BlackBox"
        check_callable(owner, "function", self.function)
        if type(self.function).__hash__ is None:
            raise TypeError(
                f"{owner}: function must be hashable, as functions are, not "
                f"{type(self.function).__name__}. Write function=lambda values: ...."
            )
        person_value.check_person_value(owner, self.person_value, self.last_by)
        checks.fraction_between(owner, "beta", self.beta, 0, 1)
        check_candidates(owner, self.candidates)
        check_places(owner, self.candidates)
        check_unit(owner, self.unit)
        if self.blocks is not None:
            mend = "Leave it out for a number that suits the budget."
            checks.positive_integer(owner, "blocks", self.blocks, mend)

    @property
    def orders(self) -> tuple[str, ...]:
        """The column of `last_by`, if there is one."""
        return () if self.last_by is None else (self.last_by,)

    @property
    def _prefix(self) -> str:
        return "black_box"
