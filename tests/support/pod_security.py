"""The Pod Security Standard `restricted`, as Kubernetes states it, over the spec of a pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

VOLUMES: Final = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
}
_PROFILES: Final = {"RuntimeDefault", "Localhost"}


def violations(pod: dict[str, Any]) -> list[str]:
    """Say what the standard does not allow in a pod; Windows and sysctls aside, which it does not have."""
    found = [f"{name} is on" for name in ("hostNetwork", "hostPID", "hostIPC") if pod.get(name)]
    for volume in pod.get("volumes", []):
        kinds = set(volume) - {"name"}
        found += [f"volume {volume['name']} is a {kind}" for kind in kinds - VOLUMES]
    outer = pod.get("securityContext", {})
    if outer.get("seLinuxOptions") or outer.get("sysctls") or outer.get("appArmorProfile"):
        found.append("the pod sets SELinux, AppArmor or sysctls")
    for group in ("containers", "initContainers", "ephemeralContainers"):
        for container in pod.get(group, []):
            found += [f"{container['name']}: {what}" for what in _of_container(container, outer)]
    return found


def _of_container(container: dict[str, Any], outer: dict[str, Any]) -> Iterator[str]:
    inner = container.get("securityContext", {})
    both = {**outer, **inner}
    if inner.get("privileged"):
        yield "privileged"
    if inner.get("allowPrivilegeEscalation") is not False:
        yield "allowPrivilegeEscalation is not false"
    if both.get("runAsNonRoot") is not True:
        yield "runAsNonRoot is not true"
    if both.get("runAsUser") == 0:
        yield "runs as root"
    if both.get("seccompProfile", {}).get("type") not in _PROFILES:
        yield "no seccomp profile"
    capabilities = inner.get("capabilities", {})
    if "ALL" not in capabilities.get("drop", []):
        yield "does not drop all capabilities"
    if set(capabilities.get("add", [])) - {"NET_BIND_SERVICE"}:
        yield "adds capabilities"
    if inner.get("procMount", "Default") != "Default":
        yield "unmasks /proc"
    if any(port.get("hostPort") for port in container.get("ports", [])):
        yield "takes a port of its node"
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(probe, {}).get("httpGet", {}).get("host"):
            yield f"{probe} names a host"
