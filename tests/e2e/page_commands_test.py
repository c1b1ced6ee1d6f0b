#!/usr/bin/python3
"""Runs the shell commands of Markdown pages as a reader would.

usage: page_commands_test.py BIN_FOLDER... -- PAGE...

All fenced blocks of a page that are marked `sh` run in order, in one bash with `set -e`, in an empty folder that is also
HOME, with the folders of the built programs before the system's on the PATH. A block is skipped if the line above it is
`<!-- not run: WHY -->`. Below `<!-- in a terminal of its own -->` is the command of a daemon. It runs beside the others, which
start once it listens, on free ports in place of its own. SOURCE is the folder of the source.
"""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

SECONDS = 240  # for one page
FENCE = re.compile(r"^(\s*)```(\S*)\s*$")
NOT_RUN = re.compile(r"^\s*<!-- not run: .+ -->\s*$")
OF_ITS_OWN = "<!-- in a terminal of its own -->"
DEFAULT = "127.0.0.1:50051"
ADDRESS = re.compile(r"127\.0\.0\.1:[0-9]+")


def shell_blocks(text):
    """Yields (line number, commands, the line above) of every block marked `sh`."""
    above, block = "", None
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if block is None and fence:
            block = (number, fence[2], len(fence[1]), above, [])
        elif block is not None and fence and not fence[2]:
            first, language, _, above, lines = block
            if language == "sh":
                yield first, "\n".join(lines), above
            block = None
        elif block is not None:
            block[4].append(line[min(block[2], len(line) - len(line.lstrip())):])
        if line.strip():
            above = line
    assert block is None, f"the block at line {block[0]} is not closed"


def script_of(page, blocks):
    parts = ["set -e"]
    for line, commands in blocks:
        parts += [f"echo '== {page.name}:{line}' >&2", commands]
    return "\n".join(parts) + "\n"


def start_daemon(command, **options):
    """The daemon, its address and the addresses of `command` with those that it has instead."""
    daemon = subprocess.Popen(["/bin/sh", "-c", f"exec {ADDRESS.sub('127.0.0.1:0', command)} --listen 127.0.0.1:0"],
                              stdout=subprocess.PIPE, text=True, **options)
    told = ""
    for line in daemon.stdout:
        told += line
        if line.startswith("listening on "):
            others = ADDRESS.findall(told)[:-1]
            return daemon, line.split()[-1], dict(zip(ADDRESS.findall(command), others, strict=True))
    sys.exit(f"the daemon does not listen: {command}")


def run_page(page, path):
    blocks = list(shell_blocks(page.read_text(encoding="utf-8")))
    daemons = [commands for _, commands, above in blocks if above.strip() == OF_ITS_OWN]
    run = [(line, commands) for line, commands, above in blocks
           if above.strip() != OF_ITS_OWN and not NOT_RUN.match(above)]
    assert run and len(daemons) <= 1, f"{page} has no block marked sh that runs, or more than one daemon"
    with tempfile.TemporaryDirectory(prefix="privatemail_page_") as home, tempfile.TemporaryFile() as output, \
            contextlib.ExitStack() as ends:
        environment = {"PATH": os.pathsep.join([*path, "/usr/bin", "/bin"]), "HOME": home, "LC_ALL": "C.UTF-8",
                       "PYTHONPATH": os.pathsep.join(f"{folder}/python" for folder in path),
                       "SOURCE": str(pathlib.Path(__file__).resolve().parents[2])}
        options = {"cwd": home, "env": environment, "stdin": subprocess.DEVNULL, "stderr": output}
        text = script_of(page, run)
        others = {}
        for command in daemons:
            daemon, environment["PRIVATEMAIL_SERVER"], others = start_daemon(command, **options)
            others[DEFAULT] = environment["PRIVATEMAIL_SERVER"]
            ends.callback(daemon.wait)
            ends.callback(daemon.terminate)
        for documented, address in others.items():
            text = text.replace(documented, address)
        bash = subprocess.Popen(["/bin/bash", "-c", text], stdout=output, start_new_session=True, **options)
        try:
            code = bash.wait(SECONDS)
        except subprocess.TimeoutExpired:
            code = f"no exit code after {SECONDS} s"
        finally:
            try:
                os.killpg(bash.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            bash.wait()
        if code != 0:
            output.seek(0)
            print(output.read().decode(errors="replace")[-8000:], file=sys.stderr)
            sys.exit(f"{page}: the block named last ended with {code}")
    print(f"{page.name}: {len(run) + len(daemons)} blocks run, {len(blocks) - len(run) - len(daemons)} skipped")


def check_collections(pages):
    """Refuses pages that create the same collection: a reader may follow both with one daemon."""
    creators = {}
    for page in pages:
        text = page.read_text(encoding="utf-8")
        if page.suffix == ".md":
            text = "\n".join(commands for _, commands, _ in shell_blocks(text))
        for name in set(re.findall(r"^\s*privatemail collection create (\S+)", text, re.MULTILINE)):
            if page != creators.setdefault(name, page):
                sys.exit(f"{page} creates the collection {name}, as does {creators[name]}")


def main():
    if "--" not in sys.argv[1:]:
        sys.exit(__doc__)
    border = sys.argv.index("--")
    pages = [pathlib.Path(page) for page in sys.argv[border + 1:]]
    check_collections([*pages, pathlib.Path(__file__).resolve().parents[2] / "deploy/demo.sh"])
    for page in pages:
        run_page(page, sys.argv[1:border])


if __name__ == "__main__":
    main()
