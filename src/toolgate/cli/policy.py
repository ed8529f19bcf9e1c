"""`toolgate policy test`: whether the rules say what they are meant to."""

import tomllib
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from toolgate.cli import environment
from toolgate.cli.options import AsJson, ConfigFile, DataFolder, command_group, command_settings
from toolgate.cli.output import failure, printable, say, say_json, success
from toolgate.cli.principals import OPERATOR, principal_named
from toolgate.cli.problems import ExitCode, Stop
from toolgate.cli.tools import tool_named

if TYPE_CHECKING:
    from toolgate.app import App
    from toolgate.gate.catalogue import AnyTool
    from toolgate.gate.explanations import Explanation
    from toolgate.gate.principal import Principal
    from toolgate.settings import Settings

ENDING = ".test.toml"
BOUND = ("project", "task", "job")
KEYS = ("principal", "user", *BOUND, "tool", "arguments", "expect", "rule")
Files = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[FILE]...",
        help=f"Files of tests, or folders with files *{ENDING}; without any, policy.folder.",
    ),
]


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the table: who calls what with which arguments, and what is expected."""

    file: Path
    number: int
    values: dict[str, Any]

    @property
    def name(self) -> str:
        """Where it is, and what it is about."""
        about = f"{self.values['principal']}, {self.values['tool']}"
        return f"{self.file.name}, test {self.number} ({about})"

    def refuse(self, problem: object) -> Stop:
        """What to raise where this is no test at all."""
        return Stop(f"{self.file}, test {self.number}: {problem}")


def group() -> typer.Typer:
    """The command group."""
    return command_group("Test the rules.", test=run_tests)


def run_tests(
    ctx: typer.Context,
    files: Files = None,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Run files of rule tests: who may call what, and which rule decides.

    The rules and the data of this installation are asked; without data, those of a new one. No
    tool is run. The exit code is 1 if a test fails.
    """
    settings = command_settings(ctx, config, data)
    cases = [case for file in _files(settings, files) for case in _cases(file)]
    results = environment.run_async(lambda: _run(settings, cases))
    failed = [(case, problem) for case, problem in zip(cases, results, strict=True) if problem]
    if as_json:
        say_json(
            [
                {"file": str(case.file), "test": case.number, **case.values, "problem": problem}
                for case, problem in zip(cases, results, strict=True)
            ]
        )
    else:
        for case, problem in failed:
            say(f"{failure('Failed:')} {printable(case.name)}: {printable(problem)}.")
        passed = success(f"{len(cases) - len(failed)} passed")
        say(f"{passed}, {len(failed)} failed." if failed else f"{passed}.")
    raise typer.Exit(ExitCode.FAILED if failed else ExitCode.OK)


def _files(settings: "Settings", files: Sequence[Path] | None) -> Sequence[Path]:
    if files:
        return [test for one in files for test in (_files_in(one) if one.is_dir() else [one])]
    if settings.policy.folder is None:
        raise Stop("Name a file of tests, or a folder with the setting policy.folder.")
    return _files_in(settings.policy.folder)


def _files_in(folder: Path) -> list[Path]:
    tests = sorted(one for one in folder.iterdir() if one.name.endswith(ENDING))
    if not tests:
        raise Stop(f"{folder} has no file *{ENDING}. Name one.")
    return tests


def _cases(file: Path) -> Iterator[Case]:
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise Stop(f"{file} cannot be read: {problem}.") from None
    tests = cast("list[dict[str, Any]]", content.get("test"))
    if set(content) != {"test"} or not isinstance(tests, list):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Stop(f"{file} must be a list of tests, each under [[test]].")
    for number, values in enumerate(tests, 1):
        _check(f"{file}, test {number}", values)
        yield Case(file, number, values)


def _check(where: str, values: dict[str, Any]) -> None:
    from toolgate.gate.explanations import Verdict

    if unknown := [key for key in values if key not in KEYS]:
        raise Stop(f"{where}: there is no {unknown[0]!r}. There are: {', '.join(KEYS)}.")
    if missing := [key for key in ("principal", "tool", "expect") if key not in values]:
        raise Stop(f"{where}: {missing[0]} is missing.")
    if values["expect"] not in list(Verdict):
        raise Stop(f"{where}: expect must be one of: {', '.join(Verdict)}.")
    texts = [key for key in KEYS if key != "arguments" and not isinstance(values.get(key, ""), str)]
    if texts:
        raise Stop(f"{where}: {texts[0]} must be a text.")
    if not isinstance(values.get("arguments", {}), dict):
        raise Stop(f"{where}: arguments must be a table, such as {{ task_id = '…' }}.")


async def _run(settings: "Settings", cases: Sequence[Case]) -> list[str | None]:
    async with _opened(settings) as app:
        return [await _problem(app, case) for case in cases]


@asynccontextmanager
async def _opened(settings: "Settings") -> "AsyncGenerator[App]":
    """The gate with the data there is, or with a new database that is thrown away."""
    from toolgate.app import opened
    from toolgate.data_folder import NoData

    try:
        async with opened(settings, existing=True) as app:
            yield app
            return
    except NoData:
        pass
    with TemporaryDirectory() as folder:
        async with opened(settings.model_copy(update={"data": Path(folder)})) as app:
            yield app


async def _problem(app: "App", case: Case) -> str | None:
    """What is other than expected."""
    try:
        principal = await _principal(app, case.values)
        tool = tool_named(app.gate.catalogue, case.values["tool"], app.settings)
    except Stop as problem:
        raise case.refuse(problem) from None
    explanation = await explained(app, principal, tool, case.values.get("arguments"))
    expected, rule = case.values["expect"], case.values.get("rule")
    if explanation.verdict != expected:
        says = f" ({explanation.message})" if explanation.message else ""
        verdict = f"{explanation.verdict} by {explanation.rule}{says}"
        return f"expected {expected}, but it is {verdict}"
    if rule is not None and explanation.rule != rule:
        return f"expected rule {rule}, but {explanation.rule} decides"
    return None


async def _principal(app: "App", values: dict[str, Any]) -> "Principal":
    from toolgate.gate.fields import plain_id

    principal = await principal_named(values["principal"], app.keys)
    bound = {f"{name}_id": plain_id(values[name]) for name in BOUND if name in values}
    if bound and principal.agent_type is None:
        option = next(name for name in BOUND if name in values)
        raise Stop(f"{option} binds an agent, and {values['principal']} is none.")
    if bound:
        principal = replace(principal, bound={**principal.bound, **bound})
    if "user" in values:
        if not principal.roles and principal.agent_type is None:
            raise Stop(f"user is whom an agent or a key is for, and {values['principal']} is none.")
        principal = replace(principal, user_id=values["user"])
    return principal


async def explained(
    app: "App", principal: "Principal", tool: "AnyTool", arguments: dict[str, Any] | None
) -> "Explanation":
    """What would become of a call; without arguments, what the rules alone say."""
    from toolgate.gate.calls import Call
    from toolgate.gate.explanations import explain_call, explain_decision

    if arguments is None:
        return explain_decision(app.gate.policy.decide(principal, tool), tool)
    call = Call(
        tool=tool.name,
        arguments=arguments,
        principal=principal,
        request_id=OPERATOR,
        transport="cli",
    )
    return await explain_call(app.gate, call, tool)
