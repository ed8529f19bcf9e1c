"""Runs migrations on the connection it is handed."""

from alembic import context

given = context.config.attributes
context.configure(
    connection=given["connection"],
    version_table=given["version_table"],
    render_as_batch=True,
    transactional_ddl=False,
)
context.run_migrations()
