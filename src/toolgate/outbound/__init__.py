"""The one way out over HTTP; read `client.py` first.

The HTTP library is loaded when something is asked for, not before.
"""
