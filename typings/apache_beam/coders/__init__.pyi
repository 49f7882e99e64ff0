from typing import Any

from apache_beam.coders.typecoders import registry as registry

class Coder:
    def to_runner_api_parameter(self, context: Any) -> Any: ...
