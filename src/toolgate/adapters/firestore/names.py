"""The names of documents and collections in Firestore's protocol."""

from toolgate.ports.documents import Reference


def document_name(root: str, collection: str, document_id: str) -> str:
    """The name of a document below `root`, which is that of all documents."""
    if not document_id or "/" in document_id:
        raise ValueError("a document id is not empty and has no slash")
    return "/".join((*collection_name(root, collection), document_id))


def collection_name(root: str, collection: str) -> tuple[str, str]:
    """The name of what a collection belongs to, and its own in there."""
    segments = collection.split("/")
    if len(segments) % 2 == 0 or not all(segments):
        raise ValueError("a collection has an odd number of path elements, none of them empty")
    return "/".join((root, *segments[:-1])), segments[-1]


def parent_name(root: str, parent: Reference | None) -> str:
    """The name of what collections are listed of."""
    return document_name(root, *parent) if parent else root
