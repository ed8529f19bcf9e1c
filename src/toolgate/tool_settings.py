"""Settings that name tools, checked against those there are: rules, switches and limits."""

import logging
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from limits.errors import ConfigurationError

from toolgate import packs
from toolgate.gate.arguments import nearest
from toolgate.gate.catalogue import Catalogue
from toolgate.gate.limits import Limits
from toolgate.gate.policy import Policy
from toolgate.gate.rule_schema import Switch, switches_of, vocabulary
from toolgate.gate.rules import (
    built_in_rules,
    pack_rules,
    refuse,
    rules_in,
    rules_of,
    skipped_in,
    unknown_names,
)
from toolgate.sections import Settings
from toolgate.setting_types import BadSettings

logger = logging.getLogger(__name__)


def _tool_names(
    names: Iterable[str], setting: str, catalogue: Catalogue, pack_names: Iterable[str] = ()
) -> list[str]:
    """The tools' own names; a name that is no tool's would silently do nothing."""
    tools = {name: catalogue.find(name) for name in names}
    if unknown := [name for name, tool in tools.items() if tool is None]:
        near = nearest(unknown[0], [*(tool.name for tool in catalogue), *pack_names])
        hint = f"Did you mean {near}?" if near else "`toolgate tools` lists them."
        no_pack = ", and no pack's" if pack_names else ""
        raise BadSettings(
            f"Setting {setting} names {unknown[0]}, which is no tool's name{no_pack}. {hint}"
        )
    return [tool.name for tool in tools.values() if tool]


def _disabled(settings: Settings, catalogue: Catalogue) -> frozenset[str]:
    """The packs, and the tools by their own names, that the settings switch off."""
    named = frozenset(settings.policy.disabled)
    pack_names = {tool.pack.name for tool in catalogue}
    tools = _tool_names(named - pack_names, "policy.disabled", catalogue, pack_names)
    return (named & pack_names).union(tools)


def policy_of(settings: Settings, catalogue: Catalogue) -> Policy:
    """The rules that ship and the operator's own, checked."""
    own = rules_in(settings.policy.folder) if settings.policy.folder else {}
    switches = switches_of(settings)
    switches["disabled"] = Switch(_disabled(settings, catalogue), switches["disabled"].meaning)
    of_packs = [(offer, pack_rules(offer)) for offer in catalogue.offers]
    confined = [rule for _, rules in of_packs for rule in rules]
    policy = Policy([*rules_of(built_in_rules()), *confined, *rules_of(own)], switches)
    words = replace(policy.vocabulary, elsewhere=partial(_pack_to_enable, settings))
    for offer, rules in of_packs:
        if offer.complete:
            refuse(unknown_names(rules, policy.vocabulary, offer.tools))
    if not catalogue.changing:
        refuse(unknown_names(rules_of(own), words, catalogue))
    return policy


def _pack_to_enable(settings: Settings, tool: str) -> str | None:
    pack = packs.disabled_pack_of(tool, settings.packs.enabled)
    return f"It is in pack {pack}, which is not enabled (setting packs.enabled)." if pack else None


class RuleWarnings:
    """What is odd about the operator's own rules, but may be meant so."""

    def __init__(self, settings: Settings, catalogue: Catalogue) -> None:
        folder = settings.policy.folder
        files = rules_in(folder) if folder else {}
        self._skipped = [
            f"{file} is not read: rules are files *.cedar in {folder}."
            for file in (skipped_in(folder) if folder else ())
        ]
        if folder and not files:
            none = f"{folder} has no file *.cedar, so no rule of your own applies"
            self._skipped.insert(0, f"{none} (setting policy.folder).")
        self._rules = rules_of(files) if catalogue.changing else ()
        self._vocabulary = vocabulary(switches_of(settings))
        self._catalogue = catalogue
        self._logged: list[str] = []

    def sentences(self) -> list[str]:
        """All of them; a tool that is not there may come with the next load of its file."""
        return [*self._skipped, *unknown_names(self._rules, self._vocabulary, self._catalogue)]

    def watch(self) -> None:
        """Log them, now and where the tools have changed; none again while it is true."""
        self._log()
        if self._rules:
            self._catalogue.listeners.append(self._after_change)

    async def _after_change(self) -> None:
        self._log()

    def _log(self) -> None:
        sentences = self.sentences()
        for sentence in sentences:
            if sentence not in self._logged:
                logger.warning("%s", sentence)
        self._logged = sentences


def limits_of(settings: Settings, catalogue: Catalogue) -> Limits:
    """The limits, of tools that there are."""
    limits = settings.limits
    single = limits.tool_calls_per_minute
    names = _tool_names(single, "limits.tool_calls_per_minute", catalogue)
    single = dict(zip(names, single.values(), strict=True))
    try:
        return Limits(limits.model_copy(update={"tool_calls_per_minute": single}))
    except ConfigurationError as problem:
        raise BadSettings(
            "Setting limits.store cannot be used. Write async+memory:// or "
            "async+redis://HOST:PORT (with the extra toolgate[redis])."
        ) from problem
