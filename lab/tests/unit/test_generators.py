"""Generators behind HTTP, against a real server on this machine; the file of answers; 3-gram recall worked by hand."""

import signal
import subprocess
import sys
import time

import pytest
from chat_server import MODEL, chat_server, message
from model_http import cut, reply
from raw_server import ANSWERS, raw_server

from langshift.errors import LangshiftError, UsageError
from langshift_lab.generation.generators import KEY, Answer, AnswerCache, Generator, answer_prompt
from langshift_lab.generation.scoring import trigram_recall


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv(KEY, raising=False)


@pytest.fixture
def server():
    with chat_server(lambda prompt: f"Answer to {prompt}.") as server:
        yield server


def refusal(error, work):
    with pytest.raises(error) as caught:
        work()
    assert type(caught.value) is error
    return str(caught.value)


def sent(server, choice):
    """What a generator makes of a choice."""
    server.answer = lambda _: choice
    return Generator(server.name).answer("q")


def test_a_prompt_is_one_message_and_is_answered_alike_each_time(server, monkeypatch):
    monkeypatch.setenv(KEY, "secret")
    generator = Generator(server.name)
    assert generator.name == f"http:{server.url}#{MODEL}"
    assert generator.answer("q") == Answer("Answer to q.", "stop")
    assert server.bodies == [
        {
            "model": MODEL,
            "messages": [{"role": "user", "content": "q"}],
            "temperature": 0,
            "max_tokens": 128,
            "seed": 0,
        }
    ]
    assert server.keys == ["Bearer secret"]


def test_the_model_may_be_left_out_where_there_is_one(server):
    assert Generator(f"http:{server.url}").name == server.name
    server.models = ["a", "b"]
    shown = f"The generation server at {server.url} needs the name of a model"
    remedy = f"write http:{server.url}#MODEL."
    assert refusal(UsageError, lambda: Generator(f"http:{server.url}")) == f"{shown}; it has a, b: {remedy}"
    server.models = None
    assert refusal(UsageError, lambda: Generator(f"http:{server.url}")) == (
        f"{shown}; it does not list its models: {remedy}"
    )
    # A server that lists nothing is asked for the model that was named.
    assert Generator(server.name).answer("q").text == "Answer to q."


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (message(" In Paris.\n"), Answer("In Paris.", "stop")),
        (message("In Par", "length"), Answer("In Par", "length")),
        (message(""), Answer("", "stop")),
        (message(None), Answer("", "stop")),
        (message(None, "content_filter"), Answer("", "content_filter")),
        (message(None, refusal="I cannot help."), Answer("", "refusal")),
        (message("Oui.", None), Answer("Oui.", "")),
        (message("<think>It was\nParis</think>\n\nIn Paris."), Answer("In Paris.", "stop")),
        # The template of DeepSeek-R1 opens the reasoning in the prompt, so that the answer only closes it.
        (message("It was\nParis</think>\n\nIn Paris."), Answer("In Paris.", "stop")),
        (message("<think>It may be", "length"), Answer("", "length")),
        ({"message": {"content": "x"}}, Answer("x", "")),
    ],
)
def test_what_a_model_wrote(server, choice, expected):
    assert sent(server, choice) == expected


def test_a_server_that_is_busy_or_cuts_off_is_asked_again(server):
    server.faults = [reply(429, {"error": "slow down"}, Retry_After=0), reply(503, {"error": "loading"}), cut]
    assert Generator(server.name).answer("q").text == "Answer to q."
    assert len(server.bodies) == 4


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (
            reply(413, {"error": {"message": "too large"}}),
            "rejects a prompt of 5 characters (413: too large): give it fewer passages, or run the model with a longer "
            "context.",
        ),
        (
            reply(400, {"error": {"message": "maximum context length is 4"}}),
            "rejects a prompt of 5 characters (400: maximum context length is 4): give it fewer passages, or run the "
            "model with a longer context.",
        ),
        (reply(500, b"<html>no</html>"), "failed (500: Internal Server Error): see its log."),
        (reply(429, {"error": "no quota"}, Retry_After=0), "failed (429: no quota): it is too busy, or your quota is "
         "used up; try again later."),
        (
            reply(404, {"error": "no such model"}),
            f"has no model {MODEL!r} at /v1/chat/completions (404: no such model): check the address and the model.",
        ),
        (
            reply(200, b"<html>Welcome</html>", kind="text/html"),
            "answered '<html>Welcome</html>', which contains no answer of a model: check its address.",
        ),
        (reply(200, {"choices": []}), "answered '{\"choices\": []}', which contains no answer of a model: check its "
         "address."),
        (
            reply(200, b'{"choices": [{"mess'),
            "answered '{\"choices\": [{\"mess', which contains no answer of a model: check its address.",
        ),
        (cut, "interrupted the connection: see its log."),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_one_sentence(server, fault, expected):
    generator = Generator(server.name)
    server.faults = [fault] * 9
    assert refusal(LangshiftError, lambda: generator.answer("q" * 5)) == (
        f"The generation server at {server.url} {expected}"
    )


