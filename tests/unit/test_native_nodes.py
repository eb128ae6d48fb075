"""What is said of the nodes that have the OpenSearch plugin, and of those that lack it."""

from langshift import __version__
from langshift.plugin.native_nodes import PluginNodes


def test_what_is_where_and_what_is_wrong_with_it():
    again = "install it on every node, as `langshift plugin install` says."
    same = {"a": __version__, "b": __version__}
    cases = [
        (same, "ab", f"{__version__} with the ingest processor on every node", None),
        (same, "", f"{__version__} without the ingest processor on every node", None),
        (dict.fromkeys("ab"), "", "not installed", None),
        (
            same | {"c": None},
            "ab",
            f"{__version__} with the ingest processor on a and b; missing on c",
            "is not the same on every node",
        ),
        (
            same,
            "b",
            f"{__version__} without the ingest processor on a; {__version__} with the ingest processor on b",
            "is not the same on every node",
        ),
        (
            {"a": "0.0.1"},
            "a",
            "0.0.1 with the ingest processor on every node",
            f"is not of this version of langshift, {__version__}",
        ),
    ]
    for versions, processing, words, wrong in cases:
        nodes = PluginNodes(versions, set(processing))
        assert nodes.in_words() == words
        assert nodes.problem() == (wrong and f"The plugin langshift {wrong} ({words}): {again}")
        assert nodes.everywhere is (versions == same)
