"""`toolgate extend`: make a file of tools of your own."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgate.cli.environment import run_async
from toolgate.cli.options import command_group
from toolgate.cli.output import note, printable, say, success
from toolgate.cli.problems import Stop

if TYPE_CHECKING:
    from toolgate.extend.openapi import ImportResult

Spec = Annotated[
    str, typer.Argument(metavar="SPEC", help="OpenAPI 3.0 or 3.1, JSON or YAML: a file or URL.")
]
Only = Annotated[
    str,
    typer.Option(
        metavar="METHODS", help="Only operations with these methods, separated by commas."
    ),
]
RoleName = Annotated[
    str, typer.Option(metavar="ROLE", help="Who may use the tools: public, user or admin.")
]
Output = Annotated[Path, typer.Option(metavar="FILE", help="The file to write.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]

EVERY = "GET,POST,PUT,PATCH,DELETE"
MAX_BYTES = 16 * 1024 * 1024
SECONDS = 30
OK = 200
FORMS = (".yaml", ".yml")


def group() -> typer.Typer:
    """The command group."""
    return command_group("Generate a file with your own tools.", openapi=openapi)


def openapi(
    spec: Spec,
    *,
    only: Only = EVERY,
    role: RoleName = "admin",
    output: Output = Path("tools.yaml"),
    force: Force = False,
) -> None:
    """Write route tools for the operations of an OpenAPI document.

    Review the file before you use it: each tool is a way into your backend.
    """
    from toolgate.extend.openapi import BadDocument, import_operations

    methods = _check_options(only, role, output, force)
    try:
        result = import_operations(_parse(spec, _read(spec)), methods, role)
    except BadDocument as problem:
        raise Stop(f"{spec}: {problem}") from None
    _keep_good(result)
    for line in result.notes:
        note(printable(line))
    if not result.tools:
        raise Stop(f"{spec} has no operation that can become a tool, so nothing was written.")
    output.write_text(_file(spec, result), encoding="utf-8")
    count = "1 tool" if len(result.tools) == 1 else f"{len(result.tools)} tools"
    say(f'{success("Done:")} {count} in {output}. Review it, then set extend.tools = "{output}".')
    if result.base:
        say(f"The document names the address {printable(result.base)} (setting extend.base_url).")


def _check_options(only: str, role: str, output: Path, force: bool) -> list[str]:
    from toolgate.gate.principal import Role

    methods = [word.strip().upper() for word in only.split(",") if word.strip()]
    options = EVERY.split(",")
    if unknown := [one for one in methods if one not in options]:
        raise Stop(f"There is no method {unknown[0]!r}. Methods: {', '.join(options)}.")
    if role not in list(Role):
        raise Stop(f"There is no role {role!r}. Roles: {', '.join(Role)}.")
    if output.suffix not in FORMS:
        raise Stop(f"{output} must end in {' or '.join(FORMS)}.")
    if output.exists() and not force:
        raise Stop(
            f"{output} already exists. Use --force to overwrite it, or --output for another file."
        )
    return methods


def _read(spec: str) -> bytes:
    if spec.startswith(("http://", "https://")):
        return _fetch(spec)
    file = Path(spec)
    if not file.is_file():
        raise Stop(f"There is no file {spec}.")
    if file.stat().st_size > MAX_BYTES:
        raise Stop(f"{spec} is longer than {MAX_BYTES:,} bytes.")
    return file.read_bytes()


def _fetch(url: str) -> bytes:
    from toolgate.outbound.client import Outbound
    from toolgate.outbound.hops import AddressPolicy
    from toolgate.outbound.responses import FetchedResponse, FetchFailed, ResponseLimits

    limits = ResponseLimits(
        seconds=SECONDS, most_bytes=MAX_BYTES, statuses=None, redirects=5, compressed=True
    )

    async def fetch() -> FetchedResponse:
        async with Outbound() as outbound:
            return await outbound.fetch(url, limits, address_policy=AddressPolicy.PROXIED)

    try:
        response = run_async(fetch)
    except FetchFailed as problem:
        raise Stop(f"{url} cannot be read: {problem} Save the document as a file.") from None
    if response.status != OK:
        raise Stop(f"{url} answered {response.status}. Save the document as a file.")
    return response.body


def _parse(spec: str, text: bytes) -> Any:
    import yaml

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as problem:
        why = " ".join(str(problem).split())
        raise Stop(f"{spec} is neither JSON nor YAML: {printable(why)}.") from None


def _keep_good(result: "ImportResult") -> None:
    """Leave out what would be refused when the file is loaded, and say why."""
    from toolgate.extend.declarations import Entry
    from toolgate.extend.validation import EntryValidator
    from toolgate.sections import ExtendSettings

    settings = ExtendSettings(base_url="http://localhost")
    good: list[dict[str, Any]] = []
    for tool in result.tools:
        checking = EntryValidator(Entry(tool, 1), settings)
        if checking.tool():
            good.append(tool)
        result.notes += [f"{tool['method']} {tool['path']}: {why}" for _, why in checking.problems]
    result.tools = good


def _file(spec: str, result: "ImportResult") -> str:
    import yaml

    class Plain(yaml.SafeDumper):
        """Writes everything where it stands."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 (the library's)
            """No reference to another tool's lines."""
            return True

    head = [f"# Made from {printable(result.title or spec)}. Review it before you use it."]
    if result.base:
        head.append(f"# The document's address (setting extend.base_url): {result.base}")
    body = yaml.dump(result.tools, Dumper=Plain, sort_keys=False, allow_unicode=True, width=100)
    return "\n".join(head) + "\n\n" + body
