"""The types of what this package uses of Apache Beam, for mypy alone; nothing of it is shipped.

Beam's own annotations name no element types, and leave `|` and `>>` without any. Here a step says
what it takes and gives, so that two steps that do not fit are found. Whatever is used of Beam
stands here: mypy sees no other. `tests/test_types.py` holds these names against Beam's.
"""

from apache_beam import io as io
from apache_beam import pvalue as pvalue
from apache_beam.pipeline import Pipeline as Pipeline
from apache_beam.pvalue import PCollection as PCollection
from apache_beam.pvalue import Row as Row
from apache_beam.transforms import combiners as combiners
from apache_beam.transforms import window as window
from apache_beam.transforms.core import CombinePerKey as CombinePerKey
from apache_beam.transforms.core import Create as Create
from apache_beam.transforms.core import DoFn as DoFn
from apache_beam.transforms.core import FlatMap as FlatMap
from apache_beam.transforms.core import FlatMapTuple as FlatMapTuple
from apache_beam.transforms.core import Flatten as Flatten
from apache_beam.transforms.core import GroupByKey as GroupByKey
from apache_beam.transforms.core import Impulse as Impulse
from apache_beam.transforms.core import Map as Map
from apache_beam.transforms.core import MapTuple as MapTuple
from apache_beam.transforms.core import ParDo as ParDo
from apache_beam.transforms.ptransform import PTransform as PTransform
from apache_beam.transforms.util import Reshuffle as Reshuffle
