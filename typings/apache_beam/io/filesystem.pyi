class CompressionTypes:
    UNCOMPRESSED: str

class FileMetadata:
    path: str
    size_in_bytes: int

class MatchResult:
    metadata_list: list[FileMetadata]

class FileSystem:
    @staticmethod
    def translate_pattern(pattern: str) -> str: ...
