"""The installed ``langshift ingest`` on its way through the fault proxy, with a home of its own."""

from __future__ import annotations

import subprocess
from operator import itemgetter
from pathlib import Path
from typing import Any

from command_line import langshift
from fault_proxy import FaultProxy
from nothing_lost import assert_nothing_lost, read_letters
from opensearchpy import OpenSearch

from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.wording import pluralize


class FaultyLoad:
    """A load of vectors that come with the data, which are not moved.

    Attributes:
        proxy: the proxy that it writes through.
        index: the index's name.
        corpus: what is loaded.
        place: where its journal and its dead letters are.
    """

    def __init__(self, client: OpenSearch, proxy: FaultProxy, index: str, folder: Path) -> None:
        self.proxy, self.index, self.corpus = proxy, index, folder / "corpus.jsonl"
        self._client, self._home = client, folder / "home"
        self.place = LoadWorkspace.of(self._home, client, index)

    @property
    def arguments(self) -> list[str]:
        """All but the corpus."""
        return ["--index", self.index, "--encoder", "given", "--alpha", "0"]

    @property
    def environment(self) -> dict[str, str]:
        """The proxy, and the home."""
        return {"OPENSEARCH_URL": self.proxy.url, "LANGSHIFT_HOME": str(self._home)}

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Load; the finished process."""
        done: subprocess.CompletedProcess[str] = langshift(
            "ingest", self.corpus, *self.arguments, *options, **self.environment
        )
        return done

    def accounted_for(
        self, done: subprocess.CompletedProcess[str], shown: str = "", deleted: int = 0, replaced: int = 0
    ) -> list[dict[str, Any]]:
        """Check that nothing was lost, and that exit code and last line say so; gives the dead letters by line.

        Args:
            done: the finished process.
            shown: how messages name the input, where that is not by the corpus's path.
            deleted: documents that it deletes.
            replaced: lines whose document takes another's place.
        """
        assert done.returncode in (0, 3), done
        letters = assert_nothing_lost(self._client, self.index, self.corpus, self.place.dead_letters)
        assert done.returncode == (3 if letters else 0), done
        lines = sum(1 for line in self.corpus.read_bytes().split(b"\n") if line.strip())
        present = self._client.count(index=self.index)["count"]
        told = f"All {pluralize(lines, 'line')} of {shown or self.corpus} are accounted for: "
        told += f"{pluralize(present, 'document')} on the server, checked"
        if replaced:
            told += f", {replaced:,} replaced an earlier one with the same _id"
        if deleted:
            told += f", {deleted:,} deleted"
        if letters:
            told += f", {pluralize(len(letters), 'dead letter')}"
            told += f" (langshift dead-letters list --index {self.index} shows why)"
        assert done.stdout.splitlines()[-1] == f"{told}."
        return sorted(letters, key=itemgetter("line"))

    def letters(self) -> list[dict[str, Any]]:
        """The dead letters."""
        return read_letters(self.place.dead_letters)

    def sent(self) -> list[str]:
        """The ids that were sent, in that order, as often as they were."""
        return [one for bulk in self.proxy.bulks for one in bulk.ids]
