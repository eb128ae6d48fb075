"""What a user does with langshift on one server and engine, each with a look at what came of it; a row of a table.

docker/check-versions.sh runs this file, for the server that OPENSEARCH_URL names:

    python tests/support/server_checks.py LABEL ENGINE...
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
from command_line import langshift
from console_process import serving
from native_agreement import QUERY_MODES, Agreement, by_query
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException
from server_table import rows_of

from langshift.client import make_client
from langshift.debias.encoders import open_encoder
from langshift.debias.vectors import LanguageVectors, shipped
from langshift.errors import LangshiftError
from langshift.evaluate.demo import FOLDER
from langshift.ingest.transform import full_text
from langshift.plugin.index_body import COMPRESSION
from langshift.retrieval.question import SearchQuery
from langshift.retrieval.request import SearchSettings
from langshift.settings import Settings

#: Of the bundled corpus, so that each load takes seconds.
LANGUAGES, TOPICS = ("de", "en", "ru", "th"), 24
ENCODER = "use-m"
MODES = ("dense", "balanced", "anchored", "hybrid", "lexical")
#: Searches of the plugin drawn at random.
DRAWN = 60
# The bits of numbers lead to what is nearest but for one of a hundred.
_MOST_APART = {"faiss-on-disk": 1}
# Numbers of two bytes or whole vectors: the server goes by either.
_DIGITS = {"faiss-fp16": 3}
_TEXT = "Der Leuchtturm steht auf einer Klippe am Meer, und sein Licht ist weit zu sehen."


class Refused(Exception):
    """A command or a request was refused, or what came of it is wrong; in a sentence."""


class CheckedServer(NamedTuple):
    """A server.

    Attributes:
        environment: the settings by which commands of a user reach it.
        client: that user's.
        maker: of somebody who may make indices that are not langshift's.
    """

    environment: Mapping[str, str]
    client: OpenSearch
    maker: OpenSearch


def names_of(engine: str) -> tuple[str, str, str]:
    """The indices that are made: of documents, of chunks, and one that is adopted of another, its name and ``-old``."""
    return f"checked-{engine}", f"checked-{engine}-chunks", f"checked-{engine}-adopted"


class Checks:
    """The checks of one engine, which build on each other.

    Attributes:
        server: where they are made, which may change in between where the data stays.
        found: column -> "yes", or what was refused, in a sentence.
    """

    def __init__(self, server: CheckedServer, engine: str, folder: Path) -> None:
        """Write a corpus and questions.

        Args:
            server: where they are made.
            engine: as ``langshift ingest --engine`` has it.
            folder: for files; empty.
        """
        self.server, self.found, self._engine, self._folder = server, dict[str, str](), engine, folder
        self._name, self._chunked, self._adopted = names_of(engine)
        self._encoder, self._offsets = open_encoder(ENCODER), LanguageVectors.load(shipped(ENCODER)).vectors
        self._tags = dict(_lines_of("languages.tsv"))
        topics = sorted({name.rpartition("-")[0] for name in self._tags if "-" in name})[:TOPICS]
        self._documents = {one["_id"]: one for one in self._part("corpus.jsonl", topics)}
        self._questions = self._part("queries.jsonl", topics)
        named = {one["_id"] for one in self._questions}
        judged = [(query, one, grade) for query, one, grade in _lines_of("qrels/test.tsv") if query in named]
        judged = [one for one in judged if one[1] in self._documents]
        (folder / "qrels").mkdir()
        table = [("query-id", "corpus-id", "score"), *judged]
        (folder / "qrels" / "test.tsv").write_text("".join("\t".join(row) + "\n" for row in table), encoding="utf-8")
        texts = [full_text(one["title"], one["text"]) for one in self._documents.values()]
        self._raw = dict(zip(self._documents, self._encoder.encode_documents(texts), strict=True))
        self._asked = [*self._near("de"), *self._near("en")]
        self._before: dict[str, Any] = {}

    def run(self, columns: Sequence[str]) -> None:
        """Make some of the checks, in this order."""
        for column in columns:
            try:
                CHECKS[column](self)
            except (Refused, AssertionError, LangshiftError, OpenSearchException, httpx.HTTPError) as error:
                self.found[column] = " ".join(str(error).split())
            else:
                self.found[column] = "yes"

    def remember(self) -> None:
        """Keep what searches find now: a later check of them must find the same."""
        self._before = {f"{mode} {one['_id']}": self._search(mode, one) for mode in MODES for one in self._asked}

    def doctor(self) -> None:
        """It names the version and the engine, and finds nothing missing."""
        found = {one["name"]: one for one in self._json("doctor", "--json")["findings"] if one["section"] == "cluster"}
        number = self.server.client.info()["version"]["number"]
        _require(found["version"]["value"] == f"OpenSearch {number}", f"doctor says {found['version']['value']}")
        knn = found["opensearch-knn"]["value"]
        _require(self._engine.partition("-")[0] in knn, f"doctor says of k-NN: {knn}")
        amiss = [f"{name}: {one['value']}" for name, one in found.items() if one["status"] == "missing"]
        plugin = found.get("plugin langshift", {"status": "missing"})
        _require(not amiss and plugin["status"] == "ok", f"doctor says of the cluster {amiss}, of the plugin {plugin}")

    def ingest(self) -> None:
        """All documents are there, each vector shifted as NumPy does, by the engine that was asked for."""
        corpus = self._written("corpus.jsonl", self._documents.values())
        told = self._ingest(corpus, self._name, "--alpha", 1, "--engine", self._engine)
        _require(told["present"] == len(self._documents), f"{told['present']} documents are there")
        self._require_vectors(self._name, 1.0)
        ((_, mapping),) = self.server.client.indices.get_mapping(index=self._name).items()
        kept = mapping["mappings"]["properties"]["embedding"]
        said = (kept["method"]["engine"], kept.get("compression_level", "1x"))
        wanted = (self._engine.partition("-")[0], COMPRESSION.get(self._engine, "1x"))
        _require(said == wanted, f"the vectors are kept by {said}")

    def search(self) -> None:
        """Each mode finds a document of the question's topic; dense what exact cosines find; groups and filters hold.

        And all is as it was where that is known.
        """
        for mode in MODES:
            for one in self._asked:
                hits = self._search(mode, one)
                _require(one["group"] in {hit.rpartition("-")[0] for hit in hits}, f"{mode} does not find {one['_id']}")
                before = self._before.get(f"{mode} {one['_id']}", hits)
                _require(hits == before, f"{mode} finds {hits} for {one['_id']}, and found {before}")
        for one in self._asked:
            wanted, hits = self._nearest(one), self._search("dense", one)
            _require(len({*wanted} & {*hits}) >= len(wanted) - 1, f"dense finds {hits}, but nearest are {wanted}")
        asked = self._asked[0]
        hits = self._json("search", self._name, asked["text"], "--one-per-group", "--json")["hits"]
        _require(len({hit["group"] for hit in hits}) == len(hits) == 10, "one per group finds a group twice")
        hits = self._json("search", self._name, asked["text"], "--filter", "language=th", "--json")["hits"]
        _require({hit["language"] for hit in hits} == {"th"}, "a filter does not hold")

    def chunks(self) -> None:
        """In an index of chunks, which may be there from before, each document is found once, with its best passage."""
        topics = {one["group"] for one in self._asked} | {*[one["group"] for one in self._documents.values()][:40]}
        some = [
            one for one in self._documents.values() if one["group"] in topics and self._tags[one["_id"]] in ("de", "en")
        ]
        how = ("--chunk", "sentences:2", "--alpha", 1, "--engine", self._engine)
        if not self._before:
            self._ingest(self._written("some.jsonl", some), self._chunked, *how)
        asked = self._asked[0]
        for mode in MODES:
            hits = self._json("search", self._chunked, asked["text"], "--mode", mode, "--json")["hits"]
            found = [hit["id"] for hit in hits]
            _require(len(set(found)) == len(found), f"{mode} finds a document of chunks twice")
            right = [hit for hit in hits if hit["group"] == asked["group"] and hit["passage"]]
            _require(bool(right), f"{mode} finds no passage for {asked['_id']}")

    def updates(self) -> None:
        """A new text has a new vector, and what was deleted is gone."""
        changed, deleted = list(self._documents)[:2]
        lines = [{"_op": "update", "_id": changed, "text": _TEXT}, {"_op": "delete", "_id": deleted}]
        told = self._ingest(self._written("changes.jsonl", lines), self._name, "--if-exists", "append")
        _require((told["updated"], told["deleted"]) == (1, 1), "a line was not carried out")
        title = self._documents[changed]["title"]
        self._raw[changed] = self._encoder.encode_documents([full_text(title, _TEXT)])[0]
        del self._raw[deleted], self._documents[deleted]
        self._tags[changed] = "de"
        self._require_vectors(self._name, 1.0)
        hits = self._json("search", self._name, "Leuchtturm Klippe", "--mode", "lexical", "--json")["hits"]
        _require(changed in {hit["id"] for hit in hits}, "the new text is not found")

    def retune(self) -> None:
        """The new version has all documents, by the new scale."""
        told = self._json("retune", self._name, "--alpha", 0.5, "--json")
        _require(told["documents"] == len(self._raw), f"retune tells of {told['documents']} documents")
        self._require_vectors(self._name, 0.5)

    def rollback(self) -> None:
        """The version before is live."""
        self._json("rollback", self._name, "--json")
        self._require_vectors(self._name, 1.0)

    def reencode(self) -> None:
        """A new version of the texts, by another scale."""
        self._json("reencode", self._name, "--encoder", ENCODER, "--alpha", 0.75, "--no-calibration", "--json")
        self._require_vectors(self._name, 0.75)

    def adopt(self) -> None:
        """An index that somebody has made with this engine is audited, copied and shifted, and can be searched."""
        old = f"{self._adopted}-old"
        method: dict[str, Any] = {"name": "hnsw", "engine": self._engine.partition("-")[0]}
        method["space_type"] = "cosinesimil"
        vector = {"type": "knn_vector", "dimension": self._encoder.dimension, "method": method}
        vector |= {"compression_level": COMPRESSION[self._engine]} if self._engine in COMPRESSION else {}
        properties = {
            "vec": vector,
            "body": {"type": "text"},
            "lang": {"type": "keyword"},
            "topic": {"type": "keyword"},
        }
        body = {"settings": {"index": {"knn": True}}, "mappings": {"properties": properties}}
        self.server.maker.indices.create(index=old, body=body)
        lines: list[dict[str, Any]] = []
        for name, raw in self._raw.items():
            lines += [{"index": {"_id": name}}]
            topic, _, _ = name.rpartition("-")
            of = {"vec": raw.tolist(), "body": self._documents[name]["text"], "lang": self._tags[name], "topic": topic}
            lines += [of]
        answer = self.server.maker.bulk(index=old, body=lines, params={"refresh": "true"})
        _require(not answer["errors"], "the documents of another client were refused")
        fields = ("--vector-field", "vec", "--text-field", "body", "--language-field", "lang", "--encoder", ENCODER)
        audited = self._json("index", "audit", old, *fields, "--alpha", 1, "--json")["languages"]
        counted = sum(one["documents"] for one in audited)
        _require(counted == len(self._raw), f"the audit tells of {counted} documents")
        given = (*fields, "--group-field", "topic", "--alpha", 1, "--no-calibration")
        self._json("adopt", old, "--name", self._adopted, *given, "--json")
        self._require_vectors(self._adopted, 1.0, "vec")
        asked = self._asked[0]
        hits = self._json("search", self._adopted, asked["text"], "--mode", "dense", "--json")["hits"]
        _require(asked["group"] in {hit["group"] for hit in hits}, f"the adopted index does not find {asked['_id']}")

    def pipeline(self) -> None:
        """What another client writes is shifted as NumPy does, and the command says so itself."""
        self._json("pipeline", "install", self._name, "--json")
        told = self._json("pipeline", "verify", self._name, "--json")
        _require(not told["wrong"] and told["compared"]["documents"] == len(self._raw), f"verify says {told['wrong']}")
        self._write({"text": {"de": _TEXT}, "language": "de"})
        self._json("pipeline", "remove", self._name, "--json")

    def processor(self) -> None:
        """The plugin's processor detects the language of what another client writes, and shifts it."""
        pipeline = f"{self._name}-processor"
        self.server.client.ingest.put_pipeline(id=pipeline, body={"processors": [{"langshift": {}}]})
        try:
            self._write({"text": _TEXT}, pipeline=pipeline)
        finally:
            self.server.client.ingest.delete_pipeline(id=pipeline)

    def calibrate(self) -> None:
        """Searches then go by what was found."""
        told = self._json("anchors", "calibrate", self._name, "--json")
        found = self._json("search", self._name, self._asked[0]["text"], "--json")
        said = (found["mode"], found["mode_from"])
        _require(said == (told["mode"], "calibration"), f"a search goes by {said}")

    def replay(self) -> None:
        """All questions are asked, and most of them answered."""
        self._written("queries.jsonl", self._questions)
        how = ("--setting", "dense", "--output", self._folder / "out", "--json")
        told = self._json("evaluate", "replay", self._folder, "--index", self._name, *how)
        measures = told["measures"]
        _require(told["queries"]["asked"] == len(self._questions), f"{told['queries']['asked']} questions were asked")
        _require(measures["nDCG@20"] > 0.4, f"nDCG@20 is {measures['nDCG@20']:.3f}")

    def query(self) -> None:
        """The plugin's query finds what commands find, and what langshift's own searches find with random settings."""
        client, opened = self.server.client, {ENCODER: self._encoder}
        questions = []
        for one in self._asked:
            (vector,) = self._encoder.encode_queries([one["text"]])
            questions.append(SearchQuery(one["text"], one["language"], vector))
            for mode in QUERY_MODES:
                _, hits = by_query(client, self._name, questions[-1], SearchSettings(mode), 10)
                wanted = self._search(mode, one)
                apart = len({name for name, _ in hits} ^ {*wanted})
                _require(apart <= 2 * _MOST_APART.get(self._engine, 0), f"the query finds {hits}, {mode} {wanted}")
        drawn = Agreement(client, self._name, questions, _filters, opened=opened, digits=_DIGITS.get(self._engine, 5))
        drawn.compare(DRAWN)
        apart = len(drawn.apart)
        _require(apart <= _MOST_APART.get(self._engine, 0), f"of {DRAWN} searches {apart} differ: {drawn.apart[:1]}")

    def serve(self) -> None:
        """The service answers as the command does."""
        asked = self._asked[0]
        with (
            serving("--api", home=self._folder / "home", **self.server.environment) as console,
            console.client() as http,
        ):
            sent = {"index": self._name, "query": asked["text"], "language": asked["language"], "mode": "dense"}
            answer = http.post("/api/search", json=sent)
        _require(answer.status_code == 200, answer.text)
        found, wanted = [hit["id"] for hit in answer.json()["hits"]], self._search("dense", asked)
        _require(found == wanted, f"the service finds {found}, the command {wanted}")

    def index(self) -> None:
        """Versions are listed, described, audited and dropped."""
        listed = [one for one in self._json("index", "list", "--json")["versions"] if one["name"] == self._name]
        _require(len(listed) > 1, f"{len(listed)} versions are listed")
        described = self._json("index", "describe", self._name, "--json")
        _require(described["documents"] == len(self._raw), f"{described['documents']} documents are described")
        audited = self._json("index", "audit", self._name, "--json")["languages"]
        _require(sum(one["documents"] for one in audited) == len(self._raw), "the audit does not tell of all documents")
        for name in names_of(self._engine):
            self._run("index", "drop", name, "--yes")
        self.server.maker.indices.delete(index=f"{self._adopted}-old")
        versions = ",".join(f"{name}-v*" for name in names_of(self._engine))
        left = [*self.server.maker.indices.get(index=versions, params={"expand_wildcards": "all"})]
        _require(not left, f"{left} are left")

    def _run(self, *arguments: object) -> str:
        home = self._folder / "home"
        env = {**self.server.environment, "LANGSHIFT_HOME": str(home), "LANGSHIFT_NO_CALIBRATION": "1"}
        done = langshift(*arguments, **env)
        if done.returncode:
            told = [line for line in done.stderr.splitlines() if line.startswith("Error: ")] or [done.stderr.strip()]
            raise Refused(f"{' '.join(map(str, arguments[:2]))}: {told[-1].removeprefix('Error: ')}")
        return done.stdout

    def _json(self, *arguments: object) -> Any:
        return json.loads(self._run(*arguments))

    def _ingest(self, corpus: Path, name: str, *how: object) -> Any:
        return self._json("ingest", corpus, "--index", name, "--encoder", ENCODER, *how, "--json")

    def _search(self, mode: str, asked: Mapping[str, Any]) -> list[str]:
        how = ("--mode", mode, "--language", asked["language"], "--json")
        return [hit["id"] for hit in self._json("search", self._name, asked["text"], *how)["hits"]]

    def _near(self, language: str) -> list[dict[str, Any]]:
        """Two questions, with the title of an answer before them, of which no answer is changed by a check."""
        asked = [one for one in self._questions if one["language"] == language and one["_id"].endswith("-1")][2:4]
        titles = [self._documents[f"{one['group']}-{language}"]["title"] for one in asked]
        return [{**one, "text": f"{title} {one['text']}"} for one, title in zip(asked, titles, strict=True)]

    def _nearest(self, asked: Mapping[str, Any]) -> list[str]:
        (query,) = self._encoder.encode_queries([asked["text"]])
        stored = {name: np.array(one["embedding"]) for name, one in self._stored(self._name).items()}
        cosines = {name: float(vector @ query / np.linalg.norm(vector)) for name, vector in stored.items()}
        return sorted(cosines, key=lambda name: -cosines[name])[:10]

    def _stored(self, index: str) -> dict[str, Any]:
        self.server.client.indices.refresh(index=index)
        body = {"size": 1000, "_source": {"includes": ["*"]}}
        hits = self.server.client.search(index=index, body=body)["hits"]["hits"]
        return {hit["_id"]: hit["_source"] for hit in hits}

    def _require_vectors(self, index: str, alpha: float, field: str = "embedding") -> None:
        stored = self._stored(index)
        _require({*stored} == {*self._raw}, f"{len(stored)} documents are in {index}, not {len(self._raw)}")
        for name, source in stored.items():
            self._require_vector(name, source[field], self._raw[name], self._tags[name], alpha)

    def _require_vector(self, name: str, found: Any, raw: Any, tag: str, alpha: float) -> None:
        apart = np.abs(np.array(found) - (raw - alpha * self._offsets.get(tag, np.zeros(len(raw))))).max()
        _require(apart < 1e-5, f"the vector of {name} is {apart:.2g} away from where a shift by {alpha} has it")

    def _write(self, document: Mapping[str, Any], **how: str) -> None:
        """Write a document as another client does, look at it, and take it away again."""
        raw = self._encoder.encode_documents([_TEXT])[0]
        lines = [{"index": {"_id": "written"}}, {**document, "embedding": raw.tolist()}]
        answer = self.server.client.bulk(index=self._name, body=lines, params={"refresh": "true", **how})
        _require(not answer["errors"], str(answer["items"]))
        source = self._stored(self._name)["written"]
        _require(source["language"] == "de", f"the language is {source['language']}")
        self._require_vector("written", source["embedding"], raw, "de", source["shift"]["alpha"])
        _require(source["shift"]["alpha"] == 0.75, "the scale is not that of the index")
        self.server.client.delete(index=self._name, id="written", params={"refresh": "true"})

    def _part(self, file: str, topics: Sequence[str]) -> list[dict[str, Any]]:
        """The lines of the bundled corpus or questions that are of these topics and in the languages."""
        lines = [json.loads(line) for line in (FOLDER / file).read_text(encoding="utf-8").splitlines()]
        tags = {one["_id"]: one.get("language") or self._tags[one["_id"]] for one in lines}
        return [one for one in lines if one["group"] in topics and tags[one["_id"]] in LANGUAGES]

    def _written(self, file: str, lines: Any) -> Path:
        path = self._folder / file
        path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lines), encoding="utf-8")
        return path


