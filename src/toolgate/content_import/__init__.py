"""Content from a file: every row is checked, and all of them are stored or none."""

from toolgate.content_import.files import BadFile, readable
from toolgate.content_import.loading import Report, UnknownProject, Wanted, load
from toolgate.content_import.rows import MODELS

KINDS = tuple(MODELS)

__all__ = ["KINDS", "BadFile", "Report", "UnknownProject", "Wanted", "load", "readable"]
