"""A person's own settings and mappings, from a file, merged over langshift's when a version is made."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opensearchpy.exceptions import RequestError

from langshift.errors import ClusterError, UsageError
from langshift.failures import reason
from langshift.plugin.engine import LUCENE, Engine, set_engine
from langshift.plugin.template_check import Refused, check_mappings, check_settings, check_top, is_of_texts

# What OpenSearch's own plugins call their analyzers, tokenizers and filters.
_PLUGINS = {
    "analysis-kuromoji": "kuromoji kuromoji_tokenizer kuromoji_baseform kuromoji_part_of_speech kuromoji_readingform "
    "kuromoji_stemmer kuromoji_number kuromoji_completion kuromoji_iteration_mark ja_stop",
    "analysis-nori": "nori nori_tokenizer nori_part_of_speech nori_readingform nori_number",
    "analysis-smartcn": "smartcn smartcn_tokenizer smartcn_stop",
    "analysis-icu": "icu_analyzer icu_tokenizer icu_normalizer icu_folding icu_collation icu_transform "
    "icu_collation_keyword",
    "analysis-phonetic": "phonetic",
    "analysis-stempel": "polish polish_stem polish_stop",
    "analysis-ukrainian": "ukrainian",
}
# The server's words for what it lacks: analyzer [x] has not been configured, Unknown filter type [x], failed to find
# tokenizer under name [x].
_LACKING = re.compile(r"(?:\banalyzer|\btype|\bname) \[(\w+)\]")


@dataclass(frozen=True)
class Template:
    """What a file of a person's own says.

    Attributes:
        path: the file.
        settings: flat, by names less ``index.``.
        mappings: with fields within each other instead of names with dots.
    """

    path: Path
    settings: Mapping[str, Any]
    mappings: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Template:
        """Read a file with the ``settings``, ``mappings`` and ``analyzers`` of an index.

        Raises:
            UsageError: it cannot be read, or would change what langshift relies on.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror or error}.") from error
        except json.JSONDecodeError as error:
            where = f"{path}, line {error.lineno}, column {error.colno}"
            raise UsageError(f"{where}: is no JSON ({error.msg}); correct it.") from None
        except (UnicodeDecodeError, RecursionError):
            raise UsageError(f"{path}: is no JSON; give a file that is.") from None
        try:
            content = check_top(content)
            settings, mappings = _flat(content.get("settings", {})), _nested(content.get("mappings", {}))
            check_settings(settings)
            check_mappings(mappings)
        except Refused as error:
            raise UsageError(f"{path}, {error.place}: {error}" if error.place else f"{path}: {error}") from None
        of_languages = {tag: {"analyzer": analyzer} for tag, analyzer in content.get("analyzers", {}).items()}
        both = {field: {"properties": deepcopy(of_languages)} for field in ("title", "text")} if of_languages else {}
        return cls(path, settings, _merged({"properties": both}, mappings))

    @property
    def hash(self) -> str:
        """Names the content; another order of keys makes no difference."""
        return hashlib.sha256(json.dumps([self.settings, self.mappings], sort_keys=True).encode()).hexdigest()

    def merge_into(self, body: dict[str, Any]) -> None:
        """Merge it over the body of an index that is about to be made, as ``index_body`` gives it."""
        settings, mappings = body["settings"]["index"], body["mappings"]
        if "number_of_replicas" in self.settings and "auto_expand_replicas" not in self.settings:
            # Would have its way over any number.
            settings.pop("auto_expand_replicas", None)
        settings.update(self.settings)
        templates = _in_order(self.mappings.get("dynamic_templates", []), mappings["dynamic_templates"])
        body["mappings"] = {**_merged(mappings, self.mappings), "dynamic_templates": templates}
        for field in ("title", "text"):
            for mapping in body["mappings"]["properties"][field]["properties"].values():
                mapping.setdefault("type", "text")

    def refused(self, error: RequestError) -> ClusterError:
        """What the server says against it, as one sentence with the remedy."""
        told = _reason(error)
        lacking = set(_LACKING.findall(told))
        plugin = next((plugin for plugin, names in _PLUGINS.items() if lacking.intersection(names.split())), None)
        remedy = "correct the file"
        if plugin:
            remedy = f"install the plugin {plugin} on every node (`opensearch-plugin install {plugin}`) and restart it"
        return ClusterError(f"The cluster makes no index as {self.path} has it: {told}; {remedy}.")


@dataclass(frozen=True)
class Shape:
    """How a version is made, where a person says so; nothing of it counts for one that is there.

    Attributes:
        template: settings and mappings of their own.
        engine: what indexes the vectors; None for Lucene.
    """

    template: Template | None = None
    engine: Engine | None = None

    @property
    def given(self) -> str:
        """The options that say it; empty where none does."""
        options = {"--template": self.template, "--engine": self.engine}
        return " and ".join(name for name, value in options.items() if value is not None)

    def applied(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body of an index that is about to be made, as ``index_body`` gives it, changed in place."""
        set_engine(body, self.engine or LUCENE)
        if self.template is not None:
            self.template.merge_into(body)
        return body


USUAL_SHAPE = Shape()


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings by their whole names, less ``index.``."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        whole = f"{prefix}{name}"
        flat.update(_flat(value, f"{whole}.") if isinstance(value, Mapping) else {whole: value})
    return flat if prefix else {name.removeprefix("index."): value for name, value in flat.items()}


def _nested(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Fields within each other, where a name with dots stands for that."""
    made = dict(mapping)
    if isinstance(properties := mapping.get("properties"), Mapping):
        fields: dict[str, Any] = {}
        for name, field in properties.items():
            first, _, rest = name.partition(".")
            inner = {"properties": {rest: field}} if rest else field
            fields = _merged(fields, {first: _nested(inner) if isinstance(inner, Mapping) else inner})
        made["properties"] = fields
    return made


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Two objects as one; where both have a value that is no object, the other's counts."""
    made = dict(one)
    for name, value in other.items():
        mine = made.get(name)
        made[name] = _merged(mine, value) if isinstance(mine, Mapping) and isinstance(value, Mapping) else value
    return made


def _in_order(theirs: list[dict[str, Any]], ours: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Dynamic templates, of which the first that fits counts: theirs before ours.

    One of theirs for all strings must not make something else of a text in a language that has no field yet.
    """
    names = {name for template in theirs for name in template}
    ours = [template for template in ours if names.isdisjoint(template)]
    of_texts = [template for template in theirs if is_of_texts(template)]
    others = [template for template in theirs if not is_of_texts(template)]
    return [
        *of_texts,
        *(template for template in ours if is_of_texts(template)),
        *others,
        *(template for template in ours if not is_of_texts(template)),
    ]


def _reason(error: RequestError) -> str:
    """The server's words; where it failed to build analyzers, why."""
    cause = error.info.get("error") if isinstance(error.info, dict) else None
    suppressed = cause.get("suppressed") if isinstance(cause, dict) else None
    told = str(suppressed[0].get("reason") or "") if suppressed else ""
    return " ".join(told.split()).rstrip(".") or reason(error)
