"""``langshift vectors import``."""

from __future__ import annotations

from pathlib import Path

import click

from langshift.commands.ingest_options import REMOTE_CODE
from langshift.commands.langshift_options import JSON


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.pt")
@click.option("--output", type=click.Path(path_type=Path), required=True, metavar="FILE", help="Where to write them.")
@click.option("--encoder", metavar="NAME", help="The encoder that they are for. [default: st: and FILE's model]")
@REMOTE_CODE
@JSON
def import_(file: Path, output: Path, encoder: str | None, trust_remote_code: bool, as_json: bool) -> None:
    """Take over language vectors published with the paper's reference implementation.

    FILE.pt is what torch saved: a dict with model_name, source_lang and a tensor v_<lang> for every language.
    Code in it is never run. The encoder must be of the same model; it is opened to see that the vectors fit.

    \b
    Example:
      langshift vectors import multilingual-e5-large.pt --output e5.safetensors
    """
    from langshift.commands.vectors_command import check_output, show_vectors
    from langshift.console import note
    from langshift.debias.encoders import open_encoder
    from langshift.debias.import_pt import read_pt, require_model_of, with_encoder

    check_output(output)
    published = read_pt(file)
    name = encoder or published.encoder
    require_model_of(published, name)
    made = with_encoder(published, open_encoder(name, trust_remote_code=trust_remote_code))
    made.save(output)
    show_vectors(made, output, as_json=as_json)
    if not as_json:
        note(f"Use it: langshift ingest CORPUS --index NAME --encoder {name} --vectors {output}")
