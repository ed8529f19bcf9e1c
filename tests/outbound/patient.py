"""Bounds that only a hang reaches."""

from typing import Any

from tests.patience import PATIENT

from toolgate.outbound.responses import Bounds


def patient(**bounds: Any) -> Bounds:
    return Bounds(**{"seconds": PATIENT, **bounds})
