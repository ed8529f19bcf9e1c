"""Who signed in with a key, as a grant keeps it."""

from toolgate.gate.principal import Kind, Principal
from toolgate.identity.keys import SETTING_KEY_ID, Keys
from toolgate.identity.oauth.sign_ins import Subject


def subject_of(principal: Principal, keys: Keys) -> Subject:
    """The holder of a key."""
    if principal.id == SETTING_KEY_ID:
        mark = keys.admin_mark
        return Subject(
            shown="the holder of the admin key",
            key_id=SETTING_KEY_ID,
            key_mark=mark.hex() if mark else None,
        )
    key_id = principal.id.removeprefix("key:")
    role = "an admin" if principal.kind is Kind.ADMIN_KEY else "a user"
    label = principal.user_id or f"{role}, with key {key_id}"
    return Subject(shown=label, user_id=principal.user_id, key_id=key_id)
