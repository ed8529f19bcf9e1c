"""Documents in Google Cloud Firestore (the extra `toolgate[firestore]`)."""

from toolgate.adapters.firestore.documents import FirestoreDocuments

__all__ = ["FirestoreDocuments"]
