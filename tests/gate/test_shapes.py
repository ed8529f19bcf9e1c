"""Callers that policy cannot tell apart have one shape, which is made once."""

from dataclasses import replace
from itertools import product

import pytest

from toolgate.gate.principal import OF_PRINCIPAL, AgentType, Kind, Principal, Role

ROLES = (frozenset[Role](), frozenset({Role.USER}), frozenset({Role.USER, Role.ADMIN}))
PLAIN = [
    Principal(kind=kind, id="key:1", roles=roles, agent_type=agent_type, read_only=read_only)
    for kind, roles, agent_type, read_only in product(
        Kind, ROLES, (None, *AgentType), (False, True)
    )
]


@pytest.mark.parametrize("plain", PLAIN)
def test_a_shape_is_all_that_policy_looks_at(plain: Principal) -> None:
    full = replace(
        plain, id="key:2", user_id="jane", bound={"task_id": "t"}, client_id="c", grant_id="g"
    )
    assert full.shape == tuple(one.value(full) for one in OF_PRINCIPAL.values())
    assert full.shape is plain.shape


def test_different_callers_have_different_shapes() -> None:
    assert len({one.shape for one in PLAIN}) == len(PLAIN)
