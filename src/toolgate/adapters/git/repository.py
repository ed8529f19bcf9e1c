"""The forge on this machine.

Objects are written first and the branch last, in one step that checks where it was. Who is killed
before that step leaves objects that nothing refers to, which `git gc` removes.
"""

import contextlib
import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio
from anyio.to_thread import run_sync

from toolgate.adapters.git.exclusion import exclusive
from toolgate.ports.forge import (
    BranchMoved,
    ForgeError,
    ForgeUnavailable,
    LoggedCommit,
    NewCommit,
    RepositoryMissing,
    check_branch,
    check_commit,
)

if TYPE_CHECKING:
    from dulwich.objects import Commit, ObjectID, Tree
    from dulwich.repo import Repo

T = TypeVar("T")
FILE_MODE = 0o100644
STALE_SECONDS = 60
"""Git holds the lock of a branch for a moment; one this old was left by who was killed."""
THREADS = 4


class LocalForge:
    """One repository in a folder; with `create`, made at the first use, for its owner alone."""

    def __init__(self, folder: Path, *, create: bool, default_branch: str = "main") -> None:
        self._folder = folder
        self._create = create
        self._default_branch = default_branch
        self._limiter = anyio.CapacityLimiter(THREADS)

    async def head(self, branch: str) -> str | None:
        """The newest commit of a branch."""
        check_branch(branch)
        return await self._run(lambda repo: _text(_head(repo, branch)))

    async def read(self, path: str, commit: str, *, most_bytes: int) -> bytes | None:
        """A file as of a commit."""
        return await self._run(lambda repo: _read(repo, path, commit, most_bytes))

    async def paths(self, commit: str, folder: str) -> Sequence[str]:
        """Every file below a folder as of a commit."""
        return await self._run(lambda repo: _paths(repo, commit, folder))

    async def commit(self, new: NewCommit) -> str:
        """Commit files, all or none."""
        check_commit(new)
        return await self._run(lambda repo: self._commit(repo, new))

    async def log(self, branch: str, *, most: int) -> Sequence[LoggedCommit]:
        """The newest commits of a branch."""
        check_branch(branch)
        return await self._run(lambda repo: _log(repo, branch, most))

    async def check(self, branch: str) -> str:
        """Raise unless commits on this branch seem possible."""
        check_branch(branch)
        if self._create and not self._folder.exists():
            return f"{self._folder} will be created at the first use."
        return await self._run(lambda repo: self._check(repo, branch))

    async def _run(self, work: "Callable[[Repo], T]") -> T:
        """Work on the repository in a thread; what has begun is done to its end."""

        def opened() -> T:
            with _told_errors(self._folder), self._opened() as repo:
                return work(repo)

        return await run_sync(opened, limiter=self._limiter)

    @contextmanager
    def _opened(self) -> "Generator[Repo]":
        # Only who uses a repository pays for the library.
        from dulwich.errors import NotGitRepository  # noqa: PLC0415
        from dulwich.repo import Repo  # noqa: PLC0415

        if self._create and not (self._folder / "HEAD").exists():
            self._make()
        try:
            repo = Repo(os.fspath(self._folder))
        except NotGitRepository:
            raise RepositoryMissing(
                f"There is no Git repository at {self._folder}. Make one with `git init --bare`."
            ) from None
        with contextlib.closing(repo):
            yield repo

    def _make(self) -> None:
        """A bare repository; another process may be making it, too."""
        from dulwich.repo import Repo  # noqa: PLC0415

        for folder in (self._folder.parent, self._folder):  # those above get the usual mode
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with exclusive(self._folder):
            if (self._folder / "HEAD").exists():
                return
            repo = Repo.init_bare(self._folder, default_branch=self._default_branch.encode())
            with contextlib.closing(repo):
                config = repo.get_config()
                config.set((b"core",), b"sharedRepository", b"0600")
                config.write_to_path()
            for path in self._folder.rglob("*"):
                path.chmod(0o700 if path.is_dir() else 0o600)

    def _check(self, repo: "Repo", branch: str) -> str:
        _refuse_checked_out(repo, branch)
        if not os.access(self._folder, os.W_OK | os.X_OK):
            raise ForgeUnavailable(f"{self._folder} cannot be written. Make it writable.")
        head = _head(repo, branch)
        return f"{self._folder}, branch {branch}, " + (
            f"is at {_text(head)}." if head else "has no commit yet."
        )

    def _commit(self, repo: "Repo", new: NewCommit) -> str:
        # The library is loaded by now: this is only where its names are.
        from dulwich.object_store import commit_tree_changes  # noqa: PLC0415
        from dulwich.objects import Blob, ObjectID, Tree  # noqa: PLC0415

        _refuse_checked_out(repo, new.branch)
        base = ObjectID(new.base.encode()) if new.base else None
        with exclusive(Path(repo.controldir())):
            if _head(repo, new.branch) != base:
                raise BranchMoved("The branch has moved on.")
            repo.object_store.fsync_object_files = True
            tree = _tree(repo, base) if base else Tree()
            changes: list[tuple[bytes, int | None, ObjectID | None]] = []
            for path, content in new.files.items():
                if content is None:
                    changes.append((path.encode(), None, None))
                    continue
                blob = Blob.from_string(content)
                repo.object_store.add_object(blob)
                changes.append((path.encode(), FILE_MODE, blob.id))
            try:
                changed = commit_tree_changes(repo.object_store, tree, changes)
            except (KeyError, AssertionError):  # so the library says that a folder is none
                raise ForgeError("A file is where a folder must be, or is not there.") from None
            made = _new_commit(new, changed, base)
            repo.object_store.add_object(made)
            _move_branch(repo, new.branch, base, made.id)
            if self._create:
                (self._folder / "refs" / "heads" / new.branch).chmod(0o600)
            return made.id.decode()


