#!/usr/bin/env python3
"""A backend that gives the users of a site timelines: accounts, a follow, a post, a page. Standard library only.

    tideline token create my-backend > token
    examples/backend/backend.py http://localhost:3000 "$(cat token)"
"""

import json
import sys
import time
import urllib.error
import urllib.request
import uuid

TRIES = 5


class Timelines:
    """What the server does for the users of this site, each by the number that the site knows it by."""

    def __init__(self, url, token):
        self.url = url.rstrip("/")
        self.token = token

    def call(self, method, path, user=None, body=None, key=None):
        """Makes a call, for one of the site's users; what is refused raises the server's words."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        if user is not None:
            headers["Tideline-Act-As"] = str(user)
        if key is not None:
            headers["Idempotency-Key"] = key
        data = None if body is None else json.dumps(body).encode()
        for attempt in range(TRIES):
            request = urllib.request.Request(self.url + path, data, headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as refused:
                told = refused.read().decode(errors="replace")
                # The server has no time, or a part of it is away: all that is asked here may be asked again.
                if refused.code != 503 or attempt == TRIES - 1:
                    raise RuntimeError(f"{method} {path}: {refused.code} {told}") from None
                time.sleep(float(refused.headers.get("Retry-After", 1)))

    def add_user(self, number, login, name):
        """Gives a user an account; once is enough, and twice does no harm."""
        body = {"id": number, "username": login, "display_name": name}
        return self.call("POST", "/api/tideline/v1/accounts", body=body)

    def follow(self, user, author):
        return self.call("POST", f"/api/v1/accounts/{author}/follow", user)

    def post(self, user, text):
        # Drawn once for each post, and sent along with each try: however often it is sent, it is one post.
        return self.call("POST", "/api/v1/statuses", user, {"status": text}, key=str(uuid.uuid4()))

    def home(self, user, limit=20, below=None):
        """A page of a user's home; the id of its last post leads to the next one."""
        older = f"&max_id={below}" if below else ""
        return self.call("GET", f"/api/v1/timelines/home?limit={limit}{older}", user)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: backend.py URL TOKEN")
    site = Timelines(*sys.argv[1:])
    annika = site.add_user(1001, "annika", "Annika")
    bodil = site.add_user(1002, "bodil", "Bodil")
    print(f"accounts: @{annika['username']}, @{bodil['username']}")
    site.follow(1001, 1002)
    posted = [site.post(1002, f"High tide at {hour}")["id"] for hour in ("six", "noon", "seven")]
    # Delivered a moment after it was posted.
    for _ in range(100):
        page = site.home(1001, limit=2)
        if page and page[0]["id"] == posted[-1]:
            break
        time.sleep(0.1)
    while page:
        print("a page of Annika's home:", [status["content"] for status in page])
        page = site.home(1001, limit=2, below=page[-1]["id"])


if __name__ == "__main__":
    main()
