"""The local CA and its certificate: right in every field, private, and renewed in time."""

import socket
import ssl
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from toolgate.certificates import ALWAYS, Files, ensure, examine, files_in, names_for

NOW = datetime.now(UTC)


def loaded(file: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(file.read_bytes())


def contents(files: Files) -> list[bytes]:
    return [one.read_bytes() for one in (files.ca, files.ca_key, files.certificate, files.key)]


def shaken(files: Files, ca: Path, name: str) -> str | None:
    """Shake hands over a socket; the client's objection, if it has one."""
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(files.certificate, files.key)
    asking = ssl.create_default_context(cafile=ca)
    ours, theirs = socket.socketpair()

    def serve() -> None:
        try:
            serving.wrap_socket(theirs, server_side=True).close()
        except OSError:
            theirs.close()

    served = threading.Thread(target=serve)
    served.start()
    try:
        with asking.wrap_socket(ours, server_hostname=name):
            return None
    except ssl.SSLCertVerificationError as problem:
        return problem.verify_message
    finally:
        ours.close()
        served.join()


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1"])
def test_openssl_accepts_it_with_the_ca(tmp_path: Path, name: str) -> None:
    files = ensure(tmp_path, ALWAYS).files
    assert shaken(files, files.ca, name) is None


def test_openssl_refuses_another_name_and_another_ca(tmp_path: Path) -> None:
    files = ensure(tmp_path / "one", ALWAYS).files
    other = ensure(tmp_path / "two", ALWAYS).files
    assert "mismatch" in (shaken(files, files.ca, "example.com") or "")
    assert "unable to get local issuer" in (shaken(files, other.ca, "localhost") or "")


def test_the_ca_cannot_vouch_for_anybody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ensure(tmp_path, ALWAYS).files
    # A thief has the CA's key and does not care for our checks.
    monkeypatch.setattr("toolgate.certificates.ca_flaws", lambda *_: [])
    stolen = ensure(tmp_path, (*ALWAYS, "bank.example")).files
    assert stolen.ca.read_bytes() == files.ca.read_bytes()
    assert "permitted subtree violation" in (shaken(stolen, files.ca, "bank.example") or "")


def test_every_extension_is_as_it_should_be(tmp_path: Path) -> None:
    names = names_for("192.0.2.7", ["Tools.Example:443"])
    files = ensure(tmp_path, names, NOW).files
    ca, leaf = loaded(files.ca), loaded(files.certificate)
    for one in (ca, leaf):
        key = one.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        assert isinstance(key.curve, ec.SECP256R1)
        used = one.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert list(used) == [ExtendedKeyUsageOID.SERVER_AUTH]
    leaf.verify_directly_issued_by(ca)
    basic = ca.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (basic.critical, basic.value.ca, basic.value.path_length) == (True, True, 0)
    assert leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
    usage = leaf.extensions.get_extension_for_class(x509.KeyUsage)
    assert (usage.critical, usage.value.digital_signature) == (True, True)
    assert usage.value.key_cert_sign is False
    own = ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    said = leaf.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    assert said.key_identifier == own.digest
    limits = ca.extensions.get_extension_for_class(x509.NameConstraints)
    assert limits.critical is True
    assert {str(one.value) for one in limits.value.permitted_subtrees or ()} == {
        "localhost", "127.0.0.0/8", "::1/128", "192.0.2.7/32", "tools.example",
    }  # fmt: skip
    called = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert tuple(str(one.value) for one in called) == names
    assert leaf.not_valid_after_utc - leaf.not_valid_before_utc <= timedelta(days=397)
    assert ca.not_valid_after_utc - NOW > timedelta(days=3640)


def test_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    files = ensure(tmp_path, ALWAYS).files
    for one in (files.key, files.ca_key):
        assert stat.S_IMODE(one.stat().st_mode) == 0o600
    assert stat.S_IMODE(files.key.parent.stat().st_mode) == 0o700
    assert len(list(files.key.parent.iterdir())) == 4


def test_a_second_start_uses_what_is_there(tmp_path: Path) -> None:
    made = ensure(tmp_path, ALWAYS, NOW)
    assert (made.made, made.other_ca) == (True, False)
    before = contents(made.files)
    again = ensure(tmp_path, ALWAYS, NOW + timedelta(days=366))
    assert (again.made, again.other_ca) == (False, False)
    assert contents(again.files) == before


def test_a_certificate_that_is_nearly_over_is_renewed_by_the_same_ca(tmp_path: Path) -> None:
    before = contents(ensure(tmp_path, ALWAYS, NOW).files)
    later = NOW + timedelta(days=368)
    again = ensure(tmp_path, ALWAYS, later)
    assert (again.made, again.other_ca) == (True, False)
    after = contents(again.files)
    assert after[:2] == before[:2]
    assert after[2:] != before[2:]
    left = loaded(again.files.certificate).not_valid_after_utc - later
    assert left > timedelta(days=390)


def test_near_its_end_the_ca_is_renewed_too_and_outlives_what_it_signs(tmp_path: Path) -> None:
    ensure(tmp_path, ALWAYS, NOW)
    late = NOW + timedelta(days=3500)
    files = ensure(tmp_path, ALWAYS, late).files
    assert loaded(files.certificate).not_valid_after_utc <= loaded(files.ca).not_valid_after_utc
    again = ensure(tmp_path, ALWAYS, NOW + timedelta(days=3630))
    assert (again.made, again.other_ca) == (True, True)


def test_other_names_make_another_certificate(tmp_path: Path) -> None:
    ensure(tmp_path, names_for("192.0.2.7", ()))
    fewer = ensure(tmp_path, ALWAYS)
    assert (fewer.made, fewer.other_ca) == (True, False)
    more = ensure(tmp_path, names_for("gate.example", ()))
    assert (more.made, more.other_ca) == (True, True)
    assert shaken(more.files, more.files.ca, "gate.example") is None


@pytest.mark.parametrize("name", ["cert.pem", "key.pem"])
@pytest.mark.parametrize("content", [None, b"", b"junk"], ids=["gone", "empty", "junk"])
def test_a_damaged_pair_is_made_again(tmp_path: Path, name: str, content: bytes | None) -> None:
    files = ensure(tmp_path, ALWAYS).files
    damaged = files.key.parent / name
    if content is None:
        damaged.unlink()
    else:
        damaged.write_bytes(content)
    again = ensure(tmp_path, ALWAYS)
    assert (again.made, again.other_ca) == (True, False)
    assert shaken(files, files.ca, "localhost") is None


def test_the_cas_key_may_be_taken_away(tmp_path: Path) -> None:
    files = ensure(tmp_path, ALWAYS).files
    files.ca_key.unlink()
    assert ensure(tmp_path, ALWAYS).made is False
    later = ensure(tmp_path, ALWAYS, NOW + timedelta(days=380))
    assert (later.made, later.other_ca) == (True, True)


@pytest.mark.parametrize(
    ("host", "allowed", "more"),
    [
        ("127.0.0.1", ("localhost", "127.0.0.1", "[::1]"), ()),
        ("0.0.0.0", ("*",), ()),
        ("::", (), ()),
        ("", ("[::1]:8765", "localhost:1"), ()),
        ("::1", (), ()),
        ("fe80::1%eth0", (), ("fe80::1",)),
        ("Gate.Example", ("gate.example:443", "[2001:db8::1]:1"), ("gate.example", "2001:db8::1")),
        ("bücher.example", (), ("xn--bcher-kva.example",)),
    ],
)
def test_names_have_one_spelling(
    host: str, allowed: tuple[str, ...], more: tuple[str, ...]
) -> None:
    assert names_for(host, allowed) == (*ALWAYS, *more)


def test_an_examination_says_what_a_restart_would_change(tmp_path: Path) -> None:
    assert examine(tmp_path, ALWAYS, NOW) == ([], None)
    ensure(tmp_path, ALWAYS, NOW)
    assert examine(tmp_path, ALWAYS, NOW)[0] == []
    late, end = examine(tmp_path, ALWAYS, NOW + timedelta(days=380))
    assert late == ["only 16 days are left"]
    assert end == loaded(files_in(tmp_path).certificate).not_valid_after_utc
    other, _ = examine(tmp_path, (*ALWAYS, "gate.example"), NOW)
    assert "its CA may not vouch for" in other[0]
    assert "gate.example" in other[1]
