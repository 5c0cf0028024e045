//! Pages byte for byte beside those of a server that remembers nothing, while others are read.

use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join;
use futures::stream::{self, StreamExt as _};
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde::Serialize;

use super::pages::{NO_TIME, PageRequests, SitePages};
use super::turns::{CpuTurn, Field, random_readers};
use crate::drive;
use crate::http::Clients;

/// What others did shows after this long at the latest: `visible_within`, as servers have it by default, and a moment
/// for two requests to begin in another order.
const VISIBLE_WITHIN: Duration = Duration::from_millis(1_050);
/// A page that changes all the time is asked for so often.
const TRIES_MAX: u32 = 4;
/// So much of a difference is shown.
const SHOWN_CHARS: usize = 160;

/// What came of comparing.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Compared {
    /// Pages that were compared: of each it is known what it has to show.
    pub(super) pages: u64,
    /// Those that changed each time: nothing can be said of them.
    pub(super) unsettled: u64,
    /// Those that a server had no time for.
    pub(super) refused: u64,
    /// Those that differ while nothing changes.
    pub(super) different: u64,
    /// Where, the first time.
    pub(super) difference: Option<String>,
}

impl Compared {
    pub(super) fn add(&mut self, other: Self) {
        self.pages += other.pages;
        self.unsettled += other.unsettled;
        self.refused += other.refused;
        self.different += other.different;
        self.difference = self.difference.take().or(other.difference);
    }

    /// Whether every page was the same, and there were any.
    pub(super) fn is_right(&self) -> bool {
        self.pages > 0 && self.different == 0
    }
}

/// Comparing pages. Both servers are of one site.
#[derive(Debug, Clone)]
pub(super) struct Comparing {
    pub(super) requests: Arc<PageRequests>,
    pub(super) clients: Arc<Clients>,
    /// Of the server that remembers nothing.
    pub(super) forgetful: Arc<Clients>,
}

impl Comparing {
    /// Reads pages as in a turn that was measured, and compares one of so many, as often as that had as many. It is a
    /// turn of its own: what is compared costs both servers more, and is measured by nobody.
    pub(super) async fn beside(
        &self,
        field: &Field<'_>,
        measured: &CpuTurn,
        random: &mut StdRng,
    ) -> anyhow::Result<Compared> {
        let args = field.args;
        let Some(pages) = measured.pages.checked_div(args.compare_every.into()) else {
            return Ok(Compared::default());
        };
        let length = args.turn() + VISIBLE_WITHIN * TRIES_MAX;
        let readers = random_readers(args, length, random);
        let others = Arc::new(SitePages::new(self.clients.clone(), self.requests.clone()));
        let load = drive::closed(&others, readers, args.connections as usize, length);
        let due: Vec<(Duration, u32)> = (0..pages.max(1))
            .map(|_| (args.turn().mul_f64(random.random()), random.random_range(0..args.readers)))
            .collect();
        let compared = async {
            let many = due.len();
            let one = |(due, reader)| async move {
                tokio::time::sleep(due).await;
                self.one(reader).await
            };
            let mut found = stream::iter(due).map(one).buffer_unordered(many);
            let mut compared = Compared::default();
            while let Some(one) = found.next().await {
                compared.add(one?);
            }
            Ok(compared)
        };
        let (_, compared) = try_join(load, compared).await?;
        let mut errors = others.tally.summary().counts.errors;
        errors.remove(NO_TIME);
        anyhow::ensure!(errors.is_empty(), "pages failed while some were compared: {errors:?}");
        Ok(compared)
    }

    /// Compares one page.
    ///
    /// What is remembered is as old as `visible_within`. So what was the same before that time and is so after the page
    /// was the same all the while, and nothing else may be shown.
    async fn one(&self, reader: u32) -> anyhow::Result<Compared> {
        let mut before = self.page(&self.forgetful, reader).await?;
        for _ in 0..TRIES_MAX {
            tokio::time::sleep(VISIBLE_WITHIN).await;
            let shown = self.page(&self.clients, reader).await?;
            let after = self.page(&self.forgetful, reader).await?;
            let (Some(seen), Some(shown), Some(now)) = (&before, shown, &after) else {
                return Ok(Compared { refused: 1, ..Compared::default() });
            };
            if seen == now {
                let is_same = shown == *now;
                let difference = (!is_same).then(|| difference(reader, now, &shown));
                let different = u64::from(!is_same);
                return Ok(Compared { pages: 1, different, difference, ..Compared::default() });
            }
            before = after;
        }
        Ok(Compared { unsettled: 1, ..Compared::default() })
    }

    /// Reads a page; `None`: the server has no time now, which says nothing of what it would have shown.
    async fn page(&self, of: &Clients, reader: u32) -> anyhow::Result<Option<Vec<u8>>> {
        let answer = self.requests.ask(of, reader).await?;
        match answer.status {
            200 => Ok(Some(answer.body)),
            503 => Ok(None),
            other => anyhow::bail!("a page to compare was answered with {other}"),
        }
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
