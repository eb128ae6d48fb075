"""Where a sentence-transformers model lies, and a hash of all in it that makes its vectors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from langshift.console import note
from langshift.debias.encoders.prefixes import full_name
from langshift.errors import LangshiftError, UsageError

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


def hub_name(name: str) -> str:
    """The full name on Hugging Face; without an organisation it is sentence-transformers' own, as it is there."""
    full = full_name(name)
    return full if "/" in full else f"sentence-transformers/{full}"


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
            f"{folder}: there is no such folder with a model; give its path, or a name on Hugging Face "
            "such as st:intfloat/multilingual-e5-large."
        )
    if not (folder / "modules.json").is_file() and not (folder / "config.json").is_file():
        raise UsageError(
            f"{folder}: holds neither modules.json nor config.json, and so no model; name the folder that "
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

    def get(*, cached: bool) -> Path:
        return Path(
            snapshot_download(
                name,
                revision=commit,
                allow_patterns=patterns,
                ignore_patterns=ignored,
                library_name="langshift",
                local_files_only=cached,
            )
        )

    try:
        # What is there is not asked for again: no network, and no model that changes between two commands.
        return get(cached=True)
    except HFValidationError:
        raise UsageError(f"{name!r} is no name of a model on Hugging Face, which look like BAAI/bge-m3.") from None
    except LocalEntryNotFoundError:
        if commit is None:
            note(f"Fetching the model {name} from Hugging Face (once) ...")
    try:
        return get(cached=False)
    except RepositoryNotFoundError:
        raise UsageError(
            f"Hugging Face has no model {name} that is open to you: see that the name is right, accept the model's "
            "terms on its page, and log in with `hf auth login` where it asks for that."
        ) from None
    except Exception as error:  # every layer from sockets up to the disk has its own
        reason = " ".join(str(error.__cause__ or error).split())[:200].rstrip(".")
        raise LangshiftError(
            f"The model {name} is not on this machine and cannot be fetched from Hugging Face ({reason}): "
            "see that huggingface.co can be reached, or give a folder with the model as st:FOLDER."
        ) from error


def revision(folder: Path, *, code: bool) -> str:
    """12 hexadecimal digits of weights, tokenizer and configurations: the same for every copy of a model.

    Args:
        folder: the model's folder.
        code: whether the model's own code is run, and so is part of what makes the vectors.
    """
    digest = hashlib.sha256()
    for path in sorted(_making(folder, code=code)):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()[:12]


def _making(folder: Path, *, code: bool) -> Iterator[Path]:
    """The files that the model is read from."""
    for part in _parts(folder):
        found = {*_matching(part, (*_CONFIGS, _CODE) if code else _CONFIGS)} - {part / name for name in _OTHER_USES}
        for best, other in _FORMS:
            found |= {*(_matching(part, best) or _matching(part, other))}
        yield from found


def _parts(folder: Path) -> list[Path]:
    """The model's folder and those of its modules; a router's modules lie in folders that it names."""
    parts = {folder, *(folder / module["path"] for module in _read(folder / "modules.json", []))}
    routed = {part / name for part in parts for name in _read(part / "router_config.json", {}).get("types", ())}
    return sorted(parts | routed)


def _read(path: Path, default: Any) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(path.read_bytes()) if path.is_file() else default
    except ValueError as error:
        raise UsageError(f"{path}: is no JSON, so this model is damaged: copy or fetch it again.") from error


def _matching(folder: Path, patterns: Iterable[str]) -> list[Path]:
    files = [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
    return [path for path in files if any(fnmatchcase(path.name, pattern) for pattern in patterns)]
