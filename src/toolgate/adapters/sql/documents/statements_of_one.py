"""Statements that write one document, or one entry of the index."""

from sqlalchemy import JSON, bindparam, delete, text, update

from toolgate.db.prepared import PreparedWrite
from toolgate.db.tables import document_index, documents

# The same words for both databases, for which SQLAlchemy has two classes.
INSERT_ONE = PreparedWrite(
    text(
        "INSERT INTO documents (namespace, collection, id, fields) "
        "VALUES (:namespace, :collection, :id, :fields) "
        "ON CONFLICT (namespace, collection, id) DO NOTHING"
    ).bindparams(bindparam("fields", type_=JSON))
)
_row = (
    (documents.c.namespace == bindparam("of_namespace"))
    & (documents.c.collection == bindparam("of_collection"))
    & (documents.c.id == bindparam("of_id"))
)
UPDATE_ONE = PreparedWrite(
    update(documents).where(_row).values(fields=bindparam("fields", type_=JSON))
)
DELETE_ONE = PreparedWrite(delete(documents).where(_row))
ADD_ENTRY = PreparedWrite(
    text(
        "INSERT INTO document_index (field, key, id) VALUES (:field, :key, :id) "
        # Of a document that was removed past this store, entries may be left.
        "ON CONFLICT (field, key, id) DO NOTHING"
    )
)
REMOVE_ENTRY = PreparedWrite(
    delete(document_index).where(
        document_index.c.field == bindparam("of_field"),
        document_index.c.key == bindparam("of_key"),
        document_index.c.id == bindparam("of_id"),
    )
)
