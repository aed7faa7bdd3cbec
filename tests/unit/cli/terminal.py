"""Commands of `laneway` at a terminal: what a person sees and types."""

import asyncio
import os
import pty
from asyncio.subprocess import Process
from dataclasses import dataclass

from tests.unit.cli.processes import COMMAND, clean_environ


@dataclass
class AtTerminal:
    """A command whose streams are a terminal."""

    process: Process
    _screen: asyncio.StreamReader
    _master: int
    seen: str = ""

    @classmethod
    async def start(cls, *arguments: str, environ: dict[str, str] | None = None) -> "AtTerminal":
        """Start a command at a terminal of 80 columns."""
        master, slave = pty.openpty()
        screen = asyncio.StreamReader()
        environ = {"COLUMNS": "80", "TERM": "xterm-256color", **(environ or {})}
        try:
            process = await asyncio.create_subprocess_exec(
                *COMMAND,
                *arguments,
                stdin=slave,
                stdout=slave,
                stderr=slave,
                env=clean_environ(environ),
            )
        finally:
            os.close(slave)

        def read() -> None:
            try:
                data = os.read(master, 65_536)
            except OSError:  # EIO: nobody has the other side open
                data = b""
            if data:
                screen.feed_data(data)
            else:
                loop.remove_reader(master)
                screen.feed_eof()

        loop = asyncio.get_running_loop()
        loop.add_reader(master, read)
        return cls(process, screen, master)

    async def until(self, text: str) -> None:
        """Wait until `text` was on the screen."""
        while text not in self.seen:
            data = await self._screen.read(65_536)
            assert data, f"the command ended without {text!r}: {self.seen!r}"
            self.seen += data.decode()

    def type(self, text: str) -> None:
        """What the person types."""
        os.write(self._master, text.encode())

    async def end(self) -> int:
        """Wait for its end; the exit code."""
        self.seen += (await self._screen.read()).decode()
        os.close(self._master)
        return await self.process.wait()
