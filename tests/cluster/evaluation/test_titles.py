"""A small help centre in three languages, whose titles ask; two indices of it are replayed, and settings of one."""

import json
from types import SimpleNamespace

import pytest
from command_line import langshift, refusal
from searched import a_name, drop

from langshift.evaluate.compare import gate
from langshift.evaluate.compare.remedies import sample_of
from langshift.evaluate.compare.verdict import judge_replays
from langshift.evaluate.convert.titles import NOTE
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.replay.plan import ReplayOptions, ReplayPlan
from langshift.evaluate.replay.replay import replay_all
from langshift.evaluate.replay.requests import LoadProfile
from langshift.retrieval.question import SearchOptions
from langshift.retrieval.request import USUAL, SearchSettings
from langshift.retrieval.searcher import Searcher

# Page -> its title and text in German, English and French.
PAGES = {
    "password": (
        ("Passwort zurücksetzen", "Klicken Sie auf der Anmeldeseite auf den Link und folgen Sie der E-Mail."),
        ("Reset your password", "Click the link on the sign-in page and follow the message that we send you."),
        ("Réinitialiser le mot de passe", "Cliquez sur le lien de la page de connexion et suivez le message."),
    ),
    "invoice": (
        ("Rechnung herunterladen", "Unter Konto finden Sie alle Rechnungen als PDF."),
        ("Download an invoice", "All invoices are listed as PDF files in your account."),
        ("Télécharger une facture", "Toutes les factures se trouvent en PDF dans votre compte."),
    ),
    "delivery": (
        ("Wie lange dauert die Lieferung?", "Pakete kommen nach zwei bis vier Tagen an."),
        ("How long does delivery take?", "Parcels arrive after two to four days."),
        ("Combien de temps prend la livraison ?", "Les colis arrivent après deux à quatre jours."),
    ),
    "return": (
        ("Artikel zurückgeben", "Sie haben dreißig Tage Zeit, um etwas zurückzuschicken."),
        ("Return an item", "You have thirty days to send something back."),
        ("Retourner un article", "Vous avez trente jours pour renvoyer quelque chose."),
    ),
    "address": (
        ("Adresse ändern", "Tragen Sie die neue Anschrift in Ihrem Profil ein."),
        ("Change your address", "Enter the new postal address in your profile."),
        ("Changer d'adresse", "Saisissez la nouvelle adresse postale dans votre profil."),
    ),
    "cancel": (
        ("Abonnement kündigen", "Sie können jederzeit zum Ende des Monats kündigen."),
        ("Cancel a subscription", "You can cancel at any time, at the end of the month."),
        ("Résilier un abonnement", "Vous pouvez résilier à tout moment, à la fin du mois."),
    ),
    "language": (
        ("Sprache der App einstellen", "Die Sprache wird in den Einstellungen der App gewählt."),
        ("Set the app's language", "The language is chosen in the settings of the app."),
        ("Régler la langue de l'application", "La langue se choisit dans les paramètres de l'application."),
    ),
    "card": (
        ("Kreditkarte abgelehnt", "Prüfen Sie das Ablaufdatum und das Limit der Karte."),
        ("Credit card declined", "Check the expiry date and the limit of the card."),
        ("Carte de crédit refusée", "Vérifiez la date d'expiration et le plafond de la carte."),
    ),
    "delete": (
        ("Konto löschen", "Gelöschte Konten lassen sich nicht wiederherstellen."),
        ("Delete your account", "Deleted accounts cannot be restored."),
        ("Supprimer le compte", "Les comptes supprimés ne peuvent pas être restaurés."),
    ),
    "voucher": (
        ("Gutschein einlösen", "Geben Sie den Code an der Kasse ein."),
        ("Redeem a voucher", "Enter the code at the checkout."),
        ("Utiliser un bon d'achat", "Saisissez le code au moment de payer."),
    ),
    "noise": (
        ("Das Gerät ist zu laut", "Reinigen Sie den Lüfter mit einem trockenen Tuch."),
        ("The device is too loud", "Clean the fan with a dry cloth."),
        ("L'appareil est trop bruyant", "Nettoyez le ventilateur avec un chiffon sec."),
    ),
    "battery": (
        ("Akku lädt nicht", "Versuchen Sie es mit einem anderen Kabel."),
        ("Battery does not charge", "Try it with another cable."),
        ("La batterie ne se charge pas", "Essayez avec un autre câble."),
    ),
    # Without titles: their first sentences ask.
    "printer": (
        ("", "Verbinden Sie den Drucker mit dem Netz. Danach startet er neu."),
        ("", "Connect the printer to the wireless network. It restarts afterwards."),
        ("", "Connectez l'imprimante au réseau sans fil. Elle redémarre ensuite."),
    ),
    # Two pages of one title.
    "contact": (
        ("Kontakt", "Unser Telefon ist werktags besetzt."),
        ("Contact", "Our phone is staffed on weekdays."),
        ("Contact", "Notre téléphone répond les jours ouvrés."),
    ),
    "press": (
        ("Kontakt", "Journalisten schreiben an die Pressestelle."),
        ("Contact", "Journalists write to the press office."),
        ("Contact", "Les journalistes écrivent au service de presse."),
    ),
}
LANGUAGES = ("de", "en", "fr")
ALONE = {"_id": "lift", "title": "Maintenance of the lift", "text": "The lift is serviced in May.", "language": "en"}


