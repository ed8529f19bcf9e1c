"""Which browser a sign-in belongs to: a cookie of its own for each, and a token in its forms.

Behind a proxy that forwards one cookie only, a browser has one sign-in at a time: the last.
"""

import hmac

from toolgate.identity.oauth import paths
from toolgate.identity.oauth.messages import Header, Request, Response, redirect, with_parameters
from toolgate.identity.oauth.page_templates import error_page
from toolgate.identity.oauth.sign_ins import SECONDS, SignIn, SignIns, Subject

OVER = "This sign-in is over, or was begun in another browser."
FORGED = "This form was not sent from our page."


def _name(request: Request, sign_in_id: str) -> str:
    if request.cookie:
        return request.cookie
    return f"{'__Host-' if request.secure else ''}toolgate-{sign_in_id}"


def cookie(request: Request, sign_in: SignIn, *, ended: bool = False) -> Header:
    """The header that binds a sign-in to the browser, or lets go of it."""
    secure = "; Secure" if request.secure else ""
    value, seconds = ("", 0) if ended else (sign_in.secret, SECONDS)
    text = f"{_name(request, sign_in.id)}={value}; Path=/; Max-Age={seconds}; HttpOnly"
    return ("set-cookie", f"{text}; SameSite=Lax{secure}")


async def find_sign_in(
    request: Request, sign_ins: SignIns, sign_in_id: str | None
) -> SignIn | Response:
    """The sign-in of this browser, or a page that says there is none."""
    secret = request.cookies.get(_name(request, sign_in_id or ""), "")
    sign_in = await sign_ins.find(sign_in_id or "", secret)
    return sign_in or error_page(request, OVER, "oauth-other-browser", status=403)


def forgery_refusal(request: Request, sign_in: SignIn) -> Response | None:
    """A refusal, unless the form is one that this browser was shown."""
    form_token = request.form.get("form_token") or ""
    if hmac.compare_digest(form_token.encode(), sign_in.form_token.encode()):
        return None
    return error_page(request, FORGED, "oauth-forged-form", status=403)


async def redirect_to_consent(
    request: Request, sign_ins: SignIns, sign_in: SignIn, subject: Subject
) -> Response:
    """Send the browser in which the person just signed in to the page on which they decide.

    The token is in the address, not in the cookie, which other ports of this host get, too.
    """
    token = await sign_ins.set_subject(sign_in, subject, request.note)
    parameters = {"request": sign_in.id, "form_token": token}
    return redirect(with_parameters(request.base + paths.CONSENT, parameters))
