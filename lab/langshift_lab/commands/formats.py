"""The published collections that ``dataset convert`` reads where the laboratory is installed."""

from langshift.commands.dataset import SPLIT, CollectionFormat
from langshift.parameters import Option, parse_list
from langshift_lab.convert.belebele import read_belebele
from langshift_lab.convert.halves import halved
from langshift_lab.convert.miracl import read_miracl
from langshift_lab.convert.multieup import read_multieup
from langshift_lab.convert.neuclir import read_neuclir
from langshift_lab.convert.posir import read_posir
from langshift_lab.convert.squad import read_mlqa, read_xquad

_ARTICLES = Option(
    ["--articles"],
    is_flag=True,
    help="Of xquad: a document is an article, not a paragraph, and evidence.tsv is written.",
)
_DOMAINS = Option(["--domains"], metavar="LIST", help="Of posir: domains to pool. [default: all]", callback=parse_list)
_HALVES = Option(
    ["--split-by-article"],
    is_flag=True,
    help=(
        "Of xquad, mlqa, belebele and multieup: write OUT/dev with the questions on every second article and OUT/test "
        "with the others."
    ),
)

XQUAD = CollectionFormat(halved(read_xquad), "en.json, de.json and so on, or xquad.en.json", (_ARTICLES, _HALVES))
MLQA = CollectionFormat(halved(read_mlqa), "the unpacked MLQA_V1; --split test", (SPLIT, _HALVES))
BELEBELE = CollectionFormat(
    halved(read_belebele), "eng_Latn.jsonl and so on, or a folder data with them; zh is zho_Hans", (_HALVES,)
)
MIRACL = CollectionFormat(
    read_miracl,
    "miracl-v1.0-sw, miracl-corpus-v1.0-sw and so on, judged in each language alone; --split dev",
    (SPLIT,),
    None,
)
# PosIR's questions in any language are translations of one another, whichever documents are pooled.
POSIR = CollectionFormat(
    read_posir,
    "eng-Latn/Law/corpus.parquet and so on; evidence.tsv is written; --pivot may be outside --languages",
    (_DOMAINS,),
    reads_pivots=True,
)
NEUCLIR = CollectionFormat(
    read_neuclir, "zho/docs.jsonl (or data/zho-00000-of-00001.jsonl.gz), fas, rus; *topics*.jsonl, *qrels*"
)
MULTIEUP = CollectionFormat(
    halved(read_multieup),
    "clean_all_with_did_qid.MEP.csv, or a folder with it: titles find their debates' speeches",
    (_HALVES,),
)