def test_each_prompt_is_asked_once_ever(server, tmp_path):
    path, heard = tmp_path / "answers.sqlite", []
    generator = Generator(server.name)
    with AnswerCache(path) as cache:
        answers = cache.answer_all(generator, ["a", "b", "a"], heard.append)
    assert [one.text for one in answers] == ["Answer to a.", "Answer to b.", "Answer to a."]
    assert (sorted(server.prompts), len(heard)) == (["a", "b"], 3)
    server.answer = lambda _: "Something else."
    with AnswerCache(path) as cache:
        again = cache.answer_all(generator, ["c", "a"])
        # Another model has answers of its own.
        other = cache.answer_all(Generator(f"http:{server.url}#other"), ["a"])
    assert [one.text for one in again] == ["Something else.", "Answer to a."]
    assert other[0].text == "Something else."
    assert sorted(server.prompts) == ["a", "a", "b", "c"]


def test_a_failure_keeps_what_was_answered_before(server, tmp_path):
    generator = Generator(server.name)
    server.faults = [None, None, reply(400, {"error": "too long"})]
    with AnswerCache(tmp_path / "answers.sqlite") as cache:
        refusal(LangshiftError, lambda: cache.answer_all(generator, list("abcd"), concurrency=1))
        assert server.prompts == ["a", "b", "c"]
        cache.answer_all(generator, ["a", "b"])
    assert server.prompts == ["a", "b", "c"]


def test_answers_under_way_at_a_failure_are_kept(server, tmp_path):
    generator = Generator(server.name)
    server.pause = 0.1
    with AnswerCache(tmp_path / "answers.sqlite") as cache:
        server.faults = [reply(400, {"error": "too long"})]
        refusal(LangshiftError, lambda: cache.answer_all(generator, list("abcdefgh"), concurrency=4))
        asked = list(server.prompts)
        cache.answer_all(generator, asked[1:])
    assert 1 < len(asked) < 8
    assert asked == server.prompts


KILLED = """
import sys
from pathlib import Path
from langshift_lab.generation.generators import AnswerCache, Generator
with AnswerCache(Path(sys.argv[1])) as cache:
    cache.answer_all(Generator(sys.argv[2]), [f"p{n}" for n in range(40)], concurrency=1)
"""


def test_a_kill_loses_only_what_was_under_way(server, tmp_path):
    path = tmp_path / "answers.sqlite"
    server.pause = 0.02
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path), server.name])
    while len(server.bodies) < 10:
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    server.pause = 0
    before = len(server.bodies)
    with AnswerCache(path) as cache:
        cache.answer_all(Generator(server.name), [f"p{n}" for n in range(40)])
    assert 10 <= before < 40
    twice = {prompt for prompt in server.prompts if server.prompts.count(prompt) > 1}
    # The one that was under way was never heard.
    assert len(server.bodies) - 40 == len(twice) <= 1


def test_a_file_that_is_none_of_answers(tmp_path):
    path = tmp_path / "answers.sqlite"
    path.write_text("not a database, and long enough to be read as one" * 9)
    assert refusal(LangshiftError, lambda: AnswerCache(path)) == (
        f"{path}, which keeps the answers, cannot be used (file is not a database): check the disk, or remove the file."
    )


def test_the_prompt():
    prompt = answer_prompt("Wo?", ["Da.", "Dort."], "de")
    assert prompt.index("Da.") < prompt.index("Dort.") < prompt.index("Wo?")
    assert "from the passages only" in prompt
    assert "passages" not in answer_prompt("Wo?", [], "de")
    assert "und" not in answer_prompt("Wo?", [], "und").split()


@pytest.mark.parametrize(
    ("answer", "references", "expected"),
    [
        # abc, bcd, cde of abcde; two of them are in xabcd.
        ("xabcd", ["abcde"], 2 / 3),
        # Multisets: aaa is there twice, and twice it is wanted of four.
        ("aaaa", ["aaaaaa"], 2 / 4),
        ("Die ANTWORT\n ist", ["die  antwort"], 1.0),
        ("ｶﾀｶﾅ", ["カタカナ"], 1.0),
        # One gram of itself.
        ("in 42 days", ["42"], 1.0),
        ("in 24 days", ["42"], 0.0),
        ("", ["abc"], 0.0),
        ("xabcd", ["zzz", "abc"], 1.0),
        ("x", [], 0.0),
        ("x", [" "], 0.0),
    ],
)
def test_3_gram_recall(answer, references, expected):
    assert trigram_recall(answer, references) == pytest.approx(expected)


@pytest.mark.parametrize("answer", ANSWERS)
def test_what_a_server_sends_is_limited(answer, monkeypatch):
    monkeypatch.setattr("langshift.model_server._SECONDS", 1)
    blocks, said = ANSWERS[answer]
    with raw_server(blocks) as url, pytest.raises(LangshiftError) as caught:
        Generator(f"http:{url}#m").answer("a")
    assert f"The generation server at {url} {said}" in str(caught.value)
