"""Hypothesis draws the same examples in every run: a test that fails does so for everybody.

Search further with `python -m pytest --hypothesis-profile default`.
"""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")
