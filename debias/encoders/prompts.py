"""What stands before queries and documents: a model's own prompts, else what its family of models was trained with."""

import re
from collections.abc import Mapping
from typing import NamedTuple


class Prefixes(NamedTuple):
    """Text put before every query, and before every document."""

    query: str
    document: str


_TASK = "Given a web search query, retrieve relevant passages that answer the query"
_INSTRUCT = Prefixes(f"Instruct: {_TASK}\nQuery: ", "")
_TAGGED = Prefixes(f"<instruct>{_TASK}\n<query>", "")
_REPRESENT = Prefixes("Represent this sentence for searching relevant passages: ", "")
_QUERY_PASSAGE = Prefixes("query: ", "passage: ")
_NONE = Prefixes("", "")

# A family's names, without the organisation -> its prefixes, by its model cards. The first that fits counts.
_FAMILIES = {
    r"e5-\S*instruct": _INSTRUCT,
    r"e5-(small|base|large)": _QUERY_PASSAGE,
    r"bge-(m3|\S*noinstruct)": _NONE,
    r"bge-(multilingual-gemma2|en-icl)": _TAGGED,
    r"bge-(small|base|large)-zh": Prefixes("为这个句子生成表示以用于检索相关文章：", ""),
    r"bge-(small|base|large)": _REPRESENT,
    r"gte-qwen": _INSTRUCT,
    r"gte-(small|base|large|multilingual|modernbert)": _NONE,
    r"(nomic-embed-text|modernbert-embed)": Prefixes("search_query: ", "search_document: "),
    r"arctic-embed(2|\S*v2)": Prefixes("query: ", ""),
    r"arctic-embed": _REPRESENT,
    r"jina-embeddings-v2": _NONE,
    r"jina-embeddings-v3": Prefixes(
        "Represent the query for retrieving evidence documents: ", "Represent the document for retrieval: "
    ),
    r"jina-embeddings-v4": Prefixes("Query: ", "Passage: "),
    r"jina-embeddings-v5": Prefixes("Query: ", "Document: "),
    # Without a space at the end, unlike the others.
    r"qwen3-embedding": Prefixes(f"Instruct: {_TASK}\nQuery:", ""),
    r"mxbai-embed-de": _QUERY_PASSAGE,
    r"(mxbai-embed|uae-large)": _REPRESENT,
    r"embeddinggemma(?!-?2)": Prefixes("task: search result | query: ", "title: none | text: "),
    r"(llama-embed-nemotron|sfr-embedding|linq-embed)": _INSTRUCT,
    r"(nemotron-embed|nv-embedqa)": _QUERY_PASSAGE,
    r"(granite-embedding|labse|distiluse|paraphrase-|all-minilm|all-mpnet|all-distilroberta|multi-qa-|msmarco-)": _NONE,
    r"(sentence-t5|gtr-t5|static-retrieval|static-similarity|text-embedding-(3|ada))": _NONE,
}
# Names of prompts for a search, as models of sentence-transformers have them, best first.
_QUERY_PROMPTS = ("query", "retrieval.query", "search_query", "s2p_query", "web_search_query")
_DOCUMENT_PROMPTS = ("document", "passage", "corpus", "retrieval.passage", "search_document")


def known_prefixes(prompts: Mapping[str, str | None], *names: str) -> Prefixes | None:
    """Return a model's prefixes: its own prompts, else those of the family that a name tells; None for neither.

    Args:
        prompts: prompts by their name, from the model's own configuration; empty ones say nothing.
        names: the model's name, with or without an organisation or a folder, then what it was made from.
    """
    own = Prefixes(*(_first(prompts, keys) for keys in (_QUERY_PROMPTS, _DOCUMENT_PROMPTS)))
    if any(own):
        return own
    for name in names:
        short = name.replace("\\", "/").rstrip("/").rpartition("/")[2].lower()
        for family, prefixes in _FAMILIES.items():
            if re.search(rf"(?<![a-z0-9]){family}", short):
                return prefixes
    return None


def _first(prompts: Mapping[str, str | None], keys: tuple[str, ...]) -> str:
    return next((found for key in keys if (found := prompts.get(key))), "")
