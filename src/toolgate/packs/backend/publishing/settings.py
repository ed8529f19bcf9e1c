"""Settings of posts."""

from pydantic import Field

from toolgate.setting_types import Section, Words

WORDS = r"^[^<>\x00-\x1f\x7f]{1,100}$"


class PostSettings(Section):
    """Where posts are published."""

    url: str = Field(
        default="git:",
        pattern=r"^(git:.*|github://[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}/?)$",
        examples=["git:/srv/site.git", "github://OWNER/REPO"],
        description="`git:` for a Git repository in the data folder, which is made at the first "
        "post, `git:PATH` for one that is there, or `github://OWNER/REPO` (see `github.token`).",
    )
    branch: str = Field(
        default="main",
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./-]{0,199}$",
        description="Branch that posts are committed to.",
    )
    committer_name: str = Field(
        default="toolgate", pattern=WORDS, description="Author of the commits."
    )
    committer_email: str = Field(
        default="toolgate@localhost", pattern=WORDS, description="Their e-mail address."
    )
    authors: Words = Field(
        default=("alex-raeburn", "rare-ivy", "christina-hill"),
        min_length=1,
        description="Authors of posts that name none; each post gets one of them.",
    )
    layout: str = Field(
        default="blueprint/blog/post", description="`layout` in the front matter of new posts."
    )
