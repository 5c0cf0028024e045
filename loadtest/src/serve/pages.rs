//! Home pages, read in three ways: over HTTP, from the engine in this process, and as a bare answer of as many bytes.

use std::sync::Mutex;
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
/// Pages that are kept to be compared, at most, from one turn.
const KEPT_MAX: usize = 300;

/// A page as somebody got it.
#[derive(Debug)]
pub(super) struct KeptPage {
    pub(super) reader: u32,
    pub(super) body: Vec<u8>,
}

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
    /// One of so many is kept; 0: none.
    compare_every: u64,
    read: AtomicU64,
    bytes: AtomicU64,
    kept: Mutex<Vec<KeptPage>>,
    pub(super) tally: Tally,
}

impl SitePages {
    pub(super) fn new(
        clients: std::sync::Arc<Clients>,
        requests: std::sync::Arc<PageRequests>,
        compare_every: u32,
    ) -> Self {
        Self {
            clients,
            requests,
            compare_every: compare_every.into(),
            read: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            kept: Mutex::default(),
            tally: Tally::new(),
        }
    }

    /// Bytes of a page, on average; nothing of no page.
    pub(super) fn bytes_each(&self) -> f64 {
        let pages = self.tally.summary().counts.succeeded;
        if pages == 0 { 0.0 } else { count(self.bytes.load(Ordering::Relaxed)) / count(pages) }
    }

    /// Those that were kept since this was asked last.
    pub(super) fn take_kept(&self) -> Vec<KeptPage> {
        std::mem::take(&mut *self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn keep(&self, reader: u32, body: Vec<u8>) {
        let nth = self.read.fetch_add(1, Ordering::Relaxed);
        if self.compare_every == 0 || !nth.is_multiple_of(self.compare_every) {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if kept.len() < KEPT_MAX {
            kept.push(KeptPage { reader, body });
        }
    }
}

impl Perform<u32> for SitePages {
    async fn perform(&self, reader: u32, due: Instant) {
        let answer = failure(self.requests.ask(&self.clients, reader).await);
        let took = due.elapsed();
        match answer {
            Ok(answer) => {
                self.bytes.fetch_add(answer.body.len() as u64, Ordering::Relaxed);
                self.keep(reader, answer.body);
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
        query.marks = true;
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
