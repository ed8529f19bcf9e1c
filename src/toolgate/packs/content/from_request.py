"""The project of an HTTP request: by id, by slug, by cookie, or the default one."""

import re

from toolgate.gate.errors import InvalidArguments, Problem
from toolgate.gate.from_request import FromRequest, Header, RequestHeaders
from toolgate.packs.content.world import ContentWorld

SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
NOBODYS = "00000000-0000-4000-8000-000000000000"
"""A well-formed id that no project has: an unknown slug is an unknown project."""
BY_ID = Header(
    "x-project-id",
    "The project, by id. When no header names one, the cookie `projectId` does; else it is the "
    "default project.",
    {"type": "string", "format": "uuid"},
)
BY_SLUG = Header(
    "x-project-slug",
    "The project, by slug.",
    {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
)


async def _project(world: ContentWorld, request: RequestHeaders) -> str:
    if (project_id := request.headers(BY_ID.name)) is not None:
        return project_id
    if (slug := request.headers(BY_SLUG.name)) is not None:
        if not SLUG.fullmatch(slug):
            message = f"{BY_SLUG.name} must be lower-case letters, digits and hyphens"
            raise InvalidArguments([Problem(BY_SLUG.name, "format", message)])
        return await world.store.project_id(slug) or NOBODYS
    return request.cookies().get("projectId") or world.default_project


PROJECT = FromRequest("projectId", (BY_ID, BY_SLUG), _project)
