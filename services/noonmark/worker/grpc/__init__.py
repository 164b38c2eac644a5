"""gRPC jobs: one guarded unary call per attempt.

May import: `worker.http` (guard, TLS, signing), `worker.kinds`. Start with `kind.py`.
"""

import os

# The library reads this variable when it is loaded. By default it writes to standard error, which holds words
# of servers, between the JSON lines of our log.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
