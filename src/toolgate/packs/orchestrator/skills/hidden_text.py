"""Finds what a reader of the text would not see, but a model would read."""

import re

ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff\u180e"
IN_WORDS = re.compile(rf"[A-Za-z0-9][{ZERO_WIDTH}]+[A-Za-z0-9]")
"""Between other letters these have a use: in emoji, Persian, Thai."""
OVERRIDES = re.compile(r"[\u202d\u202e]")
DIRECTIONS = re.compile(r"[\u202a\u202b\u202c\u2066-\u2069]")
RIGHT_TO_LEFT = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
TAGS = re.compile(r"(?<!\U0001f3f4)(?<![\U000e0020-\U000e007f])[\U000e0001-\U000e007f]+")
"""Letters without a shape; after a black flag they are a region's flag."""
SELECTORS = re.compile(r"[\U000e0100-\U000e01ef]{3,}")
COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)
DIRECTIVE = re.compile(
    r"\s*(?:/?\s*(?:toc|tocstop|more|omit (?:in|from) toc|prettier-ignore(?:-(?:start|end))?|"
    r"markdownlint-[\w-]+(?: MD\d+)*|cspell:\s*[\w-]+(?: [\w-]+)*|spell-checker:\s*\w+|"
    r"vale \w+|(?:start|end)[ -]?(?:toc|doctoc)?|eslint-[\w-]+|textlint-\w+))?\s*",
    re.IGNORECASE,
)
"""What tools for Markdown read in comments."""
HIDING = re.compile(
    r"<\w+\b[^>]*?(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|"
    r"opacity\s*:\s*0(?![.\d])|\bhidden\b(?!\s*-))[^>]*>\s*[^<\s]",
    re.IGNORECASE,
)
FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n.*?^\1[`~]*\s*$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")


def hidden_in(text: str) -> str | None:
    """The first piece of hidden text, as it may be shown; None where there is none."""
    for pattern in (TAGS, SELECTORS, OVERRIDES, IN_WORDS):
        if found := pattern.search(text):
            return _around(text, found)
    if (found := DIRECTIONS.search(text)) and not RIGHT_TO_LEFT.search(text):
        return _around(text, found)
    prose = INLINE.sub(" ", FENCE.sub("\n", text))
    for comment in COMMENT.finditer(prose):
        if not DIRECTIVE.fullmatch(comment[1]):
            return comment[0]
    hiding = HIDING.search(prose)
    return hiding[0] if hiding else None


def _around(text: str, found: re.Match[str]) -> str:
    """The place with its neighbours, and the invisible by number."""
    part = text[max(0, found.start() - 20) : found.end() + 20]
    return "".join(one if one.isprintable() or one == "\n" else f"U+{ord(one):04X}" for one in part)
