"""Orders that a skill may not hold, as sentences of word classes: verb, quantifier, object.

Each word of a plain text becomes one letter that says what sort of word it is; the orders are
patterns over these letters. So a text costs one look-up a word, whatever it repeats, and a pattern
sees a dozen letters at most from each place. A lone verb is no order: what it is about decides.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

Category = Literal["hidden_instructions", "instruction_override", "secret_bypass"]

TOKEN = re.compile(r"https?://[^\s\"'<>)\]]++|[a-z0-9]+(?:'[a-z]+)?|[.!?](?=[\s\"'`)\]]|$)|[;,:@]")
"""Words and what parts sentences; whatever else stands between words is passed over."""

CLASSES = {
    # verbs
    "I": "ignore ignoring disregard disregarding forget forgetting neglect",
    "R": "override overriding overrule discard dismiss abandon erase void cancel revoke",
    "B": "bypass bypassing circumvent circumventing evade subvert defeat sidestep",
    "D": "disable deactivate",
    "F": "follow following obey obeying heed respect",
    "L": "listen listening adhere comply complying",
    "s": "stop cease quit",
    "X": "reveal leak disclose exfiltrate divulge expose dump steal",
    "Y": "print output repeat recite show tell give send post email mail upload forward transmit",
    "W": "copy write paste share publish include append",
    # verbs of two words: set aside, get around, turn off, pay no attention to
    "j": "set put get",
    "r": "turn switch shut",
    "z": "aside around off",
    "P": "pay",
    "l": "attention",
    # what stands before an object
    "q": "of the these those this that other and or both its their our his her absolutely "
    "completely entirely simply just please now what whatever",
    "Q": "all any every each",
    "Z": "everything anything",
    "i": "a an",
    "y": "your",
    "e": "previous prior preceding former existing original initial given current hidden built in "
    "past user user's users operator operator's",
    "b": "above earlier before previously beforehand",
    "p": "system system's developer developer's",
    "g": "safety security content access permission moderation authorization authorisation",
    "f": "full complete entire whole exact verbatim contents text list stored customers customer "
    "customer's copy's",
    "N": "new updated",
    # objects
    "J": "instruction instructions prompt prompts directive directives",
    "K": "rule rules guideline guidelines restriction restrictions constraint constraints orders "
    "commands directions policy policies programming training limitation limitations",
    "G": "guardrail guardrails safeguard safeguards sandbox sandboxing",
    "h": "check checks filter filters control controls measure measures protocol protocols",
    "m": "message messages",
    "c": "password passwords passphrase passphrases credential credentials secrets",
    "a": "api auth bearer session private ssh signing encryption environment env secret",
    "k": "key keys token tokens variable variables file",
    "o": "count counts strength field fields length manager managers rotation reset hint hints "
    "form forms input inputs limit limits usage budget name names id ids expiry page pages "
    "template placeholder store handling rotate",
    # others
    "n": "not never no don't dont",
    "M": "me us my mine",
    "u": "you i we",
    "v": "was were been have had are is be",
    "T": "told taught instructed",
    "t": "to at",
    "U": "ftp mailto external webhook",
    ".": ". ! ? ;",
    ",": ",",
    ":": ":",
    "@": "@",
}
UNKNOWN = "w"
CLASS_OF = {word: letter for letter, words in CLASSES.items() for word in words.split()}
MATTERS = frozenset(one for letter in "IRBXJKcem" for one in CLASSES[letter].split())

IGNORE = r"(?:I|jz|Pnlt)[:,]?"
OBJECT = r"[JKG]"
EARLIER = r"[qQ]{0,5}[eypbg][qQeypbg]{0,4}"
GRABBED = r"(?:c|a{1,2}k)(?!o)"
BEFORE_IT = r"[MqQZyebfipg]{0,5}"
PATTERNS: Mapping[Category, Sequence[str]] = {
    "instruction_override": (
        # ignore all of your previous instructions; the system message
        rf"{IGNORE}{EARLIER}{OBJECT}",
        rf"{IGNORE}{EARLIER}m",
        # ignore all the rules, any and all instructions
        rf"{IGNORE}[q]{{0,2}}Q[qQ]{{0,3}}{OBJECT}",
        # ignore the rules above, the instructions that were given earlier
        rf"{IGNORE}[qQ]{{0,3}}{OBJECT}[quv]{{0,3}}e?b",
        # forget everything you were told, everything above
        rf"{IGNORE}[qQZ]{{1,3}}u?[qv]{{0,3}}T",
        rf"{IGNORE}[qQ]{{0,2}}Zq?[wv]?b",
        # as an order: a rule may override an earlier one
        rf"(?:^|(?<=[.,:qunt]))R:?{EARLIER}{OBJECT}",
        r"(?:^|(?<=[.,:qunt]))R:?[qQyeb]{0,4}pm",
        # do not follow your instructions, stop obeying
        rf"[ns](?:F|Lt?){EARLIER}[JKGm]",
        # new instructions: …, your new instructions are …
        r"(?<![qQiN])N[ep]?J:",
        r"yN[ep]?J[v:]",
    ),
    "secret_bypass": (
        rf"X{BEFORE_IT}{GRABBED}",
        rf"YM{BEFORE_IT}{GRABBED}",
        rf"Y[qQebf]{{0,3}}y[qQebf]{{0,3}}{GRABBED}",
        # to somewhere outside
        rf"[XYW][^.]{{0,8}}{GRABBED}[^.]{{0,4}}t[^.]{{0,3}}[UM@]",
        # the system prompt, your instructions
        r"[XY][MqQyebf]{0,7}p[ef]?[Jm](?!o)",
        r"[XY][MqQbf]{0,6}y[epbf]{0,3}J(?!o)",
        r"[XY][MqQybf]{0,6}eJ(?=[.,]|$)",
        # the safety checks, your guardrails
        rf"(?:B|{IGNORE})[qQye]{{0,4}}(?:g[hK]|[GM]?G|gg[hK])",
        r"(?:D|rz|jz)[qQ]{0,3}y[qQe]{0,2}(?:g{0,2}[hK]|G)",
        r"(?:D|rz)Qq?(?:g{1,2}[hK]|G)",
    ),
}
ORDERS: Sequence[tuple[Category, re.Pattern[str]]] = tuple(
    (category, re.compile(pattern)) for category, some in PATTERNS.items() for pattern in some
)
"""Each matches in few ways from a place, and at most some twenty words."""


def is_word_that_matters(word: str) -> bool:
    """Whether a word is one that orders are made of."""
    return word in MATTERS


class Sentences:
    """A plain text as letters of word classes."""

    def __init__(self, text: str) -> None:
        self._text = text
        get = CLASS_OF.get
        self.classes = "".join(
            [get(one) or ("U" if "://" in one else UNKNOWN) for one in TOKEN.findall(text)]
        )
        self._spans: list[tuple[int, int]] = []

    def orders(self) -> Iterator[tuple[Category, int, int]]:
        """What is ordered, and where it stands in the text."""
        for category, pattern in ORDERS:
            position = 0
            while found := pattern.search(self.classes, position):
                yield category, *self._span(found)
                # An order can stand within what looks like a longer one.
                position = found.start() + 1

    def _span(self, found: re.Match[str]) -> tuple[int, int]:
        if not self._spans:
            self._spans = [one.span() for one in TOKEN.finditer(self._text)]
        return self._spans[found.start()][0], self._spans[found.end() - 1][1]
