"""How a person makes their machine trust the local CA; nothing of it is run here."""

import platform
import shlex
import sys
from pathlib import Path

DEBIAN = "sudo cp {ca} /usr/local/share/ca-certificates/toolgate.crt && sudo update-ca-certificates"
FEDORA = "sudo cp {ca} /etc/pki/ca-trust/source/anchors/toolgate.pem && sudo update-ca-trust"
MACOS = "sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain {ca}"
WINDOWS = 'certutil -user -addstore Root "{ca}"'
OTHER = "trust anchor --store {ca}"
BY_FAMILY = {"debian": DEBIAN, "ubuntu": DEBIAN, "fedora": FEDORA, "rhel": FEDORA}


def trust_command(ca: Path, system: str = sys.platform, families: str | None = None) -> str:
    """The command for this operating system."""
    path = ca.absolute()
    if system == "win32":
        return WINDOWS.format(ca=path)
    if system == "darwin":
        return MACOS.format(ca=shlex.quote(str(path)))
    names = (families if families is not None else _families()).split()
    command = next((BY_FAMILY[one] for one in names if one in BY_FAMILY), f"sudo {OTHER}")
    return command.format(ca=shlex.quote(str(path)))


def _families() -> str:
    """The distribution and those it descends from."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return ""
    return f"{release.get('ID', '')} {release.get('ID_LIKE', '')}"
