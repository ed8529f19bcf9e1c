"""What a request ends with that is not answered."""

from typing import Any, TypeAlias

import grpc

# The message types are made at run time; a type checker cannot see into them.
Message: TypeAlias = Any


class Refusal(Exception):
    """A request that ends with a gRPC status."""

    def __init__(self, status: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def invalid(text: str) -> Refusal:
    """The refusal of a request that is not well formed."""
    return Refusal(grpc.StatusCode.INVALID_ARGUMENT, text)


def unimplemented(text: str) -> Refusal:
    """The refusal of what this server does not know."""
    return Refusal(grpc.StatusCode.UNIMPLEMENTED, text)
