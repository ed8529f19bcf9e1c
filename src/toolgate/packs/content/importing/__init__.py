"""Content from a file: every row is checked, and all of them are stored or none."""

from toolgate.packs.content.importing.file_import import import_file
from toolgate.packs.content.importing.files import BadFile, check_file
from toolgate.packs.content.importing.options import ImportOptions, Report, UnknownProject
from toolgate.packs.content.importing.rows import MODELS

KINDS = tuple(MODELS)

__all__ = [
    "KINDS",
    "BadFile",
    "ImportOptions",
    "Report",
    "UnknownProject",
    "check_file",
    "import_file",
]
