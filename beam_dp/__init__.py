"""Publish statistics about people from Beam pipelines: differentially private, no clips asked for.

*The contract.* Let x and x' be inputs that differ in one person, with all of that person's rows.
For every set S of outputs of a transform with `Budget(epsilon, delta)`

    P[output(x) in S] <= e^epsilon P[output(x') in S] + delta,

over everything that the transform returns together: values, intervals, and which partitions
appear. With `Budget.zcdp(rho)` the Renyi divergences of order alpha are at most rho alpha. With
`period="day"` x and x' differ in one person's rows of one day.

*What it does not protect.* The input, temporary files, and what a runner shows of a running job
(element counts, memory, time, worker logs of the runner itself): restrict who may see these.
Bounds, budgets, public keys and candidates are published parameters. A person is one canonical id
(see `transforms.columns.ids`): who has two ids is two people. Running a job twice spends twice.
`RemovalLoss` and `BoundContributions` return data that is not private by itself, and so do
`Monotone` and `down_sensitivity`, which are for tests and small releases by hand. `testing` tries
to refute what a function of your own claims.
"""

import typing

from beam_dp.lazy_names import lazy as _lazy

__version__ = "0.1.0"

if typing.TYPE_CHECKING:
    from beam_dp import testing as testing
    from beam_dp.beam_yaml.select import Select as Select
    from beam_dp.beam_yaml.select import select as select
    from beam_dp.mechanisms.accounting.budget import Budget as Budget
    from beam_dp.mechanisms.bounding.contribution_bounds import (
        ContributionBounds as ContributionBounds,
    )
    from beam_dp.mechanisms.candidates.candidates import Candidates as Candidates
    from beam_dp.mechanisms.metrics.histogram import Histogram as Histogram
    from beam_dp.mechanisms.metrics.mean import Mean as Mean
    from beam_dp.mechanisms.metrics.mean import StandardDeviation as StandardDeviation
    from beam_dp.mechanisms.metrics.mean import Variance as Variance
    from beam_dp.mechanisms.metrics.own_function import BlackBox as BlackBox
    from beam_dp.mechanisms.metrics.own_function import CustomProfile as CustomProfile
    from beam_dp.mechanisms.metrics.preprocessed import Preprocessed as Preprocessed
    from beam_dp.mechanisms.metrics.preprocessed import TrimmedMean as TrimmedMean
    from beam_dp.mechanisms.metrics.quantiles import KthLargest as KthLargest
    from beam_dp.mechanisms.metrics.quantiles import Max as Max
    from beam_dp.mechanisms.metrics.quantiles import Median as Median
    from beam_dp.mechanisms.metrics.quantiles import Min as Min
    from beam_dp.mechanisms.metrics.quantiles import Quantile as Quantile
    from beam_dp.mechanisms.metrics.quantiles import Quantiles as Quantiles
    from beam_dp.mechanisms.metrics.ratio import Ratio as Ratio
    from beam_dp.mechanisms.metrics.sums import Count as Count
    from beam_dp.mechanisms.metrics.sums import PeopleCount as PeopleCount
    from beam_dp.mechanisms.metrics.sums import Sum as Sum
    from beam_dp.mechanisms.metrics.values import DistinctCount as DistinctCount
    from beam_dp.mechanisms.metrics.values import MaxFrequency as MaxFrequency
    from beam_dp.mechanisms.metrics.values import SumOfSquares as SumOfSquares
    from beam_dp.mechanisms.profiles.profile import Profile as Profile
    from beam_dp.mechanisms.search import AboveThreshold as AboveThreshold
    from beam_dp.mechanisms.search import ExponentialMechanism as ExponentialMechanism
    from beam_dp.mechanisms.search import NoisyBinarySearch as NoisyBinarySearch
    from beam_dp.mechanisms.sensitivity import down_sensitivity as down_sensitivity
    from beam_dp.mechanisms.sensitivity.monotone import Monotone as Monotone
    from beam_dp.results.release import Released as Released
    from beam_dp.results.release import RunFailed as RunFailed
    from beam_dp.results.release import release as release
    from beam_dp.spending.ledger import Ledger as Ledger
    from beam_dp.transforms.aggregate import PrivateAggregate as PrivateAggregate
    from beam_dp.transforms.bound_contributions import BoundContributions as BoundContributions
    from beam_dp.transforms.io.file_format import CsvFormat as CsvFormat
    from beam_dp.transforms.io.read_rows import ReadRows as ReadRows
    from beam_dp.transforms.io.write_rows import WriteRows as WriteRows
    from beam_dp.transforms.known_columns import UnknownColumns as UnknownColumns
    from beam_dp.transforms.one_statistic import PreprocessSensitivity as PreprocessSensitivity
    from beam_dp.transforms.one_statistic import PrivateRatio as PrivateRatio
    from beam_dp.transforms.one_statistic import SelectPartitions as SelectPartitions
    from beam_dp.transforms.one_statistic import ShiftedInverse as ShiftedInverse
    from beam_dp.transforms.partitions import PrivatePartitions as PrivatePartitions
    from beam_dp.transforms.partitions import PublicPartitions as PublicPartitions
    from beam_dp.transforms.partitions import TopPartitions as TopPartitions
    from beam_dp.transforms.private_tables import PrivateTables as PrivateTables
    from beam_dp.transforms.removal_loss import RemovalLoss as RemovalLoss
    from beam_dp.transforms.sql.person_queries import Rows as Rows
    from beam_dp.transforms.stages.guards import UnusualParameters as UnusualParameters
    from beam_dp.transforms.suppress_unreliable import SuppressUnreliable as SuppressUnreliable
else:
    __getattr__, __dir__, __all__ = _lazy(__name__, __file__)
