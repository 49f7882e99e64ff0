"""What the words of a command line describe."""

from pipelines import aggregate, command_line
from pipelines.description import Description


def described(*words: str) -> Description:
    """Return the releases that the main job would make."""
    options, _ = aggregate.parser().read([*words])
    return Description(command_line.described(options))
