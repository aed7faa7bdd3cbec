"""The chart, rendered by Helm: what it refuses, what follows from what, and that the server understands it."""

import json
import math
import shutil
import sys
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from tests.deploy.check import objects_in, value_sets
from tests.deploy.generate import SCHEMA, VALUES, described_values, leaves, outdated
from tests.deploy.helm import CHART, NOTES, Helm, HelmRefused
from tests.deploy.serving import Serving, free_port

from lanewayd.app import STOP_GRACE_S
from lanewayd.config import RESERVED_VARIABLES, Flags, load_settings
from lanewayd.runs.drain import CUT_LIMIT_S
from lanewayd.settings.reader import setting_names
from lanewayd.settings.schema import Settings
from lanewayd.telemetry.setup import SHUTDOWN_LIMIT_S

SETS = value_sets()
BIN = Path(sys.executable).parent
SECRET = "sk-do-not-show"


@pytest.fixture(scope="module")
def helm() -> Iterator[Helm]:
    with Helm() as engine:
        yield engine


@pytest.fixture(scope="module")
def unchecked_helm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Helm]:
    """As with --skip-schema-validation: the chart without its schema."""
    chart = tmp_path_factory.mktemp("chart") / "laneway"
    shutil.copytree(CHART, chart)
    (chart / "values.schema.json").unlink()
    with Helm(chart) as engine:
        yield engine


