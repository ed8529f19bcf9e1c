"""A file with problems: each is told with file, line and reason, all at once."""

from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import *  # noqa: F403 (its fixtures)

from toolgate.extend.offer import BadTools, check_settings, offer_of
from toolgate.sections import ExtendSettings, LimitSettings
from toolgate.settings import BadSettings

IMPORT = "from toolgate.extend import tool\n"
GOOD = "name: it\n  description: It\n  path: echo"


def problems(file: Path, text: str | None, **settings: Any) -> list[str]:
    if text is not None:
        file.write_text(text, encoding="utf-8")
    extend = ExtendSettings(**{"tools": file, "base_url": "http://localhost", **settings})
    with pytest.raises(BadTools) as refused:
        offer_of([file], extend, LimitSettings())
    return [one.replace(str(file.parent) + "/", "") for one in refused.value.problems]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- name: it\n  path: x\n", "tools.yaml:1: it: description is missing."),
        ("\n- description: It\n  path: x\n", "tools.yaml:2: this tool: name is missing."),
        (
            "- name: it\n  description: It\n",
            "tools.yaml:1: it: it has neither a path nor a handler, "
            "and functions are lost in JSON and YAML: write it in a tools.py with @tool().",
        ),
        (
            f"- {GOOD}\n  handler: x\n",
            "tools.yaml:4: it: it has a path and a handler, but a tool has one of them.",
        ),
        (
            f"- {GOOD}\n  inputschema: {{}}\n",
            "tools.yaml:4: it: unknown key 'inputschema', write input_schema.",
        ),
        (
            f"- {GOOD}\n  role: boss\n",
            "tools.yaml:4: it: role must be one of: public, user, admin.",
        ),
        (
            f"- {GOOD}\n  method: FETCH\n",
            "tools.yaml:4: it: method must be one of: GET, POST, PUT, PATCH, DELETE.",
        ),
        (f"- {GOOD}\n  annotations: [1]\n", "tools.yaml:4: it: annotations must be a mapping."),
        (
            f"- {GOOD}\n  annotations: {{readOnlyHint: maybe}}\n",
            "tools.yaml:4: it: annotations.readOnlyHint must be true or false.",
        ),
        (
            f"- {GOOD}\n  input_schema: {{type: array}}\n",
            'tools.yaml:4: it: input_schema cannot be used, its type must be "object".',
        ),
        (
            f"- {GOOD}\n  input_schema: {{properties: {{a: {{type: text}}}}}}\n",
            "tools.yaml:4: it: input_schema cannot be used, at properties.a.type: 'text' is",
        ),
        (
            f"- {GOOD}\n  input_schema: {{properties: {{a: {{$ref: 'http://localhost/x'}}}}}}\n",
            "tools.yaml:4: it: input_schema cannot be used, $ref 'http://localhost/x' must point",
        ),
        (
            f"- {GOOD}\n  input_schema: {{properties: {{a: {{$ref: '#/$defs/x'}}}}}}\n",
            "tools.yaml:4: it: input_schema cannot be used, $ref '#/$defs/x' leads nowhere.",
        ),
        (
            f"- {GOOD}\n  input_schema: {{properties: {{a: {{const: 2024-01-01}}}}}}\n",
            "tools.yaml:4: it: input_schema cannot be used, it holds something that is not JSON.",
        ),
        (
            f"- {GOOD}\n  input_schema: {{properties: {{a: {{$id: 'http://localhost/x'}}}}}}\n",
            "tools.yaml:4: it: input_schema cannot be used, $id cannot be used here.",
        ),
        (
            f"- {GOOD}\n  input_schema: {{required: 5}}\n",
            "tools.yaml:4: it: input_schema cannot be used, at required: 5 is not of type 'array'.",
        ),
        (
            f"- {GOOD}\n  annotations: {{since: 2024-01-01}}\n",
            "tools.yaml:4: it: annotations hold something that is not JSON.",
        ),
        (
            f"- {GOOD}\n  output_schema: {{type: string}}\n",
            'tools.yaml:4: it: output_schema must have the type "object".',
        ),
        (
            f"- {GOOD}/{{id}}\n  input_schema: {{}}\n",
            "tools.yaml:3: it: path has {id}, so input_schema must list and require it.",
        ),
        (
            f"- {GOOD}/../x\n",
            "tools.yaml:3: it: path cannot be used, /echo/../x must not have . or .. as a part.",
        ),
        (
            f"- {GOOD}?a=b\n",
            "tools.yaml:3: it: path cannot be used, echo?a=b must have neither ? nor #;",
        ),
        (
            "- name: it\n  description: It\n  path: http://{host}/x\n",
            "tools.yaml:3: it: path cannot be used, {…} may stand only in the path",
        ),
        (
            "- name: it\n  description: It\n  path: ftp://host/x\n",
            "tools.yaml:3: it: path cannot be used, ftp://host/x must begin with http",
        ),
        (
            "- name: a b\n  description: It\n  path: x\n",
            "tools.yaml:1: a b: name must be 1 to 128 letters, digits, _ . or -.",
        ),
        (f"- {GOOD}\n  name: x\n", "tools.yaml:4: name stands twice in one tool."),
        (f"- {GOOD}\n- {GOOD}\n", "tools.yaml:4: it: line 1 has a tool of this name already."),
        ("- just text\n", "tools.yaml:1: a tool is a mapping of keys such as name, path and role."),
        ("tools: 1\n", "tools.yaml:1: it must be a list: each tool with a -."),
        ("", "tools.yaml:1: it must be a list: each tool with a -."),
        ("- a: [\n", "tools.yaml:2: it is not valid YAML, expected the node content"),
        (
            "- !!python/object:os.system x\n",
            "tools.yaml:1: it is not valid YAML, could not determine",
        ),
    ],
)
def test_a_bad_entry_in_yaml(tmp_path: Path, text: str, told: str) -> None:
    found = problems(tmp_path / "tools.yaml", text)
    assert len(found) == 1
    assert found[0].startswith(told)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\n", "tools.py:1: there is no `tools`; write `tools = [...]`."),
        ("tools = 1\n", "tools.py:1: `tools` must be a list."),
        (
            "tools = [{}]\n",
            "tools.py:1: entry 1 of `tools` is a dict; write RouteTool(…), or a",
        ),
        ("\nx = = 1\n", "tools.py:2: it is not valid Python, invalid syntax."),
        (
            "import os\n\ndef f():\n    return 1 / 0\n\nf()\n",
            "tools.py:4: running it failed, ZeroDivisionError: division by zero.",
        ),
        (
            "import no_such_module\n",
            "tools.py:1: running it failed, ModuleNotFoundError: No module",
        ),
        ("raise SystemExit(3)\n", "tools.py:1: running it failed, SystemExit: 3."),
        (
            "from toolgate.extend import RouteTool\ntools = [\n    RouteTool(\n        name='it',\n"
            "        description='It',\n        pth='x',\n    )\n]\n",
            "tools.py:3: it: unknown key 'pth', write path.",
        ),
        (
            IMPORT + "\n@tool()\ndef it(ctx, args):\n    'It'\ntools = [it]\n",
            "tools.py:3: it: a handler is `async def name(ctx: HandlerContext, args)`.",
        ),
        (
            IMPORT + "@tool()\nasync def it(ctx):\n    'It'\ntools = [it]\n",
            "tools.py:2: it: a handler is `async def name(ctx: HandlerContext, args)`.",
        ),
        (
            IMPORT + "@tool(path='x')\nasync def it(ctx, args):\n    'It'\ntools = [it]\n",
            "tools.py:2: it: it has a path and a handler, but a tool has one of them.",
        ),
        (
            IMPORT + "@tool()\nasync def it(ctx, args: 'Nope'):\n    'It'\ntools = [it]\n",
            "tools.py:2: it: its type hints cannot be read, NameError: name 'Nope' is not defined.",
        ),
        (
            IMPORT + "@tool()\nasync def it(ctx, args): ...\ntools = [it]\n",
            "tools.py:2: it: description is missing.",
        ),
        (
            IMPORT + "@tool(seconds=0)\nasync def it(ctx, args):\n    'It'\ntools = [it]\n",
            "tools.py:2: it: seconds must be a number above 0.",
        ),
        (
            IMPORT + "@tool(slow='yes')\nasync def it(ctx, args):\n    'It'\ntools = [it]\n",
            "tools.py:2: it: slow must be true or false.",
        ),
    ],
)
def test_a_bad_entry_in_python(tmp_path: Path, text: str, told: str) -> None:
    found = problems(tmp_path / "tools.py", text)
    assert found[0].startswith(told)


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    text = f"- {GOOD}\n  role: boss\n  methd: GET\n- name: b\n- 5\n"
    assert problems(tmp_path / "tools.yaml", text) == [
        "tools.yaml:5: it: unknown key 'methd', write method.",
        "tools.yaml:4: it: role must be one of: public, user, admin.",
        "tools.yaml:6: b: description is missing.",
        "tools.yaml:6: b: it has neither a path nor a handler, "
        "and functions are lost in JSON and YAML: write it in a tools.py with @tool().",
        "tools.yaml:7: a tool is a mapping of keys such as name, path and role.",
    ]


