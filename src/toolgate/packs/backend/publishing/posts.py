"""Posts are created and changed: each as one commit, made once however often it is tried."""

import hashlib
import json
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import anyio.to_thread

from toolgate.db.transactions import Transaction
from toolgate.gate.errors import Conflict, ForgeUnavailable, NotFound
from toolgate.packs.backend.publishing.drafts import NewPost, PostImages, post_files
from toolgate.packs.backend.publishing.images import FetchesImages
from toolgate.packs.backend.publishing.intents import (
    Check,
    PostIntent,
    PostIntents,
    call_of,
    trailer,
)
from toolgate.packs.backend.publishing.repository import POSTS, PostPlace, places_of
from toolgate.packs.backend.publishing.settings import PostSettings
from toolgate.packs.backend.publishing.texts import one_line
from toolgate.ports.forge import Author, BranchMoved, CommitUnknown, Forge, ForgeError, NewCommit

ATTEMPTS = 10
LOOK_BACK = 300
"""Commits among which one is looked for that has no record."""
MAX_POST_BYTES = 4 * 1024 * 1024
NO_POST = "Post not found"
BUSY = "The branch moves on all the time: others commit to it. Nothing was changed; try again."


@dataclass(frozen=True, slots=True)
class PostCall:
    """A call that publishes."""

    id: str
    """Of its audit row."""
    caller: str
    arguments: Any
    """As JSON."""
    check: Check | None = None
    """Made with the intent: whether the call is still wanted."""


