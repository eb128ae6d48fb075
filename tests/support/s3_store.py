"""An S3 of this machine's, moto's, behind the fault proxy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.config import Config
from fault_proxy import FaultProxy, fault_proxy
from moto.server import ThreadedMotoServer

BUCKET = "corpora"


@dataclass
class S3Store:
    """The store.

    Attributes:
        proxy: before it.
        client: reaches it past the proxy.
    """

    proxy: FaultProxy
    client: Any

    def put(self, key: str, content: bytes) -> str:
        """Write a file; its address."""
        self.client.put_object(Bucket=BUCKET, Key=key, Body=content)
        return self.uri(key)

    def remove(self, key: str) -> None:
        """Remove a file."""
        self.client.delete_object(Bucket=BUCKET, Key=key)

    def empty(self) -> None:
        """Remove every file, and pass every request from now on."""
        self.proxy.clear()
        for found in self.client.list_objects_v2(Bucket=BUCKET).get("Contents", ()):
            self.remove(found["Key"])

    @staticmethod
    def uri(key: str) -> str:
        """Its address."""
        return f"s3://{BUCKET}/{key}"

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to reach it."""
        return {"AWS_ENDPOINT_URL": self.proxy.url, **_CREDENTIALS}


_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "of-nobody",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@contextmanager
def s3_store() -> Iterator[S3Store]:
    """Run an empty store; what this process reads of S3 comes from it meanwhile."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    try:
        with pytest.MonkeyPatch.context() as patch, fault_proxy(address) as proxy:
            for name, value in _CREDENTIALS.items():
                patch.setenv(name, value)
            client = boto3.client("s3", endpoint_url=address, config=Config(s3={"addressing_style": "path"}))
            client.create_bucket(Bucket=BUCKET)
            store = S3Store(proxy, client)
            for name, value in store.environment.items():
                patch.setenv(name, value)
            yield store
            store.empty()
            client.close()
    finally:
        server.stop()
