#!/usr/bin/env python3
"""Signs up whom Mastodon.py's suite knows, at a server that is given, and writes their tokens where the suite has names for them.

    mastodon.py-accounts.py URL FILE
"""

import json
import re
import sys
import urllib.request

PASSWORD = "a password of the suite"
SCOPES = "read write follow push profile"
ADMIN_SCOPES = SCOPES + " admin:read admin:write"
# Whose tokens the suite has, by what stands behind the name of the first.
TOKENS = {"": "mastodonpy_test", "_2": "admin", "_3": "mastodonpy_test_2"}


def ask(method, path, token=None, **asked):
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url + path, json.dumps(asked).encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


url, file = sys.argv[1:]
app = ask(
    "POST",
    "/api/v1/apps",
    client_name="Mastodon.py test suite",
    website="https://github.com/halcy/Mastodon.py",
    redirect_uris="urn:ietf:wg:oauth:2.0:oob",
    scopes=ADMIN_SCOPES,
)
client = {"client_id": app["client_id"], "client_secret": app["client_secret"]}
own = ask("POST", "/oauth/token", grant_type="client_credentials", scope=SCOPES, **client)["access_token"]
names = {"CLIENT_ID": app["client_id"], "CLIENT_SECRET": app["client_secret"]}
for name in ["admin", "admin2", "mastodonpy_test", "mastodonpy_test_2"]:
    try:
        ask("POST", "/api/v1/accounts", own, username=name, email=f"{name}@localhost", password=PASSWORD, agreement=True)
    except urllib.error.HTTPError as error:
        # A further run at the same server: they are there.
        if error.code != 422:
            raise
for behind, name in TOKENS.items():
    scopes = ADMIN_SCOPES if name == "admin" else SCOPES
    token = ask("POST", "/oauth/token", grant_type="password", username=name, password=PASSWORD, scope=scopes, **client)
    names[f"ACCESS_TOKEN{behind}"] = token["access_token"]
ask("PATCH", "/api/v1/accounts/update_credentials", names["ACCESS_TOKEN"], locked=True)

with open(file, encoding="utf-8") as opened:
    text = opened.read()
for name, value in names.items():
    text, found = re.subn(rf"(['\"])__MASTODON_PY_TEST_{name}\1", repr(value), text)
    if not found:
        sys.exit(f"{file} has no name for {name}: is it another version of the suite?")
with open(file, "w", encoding="utf-8") as opened:
    opened.write(text)
