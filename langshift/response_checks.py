"""What OpenSearch answers to each request that langshift sends, by which another program's answer is told from it."""

import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec
from opensearchpy.exceptions import NotFoundError, OpenSearchException

from langshift.credentials import redact
from langshift.wording import beginning, printable

#: Characters of an answer, and of a path, that a sentence shows.
_SHOWN, _PATH = 60, 120


class WrongAnswer(OpenSearchException):
    """What came back is no answer of OpenSearch to this request; whether the request was carried out is not known.

    Attributes:
        url: the address that was asked, without credentials.
        request: the method and the path, shortened.
        shown: the beginning of what came back, or what is wrong with it; printable and without passwords.
    """

    def __init__(self, url: str, request: str, shown: str) -> None:
        super().__init__(url, request, shown)
        self.url, self.request, self.shown = url, request, shown

    def __str__(self) -> str:
        """The sentence, without its full stop."""
        return (
            f"The server at {self.url} answered {self.request} with something that OpenSearch does not answer "
            f"({self.shown}): check what stands between langshift and OpenSearch, such as a proxy"
        )


class Redirected(OpenSearchException):
    """The server names another address; langshift goes to none that no setting names.

    Attributes:
        url: the address that was asked, without credentials.
        status: HTTP status.
        target: scheme, host and port of the other address; empty where that is the same, or cannot be read.
    """

    def __init__(self, url: str, status: int, location: str) -> None:
        super().__init__(url, status)
        self.url, self.status = url, status
        self.target = "" if (place := _place(location)) in ("", url) else place

    def __str__(self) -> str:
        """The sentence, without its full stop."""
        told = f"The server at {self.url} redirects ({self.status}) to {self.target or 'another path'}"
        remedy = f"set OPENSEARCH_URL to {self.target}" if self.target else "check OPENSEARCH_URL"
        asks = "if that is the cluster" if self.target else "a login page or a proxy may stand there"
        return f"{told}, and langshift follows no redirects: {asks}, {remedy}"


def _place(location: str) -> str:
    """Scheme, host and port of an address; empty where it has no host, or one that cannot be read."""
    try:
        parts = urlsplit(location)
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    if not host or not re.fullmatch(r"[\w.:-]{1,253}", host, re.ASCII) or parts.scheme not in ("http", "https", ""):
        return ""
    host = f"[{host}]" if ":" in host else host
    return redact(f"{parts.scheme or 'http'}://{host}{f':{port}' if port else ''}")


class Request(NamedTuple):
    """A request, as the client library's transport gets it.

    Attributes:
        method: such as ``GET``.
        path: without parameters, quoted.
        params: the parameters.
        body: JSON, or its text where the request has several lines.
    """

    method: str
    path: str
    params: Mapping[str, Any]
    body: Any

    @property
    def filtered(self) -> bool:
        """Whether only parts of the answer were asked for; what is empty is left out of those."""
        return "filter_path" in self.params

    @property
    def one_index(self) -> str | None:
        """The one index or alias that it is about; None where that may be none, or several."""
        name = unquote(self.path.split("/")[1])
        several = "*" in name or "," in name or name.startswith("_")
        return None if several or not name or "ignore_unavailable" in self.params else name

    def shown(self) -> str:
        """As messages name it."""
        return f"{self.method} {beginning(printable(redact(unquote(self.path))), _PATH)}"


def require_answer(request: Request, answer: object, url: str) -> None:
    """Refuse what is no answer to a request.

    Args:
        request: what was asked.
        answer: what came back, as the client library has read it.
        url: the address that was asked, without credentials.

    Raises:
        WrongAnswer: with the beginning of what came back.
    """
    if not is_answer(request, answer):
        raise WrongAnswer(url, request.shown(), shown(answer))


def require_not_found(request: Request, error: NotFoundError, url: str) -> None:
    """Refuse a 404 that does not say in OpenSearch's words what is not there, such as a web server's page.

    Raises:
        WrongAnswer: with the beginning of what came back.
    """
    info = error.info
    words = isinstance(info, Mapping) and ("error" in info or info.get("found") is False)
    # OpenSearch says of a pipeline that it does not have just ``{}``.
    if not (words or (info == {} and request.path.startswith("/_ingest/pipeline/"))):
        raise WrongAnswer(url, request.shown(), f"404: {shown(error.error if info is None else info)}")


def shown(answer: object) -> str:
    """The beginning of what came back, for a sentence."""
    text = answer if isinstance(answer, str) else msgspec.json.encode(answer, enc_hook=str).decode("utf-8", "replace")
    return beginning(" ".join(printable(redact(text)).split()), _SHOWN) or "nothing"


