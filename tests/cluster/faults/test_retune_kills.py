"""SIGKILL at any moment of a retune or a rollback. LANGSHIFT_KILLS=20 or more gives the long form."""

import os
import random
import time

import pytest
from retuned_index import Process, before, live, note, require_tidy, swapped, transfer_note
from shifted_index import Corpus, language_vectors, require_vectors, saved, with_directions

from langshift.plugin import versions

KILLS = int(os.environ.get("LANGSHIFT_KILLS", "2"))
MOST_RUNS = 5 * KILLS
EACH = 100  # documents of each of eight languages
KNOWN = with_directions(language_vectors(), 1)
ALPHAS = (0.0, 0.5, 1.0)
GAMMAS = (0.0, 0.97)
SCALES = [(alpha, gamma) for alpha in ALPHAS for gamma in GAMMAS]
# The vectors of languages are several times as long as some documents here, and each step rounds what the next one
# multiplies.
FAR = 1e-5


class Index:
    """An index, and commands that change it."""

    def __init__(self, client, name, corpus, url, home):
        self.client, self.name, self.corpus, self._url, self._home = client, name, corpus, url, home
        self.chance = random.Random(7)
        self.kills = self.runs = 0
        self._processes = []

    def scales(self, index):
        made = versions.live(self.client, index, also_unfinished=True).fingerprint
        return made.alpha, made.gamma

    def command(self):
        """A command that changes something, and the scales that the index has after it."""
        now = live(self.client, self.name)
        # A rollback that was killed right after the swap is finished by the next, which goes back no further.
        former = before(self.client, now) if transfer_note(self.client, now) is None else None
        if former is not None and self.chance.random() < 0.3:
            return ("rollback", self.name), self.scales(former)
        alpha, gamma = self.chance.choice([scales for scales in SCALES if scales != self.scales(now)])
        return ("retune", self.name, "--alpha", alpha, "--gamma", gamma), (alpha, gamma)

    def start(self, command):
        self.runs += 1
        self._processes.append(process := Process(self._url, self._home, *command))
        return process

    def end(self):
        for process in self._processes:
            if process.runs:
                process.kill()

    def wait(self, process, moment, was):
        """Wait for a moment of a command, and some time more."""
        noted = {
            "starting": lambda: True,
            "begun": lambda: note(self.client, self.name) is not None,
            "copied": lambda: (note(self.client, self.name) or ("", {}))[1].get("copied", True),
            "blocked": lambda: (note(self.client, self.name) or ("", {}))[1].get("blocked", False),
            "swapped": lambda: swapped(self.client, self.name, was),
        }
        at_most = {"starting": 2.5, "begun": 1.0, "copied": 0.4, "blocked": 0.5, "swapped": 0.1}
        process.wait_for(lambda: noted[moment]() or swapped(self.client, self.name, was))
        time.sleep(self.chance.uniform(0, at_most[moment]))

    def require_complete(self, scales):
        """The alias stands for one version, which has every document, all of one making; its scales."""
        now = live(self.client, self.name)
        alpha, gamma = found = self.scales(now)
        assert found in scales
        require_vectors(self.client, now, self.corpus, KNOWN, alpha, gamma=gamma, tolerance=FAR)
        return found


@pytest.fixture
def index(client, index_name, cluster_env, tmp_path):
    corpus = Corpus(tmp_path, EACH)
    corpus.ingest(index_name, "--vectors", saved(tmp_path, KNOWN), "--alpha", 0.5)
    made = Index(client, index_name, corpus, cluster_env, tmp_path / "home")
    yield made
    made.end()


def test_sigkill_at_random_moments(index):
    moments = ("begun", "blocked", "swapped", "starting", "copied", "blocked")
    command, wanted = index.command()
    met = dict.fromkeys(moments, 0)
    while index.kills < KILLS and index.runs < MOST_RUNS:
        moment = moments[index.kills % len(moments)]
        was = live(index.client, index.name)
        scales = index.require_complete(SCALES)
        process = index.start(command)
        index.wait(process, moment, was)
        killed = process.kill()
        index.kills += killed
        met[moment] += killed
        index.require_complete({scales, wanted})
        if live(index.client, index.name) == was and index.chance.random() < 0.7:
            continue  # the same again
        command, wanted = index.command()
    assert index.kills == KILLS
    told = index.start(command).done()
    assert told["index"] == live(index.client, index.name)
    index.require_complete({wanted})
    require_tidy(index.client, index.name)
    print(f"\n{index.kills} kills in {index.runs} runs: {met}")
