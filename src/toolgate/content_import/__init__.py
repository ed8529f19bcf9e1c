"""Content from a file: every row is checked, and all of them are stored or none."""

from toolgate.content_import.files import BadFile, readable
from toolgate.content_import.loading import load
from toolgate.content_import.rows import MODELS
from toolgate.content_import.wanted import Report, UnknownProject, Wanted

KINDS = tuple(MODELS)

__all__ = ["KINDS", "BadFile", "Report", "UnknownProject", "Wanted", "load", "readable"]
