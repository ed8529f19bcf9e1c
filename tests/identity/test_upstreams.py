"""A way to sign in that lacks a setting is told before anything is served."""

from pathlib import Path

import pytest

from toolgate.settings import BadSettings
from toolgate.testing import opened_kit

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("given", "lacking"),
    [
        ({"sign_in__provider": "site"}, "sign_in.site_url"),
        (
            {"sign_in__provider": "site", "sign_in__site_url": "https://app.example"},
            "sign_in.firebase_project",
        ),
        ({"sign_in__provider": "oidc"}, "sign_in.oidc_issuer"),
        (
            {"sign_in__provider": "oidc", "sign_in__oidc_issuer": "https://id.example"},
            "sign_in.oidc_client_id",
        ),
    ],
)
async def test_what_is_lacking_is_named(
    tmp_path: Path, given: dict[str, str], lacking: str
) -> None:
    with pytest.raises(BadSettings, match=f"is {given['sign_in__provider']}: set {lacking}"):
        async with opened_kit(tmp_path, **given):
            pass
