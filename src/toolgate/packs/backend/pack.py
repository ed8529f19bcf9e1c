"""The pack's name and dialect."""

from toolgate.gate.dialects import BACKEND as DIALECT
from toolgate.gate.tool import Pack

BACKEND = Pack("backend", DIALECT, "An application's users, and what runs beside them.")
ROUTES = "/backend-manager"
