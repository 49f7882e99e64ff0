from apache_beam.pvalue import PCollection
from apache_beam.transforms.ptransform import PTransform

class WriteToText(PTransform[PCollection[str], PCollection[str]]):
    def __init__(self, file_path_prefix: str, *, num_shards: int = ...) -> None: ...
