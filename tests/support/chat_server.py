"""A real HTTP server on this machine that answers prompts as OpenAI's chat API does, and that fails when told to."""

import time

from model_http import ModelHttpHandler, ModelHttpServer, serving

MODEL = "org/tiny-chat"


class ChatServer(ModelHttpServer):
    """The server; what it does is set on it, also while it runs.

    ``answer`` makes the answer of a prompt: a text, or a choice. ``faults`` are taken one a request, from the first:
    a function of the handler and the usual answer, or None to answer as usual.
    """

    def __init__(self, answer):
        super().__init__(_Handler)
        self.answer, self.models = answer, [MODEL]
        self.bodies = []

    @property
    def name(self):
        return f"http:{self.url}#{MODEL}"

    @property
    def prompts(self):
        """What was asked, in order."""
        return [body["messages"][0]["content"] for body in self.bodies]


def chat_server(answer):
    return serving(ChatServer(answer))


class _Handler(ModelHttpHandler):
    def do_GET(self):
        if self.path == "/v1/models" and self.server.models is not None:
            self.send(200, {"object": "list", "data": [{"id": one} for one in self.server.models]})
        else:
            self.send(404, {"detail": "Not Found"})

    def do_POST(self):
        server = self.server
        body = self.read()
        if self.path != "/v1/chat/completions":
            self.send(404, {"detail": "Not Found"})
            return
        with server.lock:
            server.bodies.append(body)
            server.keys.append(self.headers.get("Authorization"))
            fault = server.take_fault()
        time.sleep(server.pause)
        made = server.answer(body["messages"][0]["content"])
        choice = made if isinstance(made, dict) else message(made)
        usual = {"object": "chat.completion", "model": body["model"], "choices": [choice]}
        self.send_or(fault, usual)


def message(text, finish="stop", **more):
    """A choice with this text."""
    return {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **more}}
