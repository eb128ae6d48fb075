"""Where a model of sentence-transformers lies, on Hugging Face or in a folder; its files, their digest, loading it."""

import hashlib
import json
import logging
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from langshift.debias.encoders.model_kinds import read_json
from langshift.errors import LangshiftError, UsageError, require_extra
from langshift.reporting import note

M = TypeVar("M")
TROUBLE: Final = "damaged, or sentence-transformers cannot load it"
TRUSTED_MODELS: Final = "LANGSHIFT_TRUSTED_MODELS"
_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
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
_SETTINGS = ("config_sentence_transformers.json", "artifact.metadata")
_CODE = "*.py"
# The first of two forms is read where both are there.
_FORMS = (
    (("tokenizer.json",), ("*.model", "vocab*", "merges.txt")),
    (("*model*.safetensors", "*.safetensors.index.json"), ("*model*.bin", "*.bin.index.json")),
)
_OTHER_USES = ("generation_config.json",)
_OTHER_RUNTIMES = ("onnx/*", "openvino/*")
_CHUNK = 1 << 20


class ModelFiles(NamedTuple):
    """A model of sentence-transformers.

    Attributes:
        name: its name on Hugging Face, or the absolute path of its folder.
        folder: where it lies.
        code: whether code that comes with it may be run, and is then part of what makes its vectors.
    """

    name: str
    folder: Path
    code: bool


def trusted_models() -> frozenset[str]:
    """The models of LANGSHIFT_TRUSTED_MODELS: full names on Hugging Face, and paths of folders without links.

    Raises:
        UsageError: an entry is no name of a model.
    """
    entries = (entry.strip().removeprefix("st:") for entry in os.environ.get(TRUSTED_MODELS, "").split(","))
    return frozenset(_identified(entry) for entry in entries if entry)


def _identified(entry: str) -> str:
    folder = local_folder(entry)
    if folder is None and not _HUB_NAME.fullmatch(entry):
        raise UsageError(
            f"{TRUSTED_MODELS} contains {entry!r}, which is not the name of a model: write names separated by commas, "
            "such as Alibaba-NLP/gte-multilingual-base or the path of a folder."
        )
    return full_name(entry) if folder is None else str(folder.resolve())


def local_folder(name: str) -> Path | None:
    """The absolute path of the folder that a name means, or None where it is a name on Hugging Face."""
    path = Path(name).expanduser()
    written_as_path = name.startswith((".", "~", "/")) or "\\" in name or name.count("/") > 1
    return path.absolute() if written_as_path or path.is_dir() else None


def hub_name(name: str, organisation: str = "sentence-transformers") -> str:
    """The full name on Hugging Face; without an organisation it is of one that has most models of the kind."""
    full = full_name(name)
    return full if "/" in full else f"{organisation}/{full}"


def find_model(who: str, name_or_path: str, *organisation: str, otherwise: str = "") -> ModelFiles:
    """A model on Hugging Face, which is fetched if need be, or of a folder, for which the network is not asked.

    Args:
        who: what needs the extra, see ``require_extra``.
        name_or_path: as it was given.
        organisation: of a name without one.
        otherwise: what can be done without the extra, likewise.

    Raises:
        UsageError: there is no such model, or no model in the folder; or LANGSHIFT_TRUSTED_MODELS cannot be read.
        LangshiftError: the extra is not installed, or the model cannot be fetched.
    """
    require_extra(who, "transformers", "sentence_transformers", otherwise=otherwise)
    quieten()
    folder = local_folder(name_or_path)
    if folder is not None:
        return ModelFiles(str(folder), require_model(folder), str(folder.resolve()) in trusted_models())
    name = hub_name(name_or_path, *organisation)
    code = not trusted_models().isdisjoint((name, full_name(name_or_path)))
    return ModelFiles(name, fetch(name, code=code), code)


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
    first = [f"*{pattern}" for pattern in (*_CONFIGS, *_SETTINGS, *((_CODE,) if code else ()))]
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


def revision(model: ModelFiles, *, settings: bool = False) -> str:
    """12 hexadecimal digits of weights, tokenizer and configurations: the same for every copy of a model.

    Args:
        model: the model.
        settings: whether prompts, lengths and the like are part of it, which a fingerprint otherwise names.
    """
    digest = hashlib.sha256()
    for name in _SETTINGS if settings else ():
        said = {key: value for key, value in read_json(model.folder / name, {}).items() if key != "__version__"}
        digest.update(json.dumps(said, sort_keys=True).encode())
    for path in sorted(_model_files(model)):
        digest.update(f"{path.relative_to(model.folder).as_posix()}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()[:12]


def _model_files(model: ModelFiles) -> Iterator[Path]:
    """The files that the model is read from."""
    for part in _parts(model.folder):
        patterns = (*_CONFIGS, _CODE) if model.code else _CONFIGS
        found = {*_matching(part, patterns)} - {part / name for name in _OTHER_USES}
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
def loading(model: ModelFiles, trouble: str) -> Iterator[None]:
    """Make what goes wrong while a model is loaded a sentence.

    Args:
        model: the model.
        trouble: what may be wrong with it, as the sentence goes on after ``this model is``.

    Raises:
        UsageError: it is damaged, or needs code of its own that may not be run.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:  # a damaged model fails in as many ways as it has files
        if not model.code and "trust_remote_code" in str(error):
            raise UsageError(
                f"{model.folder}: this model runs code that comes with it: read that code, and if you trust it, add "
                f"{model.name} to {TRUSTED_MODELS}."
            ) from error
        reason = " ".join(str(error).split())[:200]
        raise UsageError(
            f"{model.folder}: this model is {trouble} ({type(error).__name__}: {reason}): copy or download it again."
        ) from error


def load_model(kind: Callable[..., M], model: ModelFiles, trouble: str, **more: Any) -> M:  # noqa: ANN401 - kind's
    """Load a model in single precision; the network is not asked unless code may be run.

    Args:
        kind: sentence-transformers' class.
        model: the model.
        trouble: see ``loading``.
        more: other arguments of ``kind``.

    Raises:
        UsageError: it is damaged, or needs code of its own that may not be run.
    """
    with loading(model, trouble):
        return kind(
            str(model.folder),
            trust_remote_code=model.code,
            # Code that comes with a model may lie in another repository.
            local_files_only=not model.code,
            # Half precision would make vectors depend on the batch and on the machine.
            model_kwargs={"dtype": "float32"},
            **more,
        )
