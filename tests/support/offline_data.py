"""A small dataset in two languages, and the evaluation commands over it."""

from click.testing import CliRunner
from data_folder import write_dataset

from langshift.commands.evaluate import evaluate
from langshift.errors import UsageError

DOCUMENTS = {
    "sea-en": ("en", "sea", "The sea rises and falls twice a day because the Moon pulls at it."),
    "sea-de": ("de", "sea", "Das Meer steigt und fällt zweimal am Tag, weil der Mond an ihm zieht."),
    "bread-en": ("en", "bread", "Yeast makes the dough rise before it is baked in a hot oven."),
    "bread-de": ("de", "bread", "Hefe lässt den Teig aufgehen, ehe er im heißen Ofen gebacken wird."),
}
QUERIES = {
    "q1": ("en", "sea", "nature", "Why does the water level change?"),
    "q2": ("de", "bread", "kitchen", "Warum geht der Teig auf?"),
}
QRELS = {"q1": {"sea-en": 1, "sea-de": 1}, "q2": {"bread-en": 1, "bread-de": 1}}


def small_dataset(folder):
    """Write it."""
    return write_dataset(folder, DOCUMENTS, QUERIES, QRELS)


def run(*arguments):
    """A command of ``langshift evaluate``."""
    return CliRunner().invoke(evaluate, list(map(str, arguments)))


def refusal(*arguments, kind=UsageError):
    """The message of a command that is refused."""
    said = run(*arguments)
    assert isinstance(said.exception, kind), (said.exception, said.output)
    assert said.stdout == ""
    return str(said.exception)
