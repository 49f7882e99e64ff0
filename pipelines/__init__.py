"""Jobs: options, read, public transforms, write."""

import logging


def _concerns_us(record: logging.LogRecord) -> bool:
    """Tell whether a line is more than Beam's remark, at import, that it has no BigQuery client."""
    return not str(record.msg).startswith("apitools not found")


logging.getLogger().addFilter(_concerns_us)
