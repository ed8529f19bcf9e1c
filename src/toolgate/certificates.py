"""A local CA and a server certificate, made on the spot for HTTPS on this machine.

Nobody trusts the CA until its file is added to a trust store by hand. It can vouch only for
loopback and the configured names, so that its key is of little use to a thief.
"""

import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

FOLDER = "tls"
ALWAYS = ("localhost", "127.0.0.1", "::1")
LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
CA_DAYS = 3650
SERVER_DAYS = 397
RENEW_DAYS = 30
BACKDATED = timedelta(hours=1)
"""A client whose clock is behind must not refuse a certificate of this minute."""


@dataclass(frozen=True, slots=True)
class Files:
    """Where the certificates and their keys are."""

    ca: Path
    ca_key: Path
    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Files to serve with, and what had to be made."""

    files: Files
    made: bool = False
    """Whether the certificate is new."""
    other_ca: bool = False
    """Whether another CA took the place of one that somebody may trust."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate with its key; the key may be kept elsewhere."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey | None


def files_in(data: Path) -> Files:
    """The files below a data folder."""
    folder = data / FOLDER
    names = ("ca.pem", "ca-key.pem", "cert.pem", "key.pem")
    return Files(*(folder / name for name in names))


def names_for(host: str, allowed: Iterable[str]) -> tuple[str, ...]:
    """The names and addresses that clients may use, in one spelling each."""
    names: dict[str, None] = dict.fromkeys(ALWAYS)
    for host_name in (host, *allowed):
        if name := _plain(host_name):
            names[name] = None
    return tuple(names)


def ensure(data: Path, names: tuple[str, ...], now: datetime | None = None) -> CertificateFiles:
    """Use what is there as long as it is good; make what is missing, old or for other names."""
    now = now or datetime.now(UTC)
    files = files_in(data)
    ca, server = _read(files.ca, files.ca_key), _read(files.certificate, files.key)
    if ca and server and server.key and not flaws(ca, server, names, now):
        return CertificateFiles(files)
    before = files.ca.exists()
    good = ca if ca and ca.key and not ca_flaws(ca, names, now) else None
    if good is None:
        good = _new_ca(names, now)
        _store(files.ca, files.ca_key, good)
    _store(files.certificate, files.key, _new_server(good, names, now))
    return CertificateFiles(files, made=True, other_ca=before and good is not ca)


def examine(data: Path, names: tuple[str, ...], now: datetime) -> tuple[list[str], datetime | None]:
    """What is wrong with the certificate that is there, and its end; no end when there is none."""
    files = files_in(data)
    ca, server = _read(files.ca, files.ca_key), _read(files.certificate, files.key)
    if ca is None or server is None:
        return [], None
    return flaws(ca, server, names, now), server.certificate.not_valid_after_utc


def flaws(ca: Pair, server: Pair, names: tuple[str, ...], now: datetime) -> list[str]:
    """Why a server certificate is made anew."""
    problems = ca_flaws(ca, names, now)
    try:
        server.certificate.verify_directly_issued_by(ca.certificate)
    except (ValueError, TypeError, InvalidSignature):
        problems.append("it was not issued by the CA beside it")
    if missing := sorted(set(names) ^ set(_names_in(server.certificate))):
        problems.append(f"its names differ from the settings: {', '.join(missing)}")
    return problems + _age(server.certificate, now)


def ca_flaws(ca: Pair, names: tuple[str, ...], now: datetime) -> list[str]:
    """Why a CA is made anew."""
    outside = sorted(
        {str(one) for one in _name_constraints(names)} - set(_permitted_names(ca.certificate))
    )
    problems = [f"its CA may not vouch for {', '.join(outside)}"] if outside else []
    return problems + [f"of its CA, {flaw}" for flaw in _age(ca.certificate, now)]


def _age(certificate: x509.Certificate, now: datetime) -> list[str]:
    left = certificate.not_valid_after_utc - now
    if left <= timedelta(0):
        return [f"the time ended on {certificate.not_valid_after_utc:%Y-%m-%d}"]
    if certificate.not_valid_before_utc > now:
        return ["the time has not begun; check the clock"]
    return [f"only {left.days} days are left"] if left < timedelta(days=RENEW_DAYS) else []


