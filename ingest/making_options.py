"""The options that say how documents are made: of a load, and kept for what of it is sent again later."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import orjson

from langshift.debias.detect import open_detector
from langshift.debias.encoders import Brought, open_encoder
from langshift.ingest.making import Making, choose
from langshift.whole import whole

_PATHS = ("vectors", "lid_model")


@dataclass(frozen=True)
class MakingOptions:
    """How documents are made, as it is asked for.

    Attributes:
        encoder: how the encoder is asked for.
        trust_remote_code: whether to run code that comes with a model.
        vectors: a file of language vectors; None for those shipped.
        alpha: scale of all languages; None for what the vectors recommend.
        method: how documents are moved.
        soft: whether by all languages that each may be in.
        lid_model: a fastText model; None for the bundled one.
        least_confidence: a detection below this makes a document ``und``.
    """

    encoder: str
    trust_remote_code: bool
    vectors: Path | None
    alpha: float | None
    method: str
    soft: bool
    lid_model: Path | None
    least_confidence: float

    def open(self, brought: Brought | None) -> Making:
        """Open encoder, detector and language vectors.

        Args:
            brought: what is known of vectors that come with the documents.

        Raises:
            UsageError: they cannot be used, or not together.
            LangshiftError: the encoder's model cannot be loaded, or its server does not answer as it should.
        """
        return choose(
            open_encoder(self.encoder, trust_remote_code=self.trust_remote_code, brought=brought),
            open_detector(self.lid_model),
            self.vectors,
            self.alpha,
            self.least_confidence,
            method=self.method,
            soft=self.soft,
        )

    def keep(self, file: Path) -> None:
        """Write them to a file of mode 0600."""
        kept = {name: str(value.absolute()) if isinstance(value, Path) else value for name, value in vars(self).items()}
        with whole(file) as partial:
            partial.touch(mode=0o600)
            partial.write_bytes(orjson.dumps(kept, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))

    @classmethod
    def read(cls, file: Path) -> MakingOptions:
        """Read what ``keep`` wrote.

        Raises:
            OSError: the file cannot be read.
            ValueError: it holds no JSON.
            KeyError: an option is missing.
            TypeError: it holds no object, or something else than a path.
        """
        found = orjson.loads(file.read_bytes())
        kept = {field.name: found[field.name] for field in fields(cls)}
        return cls(**{**kept, **{name: kept[name] and Path(kept[name]) for name in _PATHS}})
