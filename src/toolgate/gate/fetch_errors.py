"""What a caller is told where another server fails, without the address of that server."""

from toolgate.gate.errors import GateError, ResultTooLarge, TimedOut, Unavailable
from toolgate.outbound.responses import FetchFailed, FetchTimedOut, ResponseTooLarge

SERVER = "A server that this tool asks"
UNUSABLE = "cannot be reached, or its answer is of no use. Try again later."


def error_of_fetch(
    failed: FetchFailed, server: str = SERVER, otherwise: str = UNUSABLE
) -> GateError:
    """The error to tell; `otherwise` is said where it is neither the time nor the size."""
    match failed:
        case FetchTimedOut():
            return TimedOut(
                f"{server} did not answer within {failed.seconds:g} s. Try again later."
            )
        case ResponseTooLarge():
            many = f"answered more than {failed.most_bytes} bytes"
            return ResultTooLarge(f"{server} {many}. Ask for fewer items or use a filter.")
        case _:
            return Unavailable(f"{server} {otherwise}")