def is_answer(request: Request, answer: object) -> bool:
    """Whether something is an answer to a request, as far as langshift reads it."""
    if request.method == "HEAD" or isinstance(answer, msgspec.Struct):
        return len(answer.docs) == _documents(request) if hasattr(answer, "docs") else True
    if "ignore" in request.params and isinstance(answer, dict) and answer.get("status") == request.params["ignore"]:
        return "error" in answer
    fits = next((fits for methods, path, fits in _TABLE if request.method in methods and path(request.path)), None)
    return isinstance(answer, dict) if fits is None else fits(request, answer)


# A type, or a tuple of them; a list of what is in a list; a mapping with names that must be there; or ``_Each``.
_Shape = Any


class _Each(NamedTuple):
    """A mapping of any names.

    Attributes:
        shape: what stands under each.
    """

    shape: _Shape


def _fits(value: object, shape: _Shape, *, part: bool = False) -> bool:
    """Whether a value is of a shape, or with ``part`` of a part of it."""
    if isinstance(shape, _Each):
        return isinstance(value, dict) and all(_fits(one, shape.shape, part=part) for one in value.values())
    if isinstance(shape, dict):
        if not isinstance(value, dict) or not (part or shape.keys() <= value.keys()):
            return False
        return all(_fits(value[name], shape[name], part=part) for name in shape.keys() & value.keys())
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(one, shape[0], part=part) for one in value)
    # JSON's true is no number.
    return isinstance(value, shape) and not (shape is int and isinstance(value, bool))


_Check = Callable[[Request, Any], bool]


def _of(shape: _Shape) -> _Check:
    """Of this shape, or of a part of it where only parts were asked for."""
    return lambda request, answer: _fits(answer, shape, part=request.filtered) and _wanted(request, answer)


def _wanted(request: Request, answer: Any) -> bool:  # noqa: ANN401 - any JSON
    """Whether nothing else has come where only parts were asked for."""
    if not request.filtered:
        return True
    names = [one.partition(".")[0] for one in request.params["filter_path"].split(",")]
    return isinstance(answer, dict) and all(any(fnmatchcase(name, one) for one in names) for name in answer)


def _info(_: Request, answer: Any) -> bool:  # noqa: ANN401 - any JSON
    if not _fits(answer, {"version": {"number": str}}):
        return False
    return answer["version"].get("distribution") != "opensearch" or isinstance(answer.get("cluster_uuid"), str)


def _indices(shape: _Shape) -> _Check:
    """Indices by their names: none may be missing that was asked for by its name."""

    def fits(request: Request, answer: Any) -> bool:  # noqa: ANN401 - any JSON
        if not _fits(answer, _Each(shape), part=request.filtered):
            return False
        name = request.one_index
        if name is None or name in answer:
            return True
        # Asked for by an alias, or as a data stream: the answer tells, where it is whole. A version has its own name.
        told = [one for one in answer.values() if "aliases" in one]
        known = all(name in (*one["aliases"], one.get("data_stream")) for one in told)
        return bool(answer) and known and (bool(told) or _VERSION.search(name) is None)

    return fits


_VERSION = re.compile(r"-v\d{4,}$")


def _index(request: Request, answer: Any) -> bool:  # noqa: ANN401 - any JSON
    shape = {"aliases": _Each(dict), "mappings": dict, "settings": _shape_of_settings(request)}
    return _indices(shape)(request, answer)


def _settings(request: Request, answer: Any) -> bool:  # noqa: ANN401 - any JSON
    return _indices({"settings": _shape_of_settings(request)})(request, answer)


def _shape_of_settings(request: Request) -> _Shape:
    flat = "flat_settings" in request.params
    return {"index.uuid": str} if flat else {"index": {"uuid": str, "number_of_shards": str}}


def _aliases(request: Request, answer: Any) -> bool:  # noqa: ANN401 - any JSON
    name = unquote(request.path.rpartition("/_alias")[2].strip("/"))
    found = _fits(answer, _Each({"aliases": _Each(dict)})) and bool(answer)
    return found and (not name or any(name in one["aliases"] for one in answer.values()))


_SHARDS = {"total": int, "failed": int}
_HITS = {"took": int, "timed_out": bool, "_shards": _SHARDS, "hits": {"hits": [{"_id": str}]}}


def _search(request: Request, answer: Any) -> bool:  # noqa: ANN401 - any JSON
    body = request.body if isinstance(request.body, dict) else {}
    return _wanted(request, answer) if request.filtered else _found(body, answer)


