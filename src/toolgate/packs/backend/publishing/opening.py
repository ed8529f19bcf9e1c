"""The posts of the site, by the settings."""

from functools import cache

from toolgate.gate.offer import Site
from toolgate.packs.backend.publishing.images import Images
from toolgate.packs.backend.publishing.intents import PostIntents
from toolgate.packs.backend.publishing.posts import Posts
from toolgate.packs.backend.publishing.settings import PostSettings
from toolgate.sections import Settings

NAME = "posts"
"""Of the section of settings, and of the embedded repository."""


def posts_of(site: Site, intents: PostIntents) -> Posts:
    """The posts of the site; nothing is opened or made before it is used."""
    settings = site.section(NAME, PostSettings)
    forge = cache(lambda: site.forge(settings.url, NAME))
    return Posts(forge, settings, intents, Images(site.outbound))


def repository_of(settings: Settings) -> tuple[str, str]:
    """For `toolgate doctor`: the URL and the branch that posts are committed to."""
    section = settings.section(NAME)
    assert isinstance(section, PostSettings)
    return section.url, section.branch