def _new_commit(new: NewCommit, tree: "ObjectID", base: "ObjectID | None") -> "Commit":
    from dulwich.objects import Commit  # noqa: PLC0415

    made = Commit()
    made.tree = tree
    made.parents = [base] if base else []
    made.author = made.committer = f"{new.author.name} <{new.author.email}>".encode()
    made.author_time = made.commit_time = int(new.at.timestamp())
    made.author_timezone = made.commit_timezone = 0
    made.encoding = b"UTF-8"
    made.message = new.message.encode()
    return made


def _ref(branch: str) -> bytes:
    return f"refs/heads/{branch}".encode()


def _text(id: "ObjectID | None") -> str | None:
    return id.decode() if id else None


def _head(repo: "Repo", branch: str) -> "ObjectID | None":
    from dulwich.refs import Ref  # noqa: PLC0415

    try:
        return repo.refs[Ref(_ref(branch))]
    except KeyError:
        pass
    if any(ref.startswith(b"refs/heads/") for ref in repo.refs.allkeys()):
        raise RepositoryMissing(f"The repository has no branch {branch}. Check posts.branch.")
    return None


def _commit_of(repo: "Repo", commit: "ObjectID") -> "Commit":
    from dulwich.objects import Commit  # noqa: PLC0415

    found = repo.object_store[commit]
    if not isinstance(found, Commit):
        raise ForgeError(f"{commit.decode()} is not a commit.")
    return found


def _tree(repo: "Repo", commit: "ObjectID") -> "Tree":
    from dulwich.objects import Tree  # noqa: PLC0415

    found = repo.object_store[_commit_of(repo, commit).tree]
    assert isinstance(found, Tree)
    return found


def _read(repo: "Repo", path: str, commit: str, most_bytes: int) -> bytes | None:
    from dulwich.errors import NotTreeError  # noqa: PLC0415
    from dulwich.objects import Blob, ObjectID  # noqa: PLC0415

    try:
        _, id = _tree(repo, ObjectID(commit.encode())).lookup_path(
            repo.object_store.__getitem__, path.encode()
        )
    except (KeyError, NotTreeError):
        return None
    found = repo.object_store[id]
    if not isinstance(found, Blob):
        return None
    if found.raw_length() > most_bytes:
        raise ForgeError(f"{path} has more than {most_bytes:,} bytes.")
    return found.data


def _paths(repo: "Repo", commit: str, folder: str) -> list[str]:
    from dulwich.errors import NotTreeError  # noqa: PLC0415
    from dulwich.object_store import iter_tree_contents  # noqa: PLC0415
    from dulwich.objects import ObjectID, Tree  # noqa: PLC0415

    root = _tree(repo, ObjectID(commit.encode()))
    try:
        _, id = root.lookup_path(repo.object_store.__getitem__, folder.encode())
    except (KeyError, NotTreeError):
        return []
    if not isinstance(repo.object_store[id], Tree):
        return []
    below = iter_tree_contents(repo.object_store, id)
    return sorted(f"{folder}/{os.fsdecode(one.path)}" for one in below if one.path)


def _log(repo: "Repo", branch: str, most: int) -> list[LoggedCommit]:
    head = _head(repo, branch)
    if head is None:
        return []
    found = [entry.commit for entry in repo.get_walker(include=[head], max_entries=most)]
    return [LoggedCommit(one.id.decode(), one.message.decode("utf-8", "replace")) for one in found]


def _refuse_checked_out(repo: "Repo", branch: str) -> None:
    """A commit to what somebody has checked out would look like their own undoing."""
    from dulwich.refs import HEADREF  # noqa: PLC0415

    if not repo.bare and repo.refs.get_symrefs().get(HEADREF) == _ref(branch):
        raise RepositoryMissing(
            f"{repo.path} has branch {branch} checked out. Use a bare repository "
            "(`git clone --bare`), or another branch."
        )


def _move_branch(repo: "Repo", branch: str, base: "ObjectID | None", to: "ObjectID") -> None:
    from dulwich.file import FileLocked  # noqa: PLC0415
    from dulwich.refs import Ref  # noqa: PLC0415

    ref = Ref(_ref(branch))
    lock = Path(repo.commondir()) / f"refs/heads/{branch}.lock"
    _remove_stale(lock)
    try:
        moved = repo.refs.set_if_equals(ref, base, to) if base else repo.refs.add_if_new(ref, to)
    except FileLocked:
        raise ForgeUnavailable(
            f"Another program holds {lock.name} of the repository. Try again in a minute."
        ) from None
    if not moved:
        raise BranchMoved("The branch has moved on.")


def _remove_stale(lock: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if time.time() - lock.stat().st_mtime > STALE_SECONDS:
            lock.unlink()


@contextmanager
def _told_errors(folder: Path) -> Generator[None]:
    """What goes wrong in the library or on the disk, as errors of a forge."""
    try:
        yield
    except ForgeError:
        raise
    except OSError as problem:
        why = (problem.strerror or type(problem).__name__).lower()
        raise ForgeUnavailable(f"The repository at {folder} cannot be used: {why}.") from problem
    except Exception as problem:
        raise ForgeUnavailable(
            f"The repository at {folder} cannot be used: it seems damaged. `git fsck` says more."
        ) from problem
