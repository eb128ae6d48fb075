"""``langshift ingest --resume`` in processes of its own, one after the other, with the stub encoder of the tests."""

import os
import subprocess
import time

from command_line import LANGSHIFT

from langshift.ingest.bulk.journal import Journal

PATIENCE = 120  # seconds


class ResumedLoad:
    """One load, run after run, in processes of its own."""

    def __init__(self, server, corpus, lines, index, home, url):
        self.server, self.lines, self.index, self.home = server, lines, index, home
        self.command = [LANGSHIFT, "ingest", corpus, "--index", index, "--encoder", server.name, "--alpha", "0"]
        self.env = {**os.environ, "LANGSHIFT_HOME": str(home), "OPENSEARCH_URL": os.environ.get("OPENSEARCH_URL", url)}
        self.processes = []

    def start(self):
        with self.server.lock:
            self.server.asked.clear()
        self.processes.append(
            process := subprocess.Popen(
                [*self.command, "--resume", "--json"],
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        )
        return process

    def asked(self):
        """Lines whose text was encoded in this run."""
        with self.server.lock:
            texts = [text for some in self.server.asked for text in some]
        # The encoder is tried with texts of its own.
        return [int(text.split()[1]) for text in texts if text.startswith("Document ")]

    def handled(self):
        """Lines that the journal has; none where there is no journal yet."""
        found = list(self.home.glob(f"loads/*/{self.index}/journal.sqlite"))
        if not found:
            return []
        with Journal(found[0]) as journal:
            return [line for first, last in journal.handled().ranges() for line in range(first, last + 1)]

    def wait_for(self, process, condition):
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and not condition():
            assert time.monotonic() < deadline, "the load stands still"
            time.sleep(0.005)

    def end(self, process, how=None):
        """The exit code and what was printed, after a signal where one is given; nothing was encoded twice."""
        if how is not None and process.poll() is None:
            process.send_signal(how)
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out.decode(), err.decode()
