"""Made collections as MIRACL and PosIR are laid out: three languages, and of the latter three domains."""

import gzip
import json

LANGUAGES = ("de", "en", "es")
DOMAINS = ("Law", "Medicine", "Music")
_CODES = {"de": "deu-Latn", "en": "eng-Latn", "es": "spa-Latn"}
# A question and two passages, the first of which answers it; of which domain, in each language.
_TOPICS = {
    "Law": {
        "de": ("Wer prüft einen Vertrag?", "Ein Anwalt prüft den Vertrag.", "Das Gericht vertagt den Prozess."),
        "en": ("Who checks a contract?", "A lawyer checks the contract.", "The court adjourns the trial."),
        "es": ("¿Quién revisa un contrato?", "Un abogado revisa el contrato.", "El tribunal aplaza el juicio."),
    },
    "Medicine": {
        "de": ("Was senkt das Fieber?", "Kalte Wickel senken das Fieber.", "Die Ärztin röntgt den gebrochenen Arm."),
        "en": ("What lowers a fever?", "Cold wraps lower the fever.", "The doctor takes an X-ray of the broken arm."),
        "es": ("¿Qué baja la fiebre?", "Los paños fríos bajan la fiebre.", "La médica radiografía el brazo roto."),
    },
    "Music": {
        "de": ("Wer leitet das Orchester?", "Der Dirigent leitet das Orchester.", "Die Geige hat vier Saiten."),
        "en": ("Who leads the orchestra?", "The conductor leads the orchestra.", "The violin has four strings."),
        "es": ("¿Quién dirige la orquesta?", "El director dirige la orquesta.", "El violín tiene cuatro cuerdas."),
    },
}


def write_miracl(folder):
    """Write MIRACL's folders: two questions of each domain in each language, judged in it alone."""
    for language in LANGUAGES:
        home, corpus = folder / f"miracl-v1.0-{language}", folder / f"miracl-corpus-v1.0-{language}"
        for place in (home / "topics", home / "qrels", corpus):
            place.mkdir(parents=True)
        topics = [topic[language] for topic in _TOPICS.values()]
        passages = [text for _, *texts in topics for text in texts]
        lines = [{"docid": f"{n}#0", "title": "", "text": text} for n, text in enumerate(passages)]
        (corpus / "docs-0.jsonl.gz").write_bytes(gzip.compress(_jsonl(lines).encode()))
        asked = "".join(f"{n}\t{question}\n" for n, (question, *_) in enumerate(topics))
        judged = "".join(f"{n} Q0 {2 * n}#0 1\n{n} Q0 {2 * n + 1}#0 0\n" for n, _ in enumerate(topics))
        (home / "topics" / f"topics.miracl-v1.0-{language}-dev.tsv").write_text(asked, encoding="utf-8")
        (home / "qrels" / f"qrels.miracl-v1.0-{language}-dev.tsv").write_text(judged)


def write_posir(folder):
    """Write PosIR's folders: each language has each domain, and all are translations of each other."""
    for language, code in _CODES.items():
        for domain, topic in _TOPICS.items():
            home = folder / code / domain
            (home / "qrels").mkdir(parents=True)
            question, *passages = topic[language]
            documents = [{"_id": f"c{n}", "title": "", "text": text} for n, text in enumerate(passages)]
            (home / "corpus.jsonl").write_text(_jsonl(documents), encoding="utf-8")
            (home / "queries.jsonl").write_text(_jsonl([{"_id": "q0", "text": question}]), encoding="utf-8")
            (home / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\tc0\t1\n")


def _jsonl(records):
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