def _plain(text: str) -> str | None:
    """A name as certificates have it; None for one that stands for any."""
    name = text.removeprefix("[").partition("]")[0] if text.startswith("[") else text
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        host = name.rpartition(":")[0] if name.rpartition(":")[2].isdigit() else name
        return host.lower().encode("idna").decode() if host not in ("", "*") else None
    return None if address.is_unspecified else str(address)


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _name_constraints(names: Iterable[str]) -> list[x509.GeneralName]:
    constraints: list[x509.GeneralName] = [x509.IPAddress(one) for one in LOOPBACK]
    for one in map(_general, names):
        if isinstance(one, x509.DNSName):
            constraints.append(one)
        elif not any(one.value in network for network in LOOPBACK):
            constraints.append(x509.IPAddress(ipaddress.ip_network(one.value)))
    return constraints


def _permitted_names(ca: x509.Certificate) -> list[str]:
    try:
        constraints = ca.extensions.get_extension_for_class(x509.NameConstraints).value
    except x509.ExtensionNotFound:
        return []
    return [str(one) for one in constraints.permitted_subtrees or ()]


def _names_in(certificate: x509.Certificate) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [str(one.value) for one in names]


def _new_ca(names: tuple[str, ...], now: datetime) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    subject = _subject(f"toolgate local CA {serial:040x}"[:26])
    limits = x509.NameConstraints(
        permitted_subtrees=_name_constraints(names), excluded_subtrees=None
    )
    basic = x509.BasicConstraints(ca=True, path_length=0)
    builder = _builder(
        subject=subject, issuer=subject, key=key, now=now, days=CA_DAYS, serial=serial
    )
    builder = builder.add_extension(basic, critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    builder = builder.add_extension(limits, critical=True)
    return Pair(builder.sign(key, hashes.SHA256()), key)


def _new_server(ca: Pair, names: tuple[str, ...], now: datetime) -> Pair:
    assert ca.key is not None
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = ca.certificate
    days = min(SERVER_DAYS, (issuer.not_valid_after_utc - now).days)
    builder = _builder(
        subject=_subject(names[0]),
        issuer=issuer.subject,
        key=key,
        now=now,
        days=days,
        serial=x509.random_serial_number(),
    )
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    authority = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
    basic = x509.BasicConstraints(ca=False, path_length=None)
    called = x509.SubjectAlternativeName([_general(name) for name in names])
    builder = builder.add_extension(basic, critical=True)
    builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(authority, critical=False)
    builder = builder.add_extension(called, critical=False)
    return Pair(builder.sign(ca.key, hashes.SHA256()), key)


def _builder(
    *,
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    days: int,
    serial: int,
) -> x509.CertificateBuilder:
    """What both certificates have: both are of use for TLS servers only."""
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    servers = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    begin = now - BACKDATED
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(begin)
        .not_valid_after(begin + timedelta(days=days))
        .add_extension(identifier, critical=False)
        .add_extension(servers, critical=False)
    )


def _subject(name: str) -> x509.Name:
    whose = x509.NameAttribute(NameOID.ORGANIZATION_NAME, "toolgate")
    return x509.Name([whose, x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _read(certificate: Path, key: Path) -> Pair | None:
    """A pair from its files; None when the certificate is missing or not readable."""
    try:
        loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    try:
        private = serialization.load_pem_private_key(key.read_bytes(), password=None)
    except (FileNotFoundError, ValueError):
        return Pair(loaded, None)
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        return Pair(loaded, None)
    return Pair(loaded, private if private.public_key() == loaded.public_key() else None)


def _store(certificate: Path, key: Path, pair: Pair) -> None:
    assert pair.key is not None
    secret = pair.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    key.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _write(key, secret, 0o600)
    _write(certificate, pair.certificate.public_bytes(serialization.Encoding.PEM), 0o644)


def _write(file: Path, content: bytes, mode: int) -> None:
    """Replace a file in one step; it never has more rights than it should."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as opened:
        opened.write(content)
    os.replace(fresh, file)
