"""Settings of where data is: the database, documents, trees, blobs, Google Cloud and GitHub."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from toolgate.setting_types import DocumentFields, Section


class DatabaseSettings(Section):
    """Where toolgate stores its own data."""

    url: str | None = Field(
        default=None,
        repr=False,
        description="`sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/NAME`; "
        "if unset, a SQLite file in the data folder.",
    )
    prepared_statements: bool = Field(
        default=True,
        description="With PostgreSQL: false behind a pooler in transaction mode that does not keep "
        "prepared statements apart, such as PgBouncer before 1.21.",
    )
    unindexed: DocumentFields = Field(
        default=(),
        description="Fields of documents that no query uses, as `COLLECTION.FIELD` or `*.FIELD`: "
        "they take no room in the index. Queries that use one read the whole collection.",
    )


class ChangeSettings(Section):
    """The change log: what was there before and after each write of a document."""

    days: int = Field(
        default=30,
        ge=0,
        le=36500,
        description="How long changes are kept. Servers delete older ones every minute; with 0, "
        "all of them.",
    )


def place(description: str) -> Any:
    """A setting that says where documents are."""
    return Field(
        default=None,
        pattern=r"^(database:|firestore://[^/]*(/[^/]+)?)$",
        examples=["firestore://PROJECT", "firestore://PROJECT/DATABASE", "database:"],
        description=description,
    )


class DocumentSettings(Section):
    """Where documents are stored; each pack that keeps some adds a key of its name."""

    url: str | None = place(
        "`firestore://PROJECT[/DATABASE]`, or `database:` for the database of toolgate, which is "
        "also meant if nothing is set and there are no Google credentials."
    )


class TreeSettings(Section):
    """Where the trees of JSON are that packs read and write by path (`firebase.read`)."""

    borrowed: ClassVar[Mapping[str, str]] = {"FIREBASE_DATABASE_URL": "url"}

    url: str | None = Field(
        default=None,
        pattern=r"^(database:|rtdb://[a-z0-9-]+|https?://[^/?#@]+/?(\?ns=[A-Za-z0-9_-]+)?)$",
        examples=["rtdb://PROJECT", "https://NAME.firebaseio.com", "database:"],
        description="`database:` for the database of toolgate, which is also meant if nothing is "
        "set; `rtdb://PROJECT` or the URL of a Firebase Realtime Database, also "
        "FIREBASE_DATABASE_URL. An `http:` URL is an emulator's, `http://HOST:PORT?ns=NAME`.",
    )


class BlobSettings(Section):
    """Where files are stored that tools keep; AWS credentials also from AWS's own variables."""

    borrowed: ClassVar[Mapping[str, str]] = {
        "AWS_ACCESS_KEY_ID": "access_key_id",
        "AWS_SECRET_ACCESS_KEY": "secret_access_key",
        "AWS_SESSION_TOKEN": "session_token",
        "AWS_REGION": "region",
        "AWS_ENDPOINT_URL_S3": "endpoint",
    }

    url: str = Field(
        default="file:",
        pattern=r"^(file:(///.+)?|s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/.*)?)$",
        examples=["s3://BUCKET/PREFIX", "file:///srv/blobs"],
        description="`file:` for the folder `blobs` in the data folder, `file:///FOLDER` for "
        "another one, or `s3://BUCKET[/PREFIX]`.",
    )
    endpoint: str | None = Field(
        default=None,
        pattern=r"^https?://[^/]+/?$",
        examples=["https://HOST", "http://HOST:PORT"],
        description="With `s3://`: URL of a server other than AWS; also AWS_ENDPOINT_URL_S3.",
    )
    region: str | None = Field(default=None, description="With `s3://`: also AWS_REGION.")
    access_key_id: str | None = Field(
        default=None, description="With `s3://`: also AWS_ACCESS_KEY_ID."
    )
    secret_access_key: str | None = Field(
        default=None, repr=False, description="With `s3://`: also AWS_SECRET_ACCESS_KEY."
    )
    session_token: str | None = Field(
        default=None, repr=False, description="With `s3://`: also AWS_SESSION_TOKEN."
    )


class GoogleSettings(Section):
    """Google Cloud credentials, also from the variables that Google's own tools use."""

    borrowed: ClassVar[Mapping[str, str]] = {
        "GOOGLE_APPLICATION_CREDENTIALS": "credentials_file",
        "FIREBASE_SERVICE_ACCOUNT_KEY": "service_account",
        "FIRESTORE_EMULATOR_HOST": "emulator_host",
    }

    credentials_file: Path | None = Field(
        default=None, description="Service account file; also GOOGLE_APPLICATION_CREDENTIALS."
    )
    service_account: str | None = Field(
        default=None,
        repr=False,
        description="Service account as JSON text; also FIREBASE_SERVICE_ACCOUNT_KEY.",
    )
    emulator_host: str | None = Field(
        default=None, description="HOST:PORT of a Firestore emulator; also FIRESTORE_EMULATOR_HOST."
    )


class GitHubSettings(Section):
    """GitHub, for repositories whose URL begins with `github://`."""

    borrowed: ClassVar[Mapping[str, str]] = {"GITHUB_TOKEN": "token"}

    url: str = Field(
        default="https://api.github.com",
        pattern=r"^https?://[^/]+(/[^?#]*)?$",
        examples=["https://HOST/api/v3"],
        description="URL of the REST API; of GitHub Enterprise Server `https://HOST/api/v3`.",
    )
    token: str | None = Field(
        default=None,
        repr=False,
        description="Token that may write the contents of these repositories; also GITHUB_TOKEN.",
    )
