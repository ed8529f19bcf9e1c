"""Reading a user's file: Python that is run, or YAML, of which JSON is a part."""

import sys
import traceback
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from toolgate.extend.declarations import Entry, HandlerTool, RouteTool

MODULE = "toolgate_own_tools_{:08x}"
"""Each file is a module of its own, named by its path: two files may have the same name."""
YAML = (".yaml", ".yml", ".json")


class UnreadableEntry(Exception):
    """The file as a whole, or one entry, cannot be used; with the line, if one is known."""

    def __init__(self, line: int | None, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


def entries_of(file: Path, text: str) -> Iterator[Entry | UnreadableEntry]:
    """Every entry of the file, or why it is none."""
    if file.suffix in YAML:
        yield from _from_yaml(text)
    elif file.suffix == ".py":
        yield from _from_python(file, text)
    else:
        raise UnreadableEntry(None, "it must end in .py, .yaml, .yml or .json")


def _from_python(file: Path, text: str) -> Iterator[Entry | UnreadableEntry]:
    module = _run(file, text)
    if not hasattr(module, "tools"):
        raise UnreadableEntry(1, "there is no `tools`; write `tools = [...]`")
    tools = module.tools
    if not isinstance(tools, list | tuple):
        raise UnreadableEntry(1, "`tools` must be a list")
    for number, one in enumerate(cast("list[Any]", tools), 1):
        if isinstance(one, RouteTool | HandlerTool):
            yield one.entry
        else:
            what = f"entry {number} of `tools` is a {type(one).__name__}"
            yield UnreadableEntry(1, f"{what}; write RouteTool(…), or a function with @tool()")


def _run(file: Path, text: str) -> ModuleType:
    path = str(file.resolve())
    name = MODULE.format(zlib.crc32(path.encode()))
    module = ModuleType(name)
    module.__file__ = path
    if (folder := str(file.resolve().parent)) not in sys.path:
        sys.path.append(folder)  # last, so that nothing of ours is hidden by a name
    former = sys.modules.get(name)
    sys.modules[name] = module
    try:
        exec(compile(text, path, "exec"), module.__dict__)  # noqa: S102 (the operator's own file)
    except SyntaxError as error:
        _restore_module(name, former)
        line = error.lineno if error.filename == path else None
        raise UnreadableEntry(line, f"it is not valid Python, {error.msg}") from None
    except (Exception, SystemExit) as error:
        _restore_module(name, former)
        raise UnreadableEntry(_line_in(path, error), _reason(error)) from None
    return module


def _restore_module(name: str, former: ModuleType | None) -> None:
    if former is None:
        del sys.modules[name]
    else:
        sys.modules[name] = former


def _line_in(path: str, error: BaseException) -> int | None:
    lines = [
        one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == path
    ]
    return lines[-1] if lines else None


def _reason(error: BaseException) -> str:
    words = " ".join(str(error).split())
    return f"running it failed, {type(error).__name__}" + (f": {words}" if words else "")


def _from_yaml(text: str) -> Iterator[Entry | UnreadableEntry]:
    # Imported here: only who has such a file needs it.
    import yaml  # noqa: PLC0415

    loader: Any = yaml.SafeLoader(text)
    try:
        root: Any = loader.get_single_node()
        if not isinstance(root, yaml.SequenceNode):
            raise UnreadableEntry(
                _line(root) if root else 1, "it must be a list: each tool with a -"
            )
        for node in cast("list[Any]", root.value):
            yield _entry(loader, node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        raise UnreadableEntry(line, f"it is not valid YAML, {error.problem}") from None
    except yaml.YAMLError as error:
        raise UnreadableEntry(
            None, f"it is not valid YAML, {' '.join(str(error).split())}"
        ) from None
    finally:
        loader.dispose()


def _entry(loader: Any, node: Any) -> Entry | UnreadableEntry:
    fields: Any = loader.construct_object(node, deep=True)
    if not isinstance(fields, dict):
        return UnreadableEntry(
            _line(node), "a tool is a mapping of keys such as name, path and role"
        )
    keys = [(str(key.value), _line(key)) for key, _ in node.value]
    lines = dict(keys)
    if len(lines) < len(keys):
        twice = next(key for n, (key, _) in enumerate(keys) if key in dict(keys[:n]))
        return UnreadableEntry(lines[twice], f"{twice} stands twice in one tool")
    return Entry(cast("dict[str, Any]", fields), _line(node), None, lines)


def _line(node: Any) -> int:
    return node.start_mark.line + 1
