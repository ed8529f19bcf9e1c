"""A demo post, in the embedded repository alone."""

from datetime import UTC, datetime

from toolgate.packs.backend.publishing.drafts import NewPost, PostImages, post_files
from toolgate.packs.backend.publishing.posts import Posts
from toolgate.packs.backend.publishing.texts import chosen_author, one_line
from toolgate.ports.forge import Author, BranchMoved, NewCommit

EMBEDDED = "git:"
WRITTEN = datetime(2025, 1, 15, 10, 30, tzinfo=UTC)
TITLE = "Welcome"
BODY = """Welcome to the demo site. Its posts are files in a Git repository, and an agent wrote none
of them yet.

Ask one to create a post, or to change this one."""


async def store_demo_post(posts: Posts) -> int:
    """Commit the demo post if the embedded repository is empty; return how many were stored."""
    settings = posts.settings
    if settings.url != EMBEDDED or await posts.forge.head(settings.branch) is not None:
        return 0
    post = NewPost(
        slug="welcome",
        title=TITLE,
        description="Posts are files in a Git repository.",
        body=BODY,
        author=chosen_author(settings.authors, "welcome"),
        layout=settings.layout,
        status="published",
        post_path="guest",
        tags=["demo"],
        categories=[],
        header_image=None,
    )
    try:
        await posts.forge.commit(
            NewCommit(
                branch=settings.branch,
                base=None,
                files=post_files(PostImages(post), [], WRITTEN).files,
                message=f"{one_line(f'Add post: {TITLE}')}\n",
                author=Author(settings.committer_name, settings.committer_email),
                at=WRITTEN,
            )
        )
    except BranchMoved:  # another worker was quicker
        return 0
    return 1
