#!/usr/bin/env node
// A backend that gives the users of a site timelines: accounts, a follow, a post, a page. Node 18 or newer, no packages.
//
//     tideline token create my-backend > token
//     examples/backend/backend.mjs http://localhost:3000 "$(cat token)"

import { randomUUID } from "node:crypto";

const TRIES = 5;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// What the server does for the users of this site, each by the number that the site knows it by.
class Timelines {
  constructor(url, token) {
    this.url = url.replace(/\/$/, "");
    this.token = token;
  }

  // Makes a call, for one of the site's users; what is refused throws the server's words.
  async call(method, path, { user, body, key } = {}) {
    const headers = { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" };
    if (user !== undefined) headers["Tideline-Act-As"] = String(user);
    if (key !== undefined) headers["Idempotency-Key"] = key;
    for (let attempt = 1; ; attempt++) {
      const answer = await fetch(this.url + path, { method, headers, body: body && JSON.stringify(body) });
      if (answer.ok) return answer.json();
      const told = await answer.text();
      // The server has no time, or a part of it is away: all that is asked here may be asked again.
      if (answer.status !== 503 || attempt === TRIES) throw new Error(`${method} ${path}: ${answer.status} ${told}`);
      await sleep(1000 * Number(answer.headers.get("Retry-After") ?? 1));
    }
  }

  // Gives a user an account; once is enough, and twice does no harm.
  addUser(number, login, name) {
    return this.call("POST", "/api/tideline/v1/accounts", { body: { id: number, username: login, display_name: name } });
  }

  follow(user, author) {
    return this.call("POST", `/api/v1/accounts/${author}/follow`, { user });
  }

  // The key is drawn once for each post, and sent along with each try: however often it is sent, it is one post.
  post(user, text) {
    return this.call("POST", "/api/v1/statuses", { user, body: { status: text }, key: randomUUID() });
  }

  // A page of a user's home; the id of its last post leads to the next one. Ids are texts: a number would lose digits.
  home(user, limit = 20, below = undefined) {
    const older = below ? `&max_id=${below}` : "";
    return this.call("GET", `/api/v1/timelines/home?limit=${limit}${older}`, { user });
  }
}

const [url, token] = process.argv.slice(2);
if (!token) {
  console.error("usage: backend.mjs URL TOKEN");
  process.exit(1);
}
const site = new Timelines(url, token);
const annika = await site.addUser(1001, "annika", "Annika");
const bodil = await site.addUser(1002, "bodil", "Bodil");
console.log(`accounts: @${annika.username}, @${bodil.username}`);
await site.follow(1001, 1002);
const posted = [];
for (const hour of ["six", "noon", "seven"]) posted.push((await site.post(1002, `High tide at ${hour}`)).id);
// Delivered a moment after it was posted.
let page = await site.home(1001, 2);
for (let tries = 0; tries < 100 && page[0]?.id !== posted.at(-1); tries++) {
  await sleep(100);
  page = await site.home(1001, 2);
}
while (page.length > 0) {
  console.log("a page of Annika's home:", page.map((status) => status.content));
  page = await site.home(1001, 2, page.at(-1).id);
}
