"""Small made-up collections, in the layouts in which the real ones are published."""

import csv
import gzip
import json


def jsonl(records):
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def write_beir(folder):
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(
        jsonl([{"_id": "d1", "text": "The sea rises."}, {"_id": "d2", "text": "Bread is baked."}])
    )
    (folder / "queries.jsonl").write_text(jsonl([{"_id": "q1", "text": "sea?"}, {"_id": "q2", "text": "bread?"}]))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\n")
    (folder / "languages.tsv").write_text("corpus-id\tlanguage\nd1\ten\nd2\ten\n")
    return folder


def write_mlqa(folder):
    """As MLQA_V1.zip unpacks; q1 and q2 share an English passage, and have two Chinese ones."""
    test = {
        "en": [("Tides", [("The sea rises twice a day.", {"q1": "How often?", "q2": "What rises?"})]),
               ("Bread", [("Yeast makes dough rise.", {"q3": "What does yeast do?"})])],
        "de": [("Gezeiten", [("Das Meer steigt zweimal am Tag.", {"q1": "Wie oft?"})]),
               ("Brot", [("Hefe lässt Teig gehen.", {"q3": "Was tut Hefe?"})])],
        "zh": [("潮汐", [("海水每天上涨两次。", {"q1": "多久一次?"}), ("上涨的是海水。", {"q2": "什么上涨?"})])],
    }  # fmt: skip
    dev = {"en": [("Rain", [("It rains in the north.", {"q9": "Where?"})])]}
    for split, languages in (("test", test), ("dev", dev)):
        (folder / split).mkdir(parents=True)
        for language, articles in languages.items():
            data = [
                {
                    "title": title,
                    "paragraphs": [
                        {
                            "context": context,
                            "qas": [
                                {"question": text, "answers": [{"text": "x", "answer_start": 0}], "id": name}
                                for name, text in asked.items()
                            ],
                        }
                        for context, asked in paragraphs
                    ],
                }
                for title, paragraphs in articles
            ]
            document = json.dumps({"data": data, "version": 1.0}, ensure_ascii=False)
            (folder / split / f"{split}-context-{language}-question-{language}.json").write_text(
                document, encoding="utf-8"
            )
            # The files of other pairs of languages lie beside them, and are not read.
            (folder / split / f"{split}-context-{language}-question-es.json").write_text("{}")
    return folder


def write_belebele(folder):
    (folder / "data").mkdir(parents=True)
    for turned, code in enumerate(("eng_Latn", "zho_Hans", "zho_Hant", "arb_Arab")):
        rows = [
            {
                "link": f"https://en.wikinews.org/wiki/{page}",
                "question_number": number,
                "flores_passage": f"{code} passage {page}",
                "question": f"{code} question {page}.{number}",
                "mc_answer1": "a",
                "mc_answer2": "b",
                "mc_answer3": "c",
                "mc_answer4": "d",
                "correct_answer_num": "1",
                "dialect": code,
                "ds": f"2023-0{turned + 4}-01",
            }
            for page, number in ((0, 1), (0, 2), (1, 1))
        ]
        (folder / "data" / f"{code}.jsonl").write_text(jsonl(rows[::-1] if turned % 2 else rows), encoding="utf-8")
    return folder


def write_miracl(folder):
    topics = {"en": "0\tWhat is albedo?\n1\tWho wrote it?\n", "sw": "0\tAlbedo ni nini?\n"}
    qrels = {"en": "0\tQ0\t39#0\t1\n0\tQ0\t39#1\t0\n1\tQ0\t40#0\t1\n", "sw": "0\tQ0\t39#0\t1\n"}
    docs = {
        "en": [
            [("39#0", "Albedo", "Albedo means whiteness."), ("39#1", "Albedo", "It is measured.")],
            [("40#0", "A", "He.")],
        ],
        "sw": [[("39#0", "Albedo", "Albedo ni weupe."), ("41#0", "Maji", "Maji ni uhai.")]],
    }
    for language in topics:
        for kind, text in (("topics", topics[language]), ("qrels", qrels[language])):
            home = folder / f"miracl-v1.0-{language}" / kind
            home.mkdir(parents=True)
            (home / f"{kind}.miracl-v1.0-{language}-dev.tsv").write_text(text)
        home = folder / f"miracl-corpus-v1.0-{language}"
        home.mkdir()
        for number, passages in enumerate(docs[language]):
            with gzip.open(home / f"docs-{number}.jsonl.gz", "wt", encoding="utf-8") as file:
                file.write(jsonl({"docid": name, "title": title, "text": text} for name, title, text in passages))
    return folder


