"""``st:NAME_OR_PATH``: models of sentence-transformers, from Hugging Face or a folder, as the paper has them."""

from __future__ import annotations

import hashlib
import logging
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from langshift.debias.encoders.base import (
    AS_KNOWN,
    LONGEST,
    MOST_TOKENS,
    Encoder,
    Matrix,
    Pooling,
    Reading,
    have_norm_1,
    note_once,
)
from langshift.debias.encoders.model_kinds import read_json, require_encoder
from langshift.debias.encoders.prompts import known_prefixes
from langshift.errors import LangshiftError, UsageError, require_extra
from langshift.reporting import note

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


# Models that are known by their own name alone, such as a copy's; of others the organisation is needed.
_FULL = {
    name.rpartition("/")[2].lower(): name
    for name in (
        "google/embeddinggemma-300m",
        "intfloat/multilingual-e5-small",
        "intfloat/multilingual-e5-base",
        "intfloat/multilingual-e5-large",
        "BAAI/bge-m3",
        "Qwen/Qwen3-Embedding-0.6B",
        "nvidia/llama-nemotron-embed-1b-v2",
        "Alibaba-NLP/gte-Qwen2-1.5B-instruct",
    )
}


def full_name(written: str) -> str:
    """The model's name on Hugging Face, as far as ``written`` tells it: a path ends with the model's name.

    ``bge-m3`` and ``/models/bge-m3`` give ``BAAI/bge-m3``, ``/models/mine`` gives ``mine``, and
    ``someone/bge-m3`` is another model.
    """
    organisation, _, own = written.replace("\\", "/").rstrip("/").rpartition("/")
    if organisation and "/" not in organisation and not organisation.startswith((".", "~")):
        return f"{organisation}/{own}"
    return _FULL.get(own.lower(), own)


# What a part of a model (the transformer, a dense layer) is read from; names of files in its folder.
_CONFIGS = ("modules.json", "*config.json", "tokenizer.json", "special_tokens_map.json", "added_tokens.json")
_CODE = "*.py"
# The first of two forms is read where both are there.
_FORMS = (
    (("tokenizer.json",), ("*.model", "vocab*", "merges.txt")),
    (("*model*.safetensors", "*.safetensors.index.json"), ("*model*.bin", "*.bin.index.json")),
)
_OTHER_USES = ("generation_config.json",)
_OTHER_RUNTIMES = ("onnx/*", "openvino/*")
_CHUNK = 1 << 20


def local_folder(name: str) -> Path | None:
    """The absolute path of the folder that a name means, or None where it is a name on Hugging Face."""
    path = Path(name).expanduser()
    written_as_path = name.startswith((".", "~", "/")) or "\\" in name or name.count("/") > 1
    return path.absolute() if written_as_path or path.is_dir() else None


def hub_name(name: str, organisation: str = "sentence-transformers") -> str:
    """The full name on Hugging Face; without an organisation it is of one that has most models of the kind."""
    full = full_name(name)
    return full if "/" in full else f"{organisation}/{full}"


def find_model(name_or_path: str, *organisation: str, code: bool) -> tuple[str, Path]:
    """The name of a model on Hugging Face, or the absolute path of its folder; and the folder, fetched if need be.

    Raises:
        UsageError: there is no such model, or no model in the folder.
        LangshiftError: it cannot be fetched.
    """
    folder = local_folder(name_or_path)
    if folder is not None:
        return str(folder), require_model(folder)
    name = hub_name(name_or_path, *organisation)
    return name, fetch(name, code=code)


def model_name(name_or_path: str) -> str:
    """The name of the model: on Hugging Face ``organisation/name``; of a folder what it is called."""
    folder = local_folder(name_or_path)
    if folder is None:
        return hub_name(name_or_path)
    if folder.parent.name == "snapshots":
        # In Hugging Face's cache: models--organisation--name/snapshots/commit.
        return folder.parent.parent.name.removeprefix("models--").replace("--", "/", 1)
    return folder.name


def require_model(folder: Path) -> Path:
    """The folder, which must hold a model.

    Raises:
        UsageError: there is no such folder, or no model in it.
    """
    if not folder.is_dir():
        raise UsageError(
            f"{folder} does not exist; give the path of a model's folder, or a name on Hugging Face "
            "such as st:intfloat/multilingual-e5-large."
        )
    if not (folder / "modules.json").is_file() and not (folder / "config.json").is_file():
        raise UsageError(
            f"{folder} contains neither modules.json nor config.json, so it is not a model; give the folder that "
            "sentence-transformers saved."
        )
    return folder


