"""Where posts are in a repository."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

POSTS = "src/_posts"
IMAGES = "src/assets/images/blog"
IN_POST = "@post/"
"""How a post refers to its own images."""
_NAME = re.compile(r"\d{4}-\d{2}-\d{2}-(.+)\.md")
POST_PATH = r"^[a-z0-9][a-z0-9_-]{0,63}(/[a-z0-9][a-z0-9_-]{0,63}){0,3}$"


@dataclass(frozen=True, slots=True)
class PostPlace:
    """One post's file, by the parts of its path."""

    path: str
    post_path: str
    slug: str


def place_of(path: str) -> PostPlace | None:
    """What a file below the folder of posts is; None for what is no post."""
    _year, _, rest = path.removeprefix(f"{POSTS}/").partition("/")
    post_path, _, name = rest.rpartition("/")
    found = _NAME.fullmatch(name)
    return PostPlace(path, post_path, found.group(1)) if found and post_path else None


def places_of(paths: Sequence[str], slug: str) -> list[PostPlace]:
    """The posts of this address."""
    places = [place_of(path) for path in paths if path.endswith(f"-{slug}.md")]
    return [one for one in places if one is not None and one.slug == slug]


def new_path(at: datetime, post_path: str, slug: str) -> str:
    """Where a new post goes."""
    return f"{POSTS}/{at:%Y}/{post_path}/{at:%Y-%m-%d}-{slug}.md"


def image_path(post_id: int, name: str) -> str:
    """Where an image of a post goes."""
    return f"{IMAGES}/post-{post_id}/{name}"
