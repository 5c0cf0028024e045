//! Home pages, read in three ways: over HTTP, from the engine in this process, and as a bare answer of as many bytes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tideline::{Engine, Query};

use super::world::id_of;
use crate::drive::Perform;
use crate::http::{Answer, Ask, Clients};
use crate::session::kind;
use crate::stats::count;
use crate::tally::Tally;

const HOME: &str = "/api/v1/timelines/home";

/// Requests of all readers, as the bytes that go out.
#[derive(Debug)]
pub(super) struct PageRequests(Vec<Vec<u8>>);

impl PageRequests {
    pub(super) fn new(tokens: &[String]) -> Self {
        Self(tokens.iter().map(|token| Ask::get(HOME).token(token).bytes()).collect())
    }

    pub(super) async fn ask(&self, clients: &Clients, reader: u32) -> std::io::Result<Answer> {
        clients.send(&self.0[reader as usize]).await
    }
}

/// What a page is called that the server had no time for.
pub(super) const NO_TIME: &str = "status 503";

/// What a page that is none is called.
fn failure(answer: std::io::Result<Answer>) -> Result<Answer, String> {
    match answer {
        Ok(answer) if answer.status == 200 => Ok(answer),
        Ok(answer) => Err(format!("status {}", answer.status)),
        Err(error) => Err(error.kind().to_string()),
    }
}

/// Pages over HTTP.
#[derive(Debug)]
pub(super) struct SitePages {
    clients: std::sync::Arc<Clients>,
    requests: std::sync::Arc<PageRequests>,
    bytes: AtomicU64,
    pub(super) tally: Tally,
}

impl SitePages {
    pub(super) fn new(clients: std::sync::Arc<Clients>, requests: std::sync::Arc<PageRequests>) -> Self {
        Self { clients, requests, bytes: AtomicU64::new(0), tally: Tally::new() }
    }

    /// Bytes of a page, on average; nothing of no page.
    pub(super) fn bytes_each(&self) -> f64 {
        let pages = self.tally.summary().counts.succeeded;
        if pages == 0 { 0.0 } else { count(self.bytes.load(Ordering::Relaxed)) / count(pages) }
    }
}

impl Perform<u32> for SitePages {
    async fn perform(&self, reader: u32, due: Instant) {
        let answer = failure(self.requests.ask(&self.clients, reader).await);
        let took = due.elapsed();
        match answer {
            Ok(answer) => {
                self.bytes.fetch_add(answer.body.len() as u64, Ordering::Relaxed);
                self.tally.ended(took, None);
            }
            Err(error) => self.tally.ended(took, Some(error)),
        }
    }

    fn dropped(&self, _: &u32) {
        self.tally.dropped();
    }
}

/// The same pages, from the engine in this process.
#[derive(Debug)]
pub(super) struct EnginePages {
    engine: Engine,
    pub(super) tally: Tally,
}

impl EnginePages {
    pub(super) fn new(engine: Engine) -> Self {
        Self { engine, tally: Tally::new() }
    }

    async fn page(&self, reader: u32) -> tideline::Result<()> {
        // What the server asks for: posts, authors, and what the reader has done with them.
        let mut query = Query::home().limit(20).hydrated();
        query.ties = true;
        let page = self.engine.as_reader(id_of(reader)?).read(&query).await?;
        std::hint::black_box(page);
        Ok(())
    }
}

impl Perform<u32> for EnginePages {
    async fn perform(&self, reader: u32, due: Instant) {
        let error = self.page(reader).await.err().map(|e| kind(&e));
        self.tally.ended(due.elapsed(), error);
    }

    fn dropped(&self, _: &u32) {
        self.tally.dropped();
    }
}

/// Answers of a handler that does nothing else.
#[derive(Debug)]
pub(super) struct BarePages {
    clients: Clients,
    request: Vec<u8>,
    pub(super) tally: Tally,
}

impl BarePages {
    pub(super) fn new(clients: Clients) -> Self {
        Self { clients, request: Ask::get("/").bytes(), tally: Tally::new() }
    }
}

impl Perform<u32> for BarePages {
    async fn perform(&self, _: u32, due: Instant) {
        let error = failure(self.clients.send(&self.request).await).err();
        self.tally.ended(due.elapsed(), error);
    }

    fn dropped(&self, _: &u32) {
        self.tally.dropped();
    }
}
