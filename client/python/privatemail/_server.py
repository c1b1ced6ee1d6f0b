"""A daemon of one's own."""

import os
import shutil
import subprocess
import tempfile
import weakref
from typing import Any, List, Optional, Sequence

from privatemail._calls import checked_call
from privatemail._client import Client, Collection, Path, connect
from privatemail.errors import FailedPrecondition, Unavailable


def _end(owner: int, process: "subprocess.Popen[str]", temporary: Optional[str]) -> None:
    if os.getpid() != owner:  # a fork must not end the daemon of its parent
        return
    process.terminate()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
    if temporary is not None:
        shutil.rmtree(temporary, ignore_errors=True)


def not_started(program: Path, variable: str, error: OSError) -> FailedPrecondition:
    """The error about a program that the system does not start."""
    return FailedPrecondition(f"program, or the environment's {variable}, must be one that can be started, but is "
                              f"{program}: {error.strerror}", argument="program")


@checked_call
class Server:
    """privatemaild as a child process, on a free port of this machine. See `local`.

    address, ca_file, key_file, client.state: for other clients, such as the command line.
    """

    def __init__(self, process: "subprocess.Popen[str]", address: str, data: str, temporary: Optional[str],
                 state: Path) -> None:
        self.address, self.data = address, data
        self._end = weakref.finalize(self, _end, os.getpid(), process, temporary)  # also when Python ends
        self.ca_file, self.key_file = os.path.join(data, "tls", "server.crt"), os.path.join(data, "admin.key")
        self._client = connect(address, ca_file=self.ca_file, key_file=self.key_file,
                               state=state or os.environ.get("PRIVATEMAIL_STATE") or f"{data}-state")

    def __repr__(self) -> str:
        return f"Server({self.address!r}, {f'data={self.data!r}' if self._end.alive else 'closed'})"

    @classmethod
    def local(cls, data: Optional[Path] = None, *, program: Optional[Path] = None, state: Path = "",
              arguments: Sequence[str] = ()) -> "Server":
        """Starts a daemon.

        data: its folder, which is created if there is none; by default a temporary one that `close` removes. program:
        by default $PRIVATEMAILD, or privatemaild on the PATH. state: folder of the ledger, by default PRIVATEMAIL_STATE,
        else DATA-state beside the data, not that of other servers. arguments: more of the daemon's.
        """
        program = program or os.environ.get("PRIVATEMAILD") or shutil.which("privatemaild")
        if not program:
            raise FailedPrecondition("program must be given, or the environment's PRIVATEMAILD: privatemaild is not on "
                                     "the PATH", argument="program")
        temporary = None
        if data is None:
            temporary = tempfile.mkdtemp(prefix="privatemail-")
            data = os.path.join(temporary, "data")
        folder = os.path.abspath(data)
        with tempfile.TemporaryFile("w+") as errors:
            command = [program, "--data-dir", folder, "--listen", "127.0.0.1:0", "--log-level", "warning", *arguments]
            try:
                process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True,
                                           start_new_session=True)
            except OSError as error:
                if temporary is not None:
                    shutil.rmtree(temporary, ignore_errors=True)
                raise not_started(program, "PRIVATEMAILD", error) from error
            assert process.stdout is not None
            address = next((line.split()[-1] for line in process.stdout if line.startswith("listening on ")), None)
            if address is None:
                process.wait()
                process.stdout.close()
                errors.seek(0)
                if temporary is not None:
                    shutil.rmtree(temporary, ignore_errors=True)
                lines = errors.read().strip().splitlines() or ["it printed nothing"]
                raise Unavailable(f"privatemaild did not start: {lines[-1]}")
        return cls(process, address, folder, temporary, state)

    @property
    def client(self) -> Client:
        """A client with the admin key."""
        if not self._end.alive:
            raise FailedPrecondition("server is closed")
        return self._client

    def collection(self, name: str) -> Collection:
        return self.client.collection(name)

    def collections(self) -> List[Collection]:
        return self.client.collections()

    def create_collection(self, *arguments: Any, **options: Any) -> Collection:
        """As Client.create_collection."""
        return self.client.create_collection(*arguments, **options)

    def restore(self, *arguments: Any, **options: Any) -> Collection:
        """As Client.restore."""
        return self.client.restore(*arguments, **options)

    def close(self) -> None:
        """Ends the daemon; removes a temporary folder."""
        self._client.close()
        self._end()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
