"""The transforms for Beam YAML: a provider file, and what it names.

`PROVIDERS` is the path of the file. A pipeline includes it:

    providers:
      - include: /path/to/beam_dp/beam_yaml/providers.yaml

`python -m beam_dp.beam_yaml` prints that path.
"""

from pathlib import Path

PROVIDERS = str(Path(__file__).with_name("providers.yaml"))
