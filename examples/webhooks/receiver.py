"""Receives Till's webhooks with nothing but Python 3.8 or newer:

    TILL_WEBHOOK_SECRET=whsec_... PORT=3000 python3 receiver.py
"""

import hashlib
import hmac
import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Two, separated by a comma, during the grace period of a rolled secret.
SECRETS = [secret for secret in os.environ.get("TILL_WEBHOOK_SECRET", "").split(",") if secret]
if not SECRETS:
    sys.exit("TILL_WEBHOOK_SECRET must hold the endpoint's secret, whsec_...")

TOLERANCE_SECONDS = 300
BODY_BYTES_MAX = 1024 * 1024


def is_genuine(body: bytes, header: str) -> bool:
    """Whether Till signed exactly these bytes, with one of our secrets, in the last five minutes."""
    entries = [entry.strip().partition("=") for entry in header.split(",")]
    signed_at = next((value for name, _, value in entries if name == "t"), "")
    if not re.fullmatch(r"[0-9]{1,12}", signed_at):
        return False
    if abs(int(time.time()) - int(signed_at)) > TOLERANCE_SECONDS:
        return False
    # Compares bytes, because compare_digest refuses text that is not ASCII.
    signatures = [value.encode() for name, _, value in entries if name == "v1"]
    payload = b"v1=" + signed_at.encode() + b"." + body
    expected = [hmac.new(secret.encode(), payload, hashlib.sha256).hexdigest().encode() for secret in SECRETS]
    return any(hmac.compare_digest(given, own) for given in signatures for own in expected)


# An event can arrive more than once. Programs with a database store the IDs in a unique column, in the transaction
# that processes the event.
handled = set()
handling = threading.Lock()


def handle(event: dict) -> None:
    print(event["id"], event["type"], flush=True)


class Receiver(BaseHTTPRequestHandler):
    timeout = 30  # seconds for a request to come in

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch(r"[0-9]{1,12}", length):
            return self.answer(411)
        if int(length) > BODY_BYTES_MAX:
            return self.answer(413)
        # The body is used unchanged. Parsed and serialized again, it would have other bytes than Till signed.
        body = self.rfile.read(int(length))
        if not is_genuine(body, self.headers.get("X-Signature", "")):
            return self.answer(400)
        try:
            event = json.loads(body)
            with handling:
                if event["id"] not in handled:
                    handle(event)
                    handled.add(event["id"])
        except Exception as error:
            # After any status other than 2xx, Till sends the event again later.
            print(repr(error), file=sys.stderr, flush=True)
            return self.answer(500)
        self.answer(200)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "3000"))), Receiver)
print(f"Listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
