"""The pack's name and dialect."""

from toolgate.gate.dialects import SENTENCE
from toolgate.gate.tool import Pack

BACKEND = Pack("backend", SENTENCE, "An application's users, and what runs beside them.")
ROUTES = "/backend-manager"
