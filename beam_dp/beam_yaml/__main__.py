"""Print the path of the provider file."""

import sys

from beam_dp.beam_yaml import PROVIDERS

sys.stdout.write(f"{PROVIDERS}\n")
