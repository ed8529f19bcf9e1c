"""A post that is to be created, from its arguments to its files."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from toolgate.gate.errors import InvalidArguments, Problem
from toolgate.packs.backend.publishing.image_links import ImageLink, image_links, with_links
from toolgate.packs.backend.publishing.images import MOST_IMAGES, WantedImage
from toolgate.packs.backend.publishing.repository import IN_POST, image_path, new_path
from toolgate.packs.backend.publishing.texts import slug_of

MAX_IMAGE_NAME = 60
MOST_LINKS = 300
"""References to images; a few may be shown often."""
DRAFT = "draft"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPost:
    """What a post is made of."""

    slug: str
    title: str
    description: str
    body: str
    author: str
    layout: str
    status: str
    post_path: str
    tags: Sequence[str]
    categories: Sequence[str]
    header_image: str | None


@dataclass(slots=True)
class PostImages:
    """The images of a post: each is fetched once, however often the post shows it."""

    post: NewPost
    links: list[ImageLink] = field(init=False)
    names: dict[str, str] = field(init=False, default_factory=dict[str, str])
    """File names by URL."""

    def __post_init__(self) -> None:
        """Find and name them, which takes a moment in a long text; raises `InvalidArguments`."""
        self.links = image_links(self.post.body, MOST_LINKS + 1)
        _check_number(self.links)
        if self.post.header_image:
            self._name(self.post.header_image, self.post.slug)
        for link in self.links:
            self._name(link.url, link.alt)

    def _name(self, url: str, text: str) -> None:
        if url in self.names:
            return
        stem = slug_of(text)[:MAX_IMAGE_NAME].strip("-") or "image"
        taken, name, number = set(self.names.values()), f"{stem}.jpg", 1
        while name in taken:
            number += 1
            name = f"{stem}-{number}.jpg"
        self.names[url] = name

    @property
    def wanted(self) -> list[WantedImage]:
        """What to fetch, in the order of the names."""
        header = self.post.header_image
        return [WantedImage("headerImageURL" if u == header else "body", u) for u in self.names]

    @property
    def body(self) -> str:
        """The body with references to the post's own images."""
        return with_links(self.post.body, self.links, lambda one: IN_POST + self.names[one.url])

    @property
    def header(self) -> str | None:
        """The header image, as the front matter names it."""
        url = self.post.header_image
        return IN_POST + self.names[url] if url else None


def _check_number(links: Sequence[ImageLink]) -> None:
    """Before any is named."""
    if len({one.url for one in links}) > MOST_IMAGES:
        message = f"body has more than {MOST_IMAGES} images; at most {MOST_IMAGES} are possible"
    elif len(links) > MOST_LINKS:
        message = (
            f"body shows images more than {MOST_LINKS} times; at most {MOST_LINKS} are possible"
        )
    else:
        return
    raise InvalidArguments([Problem("body", "size", f"{message}: make several posts")])


@dataclass(frozen=True, slots=True)
class PostFiles:
    """A post as it is committed."""

    id: int
    path: str
    files: dict[str, bytes | None]


def post_files(images: PostImages, jpegs: Sequence[bytes], at: datetime) -> PostFiles:
    """The files of a new post; its id is the time in milliseconds."""
    # Only who writes posts pays for YAML.
    from toolgate.packs.backend.publishing.front_matter import post_file  # noqa: PLC0415

    post, post_id = images.post, int(at.timestamp() * 1000)
    fields: dict[str, Any] = {
        "title": post.title,
        "description": post.description,
        "author": post.author,
        "id": post_id,
        "status": post.status,
        "tags": list(post.tags),
        "categories": list(post.categories),
    }
    if images.header:
        fields["image"] = images.header
    # What generators of sites (Jekyll, for one) leave out.
    hidden = {"published": False} if post.status == DRAFT else {}
    path = new_path(at, post.post_path, post.slug)
    files: dict[str, bytes | None] = {
        path: post_file({"layout": post.layout, **hidden, "post": fields}, images.body)
    }
    for name, jpeg in zip(images.names.values(), jpegs, strict=True):
        files[image_path(post_id, name)] = jpeg
    return PostFiles(post_id, path, files)
