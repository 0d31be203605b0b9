"""Calls Till's API with nothing but Python 3.8 or newer:

    TILL_API_KEY=sk_test_... python3 till.py
"""

import base64
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

URL = os.environ.get("TILL_URL", "http://localhost:4242")
KEY = os.environ.get("TILL_API_KEY", "")
ATTEMPTS_MAX = 4


class TillError(Exception):
    """A refusal. `error` is the API's: type, code, message, param, and decline_code of a decline."""

    def __init__(self, status: int, error: dict, request_id: str):
        super().__init__(error["message"])
        self.status, self.error, self.request_id = status, error, request_id


def till(method: str, path: str, body: dict = None, idempotency_key: str = None) -> dict:
    """Sends a request. A POST is repeated under one idempotency key until it has an answer, and takes effect once."""
    headers = {"Authorization": "Basic " + base64.b64encode(f"{KEY}:".encode()).decode()}
    data = None
    if method == "POST":
        headers["Content-Type"] = "application/json"
        headers["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        data = json.dumps(body or {}).encode()
    for attempt in range(1, ATTEMPTS_MAX + 1):
        request = urllib.request.Request(f"{URL}/v1/{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return json.load(response)
        except urllib.error.HTTPError as answer:
            error = json.load(answer)["error"]
            # 409: another request under this key is being carried out. 429: too many requests. 503: out of service.
            is_temporary = error["code"] == "idempotency_key_in_use" or answer.code in (429, 503)
            if not is_temporary or attempt == ATTEMPTS_MAX:
                raise TillError(answer.code, error, answer.headers["X-Request-Id"]) from None
            pause = float(answer.headers.get("Retry-After") or 0)
        except (OSError, http.client.HTTPException):
            # The answer was lost. The request may have been carried out, and the repetition gets its answer.
            if attempt == ATTEMPTS_MAX:
                raise
            pause = 0
        time.sleep(max(pause, 0.25 * 2**attempt))


def each(path: str, **parameters):
    """All objects of a list, page after page."""
    while True:
        page = till("GET", f"{path}?{urllib.parse.urlencode(parameters)}")
        yield from page["data"]
        if not page["has_more"]:
            return
        parameters["starting_after"] = page["data"][-1]["id"]


def main() -> None:
    if not KEY.startswith("sk_test_"):
        sys.exit("TILL_API_KEY must hold a secret key of test mode, sk_test_...")
    customer = till("POST", "customers", {"email": "jenny@example.com", "metadata": {"user": "42"}})
    print(f"{customer['id']} is {customer['email']}")

    sale = {"amount": 2450, "currency": "usd", "customer": customer["id"], "confirm": True}
    # The shop's own number of the order: after a crash, the same request cannot charge twice.
    order = f"order 1 of {customer['id']}"
    paid = till("POST", "payment_intents", {**sale, "payment_method": "pm_card_visa"}, order)
    print(f"{paid['id']} {paid['status']}: {paid['amount_received']} {paid['currency']}")
    again = till("POST", "payment_intents", {**sale, "payment_method": "pm_card_visa"}, order)
    print(f"{again['id']} again, not charged twice")

    try:
        till("POST", "payment_intents", {**sale, "payment_method": "pm_card_insufficient_funds"})
    except TillError as refusal:
        if refusal.status != 402:
            raise
        print(f"{refusal.error['decline_code']}: {refusal.error['message']}")

    for payment in each("payment_intents", customer=customer["id"], limit=1):
        print(f"- {payment['id']} {payment['status']}")


if __name__ == "__main__":
    main()