@dataclass(frozen=True, slots=True)
class Published:
    """What was committed."""

    path: str
    commit: str
    images: tuple[str, ...] = ()
    post_id: int | None = None
    changed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Another body, and maybe another title, for a post."""

    slug: str
    post_path: str | None
    """None: wherever it is."""
    body: str
    title: str | None


def utc_now() -> datetime:
    """The time."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Posts:
    """The posts of a site."""

    open_forge: Callable[[], Forge]
    """Gives the same one each time; made at the first use, since it may need a library."""
    settings: PostSettings
    intents: PostIntents
    images: FetchesImages
    now: Callable[[], datetime] = utc_now

    @property
    def forge(self) -> Forge:
        """The repository."""
        return self.open_forge()

    async def create(self, call: PostCall, post: NewPost, tx: Transaction) -> Published:
        """Commit a new post with its images."""
        digest = self._digest(call)
        if done := await self._done_before(digest, post.slug, tx):
            return done
        async with telling():
            head = await self.forge.head(self.settings.branch)
            self._refuse_taken(await self._places(head, post.slug))
        images = await anyio.to_thread.run_sync(PostImages, post)
        jpegs = await self.images.jpegs(images.wanted)
        intent = self._intent(call, digest, post.slug)

        async def attempt(head: str | None) -> Published:
            if taken := await self._places(head, post.slug):
                if done := await self._done_before(digest, post.slug, tx, but=call.id):
                    return done
                self._refuse_taken(taken)
            made = post_files(images, jpegs, self.now())
            commit = await self._commit(head, made.files, f"Add post: {post.title}", intent)
            pictures = tuple(path for path in made.files if path != made.path)
            return Published(made.path, commit, pictures, made.id)

        return await self._publish(intent, attempt, tx, call.check)

    async def edit(self, call: PostCall, edit: Edit, tx: Transaction) -> Published:
        """Commit another body of a post; who changed it meanwhile is not overwritten."""
        intent = self._intent(call, self._digest(call), edit.slug)
        known: list[bytes] = []

        async def attempt(head: str | None) -> Published:
            places = await self._places(head, edit.slug)
            place = _only([one for one in places if edit.post_path in (None, one.post_path)])
            assert head is not None
            content = await self.forge.read(place.path, head, most_bytes=MAX_POST_BYTES)
            if content is None:
                raise NotFound(NO_POST)
            known.append(content)
            if known[0] != content:
                raise Conflict(
                    f"{place.path} was changed by somebody else meanwhile. Nothing of yours was "
                    "stored: look at the new text, then try again."
                )
            changed = _edited(content, edit, place)
            if changed == content:
                return Published(place.path, head, changed=False)
            files: dict[str, bytes | None] = {place.path: changed}
            commit = await self._commit(head, files, f"Update post: {edit.slug}", intent)
            return Published(place.path, commit)

        return await self._publish(intent, attempt, tx, call.check)

    async def committed(self, intents: Sequence[PostIntent]) -> dict[str, str]:
        """The commits of those intents that became one, by call."""
        wanted = {one.call for one in intents}
        log = await self.forge.log(self.settings.branch, most=LOOK_BACK)
        found = {call_of(one.message): one.id for one in log}
        return {call: commit for call, commit in found.items() if call in wanted}

    async def _publish(
        self,
        intent: PostIntent,
        attempt: Callable[[str | None], Coroutine[Any, Any, Published]],
        tx: Transaction,
        check: Check | None,
    ) -> Published:
        """Try until the branch is where it was when the attempt began; then note that it is done.

        Where it is certain that nothing was committed, the intent goes. Else it stays: a retry, or
        the workflow that looks after them, finds out.
        """
        await self.intents.begin(intent, check)
        try:
            async with telling():
                for _ in range(ATTEMPTS):
                    try:
                        done = await attempt(await self.forge.head(self.settings.branch))
                        break
                    except BranchMoved:
                        continue
                else:
                    raise Conflict(BUSY)
        except ForgeUnavailable as failed:
            if not isinstance(failed.__cause__, CommitUnknown):
                await self.intents.drop([intent.call])
            raise
        except Exception:
            await self.intents.drop([intent.call])
            raise
        await self.intents.finish(tx, [intent.call])
        return done

    async def _done_before(
        self, digest: str, slug: str, tx: Transaction, *, but: str | None = None
    ) -> Published | None:
        """The commit of an earlier call that was the same, and ended before it was recorded."""
        left = [one for one in await self.intents.like(digest) if one.call != but]
        if not left:
            return None
        async with telling():
            commits = await self.committed(left)
            for call, commit in commits.items():
                if places := await self._places(commit, slug):
                    await self.intents.finish(tx, [call])
                    return Published(places[0].path, commit)
        return None

    async def _places(self, head: str | None, slug: str) -> list[PostPlace]:
        return places_of(await self.forge.paths(head, POSTS), slug) if head else []

    def _refuse_taken(self, places: Sequence[PostPlace]) -> None:
        if places:
            one = places[0]
            raise Conflict(
                f"There is a post with the url {one.slug}: {one.path}. Choose another title or "
                "url, or change that post with update_post."
            )

    async def _commit(
        self, head: str | None, files: dict[str, bytes | None], subject: str, intent: PostIntent
    ) -> str:
        return await self.forge.commit(
            NewCommit(
                branch=self.settings.branch,
                base=head,
                files=files,
                message=f"{one_line(subject)}\n\n{trailer(intent.call)}\n",
                author=Author(self.settings.committer_name, self.settings.committer_email),
                at=self.now(),
            )
        )

    def _intent(self, call: PostCall, digest: str, slug: str) -> PostIntent:
        at = self.now().isoformat(timespec="microseconds").replace("+00:00", "Z")
        return PostIntent(call.id, digest, slug, at)

    def _digest(self, call: PostCall) -> str:
        place = [self.settings.url, self.settings.branch, call.caller, call.arguments]
        return hashlib.sha256(json.dumps(place, sort_keys=True).encode()).hexdigest()


@asynccontextmanager
async def telling() -> AsyncGenerator[None]:
    """What a forge says as what callers are told."""
    try:
        yield
    except BranchMoved as moved:
        raise Conflict(BUSY) from moved
    except ForgeError as failed:
        raise ForgeUnavailable(str(failed)) from failed


def _only(places: Sequence[PostPlace]) -> PostPlace:
    if not places:
        raise NotFound(NO_POST)
    if len(places) > 1:
        listed = ", ".join(one.path for one in places)
        folders = sorted({one.post_path for one in places})
        step = (
            f"Say which with postPath: {', '.join(folders)}."
            if len(folders) == len(places)
            else "Rename one in the repository."
        )
        raise Conflict(f"Several posts have this url: {listed}. {step}")
    return places[0]


def _edited(content: bytes, edit: Edit, place: PostPlace) -> bytes:
    # Only who writes posts pays for YAML.
    from toolgate.packs.backend.publishing.front_matter import (  # noqa: PLC0415
        BadFrontMatter,
        parse_post,
    )

    post = parse_post(content)
    try:
        if edit.title is not None:
            post = post.with_title(edit.title)
    except BadFrontMatter as problem:
        raise Conflict(f"{place.path}: {problem}. Leave title out, or change the file.") from None
    return post.with_body(edit.body)
