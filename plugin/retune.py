"""Another shift for the documents of an index, and the way back: planned, and made inside the cluster."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from opensearchpy import OpenSearch

from langshift.debias.debiaser import Debiaser, recommended, require_gamma, require_own
from langshift.debias.vectors import LanguageVectors, shipped
from langshift.errors import ClusterError, UsageError
from langshift.plugin import index_health, metadata, pipelines, shift_script, stored_shift
from langshift.plugin.index_body import copied_body, map_page, require_engine
from langshift.plugin.index_sample import require_vectors_as_written
from langshift.plugin.inventory import TranslatedPages, find_version, translations_of, versions_of
from langshift.plugin.metadata import FieldNames
from langshift.plugin.stored_shift import StoredShift, expected
from langshift.plugin.transfer import run, state
from langshift.plugin.versions import IndexInfo, live
from langshift.plugin.whole_view import require_whole_view
from langshift.server_errors import unblocking
from langshift.settings import VERSION
from langshift.wording import join_words, pluralize


def require_retunable(client: OpenSearch, index: IndexInfo, vectors: str | None) -> None:
    """Refuse an index whose documents' shift cannot be taken back, or that cannot be blocked at the end.

    Args:
        client: the cluster.
        index: the live version.
        vectors: hash of the language vectors that it was made with.

    Raises:
        ClusterError: saying why, with one of the documents.
    """
    name, settings = index.index, metadata.read_settings(client, index.index)
    require_blockable(name, settings, "retune")
    require_copied_from_primaries(name, settings)
    require_whole_view(client, name, "a retune")
    require_vectors_as_written(client, index)
    _require_stamps(client, index, vectors)


def require_blockable(index: str, settings: Mapping[str, Any], kind: Literal["retune", "reencode"]) -> None:
    """Refuse an index whose writes cannot be held back at the end, by the ``index`` part of its settings.

    Raises:
        ClusterError: saying what to change.
    """
    if blocks := index_health.blocks_of(settings, appending=False):
        raise ClusterError(
            f"Index {index} has the block {join_words(blocks)}, with which a {kind} cannot hold back the last writes: "
            f"{unblocking(index, blocks)}, then run the command again."
        )


def require_copied_from_primaries(index: str, settings: Mapping[str, Any]) -> None:
    """Refuse an index of which ``_reindex`` may read a copy that lags behind, by the ``index`` part of its settings.

    Raises:
        ClusterError: saying what to change meanwhile.
    """
    if lagging_replicas(settings):
        remedy = '{"index": {"number_of_replicas": 0, "auto_expand_replicas": false}}'
        raise ClusterError(
            f"Index {index} has replicas with segment replication, which may lag behind the latest writes while "
            f"documents are copied: remove them for now with `PUT /{index}/_settings` and {remedy}, then run again."
        )


def lagging_replicas(settings: Mapping[str, Any]) -> bool:
    """Whether an index has replicas that take segments over and not writes, by the ``index`` part of its settings."""
    by_segment = settings.get("replication", {}).get("type") == "SEGMENT"
    return by_segment and int(settings.get("number_of_replicas", 1)) > 0


def all_agree(client: OpenSearch, index: IndexInfo, shift: StoredShift) -> bool:
    """Whether no document was shifted by another scale than its index says, as one that came from another version."""
    client.indices.refresh(index=index.index)
    return not shift_script.count_stamps(client, index.index, shift, index.fields).other_scale


def _require_stamps(client: OpenSearch, index: IndexInfo, vectors: str | None) -> None:
    client.indices.refresh(index=index.index)
    stamp, unmoved = index.fields.stamp, shift_script.unmoved_query(index.fields)
    own = [] if vectors is None else [{"term": {f"{stamp}.vectors": vectors}}]
    stamped = {"exists": {"field": f"{stamp}.alpha"}}
    kinds = {
        "no stamp shows what was done to the vector of {}": ([], [stamped]),
        "{} was shifted by language vectors other than the index's": ([stamped], [unmoved, *own]),
    }
    for reason, (must, must_not) in kinds.items():
        query = {"bool": {"filter": [{"exists": {"field": index.fields.vector}}, *must], "must_not": must_not}}
        body = {"query": query, "size": 1, "track_total_hits": True, "_source": False}
        found = client.search(index=index.index, body=body)["hits"]
        if number := found["total"]["value"]:
            why = reason.format(found["hits"][0]["_id"])
            remedy = f"`langshift ingest CORPUS --index {index.name} --if-exists append`"
            raise ClusterError(
                f"{pluralize(number, 'document')} of {index.index} cannot be retuned (for example, {why}): index such "
                f"documents again with {remedy}, or delete them."
            )


def shift_transform(
    client: OpenSearch, old: StoredShift, new: StoredShift, fields: FieldNames
) -> state.ScriptTransform:
    """The way from one shift to another, with its script on the cluster.

    Args:
        client: the cluster.
        old: how the documents are shifted.
        new: how they are to be.
        fields: the names of their fields.
    """
    script, params = shift_script.install(client), shift_script.params(old, new, fields, pipeline=False)
    moved, agreed = (shift_script.matching_stamp_query(shift, fields) for shift in (old, new))
    late = {"bool": {"filter": [moved], "must_not": [agreed]}}
    return state.ScriptTransform(script, params, expected(old, new, fields), fields.vector, fields.stamp, late)


@dataclass(frozen=True)
class RetuneRequest:
    """What is asked for.

    Attributes:
        alpha: scale of all languages, which forgets those of single ones; None leaves what the index has, or takes
            what ``vectors`` recommends.
        alphas: scales of single languages, by tag, set on top of that.
        vectors: a file of other language vectors; None for the index's own.
        gamma: how much of what all queries have in common documents lose, 0 or .9 to .98; None leaves what the index
            has, or takes what ``vectors`` recommends, but 0 beside an alpha.
        own: how much nearer documents are moved to queries in their own language, 0 to .1; None as with gamma.
    """

    alpha: float | None = None
    alphas: Mapping[str, float] = field(default_factory=dict)
    vectors: Path | None = None
    gamma: float | None = None
    own: float | None = None


class RetunePlan(NamedTuple):
    """What a retune does.

    Attributes:
        old: how the documents are shifted.
        new: how they are to be.
        meta: what the new version keeps under ``_meta``.
        changes: whether anything does.
    """

    old: StoredShift
    new: StoredShift
    meta: dict[str, Any]
    changes: bool


def plan_retune(
    index: IndexInfo, meta: Mapping[str, Any], wanted: RetuneRequest, found: TranslatedPages | None = None
) -> RetunePlan:
    """Put together what a retune does.

    Args:
        index: the live version.
        meta: its whole ``_meta``.
        wanted: what is asked for.
        found: how far the index is translated.

    Raises:
        UsageError: what is asked for cannot be had from this index, or the file cannot be read.
        ClusterError: the index's shift cannot be taken back.
        FingerprintError: the vectors were fitted with another encoder.
    """
    made, given = index.fingerprint, _given(index, wanted.vectors)
    old = stored_shift.from_metadata(meta, index.index)
    new = _new(index, old, given, wanted, found.share if found else 0.0)
    fingerprint = replace(
        made,
        pivot=new.pivot,
        vectors=new.hash,
        alpha=new.alpha,
        alphas=dict(new.alphas),
        gamma=new.gamma,
        own=new.own,
        own_vectors=new.own_hash if new.own else None,
        langshift=VERSION,
    )
    new_meta = {**meta, metadata.FINGERPRINT: fingerprint.to_dict(), metadata.VECTORS: new.to_dict()}
    return RetunePlan(old, new, new_meta, old.to_dict() != new.to_dict() or bool(made.differences(fingerprint)))


def _given(index: IndexInfo, path: Path | None) -> LanguageVectors | None:
    """The vectors of the file that is asked for."""
    if path is None:
        return None
    given = LanguageVectors.load(path)
    given.require_made_by(index.fingerprint.to_dict(), str(path))
    return given


def _new(
    index: IndexInfo, old: StoredShift, given: LanguageVectors | None, wanted: RetuneRequest, translated: float
) -> StoredShift:
    base = old if given is None else recommended(given, None, wanted.gamma, wanted.own, translated)
    alpha, alphas = (base.alpha, base.alphas) if wanted.alpha is None else (wanted.alpha, {})
    # An alpha for vectors of its own comes without the scales that were recommended with another.
    alone = wanted.vectors is not None and wanted.alpha is not None
    gamma, own = (0.0 if alone else one for one in (base.gamma, base.own))
    gamma = gamma if wanted.gamma is None else require_gamma(wanted.gamma)
    own = own if wanted.own is None else require_own(wanted.own)
    vectors = old.vectors if given is None else given.vectors
    if not vectors and (alpha or gamma or own or wanted.alphas):
        raise UsageError(
            f"Index {index.name} was built without language vectors, so nothing can be shifted: "
            "give some with --vectors."
        )
    for tag in wanted.alphas:
        if tag not in vectors:
            raise UsageError(
                f"There is no language vector for {tag} to scale: --alpha-for accepts {', '.join(sorted(vectors))}."
            )
    scales = {tag: scale for tag, scale in sorted({**alphas, **wanted.alphas}.items()) if scale != alpha}
    if given is not None:
        return stored_shift.of_debias(Debiaser(given, alpha, scales, gamma, own))
    if gamma and old.step is None:
        raise UsageError(
            f"Index {index.name} was built without the common mean and the directions that a gamma takes out: give "
            "language vectors that have them with --vectors."
        )
    if own and not old.own_vectors:
        old = _with_preference(index, old)
    return replace(old, alpha=alpha, alphas=scales, gamma=gamma, own=own)


def _with_preference(index: IndexInfo, old: StoredShift) -> StoredShift:
    """The shift of an index that was made before there were preference vectors, with those shipped for its encoder."""
    path = shipped(index.fingerprint.encoder)
    known = None if path is None else LanguageVectors.load(path)
    if known is None or known.hash != old.hash:
        raise UsageError(
            f"Index {index.name} was built without preference vectors for --own: give language vectors that have them "
            "with --vectors."
        )
    return replace(old, own_vectors=known.own_vectors, scatter=known.scatter)


#: Looks at the live version and the new one by their names, and raises where the new one is not to go live.
Check = Callable[[str, str], None]


def retune(
    client: OpenSearch,
    name: str,
    wanted: RetuneRequest,
    *,
    throttle: float | None = None,
    patience: float = 300,
    watch: state.TransferListener = lambda _: None,
    check: Check | None = None,
) -> state.TransferResult:
    """Make a version with another shift from the live one, and let the alias stand for it.

    Killed at any moment, it leaves the version before live and complete, and can be run again.

    Args:
        client: the cluster.
        name: the alias.
        wanted: the scales and language vectors.
        throttle: documents a second at most; None for as many as the cluster manages.
        patience: seconds to wait for a cluster that takes nothing.
        watch: told how far it is.
        check: called before the new version goes live.

    Raises:
        UsageError: what is asked for cannot be had from this index.
        ClusterError: the index's shift cannot be taken back, or the cluster does not do its part.
        FingerprintError: the vectors were fitted with another encoder.
    """
    # A version that is named by itself is refused: others stand behind the alias by and by.
    left = run.finish_abandoned(client, name)
    index = live(client, name)
    body = copied_body(client, index.index)
    meta = body["mappings"]["_meta"]
    found = None if wanted.vectors is None else translations_of(client, index.index, index.fields)
    plan = plan_retune(index, meta, wanted, found)
    new = plan.new
    # By what a later run knows a version that it may go on with.
    requested = {"vectors": new.hash, "pivot": new.pivot, "alpha": new.alpha, "alphas": dict(new.alphas)}
    requested |= {"gamma": new.gamma, "own": new.own, "own_vectors": new.own_hash if new.own else None}
    if not plan.changes and all_agree(client, index, new):
        # Nothing goes on with what another run has left, which may hold up writers.
        run.clear_abandoned(client, name)
        # One that was killed right after the swap has just been finished: that is what was asked for.
        if left is not None and left.requested == requested:
            return replace(left, documents=index.documents)
        return state.TransferResult(name, index.index, index.index, requested, documents=index.documents)
    require_retunable(client, index, plan.old.hash)
    body["mappings"]["_meta"] = plan.meta
    require_engine(client, body)
    if pipelines.installed(client, index.index) is not None:
        # The new version gets one of its own, when it is complete.
        del body["settings"]["index"]["default_pipeline"]

    def gate(version: str) -> None:
        # Asked only now, as somebody may have put it there meanwhile: clients go on sending raw vectors.
        pipelines.inherit_pipeline(client, index.index, version, new, index.fields)
        if check is not None:
            check(index.index, version)

    transform = shift_transform(client, plan.old, new, index.fields)
    asked = state.TransferPlan(name, body, requested, transform, throttle=throttle)
    done = run.transfer(client, asked, watch=watch, gate=gate, patience=patience)
    return replace(done, documents=done.documents or index.documents)


#: What brings documents back to the version before a reencode, from the cluster and the names of both versions.
ReencodedBack = Callable[[OpenSearch, str, str], state.ClientTransform]


def roll_back(
    client: OpenSearch,
    name: str,
    *,
    to: str | None = None,
    patience: float = 300,
    watch: state.TransferListener = lambda _: None,
    reencoded_back: ReencodedBack | None = None,
) -> state.TransferResult:
    """Let an alias stand for the version before the live one again, or for any other that is complete.

    Args:
        client: the cluster.
        name: the alias.
        to: the version that is to be live, such as ``news-v0003``, ``v0003`` or ``3``; None for the one before the live
            one.
        patience: seconds to wait for a cluster that takes nothing.
        watch: told how far it is.
        reencoded_back: needed where a reencode made one of the two versions.

    Raises:
        UsageError: there is no version ``to``, or it is the live one.
        ClusterError: there is no version before, or it is not complete, or the cluster does not do its part.
    """
    # A version that is named by itself is refused.
    done = run.finish_abandoned(client, name)
    version = None if to is None else _complete(client, name, to, done)
    if done is None or done.requested is not None or version not in (None, done.index):
        plan = run.plan_rollback(client, name, version)
        for one in (plan.live, plan.version):
            require_whole_view(client, one, "a rollback")
        transform = _rollback_transform(client, plan, reencoded_back)
        done = run.roll_back(client, name, transform, to=version, watch=watch, patience=patience)
    return done if done.documents else replace(done, documents=live(client, name).documents)


def _complete(client: OpenSearch, name: str, version: str, done: state.TransferResult | None) -> str:
    """The version that a person names, once it is known that it can be made live, or has just been.

    Raises:
        UsageError: there is none of that name, or it is the live one.
        ClusterError: there is no index of that name, or the version is not complete.
    """
    if not (found := versions_of(client, name)):
        raise ClusterError(f"There is no index {name}: nothing can be rolled back.")
    one = find_version(name, version, found)
    if one.state == "live" and (done is None or done.requested is not None):
        raise UsageError(f"{name} already points to {one.version}: name another version, or leave --to out.")
    # What a rollback has left is complete.
    if one.unfinished != "rollback":
        live(client, one.version)
    return one.version


def _rollback_transform(
    client: OpenSearch, plan: run.RollbackPlan, reencoded_back: ReencodedBack | None
) -> state.ScriptTransform | state.ClientTransform | None:
    """How documents of the live version become those of the version that takes its place; None where none do.

    Where a pipeline shifts what clients write to the live version, one of the other version is made ready too.
    """
    index, version = plan.live, plan.version
    if plan.kind == "reencode" and reencoded_back is not None:
        return reencoded_back(client, index, version)
    fields = FieldNames.from_meta(metadata.read_metadata(client, version))
    if plan.kind == "retune":
        require_copied_from_primaries(index, metadata.read_settings(client, index))
    map_page(client, version, fields)
    # Clients go on sending raw vectors through the alias, also where the live one alone has got a pipeline.
    if pipelines.installed(client, index) is not None:
        pipelines.inherit_pipeline(client, index, version, stored_shift.read(client, version), fields)
    if plan.kind != "retune":
        return None
    return shift_transform(client, stored_shift.read(client, index), stored_shift.read(client, version), fields)
