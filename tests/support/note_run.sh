#!/bin/sh
# A script job that appends a line to the targets' log, as the handlers do: note_run.sh LOG
printf '{"event":"start","run":"%s","fence":%s,"attempt":%s,"key":"%s","scheduled_for":"%s","namespace":"%s","at":%s,"pid":%s,"via":"script"}\n' \
    "$NOONMARK_RUN_ID" "$NOONMARK_FENCE" "$NOONMARK_ATTEMPT" "$NOONMARK_IDEMPOTENCY_KEY" \
    "$NOONMARK_SCHEDULED_FOR" "$NOONMARK_NAMESPACE" "$(date +%s.%N)" "$$" >> "$1"
