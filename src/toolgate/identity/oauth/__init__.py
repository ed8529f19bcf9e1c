"""The OAuth 2.1 authorization server, one endpoint a file, free of HTTP's machinery."""
