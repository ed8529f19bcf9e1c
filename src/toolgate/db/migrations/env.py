"""Runs migrations on the connection it is handed."""

from alembic import context

from toolgate.db import content_tables as content_tables  # noqa: PLC0414 (adds its tables)
from toolgate.db import oauth_tables as oauth_tables  # noqa: PLC0414 (adds its tables)
from toolgate.db.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=False,
)
context.run_migrations()
