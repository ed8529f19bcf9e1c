"""System settings that steer the gate, and what their values must be."""

from typing import Any, cast

DISABLED = "mcp.tools.disabled"
"""A list of tools that are off for everybody."""
TOOL, ENABLED = "mcp.tool.", ".enabled"
RESERVED = "mcp."
"""Every key that begins so steers the gate; there are no others than these two kinds."""
SETTING_TOOLS = "db.system_setting."
"""Tools whose names begin so stay on: nobody could take back a switch that switches them off."""
PM_ADDS_IMAGES = "agents.project_manager.sandbox.allow_add_to_allowed_images"
"""For `sandbox.allowed_images.add`, a tool to come: the value is right by then."""


def tool_of(key: str) -> str | None:
    """The tool that a key such as `mcp.tool.git.push.enabled` is about."""
    if not (key.startswith(TOOL) and key.endswith(ENABLED)):
        return None
    return key[len(TOOL) : -len(ENABLED)] or None


def tools_named(key: str, value: Any) -> list[str]:
    """The tools that a setting with a good value switches."""
    if key == DISABLED:
        return list(value)
    tool = tool_of(key)
    return [] if tool is None else [tool]


def tools_switched_off(key: str, value: Any) -> list[str]:
    """The tools that a setting switches off."""
    if key == DISABLED:
        listed = cast("list[Any]", value) if isinstance(value, list) else []
        return [name for name in listed if isinstance(name, str)]
    tool = tool_of(key)
    return [tool] if tool is not None and value is False else []


def is_unknown_switch(key: str) -> bool:
    """Whether a key stands where the switches are, and is none."""
    return f"{key}.".startswith(RESERVED) and key != DISABLED and tool_of(key) is None


def broken_rule(key: str, value: Any) -> str | None:
    """What is wrong with the value of a setting that steers the gate; None where nothing is."""
    if key == DISABLED:
        listed = cast("list[Any]", value) if isinstance(value, list) else None
        if listed is None or not all(isinstance(one, str) for one in listed):
            return f'{key} must be an array of tool names, such as ["artifact.put"]'
    elif (key == PM_ADDS_IMAGES or tool_of(key)) and not isinstance(value, bool):
        return f"{key} must be true or false, with value_type boolean"
    return None