def write_posir(folder, kind):
    """English with a translation that lacks a document, and Chinese, a corpus of its own with the same ids."""

    def query(name, text, span, length, tokens):
        return {"_id": name, "text": text, "pos_char_span": span, "pos_char_length": length, "pos_token_length": tokens}

    sets = {
        ("eng-Latn", "Law"): (
            {"d1": "A law.", "d2": "A bill.", "d3": "A treaty."},
            [query("q1", "Which law?", [0, 1000], 2000, 600), query("q2", "Which treaty?", [90, 120], 100, 80)],
            {"q1": "d1", "q2": "d3"},
        ),
        ("deu-Latn", "Law"): (
            {"d1": "Ein Gesetz.", "d2": "Ein Entwurf."},
            [query("q1", "Welches Gesetz?", [0, 1000], 2000, 600)],
            {"q1": "d1"},
        ),
        ("cmn-Hans", "Law"): (
            {"d1": "法律。", "d2": "法案。"},
            [query("q1", "哪部法律?", [5, 10], 20, 10)],
            {"q1": "d1"},
        ),
        ("eng-Latn", "Real Estate"): ({"d1": "A house."}, [query("q1", "Whose?", [0, 4], 8, 3)], {"q1": "d1"}),
    }
    for (language, domain), (documents, queries, judged) in sets.items():
        home = folder / language / domain
        (home / "qrels").mkdir(parents=True)
        write = write_parquet if kind == "parquet" else _lines
        write(home / "corpus", [{"_id": name, "text": text} for name, text in documents.items()])
        write(home / "queries", queries)
        write(home / "qrels" / "test", [{"query-id": q, "corpus-id": d, "score": 1} for q, d in judged.items()])
    (folder / "README.md").write_text("no language")
    return folder


def _lines(path, rows):
    path.with_suffix(".jsonl").write_text(jsonl(rows), encoding="utf-8")


def write_parquet(path, rows):
    import pyarrow
    from pyarrow import parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), path.with_suffix(".parquet"))


def write_neuclir(folder, kind):
    documents = {
        "zho": [("z1", "小行星", "小行星可能撞击地球。"), ("z2", "", "别的新闻。")],
        "rus": [("r1", "Астероид", "Астероид летит к Земле.")],
        "fas": [("f1", "سیارک", "سیارک به زمین نزدیک می‌شود.")],
    }
    folder.mkdir()
    for language, passages in documents.items():
        text = jsonl(
            {
                "id": name,
                "cc_file": "x.warc.gz",
                "time": "2021-01-01",
                "title": title,
                "text": words,
                "url": "https://example.org",
            }
            for name, title, words in passages
        )
        if kind == "downloaded":
            (folder / language).mkdir()
            (folder / language / "docs.jsonl").write_text(text, encoding="utf-8")
        else:
            (folder / "data").mkdir(exist_ok=True)
            with gzip.open(folder / "data" / f"{language}-00000-of-00001.jsonl.gz", "wt", encoding="utf-8") as file:
                file.write(text)
    topics = [
        {
            "topic_id": "0",
            "languages_with_qrels": ["zho", "fas", "rus"],
            "topics": [
                {"lang": "eng", "source": "original", "topic_title": "Asteroids",
                 "topic_description": "Articles on asteroids\nthat may strike."},
                {"lang": "zho", "source": "google translation", "topic_title": "小行星们", "topic_description": "机器"},
                {"lang": "zho", "source": "human translation", "topic_title": "小行星",
                 "topic_description": "与小行星相关的文章"},
            ],
            "narratives": {},
        },
        {"topic_id": "1", "languages_with_qrels": [],
         "topics": [{"lang": "eng", "source": "original", "topic_title": "Not judged"}]},
    ]  # fmt: skip
    (folder / "neuclir-2023-topics.0605.jsonl").write_text(jsonl(topics), encoding="utf-8")
    (folder / "neuclir-2023-qrels.final").mkdir()
    (folder / "neuclir-2023-qrels.final" / "qrels.zho").write_text("0 0 z1 1\n0 0 z2 0\n")
    (folder / "neuclir-2023-qrels.final" / "qrels.mlir").write_text("0 0 r1 3\n0 0 z1 1\n0 0 z2 0\n0 0 f1 1\n")
    return folder


SPEECHES = [
    ("1", 'Madam President,\n"free" voices.', "EN", "7"),
    ("2", "Frau Präsidentin, freie Stimmen.", "DE", "7"),
    ("3", "Frau Präsidentin, der Fisch.", "DE", "8"),
    ("4", "", "EN", "8"),
]
_TITLES = {
    "7": {"EN": "Media, freedom", "DE": "Medien, Freiheit", "GA": "2024"},
    "8": {"EN": "Fisheries", "DE": "Fischerei", "GA": ""},
}


def write_multieup(folder):
    folder.mkdir()
    codes = ["EN", "DE", "GA"]
    with (folder / "clean_all_with_did_qid.MEP.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        head = ["did", "TEXT", "DATE", "LANGUAGE", "NAME", "MEPID", "PARTY", "country", "gender"]
        table.writerow([*head, *(f"title_{code}" for code in codes), *(f"qid_{code}" for code in codes)])
        for name, text, language, debate in SPEECHES:
            titles = [_TITLES[debate][code] for code in codes]
            row = [name, text, "2024-01-01", language, "A. Name", "1", "P", "Malta", "Female"]
            table.writerow([*row, *titles, *(f"{code}_{debate}" for code in codes)])
    return folder
