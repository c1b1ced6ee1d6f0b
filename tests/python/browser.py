"""A headless Chromium controlled by the DevTools protocol over a pipe."""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 200  # for one answer; a start may take a minute on a busy machine
OPTIONS = ("--headless", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu", "--disable-dev-shm-usage",
           "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-breakpad",
           "--disable-sync",
           # Slow is not hanging on a busy machine.
           "--disable-gpu-watchdog", "--disable-hang-monitor")


def find_browser():
    return next(filter(None, map(shutil.which, NAMES)), None)


class Navigated(Exception):
    """The page was left while it was asked."""


class Browser:
    """A browser with one tab; collects its console and network events in `events`."""

    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(prefix="privatemail_browser_", ignore_cleanup_errors=True)
        to_read, self.to_write = os.pipe()
        self.from_read, from_write = os.pipe()
        # Commands on descriptor 3, answers on 4; the shell moves them there. dash takes descriptors below 10 only.
        command = ["/bin/bash", "-c", f'exec "$@" 3<&{to_read} 4>&{from_write}', "sh", program, *OPTIONS,
                   f"--user-data-dir={self.folder.name}/profile"]
        own = {name: f"{self.folder.name}/{name}" for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
        with open(f"{self.folder.name}/log", "wb") as log:
            self.process = subprocess.Popen(command, pass_fds=(to_read, from_write), stdout=log, stderr=log,
                                            env={**os.environ, **own})
        os.close(to_read)
        os.close(from_write)
        self.buffer, self.events, self.sent, self.session = b"", [], 0, None

    def __enter__(self):
        try:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(domain + ".enable")
        except BaseException:
            self.__exit__()  # or the browser would outlive the test
            raise
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.to_write)
        os.close(self.from_read)
        self.folder.cleanup()

    def call(self, method, **parameters):
        self.sent += 1
        number = self.sent
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_write, json.dumps(message).encode() + b"\0")
        answer = self.await_message(lambda message: message.get("id") == number)
        if answer.get("error", {}).get("message") == "Inspected target navigated or closed":
            raise Navigated
        assert "error" not in answer, f"{method}: {answer}"
        return answer["result"]

    def await_event(self, method):
        if not any(event["method"] == method for event in self.events):
            self.await_message(lambda message: message.get("method") == method)

    def await_message(self, wanted):
        until = time.monotonic() + SECONDS
        while True:
            while b"\0" in self.buffer:
                text, self.buffer = self.buffer.split(b"\0", 1)
                message = json.loads(text)
                if "method" in message:
                    self.events.append(message)
                if wanted(message):
                    return message
            ready, _, _ = select.select([self.from_read], [], [], max(0, until - time.monotonic()))
            part = os.read(self.from_read, 1 << 20) if ready else b""
            if not part:
                with open(f"{self.folder.name}/log", encoding="utf-8", errors="replace") as log:
                    said = "".join(line for line in log if "dbus" not in line)
                raise AssertionError(f"{'the browser ended' if ready else 'no answer of the browser'}; its log: {said}")
            self.buffer += part

    def open(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.await_event("Page.loadEventFired")

    def value_of(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, f"{expression}: {answer}"
        return answer["result"].get("value")

    def wait_for(self, expression):
        """Until it is true in the page, or in the one that it leads to."""
        until = time.monotonic() + SECONDS
        while True:
            try:
                if self.value_of(expression):
                    return
                assert time.monotonic() < until, f"{expression}: {self.value_of('document.body.innerText')}"
            except Navigated:
                assert time.monotonic() < until, expression
            time.sleep(.05)

    def look_as(self, width, scheme):
        """As a window of this width of a reader with this colour scheme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme},
                                                          {"name": "prefers-reduced-motion", "value": "reduce"}])

    def choose_file(self, selector, path):
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def middle(self, selector):
        """Where the mouse is on an element, which is scrolled into view."""
        return json.loads(self.value_of(f"""(() => {{
            const element = document.querySelector({json.dumps(selector)});
            element.scrollIntoView({{block: "center"}});
            const box = element.getBoundingClientRect();
            return JSON.stringify([box.left + box.width / 2, box.top + box.height / 2]); }})()"""))

    def click(self, selector):
        """With the mouse."""
        x, y = self.middle(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def drop(self, selector, path):
        """A file, with the mouse."""
        x, y = self.middle(selector)
        for kind in ("dragEnter", "dragOver", "drop"):
            self.call("Input.dispatchDragEvent", type=kind, x=x, y=y,
                      data={"items": [], "files": [str(path)], "dragOperationsMask": 1})

    def press(self, key, code, text=""):
        """A key, by its name and Windows key code."""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)
