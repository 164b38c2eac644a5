"""gRPC jobs: one guarded unary call per attempt.

May import: `worker.http` (guard, TLS, signing), `worker.kinds`. Start with `kind.py`.
"""

import os

# The library reads this variable when it is loaded. By default, it writes messages, which can contain texts
# of servers, to standard error, between the JSON lines of the log.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