def fetch(name: str, *, code: bool) -> Path:
    """The folder of a model of Hugging Face: the one in its cache, else fetched whole, once.

    Raises:
        UsageError: Hugging Face has no such model, or not for this user.
        LangshiftError: it is not in the cache and cannot be fetched.
    """
    first = [f"*{pattern}" for pattern in (*_CONFIGS, "config_sentence_transformers.json", *((_CODE,) if code else ()))]
    first += [f"*{pattern}" for best, _ in _FORMS for pattern in best]
    folder = require_model(_snapshot(name, None, first))
    second = []
    for part in _parts(folder):
        place = "" if part == folder else f"{part.relative_to(folder).as_posix()}/"
        second += [f"{place}{pattern}" for best, other in _FORMS if not _matching(part, best) for pattern in other]
    return _snapshot(name, folder.name, second) if second else folder


def _snapshot(name: str, commit: str | None, patterns: list[str]) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError, RepositoryNotFoundError

    ignored = [*_OTHER_RUNTIMES, *(f"*{pattern}" for pattern in _OTHER_USES)]

    asked = {"revision": commit, "allow_patterns": patterns, "ignore_patterns": ignored, "library_name": "langshift"}
    try:
        # What is there is not asked for again: no network, and no model that changes between two commands.
        return Path(snapshot_download(name, **asked, local_files_only=True))
    except HFValidationError:
        raise UsageError(f"{name!r} is not a valid model name on Hugging Face, such as BAAI/bge-m3.") from None
    except LocalEntryNotFoundError:
        if commit is None:
            note(f"Downloading the model {name} from Hugging Face (only needed once) ...")
    try:
        return Path(snapshot_download(name, **asked))
    except RepositoryNotFoundError:
        raise UsageError(
            f"Hugging Face has no model {name} that you can access: check the name, accept the model's terms on its "
            "page, and log in with `hf auth login` if required."
        ) from None
    except Exception as error:  # every layer from sockets up to the disk has its own
        reason = " ".join(str(error.__cause__ or error).split())[:200].rstrip(".")
        raise LangshiftError(
            f"The model {name} is not on this machine and cannot be downloaded from Hugging Face ({reason}): "
            "check that huggingface.co can be reached, or give a folder with the model as st:FOLDER."
        ) from error


def revision(folder: Path, *, code: bool) -> str:
    """12 hexadecimal digits of weights, tokenizer and configurations: the same for every copy of a model.

    Args:
        folder: the model's folder.
        code: whether the model's own code is run, and so is part of what makes the vectors.
    """
    digest = hashlib.sha256()
    for path in sorted(_model_files(folder, code=code)):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()[:12]


def _model_files(folder: Path, *, code: bool) -> Iterator[Path]:
    """The files that the model is read from."""
    for part in _parts(folder):
        found = {*_matching(part, (*_CONFIGS, _CODE) if code else _CONFIGS)} - {part / name for name in _OTHER_USES}
        for best, other in _FORMS:
            found |= {*(_matching(part, best) or _matching(part, other))}
        yield from found


def _parts(folder: Path) -> list[Path]:
    """The model's folder and those of its modules; a router's modules lie in folders that it names."""
    parts = {folder, *(folder / module["path"] for module in read_json(folder / "modules.json", []))}
    routed = {part / name for part in parts for name in read_json(part / "router_config.json", {}).get("types", ())}
    return sorted(parts | routed)


