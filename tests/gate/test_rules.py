"""An operator's own rules: what they change, and what is wrong with those that are refused."""

from pathlib import Path

import pytest
from tests.gate.tools import ADMIN, PUBLIC, USER, a_tool, only_row, shipped, switches, words

from toolgate.gate.errors import Forbidden, InvalidArguments, PolicyViolation
from toolgate.gate.pipeline import UNRULED
from toolgate.gate.policy import NO_RULE, POLICY_ERROR
from toolgate.gate.principal import ANONYMOUS, OF_PRINCIPAL
from toolgate.gate.rule_schema import (
    ACTIONS,
    context,
    entities,
)
from toolgate.gate.rules import BadPolicy, check, rules_of
from toolgate.gate.scope import OUT_OF_SCOPE
from toolgate.gate.tool import OF_TOOL
from toolgate.identity.oauth.audit_notes import GRANTED
from toolgate.testing import opened_kit
from toolgate.transports.edge import COUNTERS_UNAVAILABLE, GUESS_LIMIT, SCOPE_REQUIRED
from toolgate.transports.refusals import CREDENTIALS_REQUIRED, UNREADABLE

pytestmark = pytest.mark.anyio

DISABLED_WRITES = "Write operations are disabled. Set MCP_ENABLE_WRITES=true to enable."

USERS_READ = """
@id("users-read-documents")
permit (principal, action, resource)
when { resource.name == "query_collection" && principal.roles.contains("user") };
"""
NOBODY_READS = """
@id("closed-for-now")
@says("Closed for now.")
forbid (principal, action == Action::"call", resource)
when { resource.name == "query_collection" };
"""


def folder_with(tmp_path: Path, **files: str) -> Path:
    folder = tmp_path / "rules"
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.cedar").write_text(text, encoding="utf-8")
    return folder


async def test_an_own_rule_permits_what_no_built_in_rule_does(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, users=USERS_READ)
    async with opened_kit(tmp_path, policy__folder=folder) as kit:
        assert (await kit.call("query_collection", USER, collection="apps")).error is None
        assert (await only_row(kit))["rule"] == "users-read-documents"
        assert (await kit.call("get_document", USER)).error_type == "not_found"


async def test_an_own_rule_forbids_what_the_built_in_ones_permit(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, users=USERS_READ, closed=NOBODY_READS)
    async with opened_kit(tmp_path, policy__folder=folder) as kit:
        for who in (ADMIN, USER):
            refused = await kit.call("query_collection", who, collection="apps")
            assert (refused.status, refused.body) == (403, {"error": "Closed for now."})
        assert {row["rule"] for row in await kit.audit_rows()} == {"closed-for-now"}


async def test_an_own_rule_needs_neither_a_name_nor_a_text(tmp_path: Path) -> None:
    bare = 'forbid (principal, action == Action::"call", resource);'
    folder = folder_with(tmp_path, bare=bare)
    async with opened_kit(tmp_path, policy__folder=folder) as kit:
        refused = await kit.call("list_collections")
        row = await only_row(kit)
        assert row["rule"] == "bare.cedar:1"
        assert refused.body == {"error": f"Not allowed by rule {row['rule']!r}."}


# Evaluated: every value is in range, but the sum is not, which no schema can tell.
OVERFLOWS = """
@id("adds-too-much")
forbid (principal, action, resource) when { 9223372036854775807 + 1 == 0 };
"""


async def test_a_rule_that_fails_denies_everything_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = folder_with(tmp_path, broken=OVERFLOWS)
    async with opened_kit(tmp_path, policy__folder=folder) as kit:
        for tool in ("list_collections", "describe_collection"):
            assert (await kit.call(tool)).error_type == "not_found"
        rows = await kit.audit_rows()
        assert {(row["decision"], row["rule"]) for row in rows} == {("deny", "policy-error")}
        (failure,) = kit.app.gate.policy.failures
    assert f"{folder}/broken.cedar, line 2" in failure
    assert "integer overflow" in failure
    told = [one for one in caplog.records if one.name == "toolgate.gate.policy"]
    assert [failure in one.getMessage() for one in told] == [True]


