"""Posts of the application's site."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD_FORMAT
from toolgate.gate.context import Context
from toolgate.gate.errors import InvalidArguments, NotFound, Problem
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Route, Target
from toolgate.packs.backend.pack import BACKEND, ROUTES
from toolgate.packs.backend.publishing.drafts import NewPost
from toolgate.packs.backend.publishing.posts import NO_POST, Edit, PostCall
from toolgate.packs.backend.publishing.repository import POST_PATH
from toolgate.packs.backend.publishing.texts import (
    chosen_author,
    first_sentence,
    slug_of,
    slug_of_address,
)
from toolgate.packs.backend.world import BackendWorld

family = Family("publishing", BACKEND)

MAX_TITLE, MAX_BODY = 300, 500_000
SECONDS = 300.0
FOLDER = "must be up to four names with / between them, each of a-z, 0-9, - and _, as in team/news"


def _post_path(value: str) -> str:
    if not re.fullmatch(POST_PATH, value, re.ASCII):
        raise PydanticCustomError(TOLD_FORMAT, "postPath {rule}", {"rule": FOLDER})
    return value


PostPath = Annotated[
    str, AfterValidator(_post_path), WithJsonSchema({"type": "string", "pattern": POST_PATH})
]
Word = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class PostRequest(Input):
    """A new post."""

    title: str = Field(min_length=1, max_length=MAX_TITLE, description="Title of the post.")
    body: str = Field(
        min_length=1,
        max_length=MAX_BODY,
        description="Text in Markdown. Images on other servers (Markdown, or `<img>`) are "
        "downloaded and committed with it.",
    )
    tags: list[Word] = Field(default=[], max_length=50, description="Tags.")
    categories: list[Word] = Field(default=[], max_length=50, description="Categories.")
    headerImageURL: str | None = Field(  # noqa: N815 (the seed's name)
        default=None, max_length=2000, description="Image above the text, an https:// URL."
    )
    status: Literal["published", "draft"] = Field(
        default="published", description="`published`, or `draft` to keep it off the site."
    )
    url: str | None = Field(
        default=None,
        max_length=MAX_TITLE,
        description="Last part of its address; default: made from the title.",
    )
    description: str | None = Field(
        default=None, max_length=1000, description="Default: the first sentence of the body."
    )
    author: Word | None = Field(
        default=None, description="Default: one of the setting `posts.authors`."
    )
    postPath: PostPath = Field(  # noqa: N815 (the seed's name)
        default="guest", description="Folder within the year's folder."
    )


class CreatedPost(Output):
    """What was committed."""

    url: str = Field(description="Last part of its address, for `update_post`.")
    title: str = Field(description="Its title.")
    description: str = Field(description="Its description.")
    author: str = Field(description="Its author.")
    status: str = Field(description="`published` or `draft`.")
    path: str = Field(description="Its file in the repository.")
    images: list[str] = Field(description="Files of its images.")
    commit: str = Field(description="The commit.")


@family.tool(
    "create_post",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    title="Create a blog post",
    writes=[Target.OUTSIDE, Target.TABLES],
    open_world=True,
    slow=True,
    seconds=SECONDS,
    route=Route(f"{ROUTES}/admin/post", method="POST"),
    example={
        "title": "Hello from toolgate",
        "body": "Our agents can write posts now. This is one of them.",
        "tags": ["news"],
    },
)
async def create_post(ctx: Context[BackendWorld], args: PostRequest) -> CreatedPost:
    """Publish a new post: one commit with its text and its images.

    Images become JPEGs of at most 2048 pixels. A url that another post has is refused; change that
    post with `update_post`.
    """
    posts, post = ctx.world.posts, new_post(ctx.world, args)
    call = _call(ctx, {"create": args.model_dump(mode="json")})
    done = await posts.create(call, post, ctx.tx)
    return CreatedPost(
        url=post.slug,
        title=post.title,
        description=post.description,
        author=post.author,
        status=post.status,
        path=done.path,
        images=list(done.images),
        commit=done.commit,
    )


class PostEdit(Input):
    """Another body for a post."""

    url: str = Field(
        min_length=1,
        max_length=2000,
        description="Which post: `my-post`, `/blog/my-post` or `https://HOST/blog/my-post`.",
    )
    body: str = Field(min_length=1, max_length=MAX_BODY, description="The new text, in Markdown.")
    title: str | None = Field(
        default=None, min_length=1, max_length=MAX_TITLE, description="Default: stays as it is."
    )
    postPath: PostPath = Field(  # noqa: N815 (the seed's name)
        default="guest",
        description="Folder within the year's folder; left out, the post is found in any.",
    )


class UpdatedPost(Output):
    """What was committed."""

    url: str = Field(description="Last part of its address.")
    path: str = Field(description="Its file in the repository.")
    commit: str = Field(description="The commit; where nothing changed, the newest one.")
    changed: bool = Field(description="False if it had this text already.")


@family.tool(
    "update_post",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    title="Update an existing blog post",
    writes=[Target.OUTSIDE, Target.TABLES],
    open_world=True,
    slow=True,
    seconds=SECONDS,
    route=Route(f"{ROUTES}/admin/post", method="PUT"),
    example={"url": "/blog/welcome", "body": "Welcome. This text was written by an agent."},
)
async def update_post(ctx: Context[BackendWorld], args: PostEdit) -> UpdatedPost:
    """Replace the text of a post, as one commit.

    Its front matter stays as it is, to the byte, but for the title if one is given. Images in the
    new text are not downloaded. If somebody else changes the post at the same moment, nothing is
    stored and the answer says so.
    """
    slug = slug_of_address(args.url)
    if slug is None:
        raise NotFound(NO_POST)
    post_path = args.postPath if "postPath" in args.model_fields_set else None
    edit = Edit(slug=slug, post_path=post_path, body=_text("body", args.body), title=args.title)
    call = _call(ctx, {"update": args.model_dump(mode="json")})
    done = await ctx.world.posts.edit(call, edit, ctx.tx)
    return UpdatedPost(url=slug, path=done.path, commit=done.commit, changed=done.changed)


def _call(ctx: Context[BackendWorld], arguments: object) -> PostCall:
    assert ctx.tx.call is not None
    return PostCall(ctx.tx.call, ctx.principal.id, arguments)


def new_post(world: BackendWorld, args: PostRequest) -> NewPost:
    """The post that is asked for; raises `InvalidArguments`."""
    settings = world.posts.settings
    body = _text("body", args.body)
    field, text = ("url", args.url) if args.url else ("title", args.title)
    name = text.removeprefix("/").removeprefix("blog/").removesuffix("/")
    slug = slug_of(name)
    if not slug:
        message = f"{field} must have a letter or a digit, which the address is made from"
        raise InvalidArguments([Problem(field, "value", message)])
    if field == "url" and ("/" in name or "\\" in name):
        message = "url must be the last part of an address, as my-post; postPath is its folder"
        raise InvalidArguments([Problem(field, "format", message)])
    return NewPost(
        slug=slug,
        title=args.title,
        description=args.description or first_sentence(body) or args.title,
        body=body,
        author=args.author or chosen_author(settings.authors, slug),
        layout=settings.layout,
        status=args.status,
        post_path=args.postPath,
        tags=args.tags,
        categories=args.categories,
        header_image=args.headerImageURL or None,
    )


def _text(field: str, value: str) -> str:
    """A text without blank lines around it."""
    stripped = value.strip("\r\n").rstrip()
    if not stripped.strip():
        raise InvalidArguments([Problem(field, "value", f"{field} must not be blank")])
    return stripped
