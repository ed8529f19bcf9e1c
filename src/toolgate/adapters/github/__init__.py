"""GitHub, over its REST API."""

from toolgate.adapters.github.forge import GitHubForge
from toolgate.adapters.github.rest import GitHubApi

__all__ = ["GitHubApi", "GitHubForge"]
