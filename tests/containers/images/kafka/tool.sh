#!/bin/sh
# What the official image's scripts do: run the tool that is named like the script, with the heap that a variable sets.
case "$(basename "$0")" in
kafka-broker-api-versions.sh) class=org.apache.kafka.tools.BrokerApiVersionsCommand ;;
kafka-consumer-groups.sh) class=org.apache.kafka.tools.consumer.group.ConsumerGroupCommand ;;
esac
# shellcheck disable=SC2086 - several options
exec /opt/java/bin/java ${KAFKA_HEAP_OPTS:--Xmx256M} -cp "/opt/kafka/libs/*:/opt/kafka/tools/*" "$class" "$@"
