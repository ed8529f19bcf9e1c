"""Bounds that only a hang reaches."""

from typing import Any

from tests.patience import PATIENT

from toolgate.outbound.responses import ResponseLimits


def patient(**limits: Any) -> ResponseLimits:
    return ResponseLimits(**{"seconds": PATIENT, **limits})
