"""Phrases that a skill may not hold, as patterns for text in its plain form.

Every repetition has an upper bound, so a place in a text costs the same in a short and a long one.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

Category = Literal["hidden_instructions", "instruction_override", "secret_bypass"]

IGNORE = (
    r"(?:ignore|disregard|forget|override|overrule|discard|dismiss|abandon|set aside|"
    r"pay no attention to|do not (?:follow|obey)|don't (?:follow|obey)|stop (?:following|obeying))"
)
EARLIER = (
    r"(?:(?:all|any|every|of|the|your|my|our|these|those|other|and|or) ){0,4}"
    r"(?:previous|prior|earlier|preceding|above|former|existing|original|initial|system|developer|"
    r"safety|given|your)(?:'s)? (?:(?:and|or|system|developer|safety|user|built-in) ){0,2}"
    r"(?:instructions?|prompts?|directions?|directives?|guidelines?|commands?|orders?|programming|"
    r"training|messages?|constraints?|restrictions?)"
)
SECRETS = (
    r"(?:api[ _-]?keys?|system prompt|hidden (?:prompt|instructions)|initial prompt|secrets?|"
    r"passwords?|credentials?|(?:access|auth|bearer|session) tokens?|private keys?|ssh keys?|"
    r"environment variables|\.env(?: file)?)"
)
OTHER_MEANING = (
    r"(?! ?(?:counts?|strength|fields?|polic|length|managers?|rotat|reset|hints?|forms?|inputs?|"
    r"limits?|usage|budget|names?|ids?\b|expir|pages?|template|placeholder|store|handling))"
)
PROMPT = (
    r"(?:the|your|its)(?: (?:full|exact|entire|whole|complete|hidden|initial|original|system|"
    r"developer)){0,2} prompt\b"
)
LINE_PATTERNS: Sequence[tuple[Category, str]] = (
    ("instruction_override", r"^[#>\- \t]*developer[ \t]+(?:message|instructions?|prompt)[ \t]*:"),
)
"""What means something else where a line goes on with it."""
DEFAULT_PATTERNS: Mapping[Category, Sequence[str]] = {
    "hidden_instructions": (),
    "instruction_override": (
        rf"{IGNORE} (?:absolutely )?{EARLIER}",
        rf"{IGNORE} (?:everything|all|anything|what) (?:(?:that )?(?:you|i) (?:were|was|have been) "
        r"(?:told|taught|instructed)|(?:written |said )?(?:above|before(?: this)?))",
        r"you are now (?:in |entering |a |an |the |called |known as |no longer )"
        r"(?:\w{1,30} ){0,4}?(?:mode|ai|assistant|model|dan|persona|chatbot|bound|restricted|"
        r"unrestricted|unfiltered|jailbroken)",
        r"you are now (?:called |named )?dan\b",
        r"(?:here are|these are|receive|follow)(?: your| my| the)? new (?:system )?instructions",
        r"(?:^|[.!?:;] )new (?:system )?instructions? ?:",
        r"your (?:new|real|true|only) "
        r"(?:instructions?|task|goal|role|purpose|objective) (?:is|are) ",
        r"(?:enter|enable|activate|switch to|go into|turn on) (?:the )?"
        r"(?:jailbreak|developer|god|dan|unrestricted|unfiltered|admin override) mode",
        r"(?:pretend|act as if|imagine|behave as though)(?: that)? you (?:are|have|had|were) "
        r"(?:no|free of|without|not bound by)(?: any| your)? "
        r"(?:rules|restrictions|filters?|guidelines|limits|limitations|constraints|safety)",
        r"from now on,? (?:you (?:will|must|shall|should) )?(?:only )?(?:obey|listen to|answer to|"
        r"take orders from) (?:me|only|this)",
        r"(?:<\|im_?start\|>|<\|system\|>|\[/?inst\]|<</?sys>>)",
        r"do anything now",
    ),
    "secret_bypass": (
        r"(?:reveal|print|output|leak|expose|dump|exfiltrate|disclose|repeat|send|post|e-?mail|"
        r"upload|forward|transmit|show|tell|give)(?: me| us| them)? "
        r"(?:(?:all|any|every|of|the|your|"
        rf"its|their|our|a|list|full|complete|stored|user'?s?) ){{1,4}}{SECRETS}{OTHER_MEANING}",
        rf"(?:send|post|e-?mail|upload|forward|transmit|copy) [^.!?]{{0,60}}\b{SECRETS}"
        rf"{OTHER_MEANING} (?:\w{{1,30}} ){{0,3}}to "
        r"(?:https?://|\S{1,64}@\S|an? external|my |this )",
        r"(?:ignore|bypass|circumvent|evade|get around|disregard|defeat|subvert) "
        r"(?:(?:all|any|the|your|its|every|these) ){0,3}"
        r"(?:safety|security|access[ -]controls?|permission checks?|guardrails?|"
        r"content (?:filters?|polic\w{1,6})|moderation|sandbox(?:ing)?|authori[sz]ation)"
        r"(?: (?:checks?|controls?|filters?|rules?|measures?|restrictions?|polic\w{1,6}|"
        r"guidelines?))?",
        rf"\b(?:reveal|disclose|leak|expose|exfiltrate) {PROMPT}{OTHER_MEANING}",
        rf"\b(?:print|output|dump|repeat|recite|tell|give|show)(?: me| us)? {PROMPT}"
        r"(?= ?(?:[.!?]|$)| (?:verbatim|word for word|in full|to (?:me|us|the user)|first|now)\b)",
        r"(?:what is|repeat|recite|print|show)(?: me)?(?: back)? (?:the |your )?"
        r"(?:(?:full|exact|entire|whole) )?(?:system prompt|text above|words above|prompt above)",
    ),
}
