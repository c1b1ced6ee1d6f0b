#!/usr/bin/python3
"""Runs the shell commands of Markdown pages as a reader would.

usage: page_commands_test.py BIN_FOLDER... -- PAGE...

All fenced blocks of a page that are marked `sh` run in order, in one bash with `set -e`, in an empty folder that is also
HOME, with the folders of the built programs before the system's on the PATH. A block is skipped if the line above it is
`<!-- not run: WHY -->`. SOURCE is the folder of the source. Background processes of the blocks are killed at the end.
"""

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


def shell_blocks(text):
    """Yields (line number, commands, is skipped) of every block marked `sh`."""
    above, block = "", None
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if block is None and fence:
            block = (number, fence[2], len(fence[1]), bool(NOT_RUN.match(above)), [])
        elif block is not None and fence and not fence[2]:
            first, language, _, skipped, lines = block
            if language == "sh":
                yield first, "\n".join(lines), skipped
            block = None
        elif block is not None:
            block[4].append(line[min(block[2], len(line) - len(line.lstrip())):])
        if line.strip():
            above = line
    assert block is None, f"the block at line {block[0]} is not closed"


def script_of(page, blocks):
    parts = ["set -e", "trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT"]
    for line, commands, skipped in blocks:
        if not skipped:
            parts += [f"echo '== {page.name}:{line}' >&2", commands]
    return "\n".join(parts) + "\n"


def run_page(page, path):
    blocks = list(shell_blocks(page.read_text(encoding="utf-8")))
    run = sum(not skipped for _, _, skipped in blocks)
    assert run > 0, f"{page} has no block marked sh that runs"
    with tempfile.TemporaryDirectory(prefix="privatemail_page_") as home, \
            tempfile.NamedTemporaryFile("w", suffix=".sh", encoding="utf-8") as script, \
            tempfile.TemporaryFile() as output:
        script.write(script_of(page, blocks))
        script.flush()
        environment = {"PATH": os.pathsep.join([*path, "/usr/bin", "/bin"]), "HOME": home, "LC_ALL": "C.UTF-8",
                       "SOURCE": str(pathlib.Path(__file__).resolve().parents[2])}
        bash = subprocess.Popen(["/bin/bash", script.name], cwd=home, env=environment, stdin=subprocess.DEVNULL,
                                stdout=output, stderr=output, start_new_session=True)
        try:
            code = bash.wait(SECONDS)
        except subprocess.TimeoutExpired:
            code = f"no exit code after {SECONDS} s"
        finally:
            try:
                os.killpg(bash.pid, signal.SIGKILL)  # what the trap did not end
            except ProcessLookupError:
                pass
            bash.wait()
        if code != 0:
            output.seek(0)
            print(output.read().decode(errors="replace")[-8000:], file=sys.stderr)
            sys.exit(f"{page}: the block named last ended with {code}")
    print(f"{page.name}: {run} blocks run, {len(blocks) - run} skipped")


def main():
    if "--" not in sys.argv[1:]:
        sys.exit(__doc__)
    border = sys.argv.index("--")
    for page in sys.argv[border + 1:]:
        run_page(pathlib.Path(page), sys.argv[1:border])


if __name__ == "__main__":
    main()
