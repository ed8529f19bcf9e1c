"""Content from a file: every row is checked, and all of them are stored or none."""

from toolgate.packs.content.importing.files import BadFile, readable
from toolgate.packs.content.importing.loader import load
from toolgate.packs.content.importing.options import Report, UnknownProject, Wanted
from toolgate.packs.content.importing.rows import MODELS

KINDS = tuple(MODELS)

__all__ = ["KINDS", "BadFile", "Report", "UnknownProject", "Wanted", "load", "readable"]
