"""Index templates and ingest pipelines on the cluster that everybody shares: removed again, and for own names alone."""

from contextlib import contextmanager


@contextmanager
def index_templates(client, name, *contents, components=None, legacy=False):
    """Templates for all indices whose name begins with ``name``, called ``name-t0`` and so on.

    Args:
        client: the cluster.
        name: of an index that no other test uses.
        contents: their ``settings``, ``mappings`` and ``aliases``; of each the priority is its place. ``NAME`` in them
            stands for ``name``; what else a template has is under ``top``.
        components: component templates, by name, which the first is composed of.
        legacy: whether they are legacy ones.
    """
    made, parts = [], {f"{name}-{key}": _named(value, name) for key, value in (components or {}).items()}
    try:
        for key, value in parts.items():
            client.cluster.put_component_template(name=key, body={"template": value})
        for number, content in enumerate(contents):
            content = _named(content, name)
            top, key = content.pop("top", {}), f"{name}-t{number}"
            made.append(key)
            if legacy:
                body = {"index_patterns": [f"{name}*"], "order": number, **content, **top}
                client.indices.put_template(name=key, body=body)
            else:
                composed = {"composed_of": list(parts)} if number == 0 else {}
                body = {"index_patterns": [f"{name}*"], "priority": number, "template": content, **composed, **top}
                client.indices.put_index_template(name=key, body=body)
        yield
    finally:
        for key in made:
            (client.indices.delete_template if legacy else client.indices.delete_index_template)(name=key)
        for key in parts:
            client.cluster.delete_component_template(name=key)


@contextmanager
def ingest_pipeline(client, name, *processors):
    """An ingest pipeline."""
    client.ingest.put_pipeline(id=name, body={"processors": list(processors)})
    try:
        yield name
    finally:
        client.ingest.delete_pipeline(id=name, params={"ignore": 404})


def _named(value, name):
    """JSON with a name in place of ``NAME``."""
    if isinstance(value, dict):
        return {_named(key, name): _named(inner, name) for key, inner in value.items()}
    if isinstance(value, list):
        return [_named(inner, name) for inner in value]
    return value.replace("NAME", name) if isinstance(value, str) else value