def test_names_that_differ_in_a_dot_are_one_name(tmp_path: Path) -> None:
    text = f"- {GOOD.replace('it', 'a.b', 1)}\n- {GOOD.replace('it', 'a_b', 1)}\n"
    assert problems(tmp_path / "tools.yaml", text) == [
        "tools.yaml:4: a_b: line 1 has a tool of this name already (a.b; . and _ are one)."
    ]


def test_a_relative_path_needs_a_base(tmp_path: Path) -> None:
    found = problems(tmp_path / "tools.yaml", f"- {GOOD}\n", base_url=None)
    why = "echo is relative, so the setting extend.base_url is needed"
    assert found == [f"tools.yaml:3: it: path cannot be used, {why}."]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("tools.yaml", None, "tools.yaml: it is not there (setting extend.tools)."),
        ("tools.js", b"[]", "tools.js: it must end in .py, .yaml, .yml or .json."),
        ("tools.py", b"\xff\xfe", "tools.py: it is not UTF-8; save it as UTF-8."),
        (
            "tools.yaml",
            b"x" * (4 * 1024 * 1024 + 1),
            "tools.yaml: it is longer than 4,194,304 bytes.",
        ),
    ],
)
def test_a_bad_file(tmp_path: Path, name: str, content: bytes | None, told: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert problems(tmp_path / name, None) == [told]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            {"base_url": "localhost:80"},
            "Setting extend.base_url: localhost:80 must begin with http",
        ),
        ({"base_url": "http://u:p@host"}, "Setting extend.base_url: an address must not hold cred"),
        ({"identity": "key"}, "Setting extend.identity is key, so extend.key must be set too."),
        (
            {"identity": "key", "key": "a\nb"},
            "Setting extend.key must be visible ASCII characters.",
        ),
    ],
)
def test_settings_that_do_not_fit(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(BadSettings) as refused:
        check_settings(ExtendSettings(**settings))
    assert str(refused.value).startswith(told)


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["mcp"], ["call", "it"], ["tools"]])
def test_no_command_starts_with_a_bad_file(
    tmp_path: Path, process: Any, command: list[str]
) -> None:
    (tmp_path / "tools.yaml").write_text(f"- {GOOD}\n  role: boss\n")
    ended = process(
        *command,
        TOOLGATE_EXTEND__TOOLS="tools.yaml",
        TOOLGATE_EXTEND__BASE_URL="http://localhost",
    )
    assert ended.code == 2
    told = "tools.yaml:4: it: role must be one of: public, user, admin."
    if command[0] == "call":
        assert (ended.json, ended.err) == ({"error": {"message": told}}, "")
    else:
        assert ended.err == f"Error: {told}\n"


