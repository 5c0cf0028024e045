//! One of the people: does one thing after the other, each until it is answered, and notes what it was answered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::notes::{ListNote, NewcomerNote, Notes, PostNote, WrongKind};
use super::servers::{SERVERS, Servers, Settled};
use crate::http::{Answer, Ask, Method};
use crate::site::{Application, refused};
use crate::weighted::Weighted;

/// Sessions of one account: from more on the oldest ones end.
const TOKENS_MAX: usize = 30;
/// Lists of one account, those that are in doubt included.
const LISTS_MAX: usize = 40;
/// Letters that no post may have.
const TOO_LONG: usize = 5_001;

/// A sign-up that was killed holds its name for a minute; it is asked again so often, ...
const HELD_LOOK: Duration = Duration::from_secs(2);
/// ... and not for ever.
const HELD_MAX: Duration = Duration::from_secs(150);

/// What all people know.
#[derive(Debug)]
pub(super) struct Town {
    pub(super) servers: Arc<Servers>,
    pub(super) application: Application,
    /// Ids of the people, by their places.
    pub(super) ids: Vec<String>,
    /// Posts that were answered: what others like.
    posts: Mutex<Vec<String>>,
    /// Those of them that somebody has begun to delete.
    going: Mutex<BTreeMap<String, ()>>,
}

impl Town {
    pub(super) fn new(servers: Arc<Servers>, application: Application, ids: Vec<String>) -> Self {
        Self { servers, application, ids, posts: Mutex::default(), going: Mutex::default() }
    }

    /// Whether a post has begun to go.
    pub(super) fn goes(&self, post: &str) -> bool {
        self.going.lock().unwrap_or_else(PoisonError::into_inner).contains_key(post)
    }
}

/// One of them.
#[derive(Debug)]
pub(super) struct Person {
    pub(super) place: usize,
    pub(super) notes: Notes,
    town: Arc<Town>,
    random: StdRng,
    nth: u64,
}

/// What somebody does.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Post,
    Edit,
    Delete,
    Follow,
    Like,
    Marker,
    MakeList,
    ChangeList,
    RemoveList,
    LogIn,
    LogOut,
    SignUp,
    Refused,
}

const DEEDS: [(Deed, u64); 13] = [
    (Deed::Post, 30),
    (Deed::Edit, 10),
    (Deed::Delete, 8),
    (Deed::Follow, 14),
    (Deed::Like, 14),
    (Deed::Marker, 5),
    (Deed::MakeList, 3),
    (Deed::ChangeList, 5),
    (Deed::RemoveList, 1),
    (Deed::LogIn, 4),
    (Deed::LogOut, 2),
    (Deed::SignUp, 4),
    (Deed::Refused, 4),
];

fn text(of: &Value, field: &str) -> String {
    of[field].as_str().unwrap_or_default().to_owned()
}

impl Person {
    pub(super) fn new(town: Arc<Town>, place: usize, notes: Notes, random: StdRng) -> Self {
        Self { place, notes, town, random, nth: 0 }
    }

    /// Does the next thing. Fails only if nobody answers at all.
    pub(super) async fn act(&mut self) -> anyhow::Result<()> {
        let nth = Weighted::new(DEEDS.map(|(_, weight)| weight)).pick(&mut self.random);
        self.nth += 1;
        match DEEDS[nth].0 {
            Deed::Post => self.post().await,
            Deed::Edit => self.edit().await,
            Deed::Delete => self.delete().await,
            Deed::Follow => self.follow().await,
            Deed::Like => self.like().await,
            Deed::Marker => self.read_on().await,
            Deed::MakeList => self.make_list().await,
            Deed::ChangeList => self.change_list().await,
            Deed::RemoveList => self.remove_list().await,
            Deed::LogIn => self.log_in().await,
            Deed::LogOut => self.log_out().await,
            Deed::SignUp => self.sign_up().await,
            Deed::Refused => self.is_refused().await,
        }
    }

    async fn ask(&self, method: Method, path: &str, body: Value) -> anyhow::Result<Settled> {
        let ask = Ask::new(method, path).body(body).token(&self.notes.tokens[0]);
        self.town.servers.settle(&ask).await
    }

    /// What nothing but a mistake refuses.
    fn wants_success(&mut self, what: &str, answer: &Answer) -> bool {
        if !answer.is_success() {
            self.notes.wrong(WrongKind::Refused, format!("{:#}", refused(what, answer)));
        }
        answer.is_success()
    }

    fn words(&mut self) -> String {
        format!("{} says {} {:08x}", self.notes.login, self.nth, self.random.random::<u32>())
    }

