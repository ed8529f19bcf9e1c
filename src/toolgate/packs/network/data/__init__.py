"""The two databases: Firestore's documents and the realtime tree, by path."""
