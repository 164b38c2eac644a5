"""The gRPC library, quiet: what it writes to standard error itself holds words of servers, between our JSON.

It reads the variable when it is loaded, so everything of the worker takes it from here.
"""

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import grpc
import grpc.aio

__all__ = ["grpc"]
