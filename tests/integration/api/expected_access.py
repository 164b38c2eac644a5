"""Who may call which route, written down by hand: what the routes themselves say is held against this.

A route that is not here fails the test, and so does a row that has no route any more.
"""

from __future__ import annotations

LEAST = {
    "jobs:read": "viewer",
    "runs:read": "viewer",
    "workers:read": "viewer",
    "settings:read": "viewer",
    "payloads:read": "operator",
    "jobs:operate": "operator",
    "runs:operate": "operator",
    "jobs:write": "editor",
    "calendars:write": "editor",
    "settings:write": "admin",
    "keys:write": "admin",
    "audit:read": "admin",
    "platform": "platform",
}
"""The least role that has a permission."""

ROLES = ("viewer", "operator", "editor", "admin", "platform")

OPEN = "open"
ANY = "any credential"
TOKEN = "one-time token"

_ROWS = """
GET    /healthz                              open
GET    /openapi.json                         open
GET    /asyncapi.json                        open
GET    /schemas/{name}                       any credential

POST   /v1/jobs                              jobs:write
POST   /v1/jobs/bulk                         jobs:write
GET    /v1/jobs                              jobs:read
GET    /v1/jobs/{job_id}                     jobs:read
PUT    /v1/jobs/{job_id}                     jobs:write
PATCH  /v1/jobs/{job_id}                     jobs:write
DELETE /v1/jobs/{job_id}                     jobs:write
POST   /v1/jobs/{job_id}/cancel              jobs:write
POST   /v1/jobs/{job_id}/pause               jobs:operate
POST   /v1/jobs/{job_id}/resume              jobs:operate
POST   /v1/jobs/{job_id}/trigger             jobs:operate
POST   /v1/preview                           jobs:read
GET    /v1/jobs/{job_id}/preview             jobs:read
GET    /v1/jobs/{job_id}/versions            jobs:read
GET    /v1/jobs/{job_id}/versions/{version}  jobs:read
GET    /v1/jobs/{job_id}/diff                jobs:read
POST   /v1/jobs/{job_id}/backfills           jobs:write
GET    /v1/jobs/{job_id}/backfills           jobs:read
GET    /v1/backfills                         jobs:read
GET    /v1/backfills/{backfill_id}           jobs:read
POST   /v1/backfills/{backfill_id}/cancel    jobs:write
GET    /v1/jobs/{job_id}/runs                runs:read
GET    /v1/jobs/{job_id}/executions          runs:read
GET    /v1/jobs/{job_id}/why                 jobs:read
GET    /v1/jobs/{job_id}/stats               runs:read

GET    /v1/runs                              runs:read
GET    /v1/runs/{run_id}                     runs:read
GET    /v1/runs/{run_id}/logs                payloads:read
GET    /v1/runs/{run_id}/tasks               runs:read
GET    /v1/runs/{run_id}/graph               runs:read
POST   /v1/runs/cancel                       runs:operate
POST   /v1/runs/{run_id}/cancel              runs:operate
POST   /v1/runs/{run_id}/retry               runs:operate
POST   /v1/runs/{run_id}/hold                runs:operate
POST   /v1/runs/{run_id}/release             runs:operate
POST   /v1/runs/{run_id}/complete            one-time token
GET    /v1/runs/{run_id}/why                 runs:read
GET    /v1/executions                        runs:read
GET    /v1/executions/{run_id}               runs:read
GET    /v1/executions/{run_id}/logs          payloads:read
GET    /v1/executions/{run_id}/tasks         runs:read
GET    /v1/executions/{run_id}/graph         runs:read
POST   /v1/executions/cancel                 runs:operate
POST   /v1/executions/{run_id}/cancel        runs:operate
POST   /v1/executions/{run_id}/retry         runs:operate
POST   /v1/executions/{run_id}/hold          runs:operate
POST   /v1/executions/{run_id}/release       runs:operate
POST   /v1/executions/{run_id}/complete      one-time token
GET    /v1/executions/{run_id}/why           runs:read
GET    /v1/events                            runs:read

GET    /v1/dead-letters                      runs:read
GET    /v1/dead-letters/groups               runs:read
GET    /v1/dead-letters/{run_id}             runs:read
POST   /v1/dead-letters/redrive              runs:operate
POST   /v1/dead-letters/discard              runs:operate

GET    /v1/rejections                        platform
GET    /v1/rejections/{rejection_id}         platform
GET    /v1/workers                           workers:read
GET    /v1/pools                             workers:read
GET    /v1/lanes                             workers:read
GET    /v1/calendars                         settings:read
GET    /v1/calendars/{name}                  settings:read
PUT    /v1/calendars/{name}                  calendars:write
DELETE /v1/calendars/{name}                  calendars:write
GET    /v1/limits                            settings:read
GET    /v1/limits/{name}                     settings:read
PUT    /v1/limits/{name}                     settings:write
DELETE /v1/limits/{name}                     settings:write
GET    /v1/namespaces                        settings:read
GET    /v1/namespaces/{name}                 settings:read
PUT    /v1/namespaces/{name}                 settings:write
DELETE /v1/namespaces/{name}                 platform
POST   /v1/namespaces/{name}/pause           settings:write
POST   /v1/namespaces/{name}/resume          settings:write
GET    /v1/me                                any credential
GET    /v1/ids                               any credential

GET    /v1/keys                              keys:write
POST   /v1/keys                              keys:write
GET    /v1/keys/{key_id}                     keys:write
DELETE /v1/keys/{key_id}                     keys:write
GET    /v1/audit                             audit:read
GET    /v1/alerts                            runs:read
GET    /v1/alerts/{alert_id}                 runs:read
"""


def rows() -> dict[tuple[str, str], str]:
    """The table as {(method, path): what it needs}."""
    found = {}
    for line in filter(None, _ROWS.splitlines()):
        method, path, need = line.split(maxsplit=2)
        found[method, path] = need
    return found


def allowed(need: str, role: str) -> bool:
    """Whether a role suffices, within its own namespace."""
    if need in {OPEN, ANY, TOKEN}:
        return True
    return ROLES.index(role) >= ROLES.index(LEAST[need])
