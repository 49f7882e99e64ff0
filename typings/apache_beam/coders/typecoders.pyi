from apache_beam.coders import Coder

class CoderRegistry:
    def register_coder(self, typehint_type: type, typehint_coder_class: type[Coder]) -> None: ...

registry: CoderRegistry
