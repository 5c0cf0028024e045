//! Pages byte for byte beside those of a server that remembers nothing.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use serde::Serialize;

use super::pages::{KeptPage, PageRequests};
use crate::http::Clients;

/// What others did shows after this long at the latest: `visible_within`, as servers have it by default, and a moment
/// for two requests to begin in another order.
const VISIBLE_WITHIN: Duration = Duration::from_millis(1_050);
/// A page that changes all the time is asked for so often.
const TRIES_MAX: u32 = 40;
/// Pages that are compared at once.
const AT_ONCE: usize = 8;
/// So much of a difference is shown.
const SHOWN_CHARS: usize = 160;

/// What came of comparing.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Compared {
    /// Pages that were compared.
    pub(super) pages: u64,
    /// Those that were the same when they were asked for again: something had changed between.
    pub(super) asked_again: u64,
    /// Those that changed each time: nothing can be said of them.
    pub(super) unsettled: u64,
    /// Those that differ while nothing changes.
    pub(super) different: u64,
    /// Where, the first time.
    pub(super) difference: Option<String>,
}

impl Compared {
    pub(super) fn add(&mut self, other: Self) {
        self.pages += other.pages;
        self.asked_again += other.asked_again;
        self.unsettled += other.unsettled;
        self.different += other.different;
        self.difference = self.difference.take().or(other.difference);
    }

    /// Whether every page was the same.
    pub(super) fn is_right(&self) -> bool {
        self.unsettled + self.different == 0
    }
}

/// What became of one page.
enum Likeness {
    Same,
    SameLater,
    Unsettled,
    Different(String),
}

/// Compares pages. Both servers are of one site.
#[derive(Debug, Clone)]
pub(super) struct Comparing {
    pub(super) requests: Arc<PageRequests>,
    pub(super) clients: Arc<Clients>,
    /// Of the server that remembers nothing.
    pub(super) forgetful: Arc<Clients>,
}

impl Comparing {
    pub(super) async fn compare(&self, kept: Vec<KeptPage>) -> anyhow::Result<Compared> {
        let found: Vec<_> =
            stream::iter(kept).map(|page| self.one(page)).buffer_unordered(AT_ONCE).collect().await;
        let mut compared = Compared::default();
        for one in found {
            let likeness = one?;
            compared.pages += 1;
            match likeness {
                Likeness::Same => {}
                Likeness::SameLater => compared.asked_again += 1,
                Likeness::Unsettled => compared.unsettled += 1,
                Likeness::Different(where_) => {
                    compared.different += 1;
                    compared.difference.get_or_insert(where_);
                }
            }
        }
        Ok(compared)
    }

    async fn one(&self, kept: KeptPage) -> anyhow::Result<Likeness> {
        let fresh = self.page(&self.forgetful, kept.reader).await?;
        if fresh == kept.body {
            return Ok(Likeness::Same);
        }
        // What is remembered is as old as `visible_within`. So what was the same before that time and is so after it
        // was the same all the while, and nothing else may be shown.
        let mut before = fresh;
        for _ in 0..TRIES_MAX {
            tokio::time::sleep(VISIBLE_WITHIN).await;
            let shown = self.page(&self.clients, kept.reader).await?;
            let after = self.page(&self.forgetful, kept.reader).await?;
            if shown == before || shown == after {
                return Ok(Likeness::SameLater);
            }
            if before == after {
                return Ok(Likeness::Different(difference(kept.reader, &after, &shown)));
            }
            before = after;
        }
        Ok(Likeness::Unsettled)
    }

    async fn page(&self, of: &Clients, reader: u32) -> anyhow::Result<Vec<u8>> {
        let answer = self.requests.ask(of, reader).await?;
        anyhow::ensure!(answer.status == 200, "a page to compare was answered with {}", answer.status);
        Ok(answer.body)
    }
}

/// Where two pages differ first.
fn difference(reader: u32, wanted: &[u8], shown: &[u8]) -> String {
    let at = wanted.iter().zip(shown).position(|(one, other)| one != other);
    let at = at.unwrap_or_else(|| wanted.len().min(shown.len()));
    let excerpt = |of: &[u8]| {
        let from = of.get(at.saturating_sub(SHOWN_CHARS / 2)..).unwrap_or_default();
        String::from_utf8_lossy(&from[..from.len().min(SHOWN_CHARS)]).into_owned()
    };
    format!("reader {reader}, byte {at}: without memory {:?}, with it {:?}", excerpt(wanted), excerpt(shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_says_where_it_is() {
        let told = difference(7, b"[{\"likes\":1}]", b"[{\"likes\":2}]");
        assert!(told.starts_with("reader 7, byte 10: without memory \"[{\\\"likes\\\":1}]\""), "{told}");
        assert!(difference(7, b"[]", b"[] ").contains("byte 2"));
    }
}
