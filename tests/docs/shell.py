"""Runs what a page shows, in a folder and an environment of its own.

A note before a block says what it needs:

    <!-- starts: server -->            the command is a server: it stays for the rest of the page
    <!-- starts: server, quietly -->   a server with demo data runs from here on
    <!-- needs: demo -->               the demo documents are in the database
    <!-- needs: postgresql -->         addresses of PostgreSQL lead to a real one
    <!-- file: NAME -->                the block is a file
    <!-- output -->                    the block is what the program above it prints
    <!-- no-run: reason -->            not run
"""

import contextlib
import os
import pty
import re
import shlex
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
from tests import preloaded
from tests.docs.pages import ROOT, Block, fits
from tests.patience import PATIENT
from tests.servers import pause, stop, wait_until_ready

from toolgate import demo
from toolgate.app import opened
from toolgate.settings import read_settings

BIN = Path(sys.executable).parent
SHOWN = "127.0.0.1:8765"
SERVE = "toolgate serve --demo"
SAID_SECONDS = 20.0
KEY = re.compile(r"tg_[0-9a-f]{16}_[0-9a-f]{64}")
EXPORT = re.compile(r"^\$ export (\w+)=", re.M)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
URL = re.compile(r"(https?)://(127\.0\.0\.1:\d+)\s")


class Shell:
    """One page's folder, server and variables."""

    def __init__(
        self, folder: Path, stack: ExitStack, postgresql: Callable[[], str], *, installed: bool
    ) -> None:
        """`installed`: whether `toolgate` is the installed program, or one that starts cheaply."""
        self.folder = folder
        (folder / ".venv").symlink_to(sys.prefix)  # what `make run` leaves beside the pages
        (folder / "examples").symlink_to(ROOT / "examples")
        self._stack = stack
        self._new_postgresql = postgresql
        self._address = SHOWN
        self._exports: dict[str, None] = {}
        self._postgresql: str | None = None
        programs = [str(BIN), os.environ["PATH"]]
        self._environment = {
            "PATH": ":".join(programs if installed else [str(_cheap_programs(folder)), *programs]),
            "HOME": str(folder),
            "LANG": "C.UTF-8",
        }

    def run(self, block: Block) -> None:
        """Run one block, and compare what it prints."""
        match block.note, block.rest:
            case "no-run", _:
                return
            case "file", name:
                return self._store(name, block.text)
            case "starts", "server":
                return self._start(*block.commands[0])
            case "starts", "server, quietly":
                self._start(SERVE, "")
            case "needs", "demo":
                anyio.run(_load_demo, self.folder)
            case "needs", "postgresql":
                self._postgresql = self._new_postgresql()
        if block.language == "console":
            self._console(block)

    def python(self, text: str) -> str:
        """What a program prints."""
        return self._run([sys.executable, "-c", self._here(text)])

    def _console(self, block: Block) -> None:
        """One shell for each block, which has the variables that those before it exported."""
        lines = [f"{{ {self._here(command)}\n}} >{n}.out 2>{n}.err"
                 for n, (command, _) in enumerate(block.commands)]  # fmt: skip
        before = ". ./exports" if self._exports else "true"
        self._exports |= dict.fromkeys(EXPORT.findall(block.text))
        after = f"declare -p {' '.join(self._exports)} >exports" if self._exports else "true"
        self._run(["bash", "-c", "\n".join([before, *lines, after])], len(lines))
        for n, (command, shown) in enumerate(block.commands):
            real = self._taken(f"{n}.out") + self._taken(f"{n}.err")
            assert fits(shown, real), f"$ {command}\nshown:\n{shown}\nreal:\n{real}"

    def _here(self, text: str) -> str:
        """The text with this run's key and addresses."""
        text = text.replace(SHOWN, self._address)
        if self._postgresql:
            text = re.sub(r"postgresql://\S+", self._postgresql, text)
        return re.sub(r"(TOOLGATE_KEY=)tg_…", rf"\g<1>{self._environment.get('KEY', '')}", text)

    def _run(self, command: list[str], commands: int = 1) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self._environment | self._exported(),
            capture_output=True,
            text=True,
            timeout=commands * PATIENT,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.replace(self._address, SHOWN)

    def _exported(self) -> dict[str, str]:
        key = self._environment.get("KEY")
        return {"TOOLGATE_KEY": key} if key else {}

    def _taken(self, name: str) -> str:
        file = self.folder / name
        text = file.read_text(encoding="utf-8")
        file.unlink()
        return text.replace(self._address, SHOWN)

    def _store(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(self._here(text), encoding="utf-8")

    def _start(self, command: str, shown: str) -> None:
        if command == "make run":
            assert f"$(BIN)/{SERVE}" in (ROOT / "Makefile").read_text(encoding="utf-8")
            command = SERVE
        greeting = self.folder / "greeting"
        greeting.touch()
        # A terminal, as a reader has one: only there is the first key shown.
        ours, theirs = pty.openpty()
        server = subprocess.Popen(
            ["bash", "-c", f"exec env {command}"],
            cwd=self.folder,
            env=self._environment | {"TOOLGATE_SERVER__PORT": "0", "COLUMNS": "1000"},
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        copying = threading.Thread(target=_copy_screen, args=(ours, greeting))
        copying.start()
        self._stack.callback(copying.join)
        self._stack.callback(stop, server)
        self._await_server(server, greeting)
        said = self._greeted(greeting, shown)
        assert fits(shown, said, whole=False), said
        if key := KEY.search(said):
            self._environment["KEY"] = key[0]

    def _greeted(self, greeting: Path, shown: str) -> str:
        """What the server says, once that is what the page shows; its screen may be copied late."""
        deadline = time.monotonic() + SAID_SECONDS
        while True:
            said = greeting.read_text(encoding="utf-8").replace(self._address, SHOWN)
            if fits(shown, said, whole=False) or time.monotonic() > deadline:
                return said
            pause()

    def _await_server(self, server: subprocess.Popen[Any], greeting: Path) -> None:
        while not (found := URL.search(greeting.read_text(encoding="utf-8"))):
            assert server.poll() is None, greeting.read_text(encoding="utf-8")
            pause()
        self._address = found[2]
        ca = self.folder / ".toolgate/tls/ca.pem"
        verify = ssl.create_default_context(cafile=ca) if found[1] == "https" else True
        wait_until_ready(f"{found[1]}://{self._address}", server, verify)


def _cheap_programs(folder: Path) -> Path:
    """A folder with a `toolgate` that is forked from a process which has imported it."""
    programs = folder.with_name(f"{folder.name}-programs")
    programs.mkdir()
    program = programs / "toolgate"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(preloaded.command("-m", "toolgate"))} "$@"\n')
    program.chmod(0o755)
    return programs


def _copy_screen(terminal: int, file: Path) -> None:
    """What a terminal shows, without colours, until nobody writes to it any more."""
    said = b""
    with contextlib.suppress(OSError):  # how a terminal says that the other side is gone
        while part := os.read(terminal, 65536):
            said += part
            shown = COLOUR.sub("", said.decode(errors="replace")).replace("\r\n", "\n")
            fresh = file.with_name("greeting.new")
            fresh.write_text(shown, encoding="utf-8")
            fresh.replace(file)
    os.close(terminal)


async def _load_demo(folder: Path) -> None:
    async with opened(read_settings(flags={"data": folder / ".toolgate"}, environment={})) as app:
        await demo.load_demo(app)
