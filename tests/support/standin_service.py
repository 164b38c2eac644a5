"""A stand-in for a service: answers /readyz, and misbehaves as it is told."""

import http.server
import os
import signal
import subprocess
import sys
import threading

if "--refuse-to-start" in sys.argv:
    sys.exit("no module named handlers_of_nobody")
if "--with-child" in sys.argv:
    subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])


if "--busy" in sys.argv:
    threading.Thread(target=lambda: any(iter(lambda: False, True)), daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status = 503 if "--never-ready" in sys.argv else 200
        self.send_response(status)
        self.end_headers()
        self.wfile.write(b"waiting for partitions" if status == 503 else b"ready")

    def log_message(self, *_arguments: object) -> None:
        """Logs no request."""


signal.signal(signal.SIGTERM, signal.SIG_IGN if "--deaf" in sys.argv else lambda *_: sys.exit(0))
print("serving", os.environ["NOONMARK_METRICS_PORT"], flush=True)
http.server.HTTPServer(("127.0.0.1", int(os.environ["NOONMARK_METRICS_PORT"])), Handler).serve_forever()
