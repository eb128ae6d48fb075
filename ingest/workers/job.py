"""What workers are given, and what they answer; the corpus as they read it."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

from langshift.corpus_file import ChangedError, FileState, Start, state_of
from langshift.files import LineNumbers
from langshift.ingest.documents import Embeddings, SourceRow
from langshift.ingest.open_corpus import open_rows
from langshift.ingest.parsing import Parser
from langshift.ingest.resume import LoadOptions
from langshift.ingest.sources import NumberedFiles, Split
from langshift.plugin.versions import Target


class CorpusPart(NamedTuple):
    """A file of the corpus.

    Attributes:
        shown: how messages name it.
        path: its path, wherever one is, or its address.
        total: how many lines it has.
        state: what every change of it changes.
    """

    shown: str
    path: str
    total: int
    state: FileState | None


class Job(NamedTuple):
    """A load, as each of its workers is told of it.

    Attributes:
        version: langshift's, which must be the same everywhere.
        environment: the variables that say where the cluster and the store are, and by what keys they are reached.
        files: the corpus.
        embeddings: what becomes of vectors that come with documents.
        dimension: the one that all of those must have; None where nobody knows.
        weighted: whether documents bring the weights of tokens that the index keeps.
        making: the options of the pipeline, as ``PipelineOptions.keep`` writes them.
        fingerprint: what the documents' vectors must be.
        target: the version that is written to.
        base: the version that line 0 would have.
        state: the folder of the load's state.
        owner: names the process whose load it is.
        options: how the load is done.
    """

    version: str
    environment: Mapping[str, str]
    files: Sequence[CorpusPart]
    embeddings: Embeddings
    dimension: int | None
    weighted: bool
    making: bytes
    fingerprint: Mapping[str, Any]
    target: Target
    base: int
    state: str
    owner: str | None
    options: LoadOptions


class Done(NamedTuple):
    """What became of a task.

    Attributes:
        lines: how many lines came to an end.
        dead: how many of them in the dead letters.
        retries: how many requests were sent again.
        seconds: time spent in each stage.
        error: what broke it off; None where nothing did.
    """

    lines: int = 0
    dead: int = 0
    retries: int = 0
    seconds: Mapping[str, float] = {}
    error: Exception | None = None


class SplitFiles(NumberedFiles):
    """A corpus of which others have seen that it holds documents, read split by split.

    Args:
        job: the load.
    """

    resumable = True
    content = vector_spec = None

    def __init__(self, job: Job) -> None:
        parser = Parser(job.embeddings, job.dimension, job.options.fields, job.weighted)
        super().__init__(parser, [file.shown for file in job.files])
        self._number(file.total for file in job.files)
        self.files, self._patience = job.files, job.options.patience

    def read(self, skip: LineNumbers) -> Generator[SourceRow]:
        """The lines in their order; see ``DocumentSource.read``."""
        for number, (file, before) in enumerate(zip(self.files, self._before, strict=True)):
            yield from self.read_split(Split(number, Start(1, 0), before + 1, before + file.total), skip)

    def read_split(self, split: Split, skip: LineNumbers) -> Generator[SourceRow]:
        """The lines of a split in their order.

        Args:
            split: the split.
            skip: numbers of lines that are passed over.

        Raises:
            ChangedError: the file is not what it was when the load was opened.
            UsageError: it is not there.
            UnreachableError: its store does not answer.
        """
        file, before = self.files[split.file], self._before[split.file]
        with ExitStack() as stack:
            stream, rows = open_rows(file.path, self._patience, self.parser, stack)

            def require_unchanged() -> None:
                if state_of(stream) != file.state:
                    raise ChangedError.of(file.shown)

            require_unchanged()
            with closing(rows.part(split.start, split.last - before, skip, before)) as part:
                yield from part
            require_unchanged()
