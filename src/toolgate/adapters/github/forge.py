"""A repository at GitHub, through its API for Git's own objects: several files are one commit."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote, urlencode

from toolgate.adapters.github.rest import (
    RAW,
    GitHubApi,
    Json,
    NoAnswer,
    read_json,
    read_object,
    text_at,
)
from toolgate.ports.forge import (
    BranchMoved,
    CommitUnknown,
    ForgeError,
    ForgeRefused,
    ForgeUnavailable,
    LoggedCommit,
    NewCommit,
    RepositoryMissing,
    check_branch,
    check_commit,
)

FILE_MODE = "100644"
MOST_ON_A_PAGE = 100
LOOK_BACK = 30
"""Commits among which one is looked for that GitHub did not confirm."""
MOST_TREES = 500
"""Folders that are listed one by one where GitHub does not list all at once."""
UNKNOWN = (
    "GitHub did not confirm the commit: it may or may not be there. Look at the repository before "
    "retrying."
)


@dataclass(frozen=True, slots=True)
class GitHubForge:
    """One repository."""

    api: GitHubApi
    owner: str
    repository: str

    async def head(self, branch: str) -> str | None:
        """The newest commit of a branch."""
        check_branch(branch)
        path = self._path(f"git/ref/heads/{quote(branch)}")
        response = await self.api.send("GET", path, allowed=(409,))
        if response.status == 409:  # so it says that there is no commit at all
            return None
        return text_at(read_object(response), "object", "sha")

    async def read(self, path: str, commit: str, *, most_bytes: int) -> bytes | None:
        """A file as of a commit."""
        place = self._path(f"contents/{quote(path)}?{urlencode({'ref': commit})}")
        response = await self.api.send(
            "GET", place, accept=RAW, allowed=(404,), most_bytes=most_bytes
        )
        is_folder = response.headers.get("content-type", "").startswith("application/json")
        return None if response.status == 404 or is_folder else response.body

    async def paths(self, commit: str, folder: str) -> Sequence[str]:
        """Every file below a folder as of a commit."""
        tree: str | None = await self._tree_of(commit)
        for name in folder.split("/"):
            entries, _ = await self._entries(tree)
            tree = next(
                (sha for path, kind, sha in entries if (path, kind) == (name, "tree")), None
            )
            if tree is None:
                return []
        return sorted(await self._below(tree, f"{folder}/"))

    async def commit(self, new: NewCommit) -> str:
        """Commit files, all or none."""
        check_commit(new)
        if new.base is None:
            raise ForgeError("The repository at GitHub is empty. Make a first commit there.")
        tree = await self._new_tree(new, await self._tree_of(new.base))
        body = {
            "message": new.message,
            "tree": tree,
            "parents": [new.base],
            "author": {
                "name": new.author.name,
                "email": new.author.email,
                "date": new.at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            },
        }
        made = await self.api.send("POST", self._path("git/commits"), body)
        commit = text_at(read_object(made), "sha")
        await self._move_branch(new, commit)
        return commit

    async def log(self, branch: str, *, most: int) -> Sequence[LoggedCommit]:
        """The newest commits of a branch."""
        check_branch(branch)
        found: list[LoggedCommit] = []
        for page in range(1, 2 + (most - 1) // MOST_ON_A_PAGE):
            size = min(most, MOST_ON_A_PAGE)
            asked = urlencode({"sha": branch, "per_page": size, "page": page})
            path = self._path(f"commits?{asked}")
            listed = read_json(await self.api.send("GET", path, allowed=(409,)))
            rows = cast("list[Any]", listed) if isinstance(listed, list) else []
            found += [
                LoggedCommit(text_at(o, "sha"), text_at(o, "commit", "message")) for o in rows
            ]
            if len(rows) < size:
                break
        return found[:most]

    async def check(self, branch: str) -> str:
        """Raise unless commits on this branch seem possible."""
        told = read_object(await self.api.send("GET", self._path("")))
        allowed = told.get("permissions")
        if isinstance(allowed, dict) and not cast("Json", allowed).get("push"):
            raise ForgeRefused(f"The token (setting github.token) may not write to {self.name}.")
        head = await self.head(branch)
        if head is None:
            raise RepositoryMissing(f"{self.name} is empty. Make a first commit there.")
        return f"{self.name}, branch {branch}, is at {head}."

    @property
    def name(self) -> str:
        """As people write it."""
        return f"{self.owner}/{self.repository}"

    def _path(self, rest: str) -> str:
        return f"/repos/{quote(self.owner)}/{quote(self.repository)}/{rest}".rstrip("/")

    async def _tree_of(self, commit: str) -> str:
        response = await self.api.send("GET", self._path(f"git/commits/{commit}"))
        return text_at(read_object(response), "tree", "sha")

    async def _entries(
        self, tree: str | None, *, recursive: bool = False
    ) -> tuple[list[tuple[str, str, str]], bool]:
        """Path, type and id of what is in a tree, and whether that is all."""
        asked = "?recursive=1" if recursive else ""
        told = read_object(await self.api.send("GET", self._path(f"git/trees/{tree}{asked}")))
        listed: Any = told.get("tree")
        rows = cast("list[Any]", listed) if isinstance(listed, list) else []
        entries = [tuple(text_at(row, key) for key in ("path", "type", "sha")) for row in rows]
        return cast("list[tuple[str, str, str]]", entries), not told.get("truncated")

    async def _below(self, tree: str, prefix: str) -> list[str]:
        """The files below a tree; folder by folder where there are too many for one answer."""
        entries, whole = await self._entries(tree, recursive=True)
        if whole:
            return [f"{prefix}{path}" for path, kind, _ in entries if kind == "blob"]
        found: list[str] = []
        waiting, listed = [(tree, prefix)], 0
        while waiting:
            if (listed := listed + 1) > MOST_TREES:
                raise ForgeError(f"{self.name} has too many folders below {prefix}.")
            tree, prefix = waiting.pop()
            entries, _ = await self._entries(tree)
            found += [f"{prefix}{path}" for path, kind, _ in entries if kind == "blob"]
            waiting += [(sha, f"{prefix}{path}/") for path, kind, sha in entries if kind == "tree"]
        return found

    async def _new_tree(self, new: NewCommit, base_tree: str) -> str:
        entries: list[Json] = []
        for path, content in new.files.items():
            sha = None if content is None else await self._new_blob(content)
            entries.append({"path": path, "mode": FILE_MODE, "type": "blob", "sha": sha})
        body = {"base_tree": base_tree, "tree": entries}
        return text_at(
            read_object(await self.api.send("POST", self._path("git/trees"), body)), "sha"
        )

    async def _new_blob(self, content: bytes) -> str:
        body = {"content": base64.b64encode(content).decode(), "encoding": "base64"}
        return text_at(
            read_object(await self.api.send("POST", self._path("git/blobs"), body)), "sha"
        )

    async def _move_branch(self, new: NewCommit, commit: str) -> None:
        """The one step that others see; what it came to is found out where nobody says so."""
        path = self._path(f"git/refs/heads/{quote(new.branch)}")
        body = {"sha": commit, "force": False}
        try:
            response = await self.api.send("PATCH", path, body, allowed=(409, 422))
        except NoAnswer as problem:
            if not await self._arrived(new.branch, commit):
                raise CommitUnknown(UNKNOWN, commit) from problem
            return
        if response.status not in (409, 422):
            return
        # A request that was sent twice on its way finds its own commit there.
        if not await self._arrived(new.branch, commit):
            raise BranchMoved("The branch has moved on.")

    async def _arrived(self, branch: str, commit: str) -> bool:
        """Whether the branch holds a commit, as far as GitHub says."""
        try:
            return any(one.id == commit for one in await self.log(branch, most=LOOK_BACK))
        except ForgeUnavailable as problem:
            raise CommitUnknown(UNKNOWN, commit) from problem