async def test_an_own_file_never_takes_the_place_of_a_built_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in shipped():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("permit (principal, action, resource);", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    async with opened_kit(tmp_path / "data", policy__folder=Path()) as kit:
        outcome = await kit.call("create_document", PUBLIC, collection="apps", data={})
        assert outcome.body["error"] == DISABLED_WRITES


@pytest.mark.parametrize(
    "content", [b"permit (principal, action);", b"nonsense", b"// \xff"], ids=str
)
async def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes) -> None:
    folder = folder_with(tmp_path, fine=USERS_READ)
    (folder / "wrong.cedar").write_bytes(content)
    with pytest.raises(BadPolicy, match=r"rules/wrong\.cedar[:,] "):
        async with opened_kit(tmp_path, policy__folder=folder):
            pass


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadPolicy, match=r"rulez is not a folder \(setting policy\.folder\)"):
        async with opened_kit(tmp_path, policy__folder=tmp_path / "rulez"):
            pass


# What is wrong with a rule ---------------------------------------------------------------------


def problems_of(text: str) -> str:
    with pytest.raises(BadPolicy) as refused:
        check(rules_of({"team.cedar": text}), words())
    return str(refused.value)


GATES_WORDS = (
    NO_RULE,
    POLICY_ERROR,
    UNRULED.rule,
    OUT_OF_SCOPE,
    InvalidArguments.rule,
    Forbidden.rule,
    PolicyViolation.rule,
    "no-dry-run",
    CREDENTIALS_REQUIRED,
    UNREADABLE,
    SCOPE_REQUIRED,
    GUESS_LIMIT,
    COUNTERS_UNAVAILABLE,
    GRANTED,
    "no-access-rule-allows",
    "access-rule:1",
)


# Where Cedar does not say which word it is about, the line is the rule's first.
WRONG = [
    ('when {\n  resource.nmae == "x" }', 4, "resource has no attribute nmae. Did you mean name?"),
    ('when { resource["nmae"] == "x" }', 3, "resource has no attribute nmae. Did you mean name?"),
    ("when {\n\n context.readonly }", 5, "no attribute readonly. Did you mean read_only?"),
    ("when { principal.zzz }", 3, "zzz. There is: kind, roles, agent_type, read_only."),
    ("unless { principal has rols }", 3, "principal has no attribute rols. Did you mean roles?"),
    ('when { resource.role == "admn" }', 3, 'resource.role is never "admn". Did you mean admin?'),
    ('when { "reed" != resource.effect }', 3, 'effect is never "reed". Did you mean read?'),
    ('when { principal.roles.contains("usr") }', 3, 'principal.roles is never "usr". Did you'),
    ('when { principal.kind like "agnt" }', 3, 'kind is never like "agnt". Did you mean agent?'),
    ('when { ["pm", "boss"].contains(principal.agent_type) }', 3, '"boss". There is: pm, pa'),
    ("when { resource.open_world == 3 }", 2, "a number is compared with true or false; they are"),
    ("when { resource.name }", 2, "a condition must be true or false. Compare the value, such as"),
    ("when { if }", 2, "`}` is not expected here."),
    ("when { true and true }", 2, "`and` is not expected here. Write &&."),
    ('when {\n principle.kind == "user" }', 4, "no variable principle. Did you mean principal?"),
    ('when { tool.name like "x*" }', 3, "no variable tool. There is: principal, action,"),
    ("when { principal.kind == user }", 3, 'A text needs quotes: "user".'),
    ('when {\n principal.roles == "admin" }', 4, 'Write principal.roles.contains("admin").'),
    ('when { context.disabled != "x" }', 3, 'Write !context.disabled.contains("x").'),
    ('when { principal.roles.contains(["user"]) }', 2, "a set is compared with a text; they"),
    ('when { "admin" in principal.roles }', 2, "`in` compares entities. For texts write a set"),
    ('when { principal.kind.contains("user") }', 2, "containsAll are for sets, and here is a text"),
    ('when { resource.name < "b" }', 2, "a text stands where a number is needed."),
    ('when { principal.roles.contain("user") }', 3, "no method contain. Did you mean contains?"),
    ('when { principal.kind = "user" }', 2, "write == to compare, not =."),
    ("when { principal.kind == 'user' }", 2, 'Texts stand in double quotes: "…".'),
    ("where { true }", 3, "a condition begins with when or unless, not with where."),
    ("when { nope(3) }", 2, "`nope` is not a valid function."),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "line", "says"), WRONG, ids=[one[0] for one in WRONG])
