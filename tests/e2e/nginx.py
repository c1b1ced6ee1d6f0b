"""nginx with the configuration of deploy/nginx before a daemon, and with the daemon's own certificate."""

import os
import re
import shutil
import socket
import subprocess
import time

MAX_WAIT_SECONDS = 60


def free_port():
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


def start(configuration, folder, tls, daemon_port, http_port):
    """The process and its port. configuration: the folder deploy/nginx; tls: that of the daemon's certificate."""
    prefix = os.path.join(folder, "nginx/")
    os.makedirs(prefix + "privatemail")
    for name, to in (("server.crt", "server.crt"), ("server.key", "server.key"), ("server.crt", "daemon.crt")):
        shutil.copy(tls + name, prefix + "privatemail/" + to)
    port, inner = free_port(), free_port()
    for name in ("nginx.conf", "connections.conf", "privatemail.conf"):
        with open(os.path.join(configuration, name), encoding="utf-8") as file:
            text = re.sub(r"\n *listen \[::\].*", "", file.read())
        for old, new in (("listen 50051 ", f"listen 127.0.0.1:{port} "), (":50052", f":{daemon_port}"),
                         (":50054", f":{http_port}"), ("/tmp/", prefix), (":50053", f":{inner}")):
            text = text.replace(old, new)
        with open(prefix + name, "w", encoding="utf-8") as file:
            file.write(text)
    process = subprocess.Popen(  # pylint: disable=consider-using-with
        ["nginx", "-p", prefix, "-c", prefix + "nginx.conf", "-g", "daemon off;"], stderr=subprocess.DEVNULL,
        env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"})
    until = time.time() + MAX_WAIT_SECONDS
    while not os.path.exists(prefix + "nginx.pid") or not accepts(port):
        if process.poll() is not None or time.time() > until:
            raise RuntimeError("nginx does not start")
        time.sleep(0.05)
    return process, port


def accepts(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
