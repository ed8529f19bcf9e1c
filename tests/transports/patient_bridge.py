"""`toolgate` as ever, but its bridge waits longer for a server that starts again.

python -m tests.transports.patient_bridge mcp --url URL
"""

from tests.patience import PATIENT, lengthen

from toolgate.cli.main import main

if __name__ == "__main__":
    lengthen({"toolgate.transports.mcp.bridge.remote.PATIENCE": PATIENT})
    main()