#: Column of the table -> what is checked for it, in the order in which that is possible.
CHECKS: dict[str, Callable[[Checks], None]] = {
    "ingest": Checks.ingest,
    "search": Checks.search,
    "chunks": Checks.chunks,
    "updates": Checks.updates,
    "retune": Checks.retune,
    "rollback": Checks.rollback,
    "reencode": Checks.reencode,
    "adopt": Checks.adopt,
    "pipeline": Checks.pipeline,
    "processor": Checks.processor,
    "calibrate": Checks.calibrate,
    "replay": Checks.replay,
    "query": Checks.query,
    "serve": Checks.serve,
    "doctor": Checks.doctor,
    "index": Checks.index,
}


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Refused(otherwise)


def _lines_of(file: str) -> list[tuple[str, ...]]:
    """The rows of a table of the bundled corpus."""
    return [tuple(line.split("\t")) for line in (FOLDER / file).read_text(encoding="utf-8").splitlines()[1:]]


def _filters(numbers: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """One of the filters of the searches that are drawn."""
    tags = [str(tag) for tag in numbers.choice(LANGUAGES, 2, replace=False)]
    return [({"language": tags}, []), ({}, [{"term": {"language": tags[0]}}])][numbers.integers(2)]


def main(label: str, engines: Sequence[str]) -> int:
    """Make all checks on the server that the environment names, and print its rows."""
    settings = Settings.from_env()
    with make_client(settings, settings.url) as client:
        rows = {}
        for engine in engines:
            with tempfile.TemporaryDirectory() as folder:
                checks = Checks(CheckedServer({}, client, client), engine, Path(folder))
                checks.run(list(CHECKS))
            rows[label, engine] = checks.found
    print("\n".join(rows_of(rows)))
    return int(any(cell != "yes" for found in rows.values() for cell in found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