def test_a_mistake_is_told_with_its_line_and_the_nearest_name(
    condition: str, line: int, says: str
) -> None:
    text = f'// first; line\n@id("mine")\nforbid (principal, action, resource) {condition};\n'
    told = problems_of(text)
    assert told.startswith("team.cedar, line ")
    assert f"line {line}: " in told
    assert says in told


@pytest.mark.parametrize(
    ("scope", "says"),
    [
        ('principal, action == Action::"cal", resource', 'no action "cal". Did you mean call?'),
        ("principal, action, resource is Tol", "no entity type Tol. Did you mean Tool?"),
        ('principal == Principal::"bob", action, resource', "cannot name a single caller (bob)"),
        ("principal == ?principal, action, resource", "cannot be a template"),
    ],
)
def test_a_scope_that_can_never_fit_is_told(scope: str, says: str) -> None:
    told = problems_of(f"\npermit ({scope});")
    assert told.startswith("team.cedar, line 2: ")
    assert says in told


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("deny (principal, action, resource);", "begins with permit or forbid, not with deny."),
        ("permit (principal, action);", "lacks resource. Write (principal, action, resource)."),
        ("permit (user, action, resource);", "user cannot stand in the head of a rule. Write ("),
        ('permit (principal, action == "call", resource);', 'such as Action::"call" or Tool::'),
        (
            'permit (principal == "alice", action, resource);',
            'cannot name a single caller ("alice"). Compare principal.roles, principal.agent_type',
        ),
        ("permit (principal, action, resource)", "the rule has no end. Write ; after it."),
    ],
)
def test_a_rule_that_is_not_written_like_one_is_told_how(rule: str, says: str) -> None:
    assert says in problems_of(rule)


@pytest.mark.parametrize(
    ("annotation", "says"),
    [
        ('@syas("no")', "line 2: there is no annotation @syas. Did you mean says?"),
        ('@Id("x")', "there is no annotation @Id. Did you mean id?"),
        ('@reason("no")', "there is no annotation @reason. There is: id, says."),
        ("@id", '@id needs a text, such as @id("no-queries").'),
        ('@says("")', '@says needs a text, such as @says("'),
        *((f'@id("{one}")', "is what the gate itself calls a decision") for one in GATES_WORDS),
    ],
)
def test_annotations_that_mean_nothing_or_something_else_are_told(
    annotation: str, says: str
) -> None:
    told = problems_of(f"\n{annotation}\nforbid (principal, action, resource);")
    assert told.startswith("team.cedar, line 2: ")
    assert says in told


def test_every_mistake_is_told_up_to_a_few() -> None:
    told = problems_of("permit (principal, action, resource) when { context.nope };\n" * 7)
    assert [f"line {n}: " in told for n in range(1, 8)] == [True] * 5 + [False] * 2
    assert told.endswith("And 2 more.")


def test_semicolons_in_texts_and_comments_end_no_rule() -> None:
    text = """// one; two
    @id("a;b") @says("Not now; \\"later\\".") // and; so on
    forbid (principal, action, resource) when { resource.name like "x;*" };
    permit (principal, action, resource);"""
    assert [rule.line for rule in rules_of({"x": text})] == [2, 4]
    check(rules_of({"x": text}), words())


async def test_a_gate_with_a_misspelled_rule_does_not_open(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, team=USERS_READ.replace("resource.name", "resource.nmae"))
    with pytest.raises(BadPolicy, match=r"team\.cedar, line 4: resource has no attribute nmae"):
        async with opened_kit(tmp_path, policy__folder=folder):
            pass


def test_the_schema_is_what_rules_are_given() -> None:
    known = words()
    assert known.variables["context"].keys() == context(switches()).keys()
    listing = a_tool("node.list")
    caller, tool = entities(ANONYMOUS, listing)
    assert (*caller["attrs"].values(),) == ANONYMOUS.shape, "by which decisions are remembered"
    assert (*tool["attrs"].values(),) == listing.shape
    assert caller["attrs"].keys() == OF_PRINCIPAL.keys()
    assert tool["attrs"].keys() == OF_TOOL.keys()
    for variable, attributes in known.variables.items():
        for name in attributes:
            same = f"{variable}.{name} == {variable}.{name}"
            rule = f"permit (principal, action, resource) when {{ {same} }};"
            check(rules_of({"x": rule}), known)
    for action in ACTIONS:
        rule = f'permit (principal, action == Action::"{action}", resource);'
        check(rules_of({"x": rule}), known)