def lines():
    for page, versions in PAGES.items():
        for tag, (title, text) in zip(LANGUAGES, versions, strict=True):
            yield {"_id": f"{page}-{tag}", "title": title, "text": text, "language": tag, "group": page}
    yield ALONE


def done(*arguments, url):
    finished = langshift(*arguments, url=url)
    assert finished.returncode == 0, finished.stderr
    return finished


@pytest.fixture(scope="module")
def help_centre(client, cluster_url, tmp_path_factory):
    """The names of an unshifted and of a shifted index."""
    path = tmp_path_factory.mktemp("help") / "corpus.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines()), encoding="utf-8")
    names = {a_name(): 0, a_name(): 1}
    for name, alpha in names.items():
        done("ingest", path, "--index", name, "--encoder", "use-m", "--alpha", alpha, url=cluster_url)
    yield list(names)
    for name in names:
        drop(client, name)


@pytest.fixture(scope="module")
def titles(help_centre, cluster_url, tmp_path_factory):
    """The folder of a made dataset, and what the command said."""
    out = tmp_path_factory.mktemp("titles") / "titles"
    return out, done("dataset", "make", help_centre[1], out, url=cluster_url)


def test_titles_ask_in_every_language_and_their_groups_answer(titles):
    out, said = titles
    assert said.stderr.splitlines() == [
        "Left out: 3 titles that several documents or groups share.",
        NOTE,
        f"Wrote {out}: 46 documents, 40 questions, 118 judgements.",
    ]
    data = load_dataset(out)
    expected = {}
    for page, versions in PAGES.items():
        if page not in ("contact", "press"):
            for tag, (title, text) in zip(LANGUAGES, versions, strict=True):
                question = title or f"{text.partition('.')[0]}."
                expected[tag, question] = {f"{page}-{of}" for of in LANGUAGES}
    expected["en", ALONE["title"]] = {"lift"}
    assert {(one.language, one.text): set(data.relevant(one.id)) for one in data.queries} == expected
    assert {one.article for one in data.queries} == {*PAGES, "lift"} - {"contact", "press"}
    assert len(data.documents) == 3 * len(PAGES) + 1
    assert data.remarks == [NOTE]


def test_a_sample_asks_for_the_same_pages_in_every_language(help_centre, cluster_url, tmp_path):
    make = ["dataset", "make", help_centre[0], "--count", 15]
    for seed, name in ((0, "one"), (0, "again"), (1, "other")):
        told = json.loads(done(*make, tmp_path / name, "--seed", seed, "--json", url=cluster_url).stdout)
        assert (told["queries"], told["shared_titles"], told["note"]) == (15, 3, NOTE)
    one, again, other = (load_dataset(tmp_path / name).queries for name in ("one", "again", "other"))
    pages = {tag: {query.article for query in one if query.language == tag} - {"lift"} for tag in LANGUAGES}
    assert pages["de"] == pages["fr"] >= pages["en"]
    assert len(pages["de"]) == 5
    assert one == again
    assert {query.text for query in one} != {query.text for query in other}


def test_a_made_set_is_replayed_and_compared(titles, help_centre, cluster_url, tmp_path):
    out, _ = titles
    assert langshift("dataset", "check", out, url=cluster_url).returncode == 0
    both = [word for name in help_centre for word in ("--index", name)]
    said = done("evaluate", "replay", out, *both, "--output", tmp_path / "runs", "--json", url=cluster_url)
    told = json.loads(said.stdout)
    for run in told["runs"].values():
        assert run["warnings"][0] == NOTE
        # Every title finds its own document.
        assert run["measures"]["own@3"] > 0.9
        assert run["measures"]["TLR@20"] > 0.5
    (verdict,) = told["verdicts"]
    assert verdict["kind"] != "no judgements"
    assert verdict["next"] == []
    compared = done("evaluate", "compare", *(tmp_path / "runs" / name for name in help_centre), url=cluster_url)
    assert f"Warning: {NOTE}" in " ".join(compared.stderr.split())


