//! The servers of a site, of which some are dead at times, and asking them until one answers.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::Mutex;

use crate::http::{Answer, Ask, Clients};
use crate::site::{Application, SiteServer, SiteSettings, metric};

/// Servers of the site.
pub(super) const SERVERS: usize = 2;
/// Whatever is asked is answered within this time, whoever dies meanwhile.
const ANSWERED_MAX: Duration = Duration::from_secs(120);
/// Between two tries, in milliseconds.
const PAUSE_MS: (u64, u64) = (10, 150);
/// Connections to each.
const CONNECTIONS: usize = 256;

/// One server, which may be dead.
#[derive(Debug)]
struct Place {
    server: Mutex<Option<SiteServer>>,
    clients: Clients,
    /// Requests that it has and has not answered.
    under_way: AtomicU64,
    /// What is found in the logs of those who are gone.
    panics: AtomicU64,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Servers {
    places: Vec<Place>,
    settings: SiteSettings,
    answered: AtomicU64,
    unknown: AtomicU64,
    /// Who is asked, and how long it is waited in between.
    random: std::sync::Mutex<StdRng>,
}

/// What was answered in the end.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) answer: Answer,
    /// Earlier tries of which nobody was told whether they were carried out.
    pub(super) unanswered: u64,
}

impl Servers {
    pub(super) async fn start(settings: SiteSettings, seed: u64) -> anyhow::Result<Self> {
        let mut places = Vec::new();
        for _ in 0..SERVERS {
            let server = SiteServer::start(settings.clone()).await?;
            let clients = Clients::new(server.address(), CONNECTIONS);
            let (under_way, panics) = (AtomicU64::new(0), AtomicU64::new(0));
            places.push(Place { server: Mutex::new(Some(server)), clients, under_way, panics });
        }
        let random = std::sync::Mutex::new(StdRng::seed_from_u64(seed));
        Ok(Self { places, settings, answered: AtomicU64::new(0), unknown: AtomicU64::new(0), random })
    }

    /// Draws a server to ask next, and a pause before the one after it.
    fn drawn(&self) -> (usize, Duration) {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = Duration::from_millis(random.random_range(PAUSE_MS.0..=PAUSE_MS.1));
        (random.random_range(0..SERVERS), pause)
    }

    /// An application of the people who write.
    pub(super) async fn application(&self) -> anyhow::Result<Application> {
        Application::register(&self.places[0].clients).await
    }

    /// How many requests were answered until now, and how many weren't.
    pub(super) fn counted(&self) -> (u64, u64) {
        (self.answered.load(Ordering::Relaxed), self.unknown.load(Ordering::Relaxed))
    }

    /// Requests that one server has and has not answered.
    pub(super) fn under_way(&self, nth: usize) -> u64 {
        self.places[nth].under_way.load(Ordering::Relaxed)
    }

    /// Panics of servers that are gone, by their logs.
    pub(super) fn panics(&self) -> u64 {
        self.places.iter().map(|place| place.panics.load(Ordering::Relaxed)).sum()
    }

    /// One try at a server; none of its answers, where it may have been carried out.
    async fn try_at(&self, nth: usize, ask: &Ask<'_>) -> Option<Answer> {
        let place = &self.places[nth];
        place.under_way.fetch_add(1, Ordering::Relaxed);
        let answer = place.clients.ask(ask).await;
        place.under_way.fetch_sub(1, Ordering::Relaxed);
        // Of an error of the server nobody knows how far it had come.
        let answer = answer.ok().filter(|answer| answer.status < 500);
        let count = if answer.is_some() { &self.answered } else { &self.unknown };
        count.fetch_add(1, Ordering::Relaxed);
        answer
    }

    /// Asks one server or another until one answers.
    pub(super) async fn settle(&self, ask: &Ask<'_>) -> anyhow::Result<Settled> {
        let since = Instant::now();
        let mut unanswered = 0;
        while since.elapsed() < ANSWERED_MAX {
            let (nth, pause) = self.drawn();
            if let Some(answer) = self.try_at(nth, ask).await {
                return Ok(Settled { answer, unanswered });
            }
            unanswered += 1;
            tokio::time::sleep(pause).await;
        }
        anyhow::bail!("nobody answered within {ANSWERED_MAX:?}: {ask:?}")
    }

    /// The same once, at a server of one's choice.
    pub(super) async fn once(&self, nth: usize, ask: &Ask<'_>) -> Option<Answer> {
        self.try_at(nth, ask).await
    }

    /// Kills one where it stands.
    pub(super) async fn kill(&self, nth: usize) {
        let place = &self.places[nth];
        if let Some(server) = place.server.lock().await.take() {
            let log = server.end().await;
            place.panics.fetch_add(log.matches("panicked at").count() as u64, Ordering::Relaxed);
        }
    }

    /// Starts it again.
    pub(super) async fn revive(&self, nth: usize) -> anyhow::Result<()> {
        let place = &self.places[nth];
        let mut server = place.server.lock().await;
        if server.is_none() {
            let new = SiteServer::start(self.settings.clone()).await?;
            place.clients.moved(new.address());
            *server = Some(new);
        }
        Ok(())
    }

    /// A figure of all that live, together.
    pub(super) async fn metric(&self, name: &str) -> anyhow::Result<f64> {
        let mut sum = 0.0;
        for place in &self.places {
            if let Some(server) = &*place.server.lock().await {
                sum += metric(&server.metrics().await?, name).unwrap_or_default();
            }
        }
        Ok(sum)
    }

    /// Ends all of them.
    pub(super) async fn end(&self) {
        for nth in 0..SERVERS {
            self.kill(nth).await;
        }
    }
}
