"""What a document's stamp says of its vector."""


def stamp_of(source):
    """The stamp without the page, which every document has."""
    stamp = dict(source["shift"])
    assert stamp.pop("page") is not None
    return stamp
