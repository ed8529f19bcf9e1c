"""Names of requests and audit rows: never twice the same, in no process."""

import subprocess
import sys

from tests.patience import PATIENT

FORKED = """
import os
from toolgate.gate.audit_records import new_id

before, (reading, writing) = new_id(), os.pipe()
if os.fork() == 0:
    os.write(writing, new_id().encode())
    os._exit(0)
os.wait()
print(before, new_id(), os.read(reading, 100).decode())
"""


def test_a_forked_process_does_not_count_where_its_parent_does() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, check=True, timeout=PATIENT
    )
    before, after, forked = done.stdout.split()
    assert before[:22] == after[:22]
    assert forked[:22] != before[:22]
    assert [len(one) for one in (before, after, forked)] == [32, 32, 32]
