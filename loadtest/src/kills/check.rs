//! Whether all that was answered is there, once, and nothing else: asked over HTTP, as anybody may.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::notes::{NewcomerNote, Notes, Wrong, WrongKind, once_each};
use super::person::Town;
use crate::http::{Answer, Ask};

const SESSIONS: &str = "/api/tideline/v1/sessions";
/// Posts of a page.
const PAGE: usize = 40;
/// Pages of somebody's posts, at most.
const PAGES_MAX: usize = 1_000;

/// Looks at what was answered.
pub(super) struct Checking<'a> {
    pub(super) town: &'a Town,
    pub(super) all: &'a [Notes],
    /// What was held against what is there.
    pub(super) looked_at: u64,
    pub(super) wrong: Vec<Wrong>,
}

fn id_of(of: &Value) -> String {
    of["id"].as_str().unwrap_or_default().to_owned()
}

impl<'a> Checking<'a> {
    pub(super) fn new(town: &'a Town, all: &'a [Notes]) -> Self {
        Self { town, all, looked_at: 0, wrong: Vec::new() }
    }

    pub(super) async fn run(&mut self) -> anyhow::Result<()> {
        let mut likes: BTreeMap<&str, u64> = BTreeMap::new();
        for (post, likes_it) in self.all.iter().flat_map(|notes| &notes.likes) {
            *likes.entry(post).or_default() += u64::from(*likes_it);
        }
        for place in 0..self.all.len() {
            let notes = &self.all[place];
            self.tokens(notes).await?;
            self.sessions(notes).await?;
            self.posts(notes, &likes).await?;
            self.follows(place).await?;
            self.likes(notes).await?;
            self.lists(notes).await?;
            if let Some(marker) = &notes.marker {
                let told = self.get(notes, "/api/v1/markers?timeline[]=home").await?.json();
                let read = told["home"]["last_read_id"].as_str().unwrap_or_default();
                self.expect(notes, read == marker, WrongKind::Missing, || {
                    format!("marker {marker}: {read:?}")
                });
            }
            for newcomer in &notes.newcomers {
                self.newcomer(notes, newcomer).await?;
            }
        }
        Ok(())
    }

    fn expect(&mut self, of: &Notes, is_so: bool, kind: WrongKind, what: impl FnOnce() -> String) {
        self.looked_at += 1;
        if !is_so {
            self.wrong.push(Wrong { kind, what: format!("{}: {}", of.login, what()) });
        }
    }

    async fn ask(&self, path: &str, token: &str) -> anyhow::Result<Answer> {
        Ok(self.town.servers.settle(&Ask::get(path).token(token)).await?.answer)
    }

    async fn get(&self, as_: &Notes, path: &str) -> anyhow::Result<Answer> {
        self.ask(path, &as_.tokens[0]).await
    }

    async fn tokens(&mut self, notes: &Notes) -> anyhow::Result<()> {
        const OWN: &str = "/api/v1/accounts/verify_credentials";
        for token in &notes.tokens {
            let answer = self.ask(OWN, token).await?;
            let is_so = answer.is_success() && id_of(&answer.json()) == notes.id;
            self.expect(notes, is_so, WrongKind::Missing, || {
                format!("a token that was given: {}", answer.status)
            });
        }
        for token in &notes.revoked {
            let answer = self.ask(OWN, token).await?;
            self.expect(notes, answer.status == 401, WrongKind::Leaked, || {
                format!("a token that was revoked: {}", answer.status)
            });
        }
        Ok(())
    }

    /// Each session that was begun and not ended is listed, once; besides only such of which nobody was told.
    async fn sessions(&mut self, notes: &Notes) -> anyhow::Result<()> {
        let mut own = BTreeSet::new();
        for token in &notes.tokens {
            let told = self.ask(SESSIONS, token).await?.json();
            let listed: Vec<&Value> = told.as_array().into_iter().flatten().collect();
            let current: Vec<String> =
                listed.iter().filter(|session| session["is_current"] == true).map(|of| id_of(of)).collect();
            let is_one = current.len() == 1 && own.insert(current.concat());
            self.expect(notes, is_one, WrongKind::Missing, || {
                format!("the session of a token among {listed:?} is {current:?}")
            });
            let doubtful = listed.len().checked_sub(notes.tokens.len());
            let is_so = doubtful.is_some_and(|many| many as u64 <= notes.doubtful_sessions);
            self.expect(notes, is_so, WrongKind::Leaked, || {
                let (there, known) = (listed.len(), notes.tokens.len());
                format!("{there} sessions, {known} of them answered, {} in doubt", notes.doubtful_sessions)
            });
        }
        Ok(())
    }

