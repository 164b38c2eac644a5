"""What the official image's start script does: writes variables into a configuration, formats the data, starts the broker."""

import os
import subprocess
from pathlib import Path

# Variables of the scripts and not of the configuration.
OWN = {"KAFKA_HEAP_OPTS", "KAFKA_OPTS", "KAFKA_LOG4J_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS"}
CONFIG = Path("/opt/kafka/config/server.properties")
JAVA = [
    "/opt/java/bin/java",
    *os.environ.get("KAFKA_HEAP_OPTS", "-Xmx512m").split(),
    "-cp",
    "/opt/kafka/libs/*",
]


def setting(variable: str) -> str:
    name = variable.removeprefix("KAFKA_").lower()
    return name.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")


settings = {
    setting(name): value
    for name, value in os.environ.items()
    if name.startswith("KAFKA_") and name not in OWN
}
CONFIG.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
cluster = os.environ.get("CLUSTER_ID", "5L6g3nShT-eMCtK--X86sw")
formatted = ["format", "--ignore-formatted", "--cluster-id", cluster, "--config", str(CONFIG)]
subprocess.run([*JAVA, "kafka.tools.StorageTool", *formatted], check=True)
os.execv(JAVA[0], [*JAVA, "kafka.Kafka", str(CONFIG)])
