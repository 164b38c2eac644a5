"""gRPC jobs: one guarded unary call per attempt.

May import: `worker.http` (guard, TLS, signing), `worker.kinds`. Start with `kind.py`.
"""
