"""Tells packs that what operators change while servers run has changed."""


class Epoch:
    """The number of the newest change that this worker knows of.

    A pack that keeps rules in memory counts it up (`live_switches.count_change`) when one of them
    is changed, and reads them again when it has changed.
    """

    def __init__(self) -> None:
        self.number = 0
