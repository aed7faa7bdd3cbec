"""The environment of child processes: an allow-list, never the service's own (D-22). Pure.

Keys and secrets of the service are not on the list, whatever they are called.
"""

import re
from collections.abc import Iterable, Mapping

MARKER_VARIABLE = "INSIDE_LANEWAY_EXEC"
"""Tells scripts that `exec` started them. Not LANEWAY_...: that prefix is the settings' (D-10)."""

_PASSED_ON = ("PATH", "HOME", "LANG", "TERM", "TMPDIR")
_FALLBACKS = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# They make a program load or run something else than its command line says.
_REFUSED_NAMES = """
    PATH ENV BASH_ENV BASHOPTS SHELLOPTS IFS PS4 PROMPT_COMMAND CDPATH GLOBIGNORE
    PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONINSPECT PYTHONUSERBASE PYTHONEXECUTABLE PYTHONPLATLIBDIR PYTHONWARNINGS
    PYTHONBREAKPOINT PYTHONPYCACHEPREFIX NODE_OPTIONS NODE_PATH PERL5LIB PERL5OPT PERL5DB PERLLIB RUBYLIB RUBYOPT
    GEM_PATH GEM_HOME CLASSPATH JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS LUA_PATH LUA_CPATH LUA_INIT PHPRC
    PHP_INI_SCAN_DIR GUILE_LOAD_PATH GCONV_PATH LOCPATH HOSTALIASES MALLOC_TRACE OPENSSL_CONF OPENSSL_MODULES
"""
_REFUSED = frozenset(_REFUSED_NAMES.split())
_REFUSED_PREFIXES = (
    "LD_",
    "DYLD_",
    "GLIBC_",
    "LANEWAY_",
    "BASH_FUNC_",
    "GIT_CONFIG",
    "GIT_SSH",
    "GIT_EXEC",
    MARKER_VARIABLE,
)


def inherited_environment(environment: Mapping[str, str], more_names: Iterable[str] = ()) -> dict[str, str]:
    """What children get of the service's `environment`: D-22's names, `LC_*`, and `more_names` (tools.exec.env)."""
    names = {*_PASSED_ON, *more_names, *(name for name in environment if name.startswith("LC_"))}
    return {**_FALLBACKS, **{name: environment[name] for name in sorted(names) if name in environment}}


def split_overrides(overrides: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The variables of a call's `env` argument that may be set, and the names that are refused."""
    refused = sorted(name for name in overrides if _is_refused(name))
    return {name: value for name, value in overrides.items() if name not in refused}, refused


def _is_refused(name: str) -> bool:
    upper = name.upper()
    return _NAME.fullmatch(name) is None or upper in _REFUSED or upper.startswith(_REFUSED_PREFIXES)
