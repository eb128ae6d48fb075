"""A help centre's articles in ten languages, as a content management system exports them: its own fields, and faults.

Made of the demo's corpus, the first so many topics, each in ten languages, one article after the other:

- ``id`` is a whole number; ``headline`` and ``body`` are the demo's title and text; ``teaser`` is the first half of the
  body; ``topic`` is what translations of each other share; ``category`` is one of three English words, two of which are
  codes of languages as well.
- ``locale`` is a tag as such systems write it (``de_DE``). Of each 11 articles one says the language's name instead
  (``German``), of each 13 one has an empty locale, and of each 17 one has none.
- ``price`` is whole in the first article, and a fraction in each third one after it; ``published`` is a date.
- ``GARBAGE`` is what such files have among their lines: broken JSON, a list, an article without a text, an id that is
  an object, an integer that is too large for JSON's readers.
"""

import json

from langcodes import Language

from langshift.evaluate.demo import FOLDER

LANGUAGES = ("ar", "de", "en", "es", "fr", "ja", "ko", "ru", "th", "tr")
_NAMES = ("Arabic", "German", "English", "Spanish", "French", "Japanese", "Korean", "Russian", "Thai", "Turkish")
NAMES = dict(zip(LANGUAGES, _NAMES, strict=True))
CATEGORIES = ("art", "law", "sport")
FIELDS = (
    *("--id-field", "id", "--title-field", "headline^2", "--text-field", "body", "--text-field", "teaser^0.5"),
    *("--language-field", "locale", "--group-field", "topic"),
)
GARBAGE = (
    '{"id": 9001, "headline": "Broken',
    '["id", 9002]',
    '{"id": 9003, "headline": "", "body": " ", "locale": "en_GB"}',
    '{"id": {"value": 9004}, "headline": "An object", "body": "An id that is an object.", "locale": "en_GB"}',
    '{"id": 9005, "headline": "Large", "body": "A large number.", "locale": "en_GB", "views": 123456789012345678901}',
)


def articles(topics):
    """The articles of the first so many topics, as dictionaries, languages in turn."""
    rows = map(json.loads, (FOLDER / "corpus.jsonl").read_text(encoding="utf-8").splitlines())
    by_topic = {}
    for row in rows:
        by_topic.setdefault(row["group"], {})[row["_id"].rpartition("-")[2]] = row
    chosen = [(topic, tag, found[tag]) for topic, found in list(by_topic.items())[:topics] for tag in LANGUAGES]
    return [article(number, topic, tag, row) for number, (topic, tag, row) in enumerate(chosen)]


def article(number, topic, tag, row):
    """One article, with the fault that its number gives it."""
    made = {
        "id": number,
        "headline": row["title"],
        "body": row["text"],
        "teaser": row["text"][: len(row["text"]) // 2],
        "locale": f"{tag}_{Language.get(tag).maximize().territory}",
        "topic": topic,
        "category": CATEGORIES[number % 3],
        "price": number / 2 if number % 3 == 1 else number,
        "published": f"2026-{number % 12 + 1:02}-{number % 28 + 1:02}",
    }
    if number % 11 == 3:
        made["locale"] = NAMES[tag]
    elif number % 13 == 4:
        made["locale"] = ""
    elif number % 17 == 5:
        del made["locale"]
    return made


def language_of(number):
    """The language of the article of a number, whatever it says itself."""
    return LANGUAGES[number % len(LANGUAGES)]


def write_export(path, rows, garbage=GARBAGE):
    """Write an export, with a line of garbage after each of the first articles; return the path."""
    lines = []
    for number, row in enumerate(rows):
        lines += [json.dumps(row, ensure_ascii=False), *garbage[number : number + 1]]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path
