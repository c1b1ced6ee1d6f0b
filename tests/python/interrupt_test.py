"""Ctrl-C in long calls: KeyboardInterrupt soon, and no charge is refunded."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

import numpy as np
from matplotlib.image import imsave

from service import Service

SOON = 5  # seconds; an uninterrupted call of these takes minutes


class Child:
    """A process that prints "interrupted" when the code raised KeyboardInterrupt."""

    def __init__(self, code):
        program = ("import numpy as np, privatemail as pm\ntry:\n" + textwrap.indent(code, "    ") +
                   "\nexcept KeyboardInterrupt:\n    print('interrupted')")
        self.process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)

    def interrupt(self):
        """What it printed after Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        try:
            printed, errors = self.process.communicate(timeout=SOON)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        return printed + errors


def wait_until(condition):
    for _ in range(1200):
        if condition():
            return
        time.sleep(.05)
    raise AssertionError("the condition was not met")


def connected_to(service):
    """Code that makes the collection of the service."""
    server = service.server
    return (f"things = pm.connect({server.address!r}, ca_file={server.ca_file!r}, key_file={server.key_file!r}, "
            f"state={service.state!r}).collection('things')\n")


class Interrupt(unittest.TestCase):

    def test_ends_calls_that_wait_for_a_silent_server(self):
        with tempfile.TemporaryDirectory() as folder:
            for call in ("build()", "snapshot(FOLDER + '/file')", "info()", "ingest([[1.0]], labels=[0])",
                         "search([1.0], epsilon=1, delta=1e-5)", "search([1.0], epsilon=1, scheme='cells')"):
                with self.subTest(call), socket.create_server(("127.0.0.1", 0)) as silent:
                    silent.settimeout(60)
                    address = f"127.0.0.1:{silent.getsockname()[1]}"
                    child = Child(f"FOLDER = {folder!r}\npm.connect('{address}', insecure=True, deadline=600, "
                                  f"state=FOLDER + '/state').collection('c').{call}")
                    with silent.accept()[0]:  # the call waits for an answer
                        self.assertEqual(child.interrupt(), "interrupted\n")
            self.assertFalse(os.path.exists(folder + "/file"), "a snapshot that was not complete was kept")

    def test_ends_an_audit(self):
        child = Child("import privatemail._core as core\n"
                      "core.audit('laplace', 2.0, None, 10**9, .999, lambda done, of: print('runs', flush=True))")
        self.assertEqual(child.process.stdout.readline(), "runs\n")
        self.assertRegex(child.interrupt(), "^(runs\n)*interrupted\n$")

    def test_ends_a_batch_whose_charges_stay(self):
        service = Service(items=200)
        self.addCleanup(service.close)
        things = service.things
        things.budget.grant(epsilon=1000, delta=.1)
        child = Child(connected_to(service) +
                      "things.search(np.ones((5000, 16)), label=0, epsilon=.1, delta=1e-6)")
        wait_until(lambda: things.budget.spent.epsilon > .45)
        self.assertEqual(child.interrupt(), "interrupted\n")
        charges = [one for one in things.budget.history() if one["kind"] == "charge"]
        self.assertGreaterEqual(len(charges), 5)
        self.assertLess(len(charges), 5000)
        self.assertAlmostEqual(things.budget.spent.epsilon, .1 * len(charges))
        self.assertEqual(len(things.resend(label=0)), 8)

    def test_ends_an_extraction(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "grey.png")
            imsave(path, np.full((2000, 2000, 3), 128, np.uint8))
            child = Child("from threading import Thread\nfrom time import sleep\n"
                          "Thread(target=lambda: (sleep(1), print('others run', flush=True)), daemon=True).start()\n"
                          f"pm.Extractor()([{path!r}] * 100000)")
            self.assertEqual(child.process.stdout.readline(), "others run\n")
            self.assertEqual(child.interrupt(), "interrupted\n")
