"""A certificate authority for one test, and a server certificate for one name."""

import datetime
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

HOUR = datetime.timedelta(hours=1)
PEM = serialization.Encoding.PEM
AUTHORITY = "authority.pem"
"""Where in the folder the certificate of the authority is, for `SSL_CERT_FILE`."""


def contexts(name: str, folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """TLS of a server called `name`, and of a client that trusts its authority and no other."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test authority")])
    now = datetime.datetime.now(datetime.UTC)

    def begun(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(authority_name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - HOUR)
            .not_valid_after(now + HOUR)
        )

    authority = (
        begun(authority_name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    certificate = (
        begun(subject, key.public_key())
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    secret = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / "server.pem"
    file.write_bytes(secret + certificate.public_bytes(PEM))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    trusted = folder / AUTHORITY
    trusted.write_bytes(authority.public_bytes(PEM))
    client = ssl.create_default_context(cafile=trusted)
    return server, client
