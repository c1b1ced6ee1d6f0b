"""nginx with the configuration of deploy/nginx before a daemon."""

import os
import re
import shutil
import socket
import subprocess
import time

TRUST = ["--trusted-proxies", "127.0.0.1"]  # arguments of the daemon
MAX_START_SECONDS = 60


def free_port():
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


class Proxy:
    """Listens on `port` with the daemon's own certificate, of the folder `tls`."""

    def __init__(self, configuration, folder, tls, daemon_port):
        prefix = os.path.join(folder, "nginx")
        os.makedirs(os.path.join(prefix, "privatemail"))
        for name, to in (("server.crt", "server.crt"), ("server.key", "server.key"), ("server.crt", "daemon.crt")):
            shutil.copy(os.path.join(tls, name), os.path.join(prefix, "privatemail", to))
        self.port = free_port()
        inner = free_port()
        for name in ("nginx.conf", "connections.conf", "privatemail.conf"):
            with open(os.path.join(configuration, name), encoding="utf-8") as file:
                text = file.read()
            text = text.replace("listen 50051 ", f"listen 127.0.0.1:{self.port} ").replace(":50052", f":{daemon_port}")
            text = re.sub(r"\n *listen \[::\].*", "", text)
            text = text.replace("/tmp/", prefix + "/").replace(":50053", f":{inner}")
            with open(os.path.join(prefix, name), "w", encoding="utf-8") as file:
                file.write(text)
        environment = dict(os.environ, MALLOC_MMAP_THRESHOLD_="65536")  # as start.sh
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen(["nginx", "-p", prefix, "-c", os.path.join(prefix, "nginx.conf"), "-g",
                                         "daemon off;"], stderr=subprocess.DEVNULL, env=environment)
        until = time.time() + MAX_START_SECONDS
        while not os.path.exists(os.path.join(prefix, "nginx.pid")) or not self.accepts():
            if self.process.poll() is not None or time.time() > until:
                raise RuntimeError("nginx does not start")
            time.sleep(0.05)

    def accepts(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def processes(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as children:
            return [self.process.pid] + [int(child) for child in children.read().split()]

    def stop(self):
        self.process.terminate()
        self.process.wait()
