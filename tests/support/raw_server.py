"""A server on this machine that answers every request with the same bytes, whatever they are, or one at a time."""

import socket
import threading
import time
from contextlib import contextmanager, suppress

#: Name -> what is sent, block by block; the end of what langshift says of it.
ANSWERS = {
    "much": ([b"HTTP/1.1 200 OK\r\n\r\n", *[b" " * (1 << 20)] * 300], "sent more than 16 MiB in one answer"),
    "much of a failure": (
        [b"HTTP/1.1 503 Busy\r\n\r\n", *[b" " * (1 << 20)] * 300],
        "sent more than 16 MiB in one answer",
    ),
    "much that is promised": ([b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000000\r\n\r\n[]"], "interrupted the"),
    "a chunk": (
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffff\r\n", *[b" " * (1 << 20)] * 300],
        "sent more than 16 MiB in one answer",
    ),
    "brackets": ([b"HTTP/1.1 200 OK\r\ncontent-length: 200000\r\n\r\n", b"[" * 200_000], "answered '[[[["),
    "a redirect": (
        [b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"],
        "failed (302: Found)",
    ),
    "a slow head": ([bytes([one]) for one in b"HTTP/1.1 200 OK\r\nx: " + b"a" * 60], "did not answer within 1 seconds"),
    "a slow body": (
        [b"HTTP/1.1 200 OK\r\ncontent-length: 60\r\n\r\n", *[b" "] * 60],
        "did not answer within 1 seconds",
    ),
}


@contextmanager
def raw_server(blocks):
    """The address of such a server; between two blocks of a byte it waits a twentieth of a second."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer(connection):
            with connection, suppress(OSError):
                connection.recv(1 << 16)
                for block in blocks:
                    connection.sendall(block)
                    time.sleep(0.05 if len(block) == 1 else 0)

        def accept():
            with suppress(OSError):
                while True:
                    threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
