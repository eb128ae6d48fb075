"""Checks signatures as AWS does, from the request as it came, and refuses in the service's words."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from email.message import Message
from urllib.parse import parse_qsl, quote, urlencode

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

HEADER = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8}/[^/]+/[^/]+/aws4_request), SignedHeaders=([^,]+), Signature=(\w{64})"
)
MISMATCH = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key "
    "and signing method. Consult the service documentation for details."
)


@dataclass
class Verifier:
    """Knows the keys of a domain in ``region``; an instance is a proxy's ``refuse``.

    Attributes:
        keys: secret and session token (None for keys that last) by access key.
        used: the access key of every request that passed.
    """

    keys: dict[str, tuple[str, str | None]]
    region: str = "eu-central-1"
    service: str = "es"
    used: list[str] = field(default_factory=list)

    def __call__(self, method: str, path: str, headers: Message, body: bytes) -> tuple[int, bytes] | None:
        said = self._wrong(method, path, headers, body)
        return None if said is None else (403, json.dumps({"message": said}).encode())

    def _wrong(self, method: str, path: str, headers: Message, body: bytes) -> str | None:
        given = headers.get_all("Authorization", [])
        match = HEADER.fullmatch(given[0]) if len(given) == 1 else None
        if match is None:
            return f"Authorization header requires 'Credential' parameter. Authorization={given}"
        access, scope, signed, signature = match.groups()
        stamp = headers["X-Amz-Date"]
        secret, token = self.keys.get(access, (None, None))
        if secret is None or headers["X-Amz-Security-Token"] != token:
            return "The security token included in the request is invalid."
        if scope.split("/")[1:3] != [self.region, self.service]:
            return "Credential should be scoped to a valid region. "
        at = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
        if abs(datetime.now(timezone.utc) - at) > timedelta(minutes=5):
            return f"Signature expired: {stamp} is now earlier than now (now - 5 min.)"
        names = signed.split(";")
        demanded = {name.lower() for name in headers if name.lower().startswith("x-amz-")} | {"host"}
        request = _as_received(method, path, {name: headers[name] for name in names}, body)
        request.context["timestamp"] = stamp
        auth = SigV4Auth(Credentials(access, secret, token), self.service, self.region)
        canonical = auth.canonical_request(request)
        right = auth.signature(auth.string_to_sign(request, canonical), request)
        hashed = headers["X-Amz-Content-SHA256"] == hashlib.sha256(body).hexdigest()
        if signature != right or not hashed or not demanded <= set(names) or scope[:8] != stamp[:8]:
            return f"{MISMATCH}\n\nThe Canonical String for this request should have been\n'{canonical}'"
        self.used.append(access)
        return None


def _as_received(method: str, path: str, headers: dict[str, str], body: bytes) -> AWSRequest:
    """The request; its query is decoded and encoded anew, as the service does, where a plus is a space."""
    bare, _, query = path.partition("?")
    query = urlencode(parse_qsl(query, keep_blank_values=True), quote_via=quote, safe="")
    return AWSRequest(method, f"http://{headers['host']}{bare}?{query}", headers=headers, data=body)
