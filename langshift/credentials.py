"""Secrets: passwords kept out of whatever is shown, and requests signed for AWS."""

import re
from base64 import b64encode
from functools import cache
from urllib.parse import quote

from opensearchpy.exceptions import TransportError

from langshift.errors import LangshiftError, require_extra

_secrets: dict[str, None] = {}


def register_secret(username: str, password: str | None) -> str:
    """Keep a password out of everything that ``hide`` is asked about.

    Returns:
        The credentials as Basic authentication sends them.
    """
    pair = b64encode(f"{username}:{password or ''}".encode()).decode()
    for secret in (pair, password, quote(password or "", safe=""), quote(password or "")):
        if secret:
            _secrets[secret] = None
    return pair


def redact(text: str) -> str:
    """The text with ``***`` for each password, in whatever form one was sent.

    Only where it stands alone: a password such as ``admin`` must not spoil ``administrator``.
    """
    for secret in sorted(_secrets, key=len, reverse=True):
        if secret in text:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", text)
    return text


# How the service begins what it says of a signature, a key, a token or a clock.
_REFUSALS = (
    "The request signature we calculated",
    "Signature expired",
    "Signature not yet current",
    "The security token included in the request",
    "Credential should be scoped",
)
# How it begins what it says of a request that carries none; it repeats the header that came, a password in it.
_UNSIGNED = ("Authorization header requires", "Missing Authentication Token", "User: anonymous is not authorized")


@cache
def credentials() -> object:
    """The credentials of this process: from the environment, a profile or a role, in AWS's order.

    One object for all clients: a role is asked once, and so is a person for the code of a second factor. What signs
    requests keeps it, not keys: temporary ones are renewed before they end.

    Raises:
        LangshiftError: the extra is missing, or no credentials are found.
    """
    require_extra("Signing requests for AWS (OPENSEARCH_AWS_REGION) needs", "aws", "botocore", "botocore.session")
    import botocore.session
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        found = botocore.session.get_session().get_credentials()
        if found is not None:
            found.get_frozen_credentials()  # a role may be found, but give nothing
    except (BotoCoreError, ClientError, RuntimeError, ValueError) as error:
        raise LangshiftError(unusable(error)) from None
    if found is None:
        raise LangshiftError(
            "OPENSEARCH_AWS_REGION is set, but there are no AWS credentials: set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, name a profile with AWS_PROFILE, or run where a role provides them."
        )
    return found


def unusable(error: object) -> str:
    """The sentence for credentials that cannot be had.

    What a metadata service or a program answered is left out: botocore repeats it, and keys may be in it.
    """
    kind = type(error).__name__
    if kind in ("CredentialRetrievalError", "MetadataRetrievalError"):
        words = f"{getattr(error, 'kwargs', {}).get('provider', 'the metadata service')} returned none"
    elif type(error).__module__.startswith("botocore"):
        words = " ".join(str(error).split()).rstrip(".")[:200]
    else:
        words = "those received are expired or unreadable"
    return (
        f"The AWS credentials are not available ({words}): "
        "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the profile or the role."
    )


def is_credentials_error(error: object) -> bool:
    """Whether an error is of renewing credentials, which the client library takes for a lost connection."""
    # The only other error that botocore raises over them; an event loop raises RuntimeErrors, too.
    expired = isinstance(error, RuntimeError) and str(error).startswith("Credentials were refreshed")
    return expired or type(error).__module__.startswith("botocore")


def refusal(error: TransportError) -> str | None:
    """The end of a sentence where the service refuses a signature or misses one, else None.

    Only the first sentence of its own words is repeated: what follows can hold the session token.
    """
    info = error.info
    said = (info.get("message") or info.get("Message")) if isinstance(info, dict) else None
    words = said if isinstance(said, str) else ""
    if words.startswith(_REFUSALS):
        first = words.split("\n")[0].split(". ")[0].rstrip(".")[:200]
        return (
            f"rejects the signature ({first}): check the AWS credentials, OPENSEARCH_AWS_REGION, "
            "OPENSEARCH_AWS_SERVICE and this machine's clock."
        )
    if words.startswith(_UNSIGNED) or "in Authorization header" in words:
        return "requires signed requests: set OPENSEARCH_AWS_REGION, and leave OPENSEARCH_USERNAME unset."
    return None
