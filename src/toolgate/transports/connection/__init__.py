"""HTTP connections: their limits, their table, and requests that are answered below ASGI."""
