"""What every test with gRPC shares."""

from tests.loops import one_loop

__all__ = ["one_loop"]
