"""The service as the endpoint of a remote model: what ML Commons sends by the connector of the page, and reads."""

import json
import re

import httpx
import numpy as np
import pytest
from console_process import serving
from documents import PLUGIN, blocks
from native_plugin import has_plugin
from searched import a_name, documents, drop

import langshift
from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load

TOKEN = "a-token-of-this-test-alone"
WORDS = "why does the sea rise"
TEXTS = [WORDS, 'Sie sagte: "Ebbe\\Flut"\n\tu\u0308nd Äpfel </b>', "น้ำขึ้นน้ำลง 🌊", "query: " + WORDS]


@pytest.fixture(scope="module")
def encoder():
    return open_encoder("e5-small")


@pytest.fixture(scope="module")
def index(client, encoder, tmp_path_factory):
    """An index whose encoder has prefixes."""
    corpus, name = tmp_path_factory.mktemp("corpus") / "corpus.jsonl", a_name()
    corpus.write_text("".join(json.dumps(line) + "\n" for line in documents()), encoding="utf-8")
    load(client, str(corpus), name, build_pipeline(encoder, open_detector(), None, None))
    yield name
    drop(client, name)


@pytest.fixture(scope="module")
def predict(cluster_url, index, tmp_path_factory):
    """A function that does what ML Commons does with texts: it fills in the page's connector, asks, and reads."""
    (shown,) = (one.text for one in blocks(PLUGIN) if one.mark == "connector")
    folder = tmp_path_factory.mktemp("service")
    (folder / "tokens").write_text(f"ml-commons {TOKEN} {index}\n")
    with serving("--api", "--tokens", folder / "tokens", url=cluster_url, home=folder) as service:

        def predict(texts, kind="query"):
            connector = json.loads(shown.partition("\n")[2])
            (action,) = connector["actions"]
            assert (action["action_type"], action["method"]) == ("predict", "POST")
            assert action["pre_process_function"] == "connector.pre_process.openai.embedding"
            assert action["post_process_function"] == "connector.post_process.openai.embedding"
            values = {"credential.token": TOKEN}
            # The function before gives the texts as a list in JSON, which is put into the template as it is.
            values["parameters.input"] = json.dumps(texts, ensure_ascii=False)
            body = action["request_body"].replace('"gazette"', f'"{index}"').replace('"query"', f'"{kind}"')

            def filled(template):
                return re.sub(r"\$\{([\w.]+)\}", lambda found: values[found[1]], template)

            headers = {name: filled(value) for name, value in action["headers"].items()}
            url = action["url"].replace("http://search.example.org:8365/", service.url)
            answer = httpx.post(url, content=filled(body).encode(), headers=headers, timeout=60)
            assert answer.status_code == 200, answer.text
            # The function after takes the embedding of each, in their order.
            return np.array([one["embedding"] for one in answer.json()["data"]], np.float32)

        yield predict


@pytest.mark.parametrize("kind", ["query", "document"])
def test_a_connector_gets_the_vectors_of_the_encoder_with_its_prefix_once(predict, encoder, kind):
    encode = encoder.encode_queries if kind == "query" else encoder.encode_documents
    found = predict(TEXTS, kind)
    np.testing.assert_allclose(found, encode(TEXTS), atol=1e-6)
    np.testing.assert_allclose(predict(TEXTS[:1], kind), encode(TEXTS[:1]), atol=1e-6)
    assert np.abs(found[0] - found[-1]).max() > 0.001


@pytest.mark.usefixtures("cluster_env")
def test_a_search_with_it_finds_what_langshift_finds(client, index, predict):
    if not has_plugin(client):
        pytest.skip("the cluster does not have the plugin langshift")
    (vector,) = predict([WORDS])
    # What `neural` becomes on its way.
    given = {"vector_query": {"knn": {"embedding": {"vector": vector.tolist(), "k": 100}}}}
    query = {"langshift": {"text": WORDS, "language": "en", "mode": "dense", **given}}
    hits = client.search(index=index, body={"query": query, "_source": False})["hits"]["hits"]
    found = langshift.search(index, WORDS, language="en", mode="dense").hits
    assert [hit["_id"] for hit in hits] == [hit.id for hit in found]
    assert [hit["_score"] for hit in hits] == pytest.approx([hit.score for hit in found], abs=1e-6)
