"""Where Git repositories are: on this machine, or at GitHub."""

import re
from pathlib import Path

from toolgate.outbound.client import Outbound
from toolgate.ports.forge import Forge
from toolgate.sections import Settings
from toolgate.setting_types import BadSettings

GITHUB = re.compile(r"github://([A-Za-z0-9-]{1,39})/([A-Za-z0-9._-]{1,100})/?")
FOLDER = "repositories"


class Forges:
    """Opens repositories."""

    def __init__(self, settings: Settings, outbound: Outbound) -> None:
        self._settings = settings
        self._outbound = outbound

    def of(self, url: str, name: str) -> Forge:
        """The repository at a URL; the embedded one, `git:`, is called by its name."""
        if url.startswith("git:"):
            # Only who keeps posts pays for the library.
            from toolgate.adapters.git import LocalForge  # noqa: PLC0415

            path = url.removeprefix("git:")
            embedded = (self._settings.data / FOLDER / f"{name}.git").absolute()
            folder = Path(path).expanduser().absolute() if path else embedded
            return LocalForge(folder, create=not path)
        return self._github(url)

    def _github(self, url: str) -> Forge:
        from toolgate.adapters.github import GitHubApi, GitHubForge  # noqa: PLC0415

        found = GITHUB.fullmatch(url)
        if found is None:
            raise BadSettings(
                f"{url!r} is no repository: use `git:`, `git:PATH` or `github://OWNER/REPO`."
            )
        settings = self._settings.github
        api = GitHubApi(self._outbound, settings.url, settings.token)
        return GitHubForge(api, *found.groups())