def test_a_log_without_judgements_names_the_commands_that_lead_to_some(titles, help_centre, cluster_url, tmp_path):
    log, runs = tmp_path / "log.txt", tmp_path / "runs"
    log.write_text("".join(f"{query.text}\n" for query in load_dataset(titles[0]).queries), encoding="utf-8")
    both = f"--index {help_centre[0]} --index {help_centre[1]}"
    replay = ["evaluate", "replay", "--queries", log, *both.split()]
    shown = done(*replay, url=cluster_url).stdout.splitlines()
    assert shown[-5].startswith("No judgements to tell by: of the documents that either finds among its first 20, ")
    assert ", and the searcher's language has about " in shown[-5]
    assert shown[-4:] == [
        "Next, the least effort first:",
        "1. Minutes, and nobody judges: titles of the documents ask: "
        f"langshift dataset make {help_centre[1]} titles && langshift evaluate replay titles {both}",
        f"2. Minutes, where you have questions with their answers, or clicks: langshift evaluate replay DATASET {both}",
        "3. Hours: a person judges 40 queries in the browser, list against list: "
        f"langshift {' '.join(map(str, replay))} --output runs && langshift serve --results runs",
    ]
    (verdict,) = json.loads(done(*replay, "--output", runs, "--json", url=cluster_url).stdout)["verdicts"]
    judge = f"langshift serve --results {runs}"
    assert [one["command"] for one in verdict["next"]][1:] == [f"langshift evaluate replay DATASET {both}", judge]
    # The first of them does what it says.
    first, second = (command.split()[1:] for command in verdict["next"][0]["command"].split(" && "))
    assert langshift(*first, url=cluster_url, cwd=tmp_path).returncode == 0
    assert langshift(*second, url=cluster_url, cwd=tmp_path).returncode == 0
    # So does a comparison of the runs, and its page.
    folders = [runs / name for name in help_centre]
    (again,) = json.loads(done("evaluate", "compare", *folders, "--json", url=cluster_url).stdout)["verdicts"]
    assert again["next"] == verdict["next"]
    done("evaluate", "compare", "--brief", *folders, "--report", tmp_path / "page", url=cluster_url)
    page = (tmp_path / "page" / "report.html").read_text(encoding="utf-8")
    assert f"list against list: <code>{judge}</code>" in page
    # Words that are written nowhere cannot be judged.
    hidden = json.loads(done(*replay, "--redact", "text", "--json", url=cluster_url).stdout)["verdicts"][0]["next"]
    assert hidden == verdict["next"][:2]


def test_settings_of_one_index_are_named_in_the_commands(help_centre, cluster_url, tmp_path):
    log, name = tmp_path / "log.txt", help_centre[1]
    log.write_text("invoice\nAkku\n", encoding="utf-8")
    settings = ["--setting", "dense", "--setting", "lexical"]
    done(
        "evaluate",
        "replay",
        "--queries",
        log,
        "--index",
        name,
        *settings,
        "--output",
        tmp_path / "runs",
        url=cluster_url,
    )
    folders = [tmp_path / "runs" / setting for setting in ("dense", "lexical")]
    (verdict,) = json.loads(done("evaluate", "compare", *folders, "--json", url=cluster_url).stdout)["verdicts"]
    assert verdict["next"][1]["command"] == (
        f"langshift evaluate replay DATASET --index {name} --setting dense --setting lexical --output judged"
    )


def test_what_has_to_be_searched_anew_is_searched_for_a_sample_alone(client, help_centre, titles, monkeypatch):
    data, options = load_dataset(titles[0]), ReplayOptions([USUAL], LoadProfile(warm_up=0))
    searchers = [Searcher(client, name, SearchOptions()) for name in help_centre]
    before, after = replay_all([client], ReplayPlan.of(searchers, data, options), options)
    sample, judged = sample_of((query.id for query in data.queries), 10), []

    def judge(*given):
        judged.append(given)
        # The first is made one that sends for a remedy.
        return judge_replays(*given) if len(given) > 3 else SimpleNamespace(kind="at a cost", loses_own=True)

    monkeypatch.setattr(gate, "judge_replays", judge)
    monkeypatch.setattr(gate, "untried_search", lambda *_: ("search by words", SearchSettings("lexical")))
    monkeypatch.setattr(gate, "sample_of", lambda names: sample_of(names, 10))
    verdict = gate.judge_live(client, searchers[1], before, after)
    assert verdict.figures[0].test.queries == 40
    remedies, tried_on = judged[1][3:]
    assert {answer.query for answer in remedies["search by words"].answers} == tried_on == sample
    assert not remedies["search by words"].failed


def test_what_cannot_be_made(help_centre, cluster_url, tmp_path):
    def refused(*arguments):
        return refusal(langshift("dataset", "make", *arguments, url=cluster_url))

    out = tmp_path / "out"
    assert refused(help_centre[0], out, "--rerank", "st:x", "--translate", "de") == (
        "--rerank and --translate would change nothing where titles ask: name a --generator that writes the questions, "
        "or leave them out."
    )
    assert refused(help_centre[0], out, "--generator", "http:http://localhost:1#x") == (
        "--generator writes questions that a reranker has to check: name it with --rerank."
    )
    assert refused("langshift-test-missing", out).startswith("There is no index langshift-test-missing: ")
    assert not out.exists()