def _found(body: Mapping[str, Any], answer: Any) -> bool:  # noqa: ANN401 - any JSON
    """Whether something is the answer to one search."""
    if not _fits(answer, _HITS):
        return False
    total = answer["hits"].get("total")
    if (total is not None or body.get("track_total_hits") is True) and not _fits(total, {"value": int}):
        return False
    # Whoever asks for documents by their ids takes those for gone that are not there.
    by_ids = "ids" in body.get("query", {}) and total is not None and not answer["_shards"]["failed"]
    if by_ids and len(answer["hits"]["hits"]) != min(body.get("size", 10), total["value"]):
        return False
    return _aggregated(body.get("aggs", {}), answer.get("aggregations", {}))


def _aggregated(wanted: Mapping[str, Any], found: Any) -> bool:  # noqa: ANN401 - any JSON
    if not isinstance(found, dict):
        return False
    for name, aggregation in wanted.items():
        one, inner = found.get(name), aggregation.get("aggs", {})
        if not isinstance(one, dict):
            return False
        if "terms" in aggregation or "composite" in aggregation:
            if not _fits(one, {"buckets": [{"doc_count": int}]}) or any("key" not in each for each in one["buckets"]):
                return False
            parts = one["buckets"]
        else:
            parts = [one] if inner and "buckets" not in one else []
        if not all(_aggregated(inner, part) for part in parts):
            return False
    return True


def _searches(request: Request, answer: Any) -> bool:  # noqa: ANN401 - any JSON
    if not _fits(answer, {"responses": [dict]}):
        return False
    failed = {"error": dict, "status": int}
    every: list[Any] = answer["responses"]
    if len(every) != _lines(request.body) // 2:
        return False
    return request.filtered or all(_fits(one, failed) or _found({}, one) for one in every)


def _lines(body: Any) -> int:  # noqa: ANN401 - the library's
    if isinstance(body, bytes | bytearray):
        return body.count(b"\n")
    return str(body).count("\n")


def _documents(request: Request) -> int:
    """How many documents are asked for by their ids."""
    return len(request.body.get("docs", request.body.get("ids", ())))


def _gets(request: Request, answer: Any) -> bool:  # noqa: ANN401 - any JSON
    if not _fits(answer, {"docs": [{"_id": str}]}):
        return False
    wanted = [one["_id"] if isinstance(one, dict) else one for one in request.body.get("docs") or request.body["ids"]]
    found = [one["_id"] for one in answer["docs"]]
    return found == [str(one) for one in wanted] and all(
        isinstance(one.get("error"), dict) or isinstance(one.get("found"), bool) for one in answer["docs"]
    )


def _bulk(request: Request, answer: Any) -> bool:  # noqa: ANN401 - any JSON
    # Who asks for parts of the answer looks at each of them.
    if request.filtered:
        return True
    if not _fits(answer, {"items": [_Each({"status": int})]}):
        return False
    return [list(item) for item in answer["items"]] == [[operation] for operation in _operations(request.body)]


def _operations(body: str | bytes) -> Iterator[str]:
    """The name of each operation of a bulk request as langshift writes them."""
    lines = iter((body.encode("utf-8", "surrogatepass") if isinstance(body, str) else bytes(body)).split(b"\n"))
    for line in lines:
        if line:
            operation = line[2 : line.index(b'"', 2)].decode()
            if operation != "delete":
                next(lines)
            yield operation


def _task(_: Request, answer: Any) -> bool:  # noqa: ANN401 - any JSON
    if not _fits(answer, {"completed": bool, "task": {"description": str, "status": dict}}):
        return False
    if answer["completed"] and not answer.get("error"):
        return isinstance(answer.get("response"), dict)
    return isinstance(answer.get("error"), dict | None)


def _reindex(request: Request, answer: Any) -> bool:  # noqa: ANN401 - any JSON
    is_task = request.params.get("wait_for_completion") == "false"
    return _fits(answer, {"task": str} if is_task else {"total": int, "failures": list})


def _named(shape: _Shape) -> _Check:
    """What was asked for stands under its own name, the last part of the path, which may be a pattern."""

    def fits(request: Request, answer: Any) -> bool:  # noqa: ANN401 - any JSON
        name = unquote(request.path.rpartition("/")[2])
        return _fits(answer, _Each(shape)) and ("*" in name or name in answer)

    return fits


_SEQUENCE = {"global_checkpoint": int, "max_seq_no": int}


