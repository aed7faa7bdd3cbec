"""The structure of the code: who may import whom, no cycles, sizes, names, and generated code that is up to date.

Every import is read from the source, also those inside functions and under TYPE_CHECKING: a hidden cycle is a cycle.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SERVER = ROOT / "server" / "lanewayd"
CLIENT = ROOT / "clients" / "python" / "laneway"

VOCABULARY = {
    "messages": set[str](),
    "errors": set[str](),
    "clock": set[str](),
    "telemetry": set[str](),
    "events": {"messages"},
    "records": {"messages"},
    "audit_records": set[str](),
}
"""module -> what of the vocabulary it may import"""

SETTINGS = {"config", "settings"}
"""Read by the composition root only."""

ROOTS = {"app", "wiring", "__main__"}
"""The composition root: app.py with the parts of it in wiring/, and the entry point. They wire and hold no rules."""

MAY_IMPORT = {
    "rpc": {"runs", "sessions", "approvals", "audit"},
    "runs": {
        "loop",
        "prompt",
        "transcript",
        "hooks",
        "queueing",
        "sessions",
        "models",
        "replies",
        "approvals",
        "delivery",
        "diagnostics",
        "audit",
        "store.interface",
        "tools.interface",
        "providers.interface",
    },
    "loop": {"providers.interface", "tools.interface", "hooks", "models"},
}
"""folder -> what it may import besides the vocabulary and itself; every other folder nothing"""

LAZY_COMMANDS = {"serve", "doctor", "config", "backup", "demo"}
"""Commands that import the server when they are called."""

BAD_NAMES = {"utils", "util", "common", "core", "helpers", "helper", "manager", "base", "data", "info", "misc"}


@dataclass(frozen=True)
class Import:
    """One import of a module by another, both by their full dotted names."""

    importer: str
    imported: str
    path: Path
    line: int
    is_at_the_top: bool

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.importer} imports {self.imported}"


def sources(package: Path) -> list[Path]:
    """The files that people write."""
    return [path for path in sorted(package.rglob("*.py")) if not re.search(r"_pb2(_grpc)?\.py$", path.name)]


def module_name(path: Path, package: Path) -> str:
    parts = [package.name, *path.relative_to(package).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_module(name: str) -> bool:
    package = SERVER if name.split(".", maxsplit=1)[0] == "lanewayd" else CLIENT
    path = package.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


def imports_of(path: Path, package: Path) -> Iterator[Import]:
    """All imports in a file, wherever they stand."""
    importer, tree = module_name(path, package), ast.parse(path.read_text())
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            # `from package import module` names a module, `from module import name` does not.
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                is_ours = name.split(".", maxsplit=1)[0] in ("lanewayd", "laneway")
                names.append(name if is_ours and is_module(name) else str(node.module))
        elif isinstance(node, ast.Call) and _is_import_by_name(node):
            raise AssertionError(f"{path}:{node.lineno}: modules are imported by statements")
        for name in dict.fromkeys(names):
            yield Import(importer, name, path, node.lineno, node in tree.body)  # type: ignore[attr-defined]


def _is_import_by_name(call: ast.Call) -> bool:
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("import_module", "__import__")


def server_imports() -> list[Import]:
    return [each for path in sources(SERVER) for each in imports_of(path, SERVER)]


def client_imports() -> list[Import]:
    return [each for path in sources(CLIENT) for each in imports_of(path, CLIENT)]


def inside(name: str, package: str = "lanewayd") -> str | None:
    """The name below the package, None for another one's."""
    return name.removeprefix(f"{package}.") if name.startswith(f"{package}.") else None


def is_allowed(importer: str, imported: str) -> bool:
    """The table. Both are names below `lanewayd`."""
    folder, target = importer.split(".", maxsplit=1)[0], imported.split(".", maxsplit=1)[0]
    if folder in ROOTS:
        return target != "__main__"
    if folder in SETTINGS:
        return target in SETTINGS or target in VOCABULARY
    if folder in VOCABULARY:
        return target in VOCABULARY[folder] | {folder}
    if target in VOCABULARY:
        # Exporters and logging are set up by app only.
        return imported != "telemetry.setup"
    if target == folder:
        return True
    allowed = MAY_IMPORT.get(folder, set())
    return target in allowed or imported in allowed


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("rpc.agent", "runs.registry", True),
        ("rpc.agent", "store.interface", False),
        ("rpc.agent", "config", False),
        ("runs.registry", "store.interface", True),
        ("runs.registry", "store.sqlite", False),
        ("runs.registry", "rpc.agent", False),
        ("runs.registry", "wiring.home", False),
        ("runs.registry", "telemetry.spans", True),
        ("runs.registry", "telemetry.setup", False),
        ("loop.turn", "providers.interface", True),
        ("loop.turn", "providers.http_provider", False),
        ("loop.turn", "runs.recorder", False),
        ("store.sqlite", "store.writer", True),
        ("store.sqlite", "transcript.entries", False),
        ("tools.shell", "messages", True),
        ("events", "messages", True),
        ("messages", "events", False),
        ("wiring.home", "store.sqlite", True),
        ("app", "config", True),
        ("config", "settings.reader", True),
        ("config", "runs.registry", False),
    ],
)
def test_the_table_says_what_conventions_say(importer: str, imported: str, allowed: bool) -> None:
    assert is_allowed(importer, imported) is allowed


