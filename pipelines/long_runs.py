"""A run on a job server that its runner starts itself may last: Beam ends one on Prism after 300 s.

`--job_server_timeout` is how long Beam waits for an answer of a job server. The states of a job
come by one answer that lasts as long as the job does, and where Beam asks for them before the job
runs, as on Prism, the limit is one for the whole run. A job server of another machine keeps it: it
may be out of reach.
"""

import apache_beam as beam
from apache_beam.options.pipeline_options import PortableOptions

BEAMS_SECONDS = 300
LONGEST = 30 * 86_400


def allow(made: beam.Pipeline) -> None:
    """Let a pipeline without `--job_endpoint` run for 30 days, unless its options say how long.

    (Beam's own number cannot be told from the same number of an operator. Dataflow has no job
    server, and would show the option.)
    """
    portable = made.options.view_as(PortableOptions)
    elsewhere = portable.job_endpoint or type(made.runner).__name__ == "DataflowRunner"
    if not elsewhere and portable.job_server_timeout == BEAMS_SECONDS:
        portable.job_server_timeout = LONGEST
