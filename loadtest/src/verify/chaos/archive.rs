//! What befalls the server of an archive: death, standstill, slowness, a full disk, and a successor that lacks what it
//! acknowledged last.
//!
//! A fault lasts until it was met: until an instance has said that the archive is away, or as the server tells.

use std::time::{Duration, Instant};

use rand::RngExt;
use rand::rngs::StdRng;
use tideline_local_cluster::LocalPostgres;
use tokio::time::sleep;

use super::super::archive_ground::{ArchiveGround, ArchiveServer};
use super::super::args::Chaos;
use super::super::call::Call;
use super::super::told::Reply;
use super::{Admit, PATIENCE, RETRY, Storm};

/// How long a fault lasts at least, in milliseconds.
const AWAY_MS: (u64, u64) = (200, 3_000);
/// How late each piece is of what is said to a slow server and by it, in milliseconds: some calls get through.
const LATE_MS: (u64, u64) = (100, 1_200);
/// What is left of the time for which nothing leaves memory when the server that lacks something takes over.
const SPARE: Duration = Duration::from_millis(500);
/// An instance may be frozen.
const REACHED_WITHIN: Duration = Duration::from_secs(5);
const NOTHING_LOST: &str = "archives that were copied, and had acknowledged nothing since, or too long ago";

impl Storm<'_> {
    pub(super) async fn strike_archive(
        &self,
        kind: Chaos,
        admit: Admit,
        random: &mut StdRng,
    ) -> anyhow::Result<Option<bool>> {
        let Some(ArchiveGround::Server(archive)) = self.archive else { return Ok(None) };
        let mut server = archive.server.lock().await;
        self.until_it_is_reached().await;
        let lasts = Duration::from_millis(random.random_range(AWAY_MS.0..AWAY_MS.1));
        match kind {
            Chaos::KillArchive => self.kill_archive(&mut server, admit, lasts).await.map(Some),
            Chaos::FreezeArchive => {
                let lasts = lasts + Duration::from_millis(archive.page_ms);
                Ok(Some(self.freeze_archive(&server, admit, lasts).await))
            }
            Chaos::SlowArchive => {
                let late = Duration::from_millis(random.random_range(LATE_MS.0..LATE_MS.1));
                Ok(self.slow_archive(archive, admit, (late, lasts)).await)
            }
            Chaos::FullArchive => self.fill_archive(archive, admit, lasts).await.map(Some),
            _ => self.forget_archive((archive, &mut server), admit).await,
        }
    }

    /// Waits until all instances reach the archive that are there: whoever finds it away several times leaves it alone
    /// for up to half a minute, and would find out nothing of a server that is there for a second between two faults.
    async fn until_it_is_reached(&self) {
        let since = Instant::now();
        for number in 0..self.run.pool.len() {
            while !self.gate.is_over() && since.elapsed() < PATIENCE {
                let instance = self.run.pool.instance(number);
                let reached = instance.call(Call::ReachArchive);
                if let Ok(Some(Reply::Done)) = tokio::time::timeout(REACHED_WITHIN, reached).await {
                    break;
                }
                sleep(RETRY).await;
            }
        }
    }

    async fn kill_archive(
        &self,
        server: &mut LocalPostgres,
        admit: Admit,
        lasts: Duration,
    ) -> anyhow::Result<bool> {
        let struck = self.run.now();
        server.kill().await?;
        self.run.event("archives killed");
        self.admit(admit);
        sleep(lasts).await;
        let has_met = self.until(|| self.run.was_told_away(struck)).await;
        server.start().await?;
        Ok(has_met)
    }

    async fn freeze_archive(&self, server: &LocalPostgres, admit: Admit, lasts: Duration) -> bool {
        let struck = self.run.now();
        server.freeze();
        self.run.event("archives frozen");
        self.admit(admit);
        sleep(lasts).await;
        let has_met = self.until(|| self.run.was_told_away(struck)).await;
        server.thaw();
        has_met
    }

    async fn slow_archive(
        &self,
        archive: &ArchiveServer,
        admit: Admit,
        (late, lasts): (Duration, Duration),
    ) -> Option<bool> {
        let delays = archive.delays.as_ref()?;
        let before = delays.passed_late();
        delays.set(late);
        self.run.event("archives slow");
        self.admit(admit);
        sleep(lasts).await;
        let has_met = self.until(|| delays.passed_late() > before).await;
        delays.set(Duration::ZERO);
        Some(has_met)
    }

    async fn fill_archive(
        &self,
        archive: &ArchiveServer,
        admit: Admit,
        lasts: Duration,
    ) -> anyhow::Result<bool> {
        let before = archive.refused().await?;
        archive.fill(true).await?;
        self.run.event("archives full");
        self.admit(admit);
        sleep(lasts).await;
        let over = Instant::now();
        let mut has_met = archive.refused().await? > before;
        while !has_met && self.goes_on(over) {
            sleep(RETRY).await;
            has_met = archive.refused().await? > before;
        }
        archive.fill(false).await?;
        Ok(has_met)
    }

    /// Another server takes over with what this one had a moment ago: less ago than anything takes to leave memory that
    /// this one has acknowledged since. Was that longer, on a busy machine, this one lives.
    ///
    /// It is copied while instances wait for it: what they wait with is acknowledged after that.
    async fn forget_archive(
        &self,
        (archive, server): (&ArchiveServer, &mut LocalPostgres),
        admit: Admit,
    ) -> anyhow::Result<Option<bool>> {
        let (struck, settles) = (self.run.now(), Duration::from_millis(archive.settles_ms));
        server.freeze();
        self.admit(admit);
        self.until(|| self.run.was_told_away(struck)).await;
        let copy = server.copy().await?;
        let since = copy.until();
        let before = archive.changes().await?;
        // Whoever was told that it is away would leave it alone for longer than that.
        let _ = tokio::time::timeout_at(since + settles - SPARE * 2, self.until_it_is_reached()).await;
        while archive.changes().await? == before && since.elapsed() + SPARE * 2 < settles {
            sleep(RETRY).await;
        }
        let had = archive.changes().await?;
        // It acknowledges nothing more.
        server.freeze();
        if had == before || since.elapsed() + SPARE >= settles {
            server.thaw();
            self.run.event(NOTHING_LOST);
            return Ok(None);
        }
        server.kill().await?;
        server.start_from(&copy).await?;
        let has_met = archive.changes().await? < had;
        self.run.event("archives that forgot what they had acknowledged");
        Ok(Some(has_met))
    }
}