def test_imports_of_the_server_point_one_way() -> None:
    wrong = [
        str(each)
        for each in server_imports()
        if (importer := inside(each.importer)) is not None
        and (imported := inside(each.imported)) is not None
        and not is_allowed(importer, imported)
    ]
    assert wrong == []


def test_every_folder_of_the_server_is_known_to_the_table() -> None:
    """A new folder is a leaf unless the table says otherwise; what the table names exists or is to come."""
    names = {path.name if path.is_dir() else path.stem for path in SERVER.iterdir() if not path.name.startswith("__")}
    modules = {path.stem for path in SERVER.glob("*.py")} - {"__init__", "__main__"}
    assert modules <= {"app"} | SETTINGS | set(VOCABULARY)
    assert {"app", "wiring", *MAY_IMPORT} <= names


def test_only_the_composition_root_reads_settings_and_wiring() -> None:
    importers = {
        (each.importer, target)
        for each in server_imports()
        if (target := (inside(each.imported) or "").split(".")[0]) in SETTINGS | {"wiring"}
    }
    wrong = [
        (importer, target)
        for importer, target in importers
        if importer.split(".")[1] not in ROOTS | (SETTINGS if target in SETTINGS else set())
    ]
    assert wrong == []


def test_the_stubs_are_imported_by_rpc_and_the_command_line_only() -> None:
    wrong = [
        str(each)
        for each in server_imports()
        if each.imported.split(".")[0] == "laneway" and each.importer.split(".")[1] != "rpc"
    ]
    assert wrong == []


def test_the_client_knows_the_server_only_where_it_starts_one_and_only_when_it_does() -> None:
    wrong = [
        str(each)
        for each in client_imports()
        if each.imported.split(".")[0] == "lanewayd"
        and (
            not each.importer.startswith("laneway.cli.")
            or each.importer.rsplit(".", 1)[1] not in LAZY_COMMANDS
            or each.is_at_the_top
            or str(inside(each.imported)).split(".", maxsplit=1)[0] not in ROOTS
        )
    ]
    assert wrong == []


def test_no_import_goes_round_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    for each in [*server_imports(), *client_imports()]:
        if each.imported.split(".")[0] in ("lanewayd", "laneway"):
            graph.setdefault(each.importer, set()).add(each.imported)
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, " -> ".join([*way[way.index(module) :], module])
        if module not in done:
            for imported in sorted(graph.get(module, ())):
                visit(imported, (*way, module))
            done.add(module)

    for module in sorted(graph):
        visit(module, ())


# --- sizes and names ---


ALL_SOURCES = [*sources(SERVER), *sources(CLIENT), *sources(ROOT / "tests")]


def test_no_file_is_longer_than_400_lines() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in ALL_SOURCES}
    assert {name: length for name, length in lengths.items() if length > 400} == {}


def test_no_function_is_longer_than_100_lines() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has {node.end_lineno - node.lineno + 1} lines"
        for path in ALL_SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > 100
    ]
    assert long == []


def test_modules_are_named_for_what_they_own() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for path in [*sources(SERVER), *sources(CLIENT)]
        if path.stem in BAD_NAMES or path.parent.name in BAD_NAMES or re.search(r"_v\d+$", path.stem)
    ]
    assert wrong == []


def test_packages_hold_nothing_in_their_init() -> None:
    inits = [*SERVER.rglob("__init__.py"), *CLIENT.rglob("__init__.py")]
    assert [str(path.relative_to(ROOT)) for path in inits if path.read_text().strip()] == []
    folders = {path.parent for path in [*sources(SERVER), *sources(CLIENT)]}
    assert [str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").is_file()] == []


# --- generated code ---

PROTOS = sorted((ROOT / "protos" / "laneway" / "v1").glob("*.proto"))
STUB_SUFFIXES = ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py")


def stubs_in(folder: Path) -> dict[str, str]:
    files = sorted((folder / "laneway" / "v1").iterdir())
    return {path.name: path.read_text() for path in files if path.name.endswith(STUB_SUFFIXES)}


def test_the_stubs_are_what_the_protos_say(tmp_path: Path) -> None:
    subprocess.run(
        [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            "-I",
            "protos",
            f"--python_out={tmp_path}",
            f"--pyi_out={tmp_path}",
            f"--grpc_python_out={tmp_path}",
            *(str(path.relative_to(ROOT)) for path in PROTOS),
        ],
        cwd=ROOT,
        check=True,
    )
    fresh, committed = stubs_in(tmp_path), stubs_in(ROOT / "clients" / "python")
    assert len(fresh) == 3 * len(PROTOS)
    assert sorted(fresh) == sorted(committed)
    assert [name for name in fresh if fresh[name] != committed[name]] == []


def test_make_protos_calls_the_generator_in_the_same_way() -> None:
    commands = subprocess.run(
        ["make", "--dry-run", "--always-make", "protos"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.replace("\\\n", " ")
    [call] = [line.split() for line in commands.splitlines() if "grpc_tools.protoc" in line]
    options = call[call.index("grpc_tools.protoc") + 1 :]
    assert options == [
        "-I",
        "protos",
        "--python_out=clients/python",
        "--pyi_out=clients/python",
        "--grpc_python_out=clients/python",
        "protos/laneway/v1/*.proto",
    ]