class Release:
    """What values render to."""

    def __init__(self, helm: Helm, values: dict[str, Any]) -> None:
        self.files = helm.render(values)
        self.objects = objects_in(self.files)

    def all(self, kind: str) -> list[dict[str, Any]]:
        """The objects of a kind."""
        return [each for each in self.objects if each["kind"] == kind]

    def one(self, kind: str) -> dict[str, Any]:
        """The only object of a kind."""
        (found,) = self.all(kind)
        return found

    @property
    def pod(self) -> dict[str, Any]:
        """The template of the server's pod."""
        return self.one("StatefulSet")["spec"]["template"]

    @property
    def container(self) -> dict[str, Any]:
        (container,) = self.pod["spec"]["containers"]
        return container

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables with a value of their own."""
        return {each["name"]: each["value"] for each in self.container.get("env", ()) if "value" in each}

    @property
    def toml(self) -> str:
        return self.one("ConfigMap")["data"]["laneway.toml"]

    def settings(self, folder: Path) -> Settings:
        """The settings as the server reads them in this pod. Raises StartupError."""
        config = folder / "laneway.toml"
        config.write_text(self.toml)
        assert self.variables["LANEWAY_CONFIG"] == "/etc/laneway/settings/laneway.toml"
        is_insecure = "--insecure" in self.container["args"]
        return load_settings({**self.variables, "LANEWAY_CONFIG": str(config)}, Flags(is_insecure=is_insecure))


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"replicaCount": 2}, "/replicaCount"),
        ({"replicaCount": 0}, "/replicaCount"),
        ({"replicas": 1}, "'replicas' not allowed"),
        ({"image": {"name": "x"}}, "'name' not allowed"),
        ({"image": {"pullPolicy": "Sometimes"}}, "/image/pullPolicy"),
        ({"image": {"digest": "sha256:12"}}, "/image/digest"),
        ({"settings": {"drain": {"timeout": 10}}}, "'timeout' not allowed"),
        ({"settings": {"drain": {"timeout_s": -1}}}, "/settings/drain/timeout_s"),
        ({"settings": {"drain": {"timeout_s": "300"}}}, "/settings/drain/timeout_s"),
        ({"settings": {"drain": None}}, "drain"),
        ({"settings": {"models": {"providers": {"acme": {"api_key": SECRET}}}}}, "'api_key' not allowed"),
        ({"settings": {"models": {"transport": "carrier pigeon"}}}, "/settings/models/transport"),
        ({"settings": {"rpc": {"debug_services": True}}}, "'debug_services' not allowed"),
        ({"shutdown": {"marginSeconds": 10}}, "/shutdown/marginSeconds"),
        ({"apiKeys": {"values": {"LANEWAY_DRAIN__TIMEOUT_S": "10"}}}, "LANEWAY_DRAIN__TIMEOUT_S"),
        ({"extraEnv": [{"name": "LANEWAY_DRAIN__TIMEOUT_S", "value": "10"}]}, "/extraEnv/0/name"),
        ({"service": {"port": 443}}, "/service/port"),
        ({"persistence": {"accessModes": ["ReadWriteMany"]}}, "/persistence/accessModes/0"),
        ({"persistence": {"size": "many"}}, "/persistence/size"),
        ({"security": {"runAsUser": 0}}, "/security/runAsUser"),
        ({"networkPolicy": {"allowedFrom": [{}]}}, "/networkPolicy/allowedFrom/0"),
        ({"otel": {"env": {"PATH": "/tmp"}}}, "propertyName 'PATH'"),
        ({"podLabels": {"app.kubernetes.io/name": "x"}}, "propertyName 'app.kubernetes.io/name'"),
        ({"tmp": {"sizeLimit": ""}}, "/tmp/sizeLimit"),
    ],
    ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else "",
)
def test_the_schema_refuses(helm: Helm, values: dict[str, Any], place: str) -> None:
    with pytest.raises(HelmRefused, match="schema") as refused:
        helm.render(values)
    assert place in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"replicaCount": 2}, "replicaCount must be 1"),
        ({"replicaCount": 0}, "replicaCount must be 1"),
        ({"extraEnv": [{"name": "LANEWAY_HOME", "value": "/x"}]}, "belongs into `settings`"),
        ({"settings": {"drain": {"timeout_s": 5}}}, "park_s must not exceed"),
        ({"settings": {"telemetry": {"prometheus_port": 9464}}}, "use metrics.enabled"),
        (
            {
                "settings": {"models": {"providers": {"acme": {"api_key_env": "ACME_KEY"}}}},
                "apiKeys": {"files": {"acme": {"secretName": "a", "key": "k"}}},
            },
            "give one of them",
        ),
    ],
)
def test_the_templates_refuse_also_without_the_schema(unchecked_helm: Helm, values: dict[str, Any], words: str) -> None:
    with pytest.raises(HelmRefused, match=words):
        unchecked_helm.render(values)


def test_a_drain_without_a_last_part_is_accepted(helm: Helm, tmp_path: Path) -> None:
    release = Release(helm, {"settings": {"drain": {"timeout_s": 5, "park_s": 0}}})
    assert release.settings(tmp_path).drain.park_s == 0


# --- what follows from what -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETS)
def test_the_grace_period_covers_the_longest_way_out(helm: Helm, tmp_path: Path, name: str) -> None:
    release = Release(helm, SETS[name])
    drain = release.settings(tmp_path).drain
    grace = release.pod["spec"]["terminationGracePeriodSeconds"]
    longest = max(drain.timeout_s, drain.announce_s + drain.park_s) + CUT_LIMIT_S + STOP_GRACE_S + SHUTDOWN_LIMIT_S
    assert longest < grace < longest + 120


def test_the_grace_period_follows_the_drain(helm: Helm) -> None:
    def grace(**values: Any) -> int:
        return Release(helm, values).pod["spec"]["terminationGracePeriodSeconds"]

    assert grace() == 300 + 5 + 60
    assert grace(settings={"drain": {"timeout_s": 1000}}) == 1000 + 5 + 60
    assert grace(settings={"drain": {"timeout_s": 10.2, "announce_s": 30}}) == math.ceil(40.2) + 60
    assert grace(shutdown={"marginSeconds": 90}) == 300 + 5 + 90


def test_a_change_of_settings_or_keys_replaces_the_pod_and_nothing_else_does(helm: Helm) -> None:
    def pod(**values: Any) -> Any:
        return Release(helm, values).pod

    plain = pod()
    key = pod(apiKeys={"values": {"OPENAI_API_KEY": SECRET}})
    assert pod(settings={"events": {"delta_interval_ms": 50}}) != plain
    assert pod(apiKeys={"values": {"OPENAI_API_KEY": "sk-other"}}) != key != plain
    assert pod(service={"annotations": {"a": "b"}}) == plain
    assert pod(networkPolicy={"enabled": True}) == plain
    assert SECRET not in json.dumps(key)


def test_keys_stand_in_secrets_only(helm: Helm) -> None:
    release = Release(helm, {"apiKeys": {"values": {"OPENAI_API_KEY": SECRET}, "existingSecret": "ours"}})
    secret = release.one("Secret")
    assert secret["stringData"] == {"OPENAI_API_KEY": SECRET}
    assert [each["secretRef"]["name"] for each in release.container["envFrom"]] == [secret["metadata"]["name"], "ours"]
    assert [name for name, text in release.files.items() if SECRET in text] == ["secret.yaml"]


def test_a_key_file_is_mounted_where_the_settings_look_for_it(helm: Helm, tmp_path: Path) -> None:
    release = Release(helm, SETS["platform_users"])
    (keys,) = [each for each in release.pod["spec"]["volumes"] if each["name"] == "keys"]
    (mount,) = [each for each in release.container["volumeMounts"] if each["name"] == "keys"]
    assert mount["readOnly"] is True
    mounted = {}
    for source in keys["projected"]["sources"]:
        (item,) = source["secret"]["items"]
        mounted[Path(mount["mountPath"]) / item["path"]] = (source["secret"]["name"], item["key"])
    providers = release.settings(tmp_path).models.providers
    assert mounted == {
        providers["acme"].api_key_file: ("acme", "token"),
        providers["openai"].api_key_file: ("openai", "api-key"),
    }


def test_a_policy_that_allows_nobody_allows_nobody(helm: Helm) -> None:
    """`from: []` would allow everybody."""
    assert Release(helm, SETS["closed"]).one("NetworkPolicy")["spec"]["ingress"] == []
    assert Release(helm, {}).all("NetworkPolicy") == []
    (rule,) = Release(helm, {"networkPolicy": {"enabled": True}}).one("NetworkPolicy")["spec"]["ingress"]
    assert rule == {"from": [{"podSelector": {}}], "ports": [{"port": 50551, "protocol": "TCP"}]}


@pytest.mark.parametrize("name", SETS)
def test_selectors_find_the_pod_and_ports_the_container(helm: Helm, name: str) -> None:
    release = Release(helm, SETS[name])
    labels = release.pod["metadata"]["labels"]
    selectors = [release.one("StatefulSet")["spec"]["selector"]["matchLabels"]]
    selectors += [each["spec"]["selector"] for each in release.all("Service")]
    selectors += [each["spec"]["podSelector"]["matchLabels"] for each in release.all("NetworkPolicy")]
    selectors += [each["spec"]["selector"]["matchLabels"] for each in release.all("PodMonitor")]
    assert all(selector.items() <= labels.items() for selector in selectors)
    test_pod = release.one("Pod")["metadata"]["labels"]
    assert not any(selector.items() <= test_pod.items() for selector in selectors)
    names = {each["name"] for each in release.container["ports"]}
    targets = [port["targetPort"] for each in release.all("Service") for port in each["spec"]["ports"]]
    targets += [port["port"] for each in release.all("PodMonitor") for port in each["spec"]["podMetricsEndpoints"]]
    assert set(targets) <= names
    headless = next(each for each in release.all("Service") if each["spec"].get("clusterIP") == "None")
    assert release.one("StatefulSet")["spec"]["serviceName"] == headless["metadata"]["name"]


@pytest.mark.parametrize("name", SETS)
def test_pods_are_restricted_and_only_volumes_are_writable(helm: Helm, name: str) -> None:
    release = Release(helm, SETS[name])
    for pod in (release.pod["spec"], release.one("Pod")["spec"]):
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        (container,) = pod["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    is_given = name == "platform_users"
    assert ("runAsUser" not in release.pod["spec"]["securityContext"]) is is_given
    writable = {each["mountPath"] for each in release.container["volumeMounts"] if not each.get("readOnly")}
    assert writable == {"/home/laneway", "/tmp"}
    assert release.variables["LANEWAY_HOME"].startswith("/home/laneway/")
    assert all(each.get("automountServiceAccountToken") is False for each in release.all("ServiceAccount"))


def test_the_volume_is_there_in_one_of_two_ways(helm: Helm) -> None:
    kept, lost = Release(helm, {}), Release(helm, SETS["trying_out"])
    assert [each["metadata"]["name"] for each in kept.one("StatefulSet")["spec"]["volumeClaimTemplates"]] == ["home"]
    assert "home" not in {each["name"] for each in kept.pod["spec"]["volumes"]}
    assert "volumeClaimTemplates" not in lost.one("StatefulSet")["spec"]
    assert {"name": "home", "emptyDir": {}} in lost.pod["spec"]["volumes"]


def test_the_notes_say_what_is_open(helm: Helm) -> None:
    notes = Release(helm, {}).files[NOTES]
    assert "--insecure" in notes
    assert "networkPolicy.enabled=true" in notes
    assert "365 s" in notes
    assert "no public registry" in notes
    assert "no public registry" not in Release(helm, SETS["team"]).files[NOTES]
    assert "networkPolicy.enabled=true" not in Release(helm, SETS["team"]).files[NOTES]
    assert "persistence is off" in Release(helm, SETS["trying_out"]).files[NOTES]
    assert "LoadBalancer" in Release(helm, SETS["closed"]).files[NOTES]


# --- what the server understands --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETS)
def test_the_server_reads_the_settings_and_variables(helm: Helm, tmp_path: Path, name: str) -> None:
    release = Release(helm, SETS[name])
    settings = release.settings(tmp_path)
    given = deepcopy(SETS[name].get("settings", {}))
    for dotted_name in leaves(given):
        if dotted_name:
            assert dotted_name.replace("reports.weekly", '"reports.weekly"') in settings.sources, dotted_name
    assert settings.drain.announce_s == given.get("drain", {}).get("announce_s", 5)
    metrics = SETS[name].get("metrics", {}).get("enabled", False)
    assert settings.telemetry.prometheus_port == (9464 if metrics else None)


@pytest.mark.parametrize("name", SETS)
def test_every_variable_of_laneway_is_a_setting_or_reserved(helm: Helm, name: str) -> None:
    known = {each.upper().replace(".", "__") for each in setting_names(Settings)} | RESERVED_VARIABLES
    variables = [each for each in Release(helm, SETS[name]).variables if each.startswith("LANEWAY_")]
    assert {"LANEWAY_HOME", "LANEWAY_LISTEN", "LANEWAY_CONFIG"} <= set(variables)
    assert {each.removeprefix("LANEWAY_") for each in variables} <= known


@pytest.mark.parametrize(
    "text", ['a "quoted" name', "back\\slash", "line\nfeed", "tab\tand ü and \U0001f600", "<&>", "# no comment", "'"]
)
def test_odd_texts_reach_the_server_as_they_are(helm: Helm, text: str) -> None:
    settings = {
        "agents": {"list": {"odd": {"workspace": text, "timeout_seconds": 0.25}}},
        "events": {"retention": {"max_bytes": 2**40}},
        "tools": {"exec": {"enabled": False, "env": [text, "A"]}},
    }
    read = tomllib.loads(Release(helm, {"settings": settings}).toml)
    assert {name: read[name] for name in settings} == settings
    assert isinstance(read["events"]["retention"]["max_bytes"], int)


@pytest.mark.parametrize("name", ["defaults", "closed"])
async def test_a_real_server_started_as_the_pod_says_answers_its_probes(helm: Helm, tmp_path: Path, name: str) -> None:
    release = Release(helm, SETS[name])
    home, config = tmp_path / "home", tmp_path / "laneway.toml"
    home.mkdir()
    config.write_text(release.toml)
    host = release.variables["LANEWAY_LISTEN"].rpartition(":")[0]
    variables = {each: value for each, value in release.variables.items() if each.startswith("LANEWAY_")}
    variables |= {"LANEWAY_CONFIG": str(config), "LANEWAY_HOME": str(home), "LANEWAY_LISTEN": f"{host}:{free_port()}"}
    if "LANEWAY_TELEMETRY__PROMETHEUS_PORT" in variables:
        variables["LANEWAY_TELEMETRY__PROMETHEUS_PORT"] = str(free_port())
    command = [str(BIN / "laneway"), *release.container["args"]]
    async with Serving(command, home, path=BIN, variables=variables) as server:
        probes = {kind: release.container[f"{kind}Probe"]["grpc"] for kind in ("startup", "readiness", "liveness")}
        services = {kind: probe["service"] for kind, probe in probes.items()}
        assert services == {
            "startup": "laneway.liveness",
            "readiness": "laneway.v1.AgentService",
            "liveness": "laneway.liveness",
        }
        port = int(release.variables["LANEWAY_LISTEN"].rpartition(":")[2])
        assert {probe["port"] for probe in probes.values()} == {port}
        for service in services.values():
            assert await server.health(service) == "SERVING", server.log
        assert await server.exit_code([command[0], "config", "check", *release.container["args"][1:]]) == 0


# --- the files that follow from others --------------------------------------------------------------------------------


def test_schema_and_readme_are_up_to_date() -> None:
    paths = [path.name for path in outdated()]
    assert not paths, f"{paths}: run `python -m tests.deploy.generate` and commit what it writes"


def test_every_value_is_described_and_known_to_the_schema() -> None:
    defaults = yaml.safe_load(VALUES.read_text())
    described = {each.name for each in described_values(VALUES.read_text())}
    for name in leaves(defaults):
        parents = name.split(".")
        assert any(".".join(parents[:length]) in described for length in range(1, len(parents) + 1)), name
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    assert set(schema["properties"]) == set(defaults) | {"global"}


def test_the_chart_can_be_packaged_with_the_version_of_the_package(helm: Helm, tmp_path: Path) -> None:
    project = tomllib.loads((CHART.parents[1] / "pyproject.toml").read_text())["project"]
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == project["version"]
    assert helm.package(tmp_path).stat().st_size > 1000