    async fn posts(&mut self, notes: &Notes, likes: &BTreeMap<&str, u64>) -> anyhow::Result<()> {
        let mut shown = Vec::new();
        for _ in 0..PAGES_MAX {
            let older = shown.last().map(|last| format!("&max_id={last}")).unwrap_or_default();
            let path = format!("/api/v1/accounts/{}/statuses?limit={PAGE}{older}", notes.id);
            let page = self.get(notes, &path).await?.json();
            let ids: Vec<String> =
                page.as_array().map(|page| page.iter().map(id_of).collect()).unwrap_or_default();
            if ids.is_empty() {
                break;
            }
            shown.extend(ids);
        }
        let wanted: BTreeSet<String> = notes.standing().map(|(id, _)| id.clone()).collect();
        let found = once_each("post", &shown, &wanted, &BTreeSet::new());
        self.looked_at += shown.len() as u64;
        self.wrong.extend(
            found.into_iter().map(|(kind, what)| Wrong { kind, what: format!("{}: {what}", notes.login) }),
        );
        for (id, post) in &notes.posts {
            let answer = self.get(notes, &format!("/api/v1/statuses/{id}")).await?;
            if post.is_deleted {
                self.expect(notes, answer.status == 404, WrongKind::Leaked, || {
                    format!("post {id}, which was deleted: {}", answer.status)
                });
                continue;
            }
            let told = answer.json();
            let content = told["content"].as_str().unwrap_or_default();
            let wanted = format!("<p>{}</p>", post.text);
            self.expect(notes, content == wanted, WrongKind::Missing, || {
                format!("post {id}: {} {content:?} instead of {wanted:?}", answer.status)
            });
            let (count, known) = (told["favourites_count"].as_u64(), likes.get(id.as_str()).copied());
            self.expect(notes, count == Some(known.unwrap_or_default()), WrongKind::Miscounted, || {
                format!("likes of post {id}: {count:?} instead of {known:?}")
            });
        }
        Ok(())
    }

    async fn follows(&mut self, place: usize) -> anyhow::Result<()> {
        let notes = &self.all[place];
        for (other, follows) in &notes.follows {
            let id = &self.town.ids[*other];
            let told = self.get(notes, &format!("/api/v1/accounts/relationships?id[]={id}")).await?.json();
            let is_so = told[0]["following"].as_bool() == Some(*follows);
            let kind = if *follows { WrongKind::Missing } else { WrongKind::Leaked };
            self.expect(notes, is_so, kind, || format!("following {id} is not {follows}: {told}"));
        }
        let follow = |notes: &Notes| notes.follows.get(&place).copied().unwrap_or_default();
        let wanted = self.all.iter().filter(|other| follow(other)).count() as u64;
        let told = self.get(notes, &format!("/api/v1/accounts/{}", notes.id)).await?.json();
        let count = told["followers_count"].as_u64();
        self.expect(notes, count == Some(wanted), WrongKind::Miscounted, || {
            format!("followers: {count:?} instead of {wanted}")
        });
        Ok(())
    }

    async fn likes(&mut self, notes: &Notes) -> anyhow::Result<()> {
        for (id, likes) in &notes.likes {
            if self.town.goes(id) {
                continue;
            }
            let told = self.get(notes, &format!("/api/v1/statuses/{id}")).await?.json();
            let is_so = told["favourited"].as_bool() == Some(*likes);
            let kind = if *likes { WrongKind::Missing } else { WrongKind::Leaked };
            self.expect(notes, is_so, kind, || format!("liking post {id} is not {likes}"));
        }
        Ok(())
    }

    async fn lists(&mut self, notes: &Notes) -> anyhow::Result<()> {
        let told = self.get(notes, "/api/v1/lists").await?.json();
        let titles: Vec<String> = told
            .as_array()
            .into_iter()
            .flatten()
            .map(|list| list["title"].as_str().unwrap_or_default().to_owned())
            .collect();
        let there = notes.lists.iter().filter(|(_, list)| !list.is_removed);
        let wanted: BTreeSet<String> = there.clone().map(|(_, list)| list.title.clone()).collect();
        self.looked_at += titles.len() as u64;
        for (kind, what) in once_each("list", &titles, &wanted, &notes.doubtful_lists) {
            self.wrong.push(Wrong { kind, what: format!("{}: {what}", notes.login) });
        }
        for (id, list) in there {
            let told = self.get(notes, &format!("/api/v1/lists/{id}/accounts?limit=0")).await?.json();
            let members: BTreeSet<String> = told.as_array().into_iter().flatten().map(id_of).collect();
            let wanted: BTreeSet<String> =
                list.members.iter().map(|place| self.town.ids[*place].clone()).collect();
            self.expect(notes, members == wanted, WrongKind::Missing, || {
                format!("on list {id} are {members:?} instead of {wanted:?}")
            });
        }
        Ok(())
    }

    async fn newcomer(&mut self, notes: &Notes, newcomer: &NewcomerNote) -> anyhow::Result<()> {
        let answer = self.ask("/api/v1/accounts/verify_credentials", &newcomer.token).await?;
        let own = answer.json();
        let is_so = answer.is_success() && own["username"].as_str() == Some(newcomer.login.as_str());
        self.expect(notes, is_so, WrongKind::Missing, || {
            format!("{} with its first token: {}", newcomer.login, answer.status)
        });
        let answer = self.town.servers.settle(&self.town.application.log_in(&newcomer.login)).await?.answer;
        self.expect(notes, answer.is_success(), WrongKind::Missing, || {
            format!("{} logs in: {}", newcomer.login, answer.status)
        });
        let path = format!("/api/v1/accounts/lookup?acct={}", newcomer.login);
        let answer = self.get(notes, &path).await?;
        self.expect(notes, id_of(&answer.json()) == id_of(&own), WrongKind::Doubled, || {
            format!("{} is somebody else by name", newcomer.login)
        });
        Ok(())
    }
}
