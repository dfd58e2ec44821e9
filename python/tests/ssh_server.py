"""A server for SSH on this machine, for one user and one key, as `sshd` would be on a node of a cluster."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncssh


@contextmanager
def node(home: Path, hosts: list[str]) -> Iterator[None]:
    """While it lasts, `ssh HOST` of a user with this home folder comes to this machine."""
    folder = home / ".ssh"
    folder.mkdir()
    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(folder / "id_ed25519")
    key.write_public_key(folder / "authorized_keys")
    started: list[subprocess.Popen[bytes]] = []
    with _serving(key, folder / "authorized_keys", started) as port:
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {key.export_public_key().decode()}")
        (folder / "config").write_text("".join(f"Host {host}\n  Hostname 127.0.0.1\n  Port {port}\n" for host in hosts))
        try:
            yield
        finally:
            for process in started:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass


@contextmanager
def _serving(key: asyncssh.SSHKey, authorized: Path, started: list[subprocess.Popen[bytes]]) -> Iterator[int]:
    async def serve(session: asyncssh.SSHServerProcess[bytes]) -> None:
        assert session.command is not None
        pipe = subprocess.PIPE
        child = subprocess.Popen(session.command, shell=True, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
        started.append(child)
        await session.redirect(stdin=child.stdin, stdout=child.stdout, stderr=child.stderr)
        session.exit(await asyncio.get_running_loop().run_in_executor(None, child.wait))

    async def listen() -> asyncssh.SSHAcceptor:
        return await asyncssh.listen(
            "127.0.0.1", 0, server_host_keys=[key], authorized_client_keys=str(authorized), process_factory=serve, encoding=None
        )

    async def end(server: asyncssh.SSHAcceptor) -> None:
        server.close()
        # Those of sessions whose commands ended.
        if ended := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(ended, timeout=10)

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(listen(), loop).result(30)
    try:
        yield server.get_port()
    finally:
        asyncio.run_coroutine_threadsafe(end(server), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