def _matching(folder: Path, patterns: Iterable[str]) -> list[Path]:
    files = [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
    return [path for path in files if any(fnmatchcase(path.name, pattern) for pattern in patterns)]


# The paper's Appendix B.
_TOKENS = 512
# A token of natural text has some four characters, or with room to spare:
_CHARACTERS = LONGEST // _TOKENS
# As langshift names it -> as sentence-transformers does.
_POOLINGS: dict[Pooling, str] = {"mean": "mean", "cls": "cls", "last": "lasttoken"}
# One norm may be 1 by chance, not most of them.
_PROBE = ["The weather is fine.", "a", "How far is it from here to the sea?"]


class SentenceTransformersEncoder(Encoder):
    """A model of sentence-transformers; a Normalize module at its end is bypassed.

    Attributes:
        id: ``st:`` and the model's name on Hugging Face, or the absolute path of its folder.
        revision: hash of weights, tokenizer and configurations, whatever the folder is called.
        dimension: length of a vector.
        normalised: whether the vectors have norm 1 though Normalize is bypassed.
        query_prefix: text put before every query.
        document_prefix: text put before every document.
        pooling: where it is not the model's own.
        max_tokens: where it is neither 512 nor all that the model has room for.
        longest: how many characters of a text are read; of them the first tokens, as many as ``window`` says.
        window: 512 tokens, or fewer where the model has room for fewer, or as many as were asked for.
    """

    longest = LONGEST

    def __init__(self, name: str, folder: Path, *, code: bool, reading: Reading) -> None:
        """Load a model.

        Args:
            name: name on Hugging Face, or the absolute path of the folder.
            folder: where it lies.
            code: run code that comes with the model.
            reading: how it is to read texts.

        Raises:
            UsageError: it is damaged or no encoder, or cannot read texts in that way.
        """
        require_encoder(folder)
        self.id = f"st:{name}"
        self._model = _load(folder, code=code)
        self.pooling = _set_pooling(self._model, reading.pooling, self.id)
        self.max_tokens = _limit_tokens(self._model, reading.max_tokens, self.id)
        self.revision = revision(folder, code=code)
        trained_from = str(read_json(folder / "config.json", {}).get("_name_or_path", ""))
        known = known_prefixes(self._model.prompts, model_name(name), trained_from)
        self.query_prefix, self.document_prefix = reading.prefixes(known, self.id)
        if reading.pooling is None and not reading.recorded and not (folder / "modules.json").is_file():
            used = next((ours for ours, theirs in _POOLINGS.items() if theirs in _modes(self._model)), "mean")
            note_once(f"{self.id} has no modules.json: {used} pooling is used (--pooling).")
        # What fills a GPU (tests/bench/RESULTS.md).
        self._batch, self.batch = (128, 1024) if self._model.device.type == "cuda" else (32, self.batch)
        lengths = {reader.max_seq_length for reader in _readers(self._model)}
        # Of a copy, which cuts nothing, and which no thread that encodes is at.
        self._tokenizer: Any = deepcopy(getattr(self._model.tokenizer, "backend_tokenizer", None))
        if self._tokenizer is not None and lengths:
            self._tokenizer.no_truncation()
            self._tokenizer.no_padding()
            self.window = min(lengths)
            self.longest = max(LONGEST, self.window * _CHARACTERS)
        with loading(folder, _TROUBLE, code=code):
            probe = self.encode_documents(_PROBE)
        self.dimension = probe.shape[1]
        self.normalised = have_norm_1(probe)

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Vectors of documents with the document prefix, shape (len(texts), dimension), float32."""
        return self._encode(self._model.encode_document, texts, self.document_prefix)

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Vectors of queries with the query prefix, shape (len(texts), dimension), float32."""
        return self._encode(self._model.encode_query, texts, self.query_prefix)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens documents have, with the document prefix and the marks of begin and end."""
        return [len(one.ids) for one in self._tokenizer.encode_batch([self.document_prefix + text for text in texts])]

    def _encode(self, encode: Callable[..., Any], texts: Sequence[str], prefix: str) -> Matrix:
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        # It sorts by length over the whole call, batches, and gives the vectors back in the order of the texts. A
        # prefix that is given, "" too, stands in place of every prompt of the model's own.
        vectors = encode(
            [text[: self.longest] for text in texts], prompt=prefix, batch_size=self._batch, show_progress_bar=False
        )
        return np.asarray(vectors, np.float32)


def open_st(
    name_or_path: str, *, trust_remote_code: bool = False, reading: Reading = AS_KNOWN
) -> SentenceTransformersEncoder:
    """Open a model of Hugging Face by its name, or one of a folder; a folder never touches the network.

    Args:
        name_or_path: such as ``intfloat/multilingual-e5-large``, or a folder.
        trust_remote_code: run code that comes with the model.
        reading: how it is to read texts.

    Raises:
        UsageError: there is no such model, its folder is damaged, it needs code of its own that may not be run, or it
            makes no vectors, or not in the way that was asked for.
        LangshiftError: the extra is not installed, or the model cannot be fetched.
    """
    instead = "; or use an encoder that comes with langshift"
    require_extra("The encoders st:NAME need", "transformers", "sentence_transformers", otherwise=instead)
    quieten()
    name, folder = find_model(name_or_path, code=trust_remote_code)
    return SentenceTransformersEncoder(name, folder, code=trust_remote_code, reading=reading)


def quieten() -> None:
    """Standard error is for the person who runs langshift: no bars and advice of the libraries' own there."""
    from huggingface_hub.utils import disable_progress_bars
    from huggingface_hub.utils import logging as hub_logging
    from transformers.utils import logging as transformers_logging

    disable_progress_bars()
    hub_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)


