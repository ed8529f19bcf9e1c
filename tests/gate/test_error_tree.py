"""The tree of errors in the module's docstring is the tree of its classes."""

import re

from toolgate.gate import errors


def drawn() -> dict[str, str]:
    """Each error in the docstring with the one above it."""
    found, above = dict[str, str](), "GateError"
    for bar, name in re.findall(r"^(│   )?[├└]── (\w+)", errors.__doc__ or "", re.MULTILINE):
        found[name] = above if bar else "GateError"
        above = above if bar else name
    return found


def test_the_drawn_tree_is_the_tree_of_classes() -> None:
    classes = [one for one in vars(errors).values() if isinstance(one, type)]
    raised = [one for one in classes if issubclass(one, errors.GateError)]
    tree = {one.__name__: one.__mro__[1].__name__ for one in raised if one is not errors.GateError}
    assert drawn() == tree
