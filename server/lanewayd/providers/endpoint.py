"""Where a request goes and how it names its sender. Pure."""

from urllib.parse import urlsplit


def address(base_url: str, path: str) -> str:
    """`path` behind `base_url`. A first part of the path that the base ends with is not repeated.

    People write the URL of a service with and without its version: http://host and http://host/v1 are both right.
    """
    base_url = base_url.rstrip("/")
    first, slash, rest = path.removeprefix("/").partition("/")
    if slash and base_url.endswith(f"/{first}"):
        return f"{base_url}/{rest}"
    return base_url + path


def bearer(api_key: str) -> dict[str, str]:
    """The header most services take a key in; none without a key."""
    return {"authorization": f"Bearer {api_key}"} if api_key else {}


def is_openai_host(base_url: str) -> bool:
    """Whether OpenAI itself answers there, or Azure with OpenAI's models."""
    host = (urlsplit(base_url).hostname or "").rstrip(".")
    return host == "api.openai.com" or host.endswith((".api.openai.com", ".openai.azure.com"))