def test_doctor_names_the_problem(monkeypatch: pytest.MonkeyPatch, cli: Any) -> None:
    Path("tools.yaml").write_text(f"- {GOOD}\n  role: boss\n")
    monkeypatch.setenv("TOOLGATE_EXTEND__TOOLS", "tools.yaml")
    monkeypatch.setenv("TOOLGATE_EXTEND__BASE_URL", "http://localhost")
    ended = cli("doctor", "--json")
    found = {one["check"]: one for one in ended.json}
    assert ended.code == 1
    assert found["own tools"]["state"] == "fail"
    assert "tools.yaml:4: it: role must be one of" in found["own tools"]["says"]
    assert found["documents"]["state"] == "ok"


@pytest.mark.usefixtures("data")
def test_a_good_file_is_used_and_named(monkeypatch: pytest.MonkeyPatch, cli: Any) -> None:
    Path("tools.yaml").write_text(f"- {GOOD.replace('it', 'get_document', 1)}\n")
    monkeypatch.setenv("TOOLGATE_EXTEND__TOOLS", "tools.yaml")
    monkeypatch.setenv("TOOLGATE_EXTEND__BASE_URL", "http://127.0.0.1:1")
    listed = cli("tools", "--pack", "own")
    assert "It" not in listed.err
    assert "(replaces the built-in tool)" in listed.out
    doctor = {one["check"]: one["says"] for one in cli("doctor", "--json").json}
    assert doctor["own tools"] == "tools.yaml: 1 tool, in place of the built-in get_document."
    called = cli("call", "get_document")
    assert called.code == 1
    assert called.json == {"error": "The route of get_document cannot be reached. Try again later."}