@contextmanager
def loading(folder: Path, trouble: str, *, code: bool) -> Iterator[None]:
    """Make what goes wrong while a model is loaded a sentence.

    Args:
        folder: the model's.
        trouble: what may be wrong with it, as the sentence goes on after ``this model is``.
        code: whether code that comes with it may be run.

    Raises:
        UsageError: it is damaged, or needs code of its own that may not be run.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:  # a damaged model fails in as many ways as it has files
        if not code and "trust_remote_code" in str(error):
            raise UsageError(
                f"{folder}: this model runs code that comes with it: read that code, and if you trust it, add "
                "--trust-remote-code."
            ) from error
        reason = " ".join(str(error).split())[:200]
        raise UsageError(
            f"{folder}: this model is {trouble} ({type(error).__name__}: {reason}): copy or download it again."
        ) from error


_TROUBLE = "damaged, or sentence-transformers cannot load it"


def _load(folder: Path, *, code: bool) -> SentenceTransformer:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize
    from torch import nn

    with loading(folder, _TROUBLE, code=code):
        model = SentenceTransformer(
            str(folder),
            trust_remote_code=code,
            # Code that comes with a model may lie in another repository.
            local_files_only=not code,
            # Half precision would make vectors depend on the batch and on the machine.
            model_kwargs={"dtype": "float32"},
        )
    if isinstance(model[-1], Normalize):
        # In its place, so that the other modules keep their names.
        model[-1] = nn.Identity()
    return model


def _poolings(model: SentenceTransformer) -> list[Any]:
    from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule

    return [module for module in model.modules() if isinstance(module, PoolingModule)]


def _modes(model: SentenceTransformer) -> list[Any]:
    return [module.pooling_mode for module in _poolings(model)]


def _set_pooling(model: SentenceTransformer, wanted: Pooling | None, name: str) -> Pooling | None:
    """Let a model pool as it is wanted; None where it does so already.

    Raises:
        UsageError: it pools in no way that can be replaced.
    """
    if wanted is None or set(_modes(model)) == {_POOLINGS[wanted]}:
        return None
    if not all(isinstance(mode, str) for mode in _modes(model)) or not _modes(model):
        raise UsageError(f"The model {name} has no pooling that --pooling {wanted} could replace: leave it out.")
    for module in _poolings(model):
        module.pooling_mode = _POOLINGS[wanted]
    return wanted


def _limit_tokens(model: SentenceTransformer, wanted: int | None, name: str) -> int | None:
    """Let a model read so many tokens of a text, and the usual number where None is wanted; None where it is that.

    Raises:
        UsageError: it has no room for as many.
    """
    readers = _readers(model)
    room = {id(reader): _room(reader) for reader in readers}
    if wanted is not None and wanted > min(room.values(), default=0):
        most = f"at most {min(room.values()):,} tokens" if room else "texts whole"
        raise UsageError(f"The model {name} reads {most}, so --max-tokens {wanted} cannot be met: leave it out.")
    for reader in readers:
        reader.max_seq_length = min(room[id(reader)], wanted or _TOKENS)
    return None if all(min(most, _TOKENS) == wanted for most in room.values()) else wanted


def _room(reader: Any) -> int:  # noqa: ANN401 - sentence-transformers'
    """How many tokens a model can read, by its tokenizer and its table of positions."""
    from torch import nn

    most = math.inf if reader.max_seq_length is None else reader.max_seq_length
    for module in reader.modules():
        table = getattr(module, "position_embeddings", None)
        if isinstance(table, nn.Embedding):
            # Models like RoBERTa count positions from there.
            padding = getattr(module, "padding_idx", None)
            most = min(most, table.num_embeddings - (padding + 1 if isinstance(padding, int) else 0))
    return int(min(most, MOST_TOKENS))


def _readers(model: SentenceTransformer) -> list[Any]:
    """What reads texts, where its tokens have a limit: not tables of word vectors."""
    from sentence_transformers.sentence_transformer.modules import Transformer

    # A router leads to several transformers.
    found = [module for module in model.modules() if isinstance(module, Transformer)] or [model[0]]
    return [one for one in found if getattr(one, "max_seq_length", math.inf) != math.inf]
