"""What Firestore refuses, in the words of the port."""

import re
from collections.abc import Generator
from contextlib import contextmanager

from google.api_core import exceptions as refusals
from google.auth.exceptions import GoogleAuthError

from toolgate.ports.documents import StoreContended, StoreDenied, StoreExhausted, StoreUnavailable

NO_ANSWER = "Firestore does not answer. Try again later."
NO_PERMISSION = (
    "Firestore denies permission to the service account. "
    "Give it the role Cloud Datastore User (roles/datastore.user)."
)
EXHAUSTED = "The quota of Firestore is used up. Try again later, or have it raised."
NO_INDEX = "Firestore needs an index for this query"
CONTENDED = "Others change the same documents in Firestore at the same time. Try again later."
LINK = re.compile(r"https://\S+")


@contextmanager
def as_store_errors() -> Generator[None]:
    """Turn what the Google libraries raise into `StoreUnavailable`."""
    try:
        yield
    except (refusals.Forbidden, refusals.Unauthorized) as exc:
        raise StoreDenied(NO_PERMISSION) from exc
    except refusals.Aborted as exc:
        raise StoreContended(CONTENDED) from exc
    except refusals.FailedPrecondition as exc:
        raise StoreUnavailable(_missing_index_message(f"{exc.message}")) from exc
    except (refusals.BadRequest, refusals.NotFound) as exc:
        raise StoreUnavailable(f"Firestore refused the request: {exc.message}") from exc
    except (refusals.GoogleAPIError, GoogleAuthError) as exc:
        raise _without_answer(exc) from exc
    except ValueError as exc:
        raise StoreUnavailable(f"Firestore cannot take this request: {exc}") from exc


def _without_answer(problem: Exception) -> StoreUnavailable:
    """What is left, maybe after the library's own attempts, whose last error is the cause then."""
    last = getattr(problem, "cause", None) or problem
    exhausted = isinstance(last, refusals.ResourceExhausted)
    return StoreExhausted(EXHAUSTED) if exhausted else StoreUnavailable(NO_ANSWER)


def _missing_index_message(message: str) -> str:
    if link := LINK.search(message):
        return f"{NO_INDEX}: {link.group()}"
    if "index" in message:
        return f"{NO_INDEX}."
    return f"Firestore refused the request: {message}"