def _stats(request: Request, answer: Any) -> bool:  # noqa: ANN401 - any JSON
    if request.params.get("level") != "shards":
        if request.path.endswith("/store"):
            sizes = _Each({"total": {"store": {"size_in_bytes": int}}})
            return _wanted(request, answer) and _fits(answer.get("indices", {}), sizes)
        return _of({"_shards": {"successful": int}, "indices": dict})(request, answer)
    shard = {"routing": {"primary": bool}}
    if not _fits(answer, {"_shards": _SHARDS, "indices": _Each({"shards": _Each([shard])})}):
        return False
    shards = [shard for index in answer["indices"].values() for shard in index["shards"].values()]
    copies = [copy for shard in shards for copy in shard]
    return request.one_index in answer["indices"] and all(
        "seq_no" not in o or _fits(o["seq_no"], _SEQUENCE) for o in copies
    )


_DONE = _of({"acknowledged": bool})
_COPY = {"routing": {"primary": bool}, "segments": _Each({"num_docs": int, "search": bool})}
_TEMPLATE = {"index_patterns": [str]}
_NAME = "/[^_/][^/]*"
_ROWS: tuple[tuple[str, str, _Check], ...] = (
    ("GET", "/", _info),
    ("GET", "/_cat/plugins", lambda _, answer: _fits(answer, [{"name": str, "component": str}])),
    ("GET", _NAME, _index),
    ("GET", f"{_NAME}/_settings", _settings),
    ("GET", f"{_NAME}/_mapping", _indices({"mappings": dict})),
    ("GET", f"({_NAME})?/_alias(/.*)?", _aliases),
    ("PUT", f"{_NAME}/_block/.*", _of({"acknowledged": bool, "shards_acknowledged": bool})),
    ("PUT DELETE", _NAME, _DONE),
    ("PUT POST", f"{_NAME}/_(settings|mapping)|/_aliases", _DONE),
    ("PUT DELETE", "/_(scripts|ingest/pipeline)/.*", _DONE),
    ("GET", "/_scripts/.*", _of({"found": bool, "script": dict})),
    ("GET", "/_ingest/pipeline/.*", _named(dict)),
    # A document that the pipeline drops is null.
    ("POST", "/_ingest/pipeline(/.*)?/_simulate", _of({"docs": [(dict, type(None))]})),
    ("GET", "/_index_template(/.*)?", _of({"index_templates": [{"name": str, "index_template": _TEMPLATE}]})),
    ("GET", "/_template(/.*)?", _of(_Each(_TEMPLATE))),
    ("GET", "/_component_template/.*", _of({"component_templates": [{"component_template": {"template": dict}}]})),
    ("GET", "/_plugins/_security/authinfo", _of({"roles": [str]})),
    ("GET", "/_data_stream/.*", _of({"data_streams": [{"indices": [dict]}]})),
    ("GET POST", f"({_NAME})?/_search", _search),
    ("GET POST", f"({_NAME})?/_msearch", _searches),
    ("GET POST", f"({_NAME})?/_mget", _gets),
    ("GET POST", f"({_NAME})?/_count", _of({"count": int})),
    ("GET POST", f"({_NAME})?/_field_caps", _of({"fields": _Each(_Each(dict))})),
    ("POST", f"({_NAME})?/_refresh", _of({"_shards": _SHARDS})),
    ("GET", f"({_NAME})?/_stats(/.*)?", _stats),
    ("GET", f"{_NAME}/_segments", _of({"indices": _Each({"shards": _Each([_COPY])})})),
    ("PUT POST", f"({_NAME})?/_bulk", _bulk),
    ("POST", "/_reindex", _reindex),
    ("POST", f"{_NAME}/_update_by_query", _of({"total": int, "failures": list})),
    ("POST", f"{_NAME}/_search/point_in_time", _of({"pit_id": str})),
    ("GET", "/_tasks", _of({"nodes": _Each({"tasks": _Each({"action": str})})})),
    ("GET", "/_tasks/.*", _task),
    ("GET", "/_cluster/health(/.*)?", _of({"cluster_name": str, "status": str, "number_of_data_nodes": int})),
    ("GET", "/_cluster/state/.*", lambda _, answer: _fits(answer, {"metadata": {"indices": _Each({"state": str})}})),
    ("GET", "/_cat/recovery/.*", lambda _, answer: _fits(answer, [{"stage": str, "translog_ops_percent": str}])),
    ("GET", "/_nodes(/.*)?", _of({"nodes": _Each(dict)})),
)
_TABLE = [(frozenset(methods.split()), re.compile(path).fullmatch, fits) for methods, path, fits in _ROWS]
