"""A daemon of one's own."""

import os
import shutil
import subprocess
import tempfile
from typing import Any, List, Optional, Sequence

from privatemail._client import Client, Collection, Path, connect
from privatemail.errors import FailedPrecondition, Unavailable


class Server:
    """privatemaild as a child process, on a free port of this machine. See `local`.

    address, ca_file, key_file: for other clients, such as the command line.
    """

    def __init__(self, process: "subprocess.Popen[str]", address: str, data: str,
                 temporary: "Optional[tempfile.TemporaryDirectory[str]]", state: Path) -> None:
        self._process: "Optional[subprocess.Popen[str]]" = process
        self.address, self.data, self._temporary = address, data, temporary
        self.ca_file, self.key_file = os.path.join(data, "tls", "server.crt"), os.path.join(data, "admin.key")
        self._client = connect(address, ca_file=self.ca_file, key_file=self.key_file, state=state)

    @classmethod
    def local(cls, data: Optional[Path] = None, *, program: Optional[Path] = None, state: Path = "",
              arguments: Sequence[str] = ()) -> "Server":
        """Starts a daemon.

        data: its folder, which is created if there is none; by default a temporary one that `close` removes. program:
        by default $PRIVATEMAILD, or privatemaild on the PATH. state: as of `connect`. arguments: more of the daemon's.
        """
        program = program or os.environ.get("PRIVATEMAILD") or shutil.which("privatemaild")
        if not program:
            raise FailedPrecondition("program must be given: privatemaild is not on the PATH")
        temporary = None
        if data is None:
            temporary = tempfile.TemporaryDirectory(prefix="privatemail-")
            data = os.path.join(temporary.name, "data")
        folder = os.path.abspath(data)
        with tempfile.TemporaryFile("w+") as errors:
            command = [program, "--data-dir", folder, "--listen", "127.0.0.1:0", "--log-level", "warning", *arguments]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True,
                                       start_new_session=True)
            assert process.stdout is not None
            address = next((line.split()[-1] for line in process.stdout if line.startswith("listening on ")), None)
            if address is None:
                process.wait()
                process.stdout.close()
                errors.seek(0)
                if temporary:
                    temporary.cleanup()
                lines = errors.read().strip().splitlines() or ["it printed nothing"]
                raise Unavailable(f"privatemaild did not start: {lines[-1]}")
        return cls(process, address, folder, temporary, state)

    @property
    def client(self) -> Client:
        """A client with the admin key."""
        if self._process is None:
            raise FailedPrecondition("server is closed")
        return self._client

    def collection(self, name: str) -> Collection:
        return self.client.collection(name)

    def collections(self) -> List[Collection]:
        return self.client.collections()

    def create_collection(self, *arguments: Any, **options: Any) -> Collection:
        """As Client.create_collection."""
        return self.client.create_collection(*arguments, **options)

    def close(self) -> None:
        """Ends the daemon; removes a temporary folder."""
        if self._process is None:
            return
        self._client.close()
        self._process.terminate()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None
        if self._temporary:
            self._temporary.cleanup()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_process", None) is not None:
            self.close()