    fn some<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        (!all.is_empty()).then(|| all[self.random.random_range(0..all.len())].clone())
    }

    async fn post(&mut self) -> anyhow::Result<()> {
        let (words, key) = (self.words(), format!("{}-{}", self.notes.login, self.nth));
        let body = json!({ "status": words });
        let ask = Ask::post("/api/v1/statuses", body).key(&key).token(&self.notes.tokens[0]);
        let bytes = self.town.servers.settle(&ask).await?.answer;
        let mut ids = vec![text(&bytes.json(), "id")];
        // A client that has seen the answer, and sends it once more.
        if self.random.random_bool(0.1) {
            let again = Ask::post("/api/v1/statuses", json!({ "status": words })).key(&key);
            let again = self.town.servers.settle(&again.token(&self.notes.tokens[0])).await?.answer;
            ids.push(text(&again.json(), "id"));
        }
        if self.wants_success("a post", &bytes) {
            if ids.iter().any(|id| *id != ids[0]) {
                self.notes.wrong(WrongKind::Doubled, format!("one key gave the posts {ids:?}"));
            }
            let id = ids.swap_remove(0);
            self.town.posts.lock().unwrap_or_else(PoisonError::into_inner).push(id.clone());
            self.notes.posts.insert(id, PostNote { text: words, is_deleted: false });
        }
        Ok(())
    }

    fn own_post(&mut self) -> Option<String> {
        let standing: Vec<String> = self.notes.standing().map(|(id, _)| id.clone()).collect();
        self.some(&standing)
    }

    async fn edit(&mut self) -> anyhow::Result<()> {
        let Some(id) = self.own_post() else { return Ok(()) };
        let words = self.words();
        let path = format!("/api/v1/statuses/{id}");
        let answer = self.ask(Method::Put, &path, json!({ "status": words })).await?.answer;
        if answer.status == 404 {
            self.notes.wrong(WrongKind::Missing, format!("post {id} isn't there when it is edited"));
        } else if self.wants_success("an edit", &answer)
            && let Some(post) = self.notes.posts.get_mut(&id)
        {
            post.text = words;
        }
        Ok(())
    }

    async fn delete(&mut self) -> anyhow::Result<()> {
        let Some(id) = self.own_post() else { return Ok(()) };
        self.town.going.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), ());
        let path = format!("/api/v1/statuses/{id}");
        let Settled { answer, unanswered } = self.ask(Method::Delete, &path, Value::Null).await?;
        if answer.status == 404 && unanswered == 0 {
            self.notes.wrong(WrongKind::Missing, format!("post {id} isn't there when it is deleted"));
        }
        if (answer.status == 404 || self.wants_success("a deletion", &answer))
            && let Some(post) = self.notes.posts.get_mut(&id)
        {
            post.is_deleted = true;
        }
        Ok(())
    }

    fn other(&mut self) -> usize {
        let others = self.town.ids.len() - 1;
        let nth = self.random.random_range(0..others);
        nth + usize::from(nth >= self.place)
    }

    async fn follow(&mut self) -> anyhow::Result<()> {
        let other = self.other();
        let follows =
            !self.notes.follows.get(&other).copied().unwrap_or_default() || self.random.random_bool(0.2);
        let deed = if follows { "follow" } else { "unfollow" };
        let path = format!("/api/v1/accounts/{}/{deed}", self.town.ids[other]);
        let answer = self.ask(Method::Post, &path, json!({})).await?.answer;
        if self.wants_success(deed, &answer) {
            self.notes.follows.insert(other, follows);
            if !follows {
                // Whoever isn't followed any more leaves all lists.
                for list in self.notes.lists.values_mut() {
                    list.members.remove(&other);
                }
            }
        }
        Ok(())
    }

    async fn like(&mut self) -> anyhow::Result<()> {
        let posts = self.town.posts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(id) = self.some(&posts) else { return Ok(()) };
        let likes = !self.notes.likes.get(&id).copied().unwrap_or_default();
        let deed = if likes { "favourite" } else { "unfavourite" };
        let answer =
            self.ask(Method::Post, &format!("/api/v1/statuses/{id}/{deed}"), json!({})).await?.answer;
        if answer.status == 404 {
            // Somebody deletes it.
            if !self.town.goes(&id) {
                self.notes.wrong(WrongKind::Missing, format!("post {id} isn't there when it is liked"));
            }
        } else if self.wants_success(deed, &answer) {
            self.notes.likes.insert(id, likes);
        }
        Ok(())
    }

    async fn read_on(&mut self) -> anyhow::Result<()> {
        let Some(id) = self.own_post() else { return Ok(()) };
        let body = json!({ "home": { "last_read_id": id } });
        let answer = self.ask(Method::Post, "/api/v1/markers", body).await?.answer;
        if self.wants_success("a marker", &answer) {
            self.notes.marker = Some(id);
        }
        Ok(())
    }

    async fn make_list(&mut self) -> anyhow::Result<()> {
        if self.notes.lists.len() + self.notes.doubtful_lists.len() >= LISTS_MAX {
            return Ok(());
        }
        let title = self.words();
        let ask = Ask::post("/api/v1/lists", json!({ "title": title })).token(&self.notes.tokens[0]);
        let nth = self.random.random_range(0..SERVERS);
        // Nothing tells one list from another that is made again: so it is asked for once.
        match self.town.servers.once(nth, &ask).await {
            Some(answer) if self.wants_success("a list", &answer) => {
                let list = ListNote { title, ..ListNote::default() };
                self.notes.lists.insert(text(&answer.json(), "id"), list);
            }
            Some(_) => {}
            None => {
                self.notes.doubtful_lists.insert(title);
            }
        }
        Ok(())
    }

    fn own_list(&mut self) -> Option<String> {
        let there = self.notes.lists.iter().filter(|(_, list)| !list.is_removed);
        let there: Vec<String> = there.map(|(id, _)| id.clone()).collect();
        self.some(&there)
    }

    async fn change_list(&mut self) -> anyhow::Result<()> {
        let followed = self.notes.follows.iter().filter(|(_, follows)| **follows).map(|(other, _)| *other);
        let followed: Vec<usize> = followed.collect();
        let (Some(id), Some(other)) = (self.own_list(), self.some(&followed)) else { return Ok(()) };
        let is_on = self.notes.lists[&id].members.contains(&other);
        let method = if is_on { Method::Delete } else { Method::Post };
        let body = json!({ "account_ids": [self.town.ids[other]] });
        let path = format!("/api/v1/lists/{id}/accounts");
        let Settled { answer, unanswered } = self.ask(method, &path, body).await?;
        // An earlier try has put it there.
        let is_done = !is_on && unanswered > 0 && answer.status == 422;
        if !(is_done || self.wants_success("a change of a list", &answer)) {
            return Ok(());
        }
        let members = &mut self.notes.lists.entry(id).or_default().members;
        if is_on {
            members.remove(&other)
        } else {
            members.insert(other)
        };
        Ok(())
    }

    async fn remove_list(&mut self) -> anyhow::Result<()> {
        let Some(id) = self.own_list() else { return Ok(()) };
        let path = format!("/api/v1/lists/{id}");
        let Settled { answer, unanswered } = self.ask(Method::Delete, &path, Value::Null).await?;
        if (answer.status == 404 && unanswered > 0) || self.wants_success("removing a list", &answer) {
            self.notes.lists.entry(id).or_default().is_removed = true;
        }
        Ok(())
    }

    async fn log_in(&mut self) -> anyhow::Result<()> {
        if self.notes.tokens.len() >= TOKENS_MAX {
            return Ok(());
        }
        let Settled { answer, unanswered } =
            self.town.servers.settle(&self.town.application.log_in(&self.notes.login)).await?;
        self.notes.doubtful_sessions += unanswered;
        if self.wants_success("a log-in", &answer) {
            self.notes.tokens.push(text(&answer.json(), "access_token"));
        }
        Ok(())
    }

    /// Ends a session, not the one that it works with.
    async fn log_out(&mut self) -> anyhow::Result<()> {
        if self.notes.tokens.len() < 2 {
            return Ok(());
        }
        let nth = self.random.random_range(1..self.notes.tokens.len());
        // From here on nobody knows, until it is answered.
        let token = self.notes.tokens.remove(nth);
        let answer = self.town.servers.settle(&self.town.application.revoke(&token)).await?.answer;
        if self.wants_success("a log-out", &answer) {
            self.notes.revoked.push(token);
        }
        Ok(())
    }

    async fn sign_up(&mut self) -> anyhow::Result<()> {
        let login = format!("{}_{}", self.notes.login, self.nth);
        let (servers, application) = (self.town.servers.clone(), self.town.application.clone());
        let since = Instant::now();
        let mut answer = servers.settle(&application.sign_up(&login)).await?;
        // An earlier try has made the account: whoever it is logs in. Or it was killed on the way, and holds the name
        // for a while.
        while answer.answer.status == 422 && answer.unanswered > 0 && since.elapsed() < HELD_MAX {
            answer = servers.settle(&application.log_in(&login)).await?;
            if !answer.answer.is_success() {
                tokio::time::sleep(HELD_LOOK).await;
                answer = Settled { unanswered: 1, ..servers.settle(&application.sign_up(&login)).await? };
            }
        }
        if self.wants_success("a sign-up", &answer.answer) {
            let token = text(&answer.answer.json(), "access_token");
            self.notes.newcomers.push(NewcomerNote { login, token });
        }
        Ok(())
    }

    /// Asks for something that is refused.
    async fn is_refused(&mut self) -> anyhow::Result<()> {
        let words = self.words();
        let answer = match self.random.random_range(0..3) {
            0 => {
                let body = json!({ "status": format!("{words} {}", "x".repeat(TOO_LONG)) });
                self.ask(Method::Post, "/api/v1/statuses", body).await?.answer
            }
            1 => {
                let login = self.notes.login.clone();
                self.town.servers.settle(&self.town.application.sign_up(&login)).await?.answer
            }
            _ => {
                let path = format!("/api/v1/accounts/{}/follow", self.town.ids[self.place]);
                self.ask(Method::Post, &path, json!({})).await?.answer
            }
        };
        if answer.is_success() {
            self.notes.wrong(WrongKind::Leaked, format!("{words}: what has to be refused was done"));
        }
        self.notes.refused += 1;
        Ok(())
    }
}
