"""For services that receive noonmark's calls: check the signature, and refuse overtaken attempts.

    from noonmark.receiver import FenceStore, StaleFence, verify

    call = verify(headers, body, [SECRET])
    with connection:                                # the transaction of your own effects
        fences.accept(connection, call.id, call.fence)
        ...

Plain functions on headers, bytes and a DB-API connection: use any web framework and any such driver. Only the
standard library is imported.
"""

from noonmark.core.access.webhook_signature import SecretError, SignatureError, SignedCall
from noonmark.receiver.calls import environ_headers, verify
from noonmark.receiver.fences import FenceStore, StaleFence, Verdict

__all__ = [
    "FenceStore",
    "SecretError",
    "SignatureError",
    "SignedCall",
    "StaleFence",
    "Verdict",
    "environ_headers",
    "verify",
]
