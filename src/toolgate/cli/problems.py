"""From whatever went wrong to one sentence, a next step and an exit code."""

import errno
import re
from enum import IntEnum
from typing import cast


class ExitCode(IntEnum):
    """What a command's exit code means."""

    OK = 0
    FAILED = 1
    """The tool, or something it needs, failed; or a check found something."""
    USAGE = 2
    """The command line or a setting is wrong."""
    REFUSED = 3
    """Policy says no, or the credentials are not good."""


class Stop(Exception):
    """Ends a command with a sentence for the person and an exit code."""

    def __init__(self, sentence: str, code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(sentence)
        self.code = code


WRONG_PLACE = (PermissionError, NotADirectoryError, IsADirectoryError, FileNotFoundError)
NEXT_STEPS = {
    "disk is full": "Free some space and try again.",
    "disk I/O error": "Check that the disk works and has space left.",
    "readonly": "Make the data folder writable, or name another with --data.",
    "unable to open": "Make the data folder readable and writable, or name another with --data.",
    "malformed": "The file is corrupt: restore it from a backup; `toolgate doctor` names it.",
    "not a database": "Name another folder with --data, or restore the file from a backup.",
    "locked": "Another program holds a lock on it; try again when that program has ended.",
}
SENTENCE_END = re.compile(r"(?<=[.?!]) +(?=[A-Z`])")
REACH_IT = "Check the setting database.url, and that the database server is running."


def explain(error: BaseException) -> tuple[str, ExitCode] | None:
    """The sentence and the exit code for an error; None for one that nobody expected."""
    if isinstance(error, BaseExceptionGroup):
        return explain(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    if isinstance(error, Stop):
        return str(error), error.code
    if format_message := getattr(error, "format_message", None):
        return _usage_message(error, str(format_message())), ExitCode.USAGE
    return _explain_settings(error) or _explain_database(error) or _explain_machine(error)


def split_advice(sentence: str) -> tuple[str, str]:
    """What is wrong, and what to do: the first sentence and the rest."""
    first, *rest = SENTENCE_END.split(sentence, maxsplit=1)
    return first, rest[0] if rest else ""


def _usage_message(error: BaseException, message: str) -> str:
    sentence = " ".join(message.split())
    path = getattr(getattr(error, "ctx", None), "command_path", "toolgate")
    end = "" if sentence.endswith((".", "?", "!")) else "."
    return f"{sentence}{end} See `{path} --help`."


def _explain_settings(error: BaseException) -> tuple[str, ExitCode] | None:
    # Imported only once something went wrong; most of it is loaded by then.
    from toolgate.settings import BadSettings

    if isinstance(error, BadSettings):
        return str(error), ExitCode.USAGE
    from toolgate.data_folder import NoData
    from toolgate.db.engine import BadDatabaseUrl
    from toolgate.db.upgrades import OtherSchema
    from toolgate.gate.catalogue import DuplicateRoute, DuplicateTool
    from toolgate.gate.rules import BadPolicy

    if isinstance(error, BadDatabaseUrl | OtherSchema | NoData | DuplicateTool | DuplicateRoute):
        return str(error), ExitCode.USAGE
    if isinstance(error, BadPolicy):
        why = " ".join(str(error).split())
        return f"The rules cannot be used. {why} Correct them.", ExitCode.USAGE
    return None


def _explain_database(error: BaseException) -> tuple[str, ExitCode] | None:
    from sqlalchemy.exc import DBAPIError

    if not isinstance(error, DBAPIError):
        return None
    cause = str(error.orig).strip().partition("\n")[0].rstrip(". ")
    step = next((step for words, step in NEXT_STEPS.items() if words in cause), REACH_IT)
    return f"The database cannot be used: {cause}. {step}", ExitCode.FAILED


def _explain_machine(error: BaseException) -> tuple[str, ExitCode] | None:
    from toolgate.ports.documents import StoreUnavailable

    match error:
        case StoreUnavailable():
            return str(error), ExitCode.FAILED
        case ModuleNotFoundError(name="psycopg"):
            sentence = "PostgreSQL needs packages that are not installed."
            return f"{sentence} Install toolgate[postgres].", ExitCode.USAGE
        case ImportError() if "toolgate[" in str(error):
            return str(error), ExitCode.USAGE
        case OSError():
            return _explain_system(error)
        case _:
            return None


def _explain_system(error: OSError) -> tuple[str, ExitCode]:
    what = f"{error.filename}: " if error.filename else ""
    why = (error.strerror or str(error)).lower()
    if error.errno == errno.ENOSPC:
        return f"{what}{why}. Free some space and try again.", ExitCode.FAILED
    if isinstance(error, FileExistsError):
        return (
            f"{what}there is a file where a folder is expected. Choose another path.",
            ExitCode.USAGE,
        )
    if isinstance(error, WRONG_PLACE):
        return f"{what}{why}. Choose another path, or change its permissions.", ExitCode.USAGE
    return f"{what}{why}.", ExitCode.FAILED
