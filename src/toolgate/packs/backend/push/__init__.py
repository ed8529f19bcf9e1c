"""Push notifications: a port, an outbox in the database, and Firebase Cloud Messaging."""
