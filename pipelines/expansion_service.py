"""Offer `private_aggregate` to pipelines in Java, Go and TypeScript, by Beam's expansion service.

    python -m pipelines.expansion_service --port 8097 --cluster_never_restarts

Only the pipeline's own program knows its runner, so any is taken for one whose cluster may begin
again: name a --draws_folder that all workers share, or say --cluster_never_restarts.
"""

from collections.abc import Sequence

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability import expansion_service_main

from beam_dp.beam_yaml.private_transforms import private_aggregate
from beam_dp.transforms.stages.draws_folder import DrawsOptions
from pipelines import command_line

OFFERED = f"{private_aggregate.__module__}.{private_aggregate.__name__}"
UNKNOWN = "--runner=PortableRunner"
NEEDED = "must have --draws_folder FOLDER, or --cluster_never_restarts where a cluster never does"


def options_of(words: Sequence[str]) -> list[str]:
    """Return the options of the pipelines that are expanded.

    Raises:
        ValueError: if nothing says what a cluster that begins again would do.
    """
    made = PipelineOptions([*words, UNKNOWN])
    draws = made.view_as(DrawsOptions)
    if draws.draws_folder is None and not draws.cluster_never_restarts:
        raise ValueError(NEEDED)
    return [*words, UNKNOWN]


def main(given: Sequence[str] | None = None) -> int:
    """Serve until the process is ended."""
    line = command_line.alone("expansion_service", __doc__, "--port PORT ... [options of Beam]")
    line.add_argument(
        "--port", type=int, required=True, help="the port of this machine to serve on"
    )
    options, words = line.parse_known_args(given)
    with line.refusing():
        kept = options_of(words)
    offered = ["--fully_qualified_name_glob", OFFERED]
    expansion_service_main.main(["--port", str(options.port), *offered, *kept])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
