"""Opening a load: begun anew, or resumed where one was cut off; and what is cleaned up when it fails."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import uuid4

from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException, RequestError

from langshift.client import address
from langshift.corpus_file import ChangedError, UnreachableError
from langshift.errors import ClusterError, LangshiftError, UsageError
from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.ingest.bulk.document_versions import first_version
from langshift.ingest.bulk.journal import Journal
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.ingest.bulk.writer import MOST
from langshift.ingest.config import EmbeddingPipeline
from langshift.ingest.documents import Document, DocumentSource
from langshift.ingest.publication import MAX_REFUSED
from langshift.ingest.transform import ActionBuilder, detect_language
from langshift.languages import text_language
from langshift.plugin import metadata, version_writer
from langshift.plugin.index_body import LUCENE, map_page
from langshift.plugin.index_health import require_unblocked
from langshift.plugin.metadata import FieldNames
from langshift.plugin.representations import in_words
from langshift.plugin.sizing import shards_of_corpus
from langshift.plugin.user_template import DEFAULT_INDEX_OPTIONS, IndexOptions
from langshift.plugin.versions import IfExists, Target, read_live, remove_impostor
from langshift.reporting import note
from langshift.retry import PATIENCE, waiting
from langshift.server_errors import failure
from langshift.wording import join_words, pluralize

ActionBuilderFactory = Callable[..., ActionBuilder]


@dataclass(frozen=True)
class LoadStrategy:
    """What is special about a load.

    Attributes:
        builder_factory: makes the builder of operations.
        body: of the version that is made, complete; None for an index of langshift's own form.
        during: index settings that hold only while the version is loaded.
        keeps_versions: whether documents keep versions that they have; else a document's version is its line's.
    """

    builder_factory: ActionBuilderFactory = ActionBuilder
    body: Mapping[str, Any] | None = None
    during: Mapping[str, str] = field(default_factory=dict)
    keeps_versions: bool = False


DOCUMENTS = LoadStrategy()


def noted(shape: IndexOptions) -> dict[str, Any]:
    """What the journal keeps of it."""
    template = shape.template.hash if shape.template else None
    return {"template": template, "engine": shape.engine or LUCENE, "date-field": sorted(shape.dates)}


_RESUMABLE = "resumable"  # the journal's name for whether its load can be gone on with
_PLANNED = "planned"  # the journal's name for the token of a version that is about to be made


class LoadOptions(NamedTuple):
    """How a load is done.

    Attributes:
        if_exists: what to do where the index exists.
        resume: whether to go on with a load that was cut off, if there is one.
        fast: whether a new index does without replicas during the load.
        max_refused: the largest share of the lines that may be refused where the new version replaces another.
        patience: seconds for which a cluster that takes nothing, or a store that does not answer, is waited for.
        shape: how a version is made, where that is not as usual.
        fields: the names of the documents' fields, in the corpus and in the index.
        requests: how many bulk requests a process may have under way at once.
    """

    if_exists: IfExists = "fail"
    resume: bool = False
    fast: bool = False
    max_refused: float = MAX_REFUSED
    patience: float = PATIENCE
    shape: IndexOptions = DEFAULT_INDEX_OPTIONS
    fields: FieldNames = metadata.USUAL
    requests: int = MOST


USUAL = LoadOptions()


def _language(document: Document, pipeline: EmbeddingPipeline) -> str:
    return text_language(detect_language(document, pipeline).language)


class OwnershipLost(LangshiftError):
    """Another process goes on with the load: this one leaves all as it is."""


@dataclass
class LoadSession:
    """A load that is under way; nobody else can open one into its index from this machine meanwhile.

    Attributes:
        client: the cluster.
        source: the input.
        pipeline: how its documents become entries.
        options: how the load is done.
        kind: what is special about it.
        place: its files.
        journal: its journal.
        base: the version that line 0 would have.
        target: the version that it writes to; None where all was done by an earlier run.
        goes_on: whether an earlier run began it.
        resumed: lines that earlier runs have handled.
        read_whole: whether the input was read to its end, and was what it had been all the time.
    """

    client: OpenSearch
    source: DocumentSource
    pipeline: EmbeddingPipeline
    options: LoadOptions
    kind: LoadStrategy
    place: LoadWorkspace
    journal: Journal
    base: int = 0
    target: Target | None = None
    goes_on: bool = False
    resumed: int = 0
    read_whole: bool = False

    def open(self) -> None:
        """Begin the load, or go on with it.

        Raises:
            UsageError: a load was cut off, and nobody says whether to go on with it; or what it began with has
                changed; or the index exists.
            FingerprintError: the index holds vectors of another making.
        """
        journal, source, pipeline = self.journal, self.source, self.pipeline.for_fields(self.options.fields)
        journal.require_sound()
        # Where nothing follows from it, no language of a document is detected for it.
        if pipeline.default_own and pipeline.debias.own:
            pipeline = pipeline.for_translations(source.translations(lambda one: _language(one, pipeline)))
        self.pipeline = pipeline
        identity: dict[str, Any] = {"index": self.place.name, "corpus": source.shown, "content": source.content}
        identity |= {"fingerprint": pipeline.fingerprint().to_dict(), "least_confidence": pipeline.least_confidence}
        for one in pipeline.beside:
            identity[one.kept.what] = in_words(one.kept)
        if field_options := self.options.fields.as_options():
            identity["field options"] = field_options
        if pipeline.detector.languages:
            identity["languages"] = pipeline.detector.languages
        if token := journal.fact(_PLANNED):
            if journal.shared and not self.options.resume:
                raise OwnershipLost(
                    f"Another process has just begun a load with the state {journal.shown}, or was interrupted as it "
                    f"began: wait for it, continue with --resume, or remove {journal.shown} to abandon it."
                )
            journal.take_over()
            version_writer.discard_planned(self.client, self.place.name, token)
            journal.set_fact(_PLANNED, None)
        if journal.begun and self.options.resume and source.resumable and journal.fact(_RESUMABLE):
            self._require_same_shape()
            self._resume(identity)
        elif self.options.resume and self._is_finished(identity):
            self.goes_on = True
        else:
            if journal.begun:
                self._give_up()
            self._begin(identity)

    def clean_up(self, target: Target, error: BaseException) -> BaseException:
        """Leave nothing half-written after a failure: what cannot be gone on with goes; else say how to go on.

        Args:
            target: the version that was written to.
            error: what broke the load off.

        Returns:
            The error to raise: the same, or one that says what to do too.
        """
        if isinstance(error, OpenSearchException):
            error = failure(error, address(self.client))
        # The cluster was waited for, or somebody does not want to wait.
        with waiting(None):
            return self._cleaned_up(target, error)

    def _cleaned_up(self, target: Target, error: BaseException) -> BaseException:
        client, source = self.client, self.source
        if isinstance(error, OwnershipLost):
            return error
        if changed := self._changed(error):
            return self._abandon(target, changed)
        handled = self.journal.handled_lines()
        sentences = []
        may_go_on = True
        try:
            if not self._undo(target, discards=handled == 0 or not source.resumable):
                # Whoever has made the alias none, or one of several indices, can undo it.
                with suppress(ClusterError):
                    may_go_on = version_writer.may_reopen(client, target.name, target.index, target.uuid)
        except OpenSearchException:
            sentences.append(f"{target.index} could not be removed or reset: the next run will do it.")
        if handled == 0:
            self.journal.remove()
        elif source.resumable:
            remedy = ": continue with" if may_go_on else ", but this load cannot be resumed: start again without"
            sentences.append(f"{pluralize(handled, 'line')} of {source.shown} handled{remedy} --resume.")
        elif not target.created:
            sentences.append(f"{pluralize(handled, 'line')} handled; running the command again creates no duplicates.")
        if sentences and isinstance(error, LangshiftError):
            return error.reworded(" ".join([error.sentence, *sentences]))
        for sentence in sentences:
            note(sentence)
        return error

    def _undo(self, target: Target, *, discards: bool = True) -> bool:
        """Remove the version that this load has made, if that is wanted, or undo a load's settings; whether it went."""
        if target.created and discards:
            version_writer.discard(self.client, target)
            return True
        remove_impostor(self.client, target.index, target.uuid)
        version_writer.restore(self.client, target.index)
        return False

    def _changed(self, error: BaseException) -> ChangedError | None:
        """That the corpus has changed, whatever broke the load off: lines of two contents must never be mixed."""
        if isinstance(error, ChangedError):
            return error
        if isinstance(error, UnreachableError):
            return None
        try:
            if not self.read_whole:
                self.source.require_unchanged()
        except ChangedError as changed:
            return changed
        except UnreachableError:
            # Who goes on with the load will see.
            return None
        return None

    def _abandon(self, target: Target, error: ChangedError) -> ChangedError:
        """Leave a load whose corpus has changed: nobody can go on with it, and what can be undone is undone."""
        name, handled = target.name, self.journal.handled_lines()
        self.journal.set_fact(_RESUMABLE, False)
        try:
            self._undo(target)
        except OpenSearchException:
            note(f"{target.index} could not be removed or reset: the next run will do it.")
        else:
            if target.created or not handled:
                self.journal.remove()
        if target.created:
            # Sent again, they would get into what is live.
            self.keep_letters(lambda version: version < self.base)
            left = f"Nothing was published, and {name} {'is as it was' if target.live else 'was not created'}"
        elif handled:
            left = f"{pluralize(handled, 'line')} had been handled by then, and what they wrote stays in {target.index}"
        else:
            left = f"Nothing was written to {target.index}"
        again = "run the command again once nothing writes to the file any more, or load a copy of it"
        return ChangedError(f"{error} {left}: {again}.")

    def keep_letters(self, wanted: Callable[[int], bool]) -> None:
        """Keep the dead letters of these versions, and those that name none."""
        letters = DeadLetters(self.place.dead_letters)
        try:
            letters.keep(lambda letter: wanted(letter.version))
        except LangshiftError as error:
            # Such as a line that somebody has broken by hand; the documents are all there.
            note(str(error))

    def _require_same_shape(self) -> None:
        """Refuse to go on where the version was made in another shape than the one that is given now, if one is.

        Raises:
            UsageError: another was given.
        """
        shape, begun = self.options.shape, self.journal.fact("shape")
        given = noted(shape)
        differing = [name for name in shape.given if begun.get(name[2:], []) != given[name[2:]]]
        if differing:
            option_names = " and ".join(differing)
            raise UsageError(
                f"The load into {self.place.name} that was interrupted created its version with another "
                f"{option_names}: leave {option_names} out to resume it, or remove {self.journal.shown} to abandon it."
            )

    def _resume(self, identity: dict[str, Any]) -> None:
        journal, name = self.journal, self.place.name
        journal.require_same(identity)
        journal.require_sound(lines=True)
        index, uuid = journal.fact("index"), journal.fact("uuid")
        if version_writer.may_reopen(self.client, name, index, uuid):
            require_unblocked(self.client, name, index, metadata.read_settings(self.client, index), appending=True)
        self.target = version_writer.reopen(self.client, name, index, uuid, fast=journal.fact("fast"))
        meta = metadata.read_metadata(self.client, index)
        self.pipeline = self.pipeline.of_index(meta, index)
        self.base, self.goes_on, self.resumed = journal.fact("base"), True, journal.handled_lines()
        note(f"Resuming the load into {name} ({index}): {pluralize(self.resumed, 'line')} already handled.")

    def _is_finished(self, identity: dict[str, Any]) -> bool:
        """Whether the load that is to be gone on with is done, and its version is live or was kept aside."""
        if self.journal.finished is None:
            return False
        recorded, summary = self.journal.finished
        if recorded.get("content") is None or {**recorded, "corpus": ""} != {**identity, "corpus": ""}:
            return False
        if "unpublished" in summary and metadata.uuid_of(self.client, summary["index"]) == summary["uuid"]:
            return True
        return version_writer.stands(self.client, recorded["index"], summary["index"], summary["uuid"])

    def _begin(self, identity: dict[str, Any]) -> None:
        journal, options = self.journal, self.options
        journal.require_free()
        name, appending = self.place.name, options.if_exists == "append"
        # An index that is there is refused otherwise, whatever it is.
        if options.if_exists != "fail" and (live := read_live(self.client, name)) is not None:
            require_unblocked(self.client, name, live.name, live.settings, appending=appending)
            if appending:
                self.pipeline = self.pipeline.of_index(live.meta, live.name)
        made, source = self.pipeline.fingerprint(), self.source
        engine = options.shape.engine or LUCENE
        shards = shards_of_corpus(source.total, made.dimension, engine, source.document_bytes)
        token, kept = uuid4().hex, self.pipeline.to_metadata()
        # Who is killed between the two leaves a version that the next run knows for its own.
        journal.set_fact(_PLANNED, token)
        try:
            self.target = target = version_writer.open_for_writing(
                self.client,
                name,
                made,
                kept,
                if_exists=options.if_exists,
                fast=options.fast,
                token=token,
                body=self.kind.body,
                during=self.kind.during,
                shape=options.shape._replace(shards=shards),
                fields=options.fields,
                field_types=source.field_types,
            )
        except (LangshiftError, RequestError):
            # Refused: nothing was made.
            journal.set_fact(_PLANNED, None)
            raise
        if not target.created:
            self._keep_languages(target.index)
            map_page(self.client, target.index, target.fields)
        elif self.kind.body is None:
            self._say_types()
            self._say_shards(target.index, shards)
        self.base = first_version(self.client, target, _last(journal), options.patience)
        facts = {"index": target.index, "uuid": target.uuid, "created": target.created, "fast": options.fast}
        facts |= {"shape": noted(options.shape), "base": self.base, _RESUMABLE: self.source.resumable}
        journal.begin(identity, facts)

    def begin_again(self, base: int) -> None:
        """Count no line as handled any more, so that all of them are written under later versions.

        Args:
            base: the version that line 0 has from now on.
        """
        journal = self.journal
        facts = {name: journal.fact(name) for name in ("index", "uuid", "created", "fast", "shape", _RESUMABLE)}
        journal.begin(journal.identity, {**facts, "base": base})
        self.base, self.resumed = base, 0

    def _say_types(self) -> None:
        """Tell what the first documents have told of the types of fields."""
        found, declared = self.source.field_types, self.options.shape.dates
        if found is None:
            return
        if dates := [path for path in found.dates if path not in declared]:
            named = join_words([f"{path}.date" for path in dates])
            note(f"{join_words(dates)} {_have(dates)} dates, by the first documents: {named} can be searched by range.")

    def _say_shards(self, index: str, shards: int) -> None:
        """Say that an index has more than one shard, unless a person has said how many it has."""
        template = self.options.shape.template
        if shards > 1 and not (template and "number_of_shards" in template.settings):
            note(
                f"{index} has {shards:,} shards, by the size of the corpus (as `langshift doctor --size` says); "
                "number_of_shards in a --template sets another number."
            )

    def _keep_languages(self, index: str) -> None:
        """Have an index keep the languages that detection is limited to from now on, where that is new."""
        made = dict(metadata.read_metadata(self.client, index)[metadata.FINGERPRINT])
        before, now = made.get("languages", []), self.pipeline.detector.languages
        if before != now:
            metadata.change(self.client, index, {metadata.FINGERPRINT: {**made, "languages": now}})
            former = f"{join_words(before)} before" if before else "all before"
            note(f"Loads into {self.place.name} detect only {join_words(now)} from now on ({former}).")

    def _give_up(self) -> None:
        """Leave a load that was cut off, if that is what the person wants, or if its version is gone.

        Raises:
            UsageError: nobody says so.
        """
        client, journal, name = self.client, self.journal, self.place.name
        index, corpus = journal.fact("index"), journal.identity.get("corpus")
        handled = pluralize(journal.handled_lines(), "line")
        there = version_writer.may_reopen(client, name, index, journal.fact("uuid"))
        stays = journal.fact(_RESUMABLE) and there and self.options.if_exists not in ("replace", "new-version")
        if not (stays and journal.shared):
            journal.take_over()
            version_writer.restore(client, index)
        if stays:
            status = f"with the state {journal.shown} is under way, or was" if journal.shared else "was"
            raise (OwnershipLost if journal.shared else UsageError)(
                f"A load of {corpus} into {name} {status} interrupted after {handled}: continue it with --resume, or "
                f"remove {journal.shown} to abandon it."
            )
        if journal.fact("created"):
            version_writer.discard(client, Target(name, index, journal.fact("uuid"), True, None, "fail"))
        note(f"A load of {corpus} into {name} that was interrupted after {handled} is abandoned.")


def _have(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _last(journal: Journal) -> int:
    """The version of the last line of the load before, whose dead letters must be older than this one's; else 0."""
    if journal.begun:
        return int(journal.fact("base")) + journal.last_line()
    return 0 if journal.finished is None else int(journal.finished[1]["last"])
