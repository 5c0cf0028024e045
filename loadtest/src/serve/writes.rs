//! What others do while pages are read: posts, likes, new names, over HTTP, each when it is due.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rand::RngExt as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::json;
use tideline::PostId;
use tokio::task::JoinHandle;

use super::args::ServeArgs;
use super::world::text;
use crate::arrivals::Arrivals;
use crate::drive::{self, Perform};
use crate::http::{Answer, Ask, Clients, Method};
use crate::tally::{Summary, Tally};
use crate::weighted::Weighted;

/// The posts that are liked: so many, the newest.
const LIKED: usize = 1_000;
/// Writes under way at once.
const AT_ONCE: u32 = 64;
/// Longest time of a write.
const WRITE_MAX: Duration = Duration::from_secs(45);

/// Somebody who does something.
#[derive(Debug, Clone, Copy)]
pub(super) enum Write {
    Post { author: u32 },
    Like { reader: u32 },
    Rename { account: u32 },
}

/// Those who write.
#[derive(Debug)]
pub(super) struct Writers {
    clients: Clients,
    tokens: Arc<Vec<String>>,
    newest: Mutex<VecDeque<PostId>>,
    number: AtomicU64,
    text_chars: usize,
    posts: Tally,
    likes: Tally,
    renames: Tally,
}

/// What became of it.
#[derive(Debug, Clone, serde::Serialize)]
pub(super) struct Written {
    pub(super) posts: Summary,
    pub(super) likes: Summary,
    pub(super) renames: Summary,
}

impl Written {
    pub(super) fn all(&self) -> [(&'static str, &Summary); 3] {
        [("post", &self.posts), ("like", &self.likes), ("rename", &self.renames)]
    }
}

impl Writers {
    pub(super) fn new(
        clients: Clients,
        tokens: Arc<Vec<String>>,
        posts: &[PostId],
        text_chars: usize,
    ) -> Self {
        let newest = posts.iter().rev().take(LIKED).copied().collect();
        Self {
            clients,
            tokens,
            newest: Mutex::new(newest),
            number: AtomicU64::new(1_000_000),
            text_chars,
            posts: Tally::new(),
            likes: Tally::new(),
            renames: Tally::new(),
        }
    }

    pub(super) fn written(&self) -> Written {
        let [posts, likes, renames] = [&self.posts, &self.likes, &self.renames].map(Tally::summary);
        Written { posts, likes, renames }
    }

    /// Posts; gives what was answered.
    pub(super) async fn post(&self, author: u32) -> std::io::Result<Answer> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let asked = json!({ "status": text(number, self.text_chars) });
        self.clients.ask(&Ask::post("/api/v1/statuses", asked).token(&self.tokens[author as usize])).await
    }

    fn noted(&self, answer: &Answer) {
        let told = answer.json();
        let id = told["id"].as_str().and_then(|id| PostId::from_u64(id.parse().ok()?).ok());
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.extend(id);
        if newest.len() > LIKED {
            newest.pop_front();
        }
    }

    async fn carry_out(&self, write: Write) -> Result<(), String> {
        let answer = match write {
            Write::Post { author } => self.post(author).await,
            Write::Like { reader } => {
                let post = {
                    let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
                    newest.get(rand::random_range(0..newest.len().max(1))).copied()
                };
                let Some(post) = post else { return Ok(()) };
                let path = format!("/api/v1/statuses/{}/favourite", post.get());
                let token = &self.tokens[reader as usize];
                self.clients.ask(&Ask::new(Method::Post, &path).token(token)).await
            }
            Write::Rename { account } => {
                let name = format!("Renamed {}", self.number.fetch_add(1, Ordering::Relaxed));
                let path = "/api/v1/accounts/update_credentials";
                let ask = Ask::new(Method::Patch, path).body(json!({ "display_name": name }));
                self.clients.ask(&ask.token(&self.tokens[account as usize])).await
            }
        };
        let answer = answer.map_err(|error| error.kind().to_string())?;
        if !answer.is_success() {
            return Err(format!("status {}", answer.status));
        }
        if matches!(write, Write::Post { .. }) {
            self.noted(&answer);
        }
        Ok(())
    }

    fn tally(&self, write: Write) -> &Tally {
        match write {
            Write::Post { .. } => &self.posts,
            Write::Like { .. } => &self.likes,
            Write::Rename { .. } => &self.renames,
        }
    }
}

impl Perform<Write> for Writers {
    async fn perform(&self, write: Write, due: Instant) {
        let done = self.carry_out(write).await;
        self.tally(write).ended(due.elapsed(), done.err());
    }

    fn dropped(&self, write: &Write) {
        self.tally(*write).dropped();
    }
}

/// Writing goes on until this is dropped.
#[derive(Debug)]
pub(super) struct Writing(Option<JoinHandle<()>>);

impl Writing {
    /// Begins; nothing is written where no rate is.
    pub(super) fn begin(writers: &Arc<Writers>, args: &ServeArgs, seed: u64) -> Self {
        if args.writes_rate() == 0 {
            return Self(None);
        }
        let weights = [args.posts_rate, args.likes_rate, args.renames_rate];
        let (weighted, accounts) = (Weighted::new(weights.map(u64::from)), args.readers);
        let mut random = StdRng::seed_from_u64(seed);
        let write = move |due| {
            let account = random.random_range(0..accounts);
            let write = match weighted.pick(&mut random) {
                0 => Write::Post { author: account },
                1 => Write::Like { reader: account },
                _ => Write::Rename { account },
            };
            (due, write)
        };
        let due = Arrivals::new(args.writes_rate(), u32::MAX, seed).map(write);
        let (writers, length) = (writers.clone(), Duration::from_secs(u32::MAX.into()));
        Self(Some(tokio::spawn(async move {
            if let Err(error) = drive::open(&writers, due, length, AT_ONCE, WRITE_MAX).await {
                eprintln!("Writing ended: {error}");
            }
        })))
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
        }
    }
}
