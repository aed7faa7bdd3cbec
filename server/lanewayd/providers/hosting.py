"""Where a model service runs and how long it may be silent. Pure; decided on the literal host, without DNS.

Source: spec 02, R-2.125 to R-2.129.
"""

import ipaddress
from urllib.parse import urlsplit

CLOUD_IDLE_S = 120.0
SELF_HOSTED_IDLE_S = 300.0
_CGNAT = ipaddress.ip_network("100.64.0.0/10")
_CLOUD_SUFFIXES = (":cloud", "-cloud")


def is_local_host(base_url: str) -> bool:
    """The host is `localhost`, `*.local`, or a loopback, private, CGNAT, link-local or unique-local address."""
    host = (urlsplit(base_url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith((".localhost", ".local")):
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_private or address.is_link_local or address in _CGNAT


def is_self_hosted(
    base_url: str, model: str, *, says_settings: bool = False, dialect_is_self_hosted: bool = False
) -> bool:
    """The settings say so, the host is local, or the dialect is spoken by such services only. A local proxy that serves
    a cloud-suffixed model is cloud."""
    if says_settings:
        return True
    return (dialect_is_self_hosted or is_local_host(base_url)) and not model.endswith(_CLOUD_SUFFIXES)


def idle_limit_s(*, timeout_s: float | None, is_self_hosted: bool, cap_s: float | None) -> float:
    """Seconds without progress after which a model call is given up.

    The provider's own timeout wins over the default of its class; a finite run budget caps both.
    """
    limit_s = timeout_s if timeout_s is not None else (SELF_HOSTED_IDLE_S if is_self_hosted else CLOUD_IDLE_S)
    return limit_s if cap_s is None else min(limit_s, cap_s)
