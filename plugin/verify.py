"""What ``langshift pipeline verify`` does and prints."""

from __future__ import annotations

import json

from opensearchpy import OpenSearch

from langshift.cluster import open_cluster
from langshift.console import counted, emit_json, note, out
from langshift.errors import ClusterError
from langshift.plugin import pipeline
from langshift.plugin.engine import vectors_come_back_normalised
from langshift.plugin.index_shift import shift_of
from langshift.plugin.sample import CLUSTER_DIFFERS, STORED_DIFFERS, Compared, compare
from langshift.plugin.shift_index_shift import IndexShift
from langshift.plugin.stamps import Stamps, count_stamps
from langshift.plugin.versions import LiveIndex, live


def run_verify(name: str, sample: int, *, as_json: bool) -> int:
    """Compare the installed pipeline with NumPy on live documents, and look at all stamps.

    Returns:
        The exit code: 0, or 1 where something differs.

    Raises:
        ClusterError: there is no such index, no pipeline is installed, or no shift can be taken back.
    """
    client = open_cluster()
    index = live(client, name)
    shift = shift_of(client, index)
    installed = _installed(client, name, index)
    stamps = count_stamps(client, index.index, shift, index.fields)
    compared = compare(client, index, shift, installed, sample)
    wrong = [*_outdated(client, name, index, shift, installed), *_differing(name, compared), *_stamps(index, stamps)]
    if as_json:
        emit_json(
            {
                "index": index.index,
                "pipeline": installed.name,
                "first": installed.first.name if installed.first else None,
                "compared": compared._asdict(),
                "stamps": stamps._asdict(),
                "wrong": wrong,
            }
        )
    else:
        _say(index, installed.name, compared, stamps)
        for sentence in wrong:
            note(sentence)
    return 1 if wrong else 0


def _installed(client: OpenSearch, name: str, index: LiveIndex) -> pipeline.Installed:
    """The pipeline to verify.

    Raises:
        ClusterError: none is installed, or nothing can be compared with what is stored.
    """
    if vectors_come_back_normalised(client, index.index, index.fields.vector):
        raise ClusterError(
            f"Index {index.index} gives its vectors back with norm 1 (engine faiss, cosinesimil, derived source), so "
            "that no shift can be taken back and compared: index the corpus again with "
            "`langshift ingest --if-exists new-version`, which switches derived source off."
        )
    installed = pipeline.installed(client, index.index)
    if installed is None:
        raise ClusterError(
            f"{index.index} has no pipeline of langshift's: install it with `langshift pipeline install {name}`."
        )
    return installed


def _say(index: LiveIndex, name: str, compared: Compared, stamps: Stamps) -> None:
    held = f"{counted(stamps.vectors, 'document')} of {index.index} with a vector"
    if not compared.documents:
        out.print(f"{held}, none to compare by.", soft_wrap=True)
        return
    out.print(
        f"{name} on {compared.documents:,} of {held}: what the cluster makes is within {compared.cluster:.1e} of "
        f"NumPy's, and what is stored within {compared.stored:.1e} (shares of a vector's norm).",
        soft_wrap=True,
    )


def _outdated(
    client: OpenSearch, name: str, index: LiveIndex, shift: IndexShift, installed: pipeline.Installed
) -> list[str]:
    if pipeline.is_current(client, index.index, shift, index.fields, installed):
        return []
    return [f"{installed.name} is not as this langshift makes it: `langshift pipeline install {name}` puts that right."]


def _differing(name: str, compared: Compared) -> list[str]:
    """One sentence for each thing that differs in the sample."""
    said = []
    if compared.refused:
        said.append(f"The pipeline refused {counted(compared.refused, 'document')} of the sample: {compared.refusal}")
    if compared.cluster > CLUSTER_DIFFERS:
        said.append(
            f"The cluster shifts otherwise than NumPy (document {compared.worst}): install the pipeline again with "
            f"`langshift pipeline install {name}`, and report it if that does not help."
        )
    if compared.stored > STORED_DIFFERS:
        said.append(
            "Shifting back and again does not return what is stored: the engine does not keep vectors as they are "
            "written."
        )
    if compared.other_language:
        said.append(
            f"{counted(compared.other_language, 'document')} of the sample would be shifted by another language "
            f"today than by the stamp's (document {compared.renamed}): write them again with their raw vectors."
        )
    if compared.off_norm:
        said.append(
            f"{counted(compared.off_norm, 'document')} of the sample without the encoder's norm when the shift is "
            f"taken back (document {compared.strange}): the vector was replaced and the stamp was not. "
            "Write such documents again with their raw vectors."
        )
    return said


def _stamps(index: LiveIndex, stamps: Stamps) -> list[str]:
    """One sentence for each kind of stamp that does not agree with the index."""
    field, request = index.fields.stamp, f"`POST /{index.index}/_update_by_query`"
    stamped = {"exists": {"field": f"{field}.alpha"}}
    said = []
    if stamps.without:
        said.append(
            f"{counted(stamps.without, 'document')} with a vector and without a stamp in {field}: if the vectors are "
            f"raw, {request} with {json.dumps({'query': {'bool': {'must_not': stamped}}})} shifts them."
        )
    if stamps.other_scale:
        said.append(
            f"{counted(stamps.other_scale, 'document')} shifted by another scale than the index's: {request} with "
            f"{json.dumps({'query': stamped})} puts that right."
        )
    if stamps.other_vectors:
        said.append(
            f"{counted(stamps.other_vectors, 'document')} shifted by other language vectors than the index's: write "
            f"them again with their raw vectors, and without {field}."
        )
    return said
