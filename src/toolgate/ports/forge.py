"""A forge: where a Git repository is kept, read and committed to.

A commit names the commit that it was made upon. If the branch has moved on since, nothing is
changed and `BranchMoved` is raised: who commits looks again and decides.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

BRANCH = re.compile(r"(?!.*(//|\.\.|\.lock(/|$)|/$|\.$))[A-Za-z0-9_][A-Za-z0-9_./-]{0,199}")
"""What a branch may be called here: less than Git allows, and good for every forge."""
MAX_PATH = 1000


class ForgeError(Exception):
    """The forge did not do what was asked; the message is for the caller."""


class ForgeUnavailable(ForgeError):
    """It does not answer, fails, or is locked. Trying again later may help."""


class ForgeLimited(ForgeUnavailable):
    """It accepts no more requests for now."""


class ForgeRefused(ForgeError):
    """It refuses the credentials, or they do not allow this."""


class RepositoryMissing(ForgeError):
    """There is no such repository or branch, or none that these credentials may see."""


class BranchMoved(ForgeError):
    """The branch is no longer where the commit began; nothing was changed."""


class CommitUnknown(ForgeError):
    """The forge did not confirm a commit: it may be there or not."""

    def __init__(self, message: str, commit: str) -> None:
        super().__init__(message)
        self.commit = commit


@dataclass(frozen=True, slots=True)
class Author:
    """Who a commit is by."""

    name: str
    email: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCommit:
    """Several files that change together."""

    branch: str
    base: str | None
    """The commit it is made upon; None for the first one of a repository."""
    files: Mapping[str, bytes | None]
    """Whole contents by path; None deletes the file."""
    message: str
    author: Author
    at: datetime


@dataclass(frozen=True, slots=True)
class LoggedCommit:
    """A commit as the history tells it."""

    id: str
    message: str


class Forge(Protocol):
    """One repository.

    Every method raises `ForgeUnavailable`, `ForgeRefused` or `RepositoryMissing`.
    """

    async def head(self, branch: str) -> str | None:
        """The newest commit of a branch; None where the repository has no commit yet."""
        ...

    async def read(self, path: str, commit: str, *, most_bytes: int) -> bytes | None:
        """A file as of a commit; None if there is none.

        Raises `ForgeError` where it is larger than `most_bytes`.
        """
        ...

    async def paths(self, commit: str, folder: str) -> Sequence[str]:
        """Every file below a folder as of a commit, in order; none where there is no such folder.

        The paths begin with the folder.
        """
        ...

    async def commit(self, new: NewCommit) -> str:
        """Commit files, all or none, and return the commit's id.

        Raises `BranchMoved`, or `CommitUnknown` where nobody can tell what became of it.
        """
        ...

    async def log(self, branch: str, *, most: int) -> Sequence[LoggedCommit]:
        """The newest commits of a branch, the newest first."""
        ...

    async def check(self, branch: str) -> str:
        """Raise unless commits on this branch seem possible; nothing is written.

        Returns what was found, in words.
        """
        ...


def check_path(path: str) -> None:
    """Raise ValueError for a path that no file in a repository should have."""
    parts = path.split("/")
    odd = any(part in ("", ".", "..") or part.lower() == ".git" for part in parts)
    if odd or "\\" in path or not path.isprintable() or len(path) > MAX_PATH:
        raise ValueError(f"{path!r} is no path of a file in a repository")


def check_branch(branch: str) -> None:
    """Raise ValueError for what no branch is called."""
    if not BRANCH.fullmatch(branch):
        raise ValueError(f"{branch!r} is no name of a branch")


def check_commit(new: NewCommit) -> None:
    """Raise ValueError for a commit that could not be made as it is."""
    check_branch(new.branch)
    for path in new.files:
        check_path(path)
    folders = {path[:at] for path in new.files for at, one in enumerate(path) if one == "/"}
    if both := folders & new.files.keys():
        raise ValueError(f"{both.pop()!r} cannot be a file and a folder")
