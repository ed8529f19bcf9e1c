"""Phrases that a skill may not hold, as patterns for text in its plain form; orders are `grammar`.

Every repetition has an upper bound, so a place in a text costs the same in a short and a long one.
"""

from collections.abc import Mapping, Sequence

from toolgate.packs.orchestrator.skills.grammar import Category

OTHER_MEANING = r"(?! ?(?:names?|template|text|window|string|field|length))"
"""What a prompt is followed by where a shell or a dialog is meant."""
PROMPT = (
    r"(?:the|your|its)(?: (?:full|exact|entire|whole|complete|hidden|initial|original|system|"
    r"developer)){0,2} prompt\b"
)
LIMITS = (
    r"(?:rules|restrictions|filters?|guidelines|limits|limitations|constraints|safety|guardrails)"
)
LINE_PATTERNS: Sequence[tuple[Category, str]] = (
    (
        "instruction_override",
        r"^[#>\"\- \t]*developer[ \t]+(?:message|instructions?|prompt)[ \t]*:",
    ),
)
"""What means something else where a line goes on with it."""
DEFAULT_PATTERNS: Mapping[Category, Sequence[str]] = {
    "hidden_instructions": (),
    "instruction_override": (
        r"you are now (?:in |entering )(?:the )?(?:developer|debug|god|dan|jailbreak|admin|root|"
        r"unrestricted|unfiltered|maintenance) mode",
        r"you are now (?:a |an |the |called |known as |no longer )"
        r"(?:\w{1,30} ){0,4}?(?:ai|assistant|model|dan|persona|chatbot|bound|restricted|"
        r"unrestricted|unfiltered|jailbroken)\b",
        r"you are now (?:called |named )?dan\b",
        r"(?:here are|these are|receive|follow) (?:your|my) new (?:system )?instructions",
        r"your (?:new|real|true|only) (?:task|goal|role|purpose|objective) (?:is|are) ",
        r"(?:enter|enable|activate|switch to|go into|turn on) (?:the )?"
        r"(?:jailbreak|god|dan|unrestricted|unfiltered|admin override) mode",
        r"jailbreak (?:yourself|(?:the|this) (?:model|assistant|ai))",
        r"(?:pretend|act as if|imagine|behave as though)(?: that)? you (?:are|have|had|were) "
        rf"(?:no|free of|without|not bound by)(?: any| your)?(?: safety)? {LIMITS}",
        r"from now on,? (?:you (?:will|must|shall|should) )?(?:only )?(?:obey|listen to|answer to|"
        r"take orders from) (?:me|only|this)",
        r"(?:<\|im_?start\|>|<\|system\|>|\[/?inst\]|<</?sys>>)",
        r"do anything now",
    ),
    "secret_bypass": (
        rf"(?:reveal|disclose|leak|expose|exfiltrate) {PROMPT}{OTHER_MEANING}",
        rf"(?:print|output|dump|repeat|recite|tell|give|show)(?: me| us)? {PROMPT}"
        r"(?= ?(?:[.!?]|$)| (?:verbatim|word for word|in full|to (?:me|us|the user)|first|now)\b)",
        r"(?:what is|repeat|recite|print|show)(?: me)?(?: back)? (?:the |your )?"
        r"(?:(?:full|exact|entire|whole) )?(?:system prompt|text above|words above|prompt above)",
    ),
}
