//! A page of a home: the home and the reader's stamps in one trip with the outboxes that are pulled; all of the home,
//! or all outboxes, only where these don't do.

use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::home::{self, HomeStatus, Proof, Window};
use super::merge::Direction;
use super::outbox::NewestPosts;
use super::pulls::PagePulls;
use super::read::{PageTry, ReadRequest, Reading};
use super::sources::{PageSource, Sources};
use super::view::View;
use super::viewpoint::Viewpoint;
use crate::account::Mode;
use crate::cluster::{Batch, Command, Request};
use crate::error::Result;
use crate::ids::AccountId;
use crate::meters;
use crate::reader::{CurrentReader, ReaderState, Stamps, load_state, read_stamps, stamps_request};
use crate::tenant::Answers;

/// A page that goes on from another one reads so many times more of the home at once.
const WINDOW_LATER: usize = 4;

/// The answers to the first trip of a home page.
struct FirstTrip {
    stamps: Stamps,
    home: Window,
    status: HomeStatus,
    /// Whether the page lies below all that the home holds.
    is_below: bool,
    newest: Vec<(AccountId, Arc<NewestPosts>)>,
}

impl<'a> ReadRequest<'a> {
    fn is_newest(&self) -> bool {
        let (direction, from, _) = self.window;
        direction == Direction::Down && from == u64::MAX
    }

    /// Out of all outboxes.
    pub(super) async fn open_outboxes(&self, sources: &mut Sources) -> Result<View<'a>> {
        let view = View::new(self.by).await?;
        self.note(&view.current);
        sources.pull_all(None, view.state(), self.by.reader);
        Ok(view)
    }

    /// `fills_first`: a home that is missing is filled before the page is read. That costs less than to read the page
    /// out of all outboxes, and fill it all the same.
    pub(super) async fn open_home(&self, sources: &mut Sources, fills_first: bool) -> Result<PageTry<'a>> {
        let Viewpoint { timelines, reader, .. } = self.by;
        let known = timelines.graph.readers.state(reader);
        let is_whole = self.window.0 == Direction::Up;
        let Some(trip) = self.first_trip(known.as_deref(), is_whole).await? else {
            return Ok(PageTry::Again);
        };
        let is_same = |state: &Arc<ReaderState>| state.is_of(&trip.stamps);
        let state = match known {
            Some(state) if is_same(&state) => state,
            known => {
                let state = Box::pin(load_state(&timelines.tenant, reader, known.as_deref())).await?;
                timelines.graph.readers.remember(reader, state);
                return Ok(PageTry::Again);
            }
        };
        if fills_first && trip.home.proof == Proof::NotWhole {
            self.note_read(&trip.stamps);
            return Ok(PageTry::Homeless);
        }
        let view = View::under(self.by, CurrentReader { stamps: trip.stamps.clone(), state });
        self.note(&view.current);
        meters::pulls(trip.newest.len());
        self.feed_first(sources, trip, view.state(), is_whole);
        Ok(PageTry::Page(view))
    }

    /// This is the reader that the page is for.
    fn note(&self, current: &CurrentReader) {
        if !self.is_explained {
            self.by.timelines.traffic.read(current.state.to_pull());
        }
        self.note_read(&current.stamps);
    }

    /// Stamps first, then the home, on one connection; and beside it the outboxes that the reader pulls, as far as is
    /// known. `None`: the replies came from two lives of a server.
    async fn first_trip(&self, known: Option<&ReaderState>, is_whole: bool) -> Result<Option<FirstTrip>> {
        let Viewpoint { timelines, reader, .. } = self.by;
        let tenant = &timelines.tenant;
        let (home, slot) = (tenant.keys().home(reader), tenant.slot(reader));
        let later = if self.is_newest() { 1 } else { WINDOW_LATER };
        let window = (self.limit + tenant.settings.home_margin as usize) * later;
        let from = if is_whole { 0 } else { -i64::try_from(window).unwrap_or(i64::MAX) };
        let range = Command::new("LRANGE").arg(&home).arg(from).arg("-1");
        let mut batch = Batch::new();
        batch.push_ordered([stamps_request(tenant, reader), Request::read(slot, range)]);
        let goes_on = !is_whole && !self.is_newest();
        if goes_on {
            batch.push(Request::read(slot, Command::new("LINDEX").arg(&home).arg("0")));
        }
        let pulled = known.filter(|_| self.is_newest()).into_iter().flat_map(ReaderState::to_pull);
        let pulls = PagePulls::plan(timelines, pulled, self.limit);
        pulls.ask(&mut batch);
        let mut answers = Answers::of(tenant, batch).await?;
        let (stamps, entries) = (answers.answer()?, answers.answer()?);
        let first = if goes_on { home::status_by_first(&answers.next()?)? } else { HomeStatus::Missing };
        let stamps = read_stamps(reader, stamps)?;
        // H30: a failover lies between them, and may have brought old stamps back.
        if stamps.epoch != entries.epoch {
            return Ok(None);
        }
        let newest = pulls.read(answers).await?;
        let entries = home::parse(entries.ok()?)?;
        let (home, status) = (home::window(&entries), home::status(&entries));
        // A floor only rises: what lies below it needs none of the home's entries.
        let is_below =
            matches!(first, HomeStatus::Whole { floor } if self.window.1 <= floor.saturating_add(1));
        Ok(Some(FirstTrip { stamps, home, status, is_below, newest }))
    }

    fn feed_first(&self, sources: &mut Sources, trip: FirstTrip, state: &ReaderState, is_whole: bool) {
        for (author, newest) in &trip.newest {
            sources.feed_newest(*author, &newest.part, self.limit + 1);
            if state.marks_rest() {
                self.look_at_mark(*author, newest);
            }
        }
        for author in state.to_pull() {
            sources.add_outbox(author, None);
        }
        let (reader, takes, (_, above, _)) = (self.by.reader, sources.merge.takes(), self.window);
        let posts = trip.home.posts.into_iter().filter(|e| takes(e) && is_wanted(state, reader, e.author));
        match (trip.home.proof, trip.status) {
            (Proof::NotWhole, _) => sources.pull_all(None, state, reader),
            // Everything on this page that belongs here is here.
            (_, HomeStatus::Whole { floor }) if is_whole && floor <= above => {
                sources.add_home(true, posts, u64::MAX);
            }
            _ if is_whole => sources.pull_all(None, state, reader),
            // Its end, which all outboxes follow on.
            _ if trip.is_below => sources.add_home(true, [], u64::MAX),
            (Proof::From(bound), _) => sources.add_home(false, posts, bound.min(above)),
            (Proof::Nothing, _) => sources.add_home(false, posts, above),
        }
    }
    /// Notes, once a day, that the reader has read: its home stays.
    fn note_read(&self, stamps: &Stamps) {
        let Viewpoint { timelines, reader, .. } = self.by;
        let today = timelines.tenant.today();
        if self.is_explained || stamps.day.is_some_and(|day| day >= today) {
            return;
        }
        timelines.traffic.first_read();
        let noting = timelines.clone();
        timelines.graph.journal.tasks.beside(async move {
            if let Err(e) = noting.tenant.router().call(noting.tenant.read_noted(reader, today)).await {
                tracing::debug!("a read of account {reader} could not be noted: {e}");
            }
        });
    }

    /// A mark that stands although the author is pushed again, and the home's floor has passed the last post that
    /// was not pushed: it can go. One that was set just now goes by itself.
    fn look_at_mark(&self, author: AccountId, newest: &NewestPosts) {
        let Viewpoint { timelines, reader, .. } = self.by;
        if self.is_explained || newest.mode != Mode::Push {
            return;
        }
        let (key, now) = ((reader, author), Instant::now());
        if timelines.caches.asked.get(&key, now).is_some() {
            return;
        }
        timelines.caches.asked.put(key, now, ());
        let (looking, pushed_since) = (timelines.clone(), newest.pushed_since);
        timelines.graph.journal.tasks.beside(async move {
            if let Err(e) = super::unmark::ask_to_unmark(&looking, reader, author, pushed_since).await {
                tracing::debug!("the mark of {author} at {reader} stays for now: {e}");
            }
        });
    }
}

impl Reading<'_> {
    /// Reads more of the home, if that holds the page up: all of it, and where it ends, all outboxes. `false`: the
    /// reader's state has changed meanwhile.
    pub(super) async fn look_deeper(&mut self) -> Result<bool> {
        let Some((home, source)) = self.sources.wanting_home() else { return Ok(true) };
        let reader = self.view.by.reader;
        if source == PageSource::Window {
            // A second look at the home needs the stamps again, before it.
            let Some(entries) = self.whole_home().await? else { return Ok(false) };
            self.sources.is_whole(home);
            if let HomeStatus::Whole { floor } = home::status(&entries) {
                let posts = home::window(&entries).posts.into_iter();
                let posts = posts.filter(|e| is_wanted(self.view.state(), reader, e.author));
                self.sources.merge.feed(home, posts, floor.saturating_add(1));
                return Ok(true);
            }
        }
        self.sources.replace_home(home, self.view.state(), reader);
        Ok(true)
    }

    /// All of the home, if the stamps are still the same.
    async fn whole_home(&self) -> Result<Option<Vec<home::HomeEntry>>> {
        let View { by: Viewpoint { timelines, reader, .. }, current: CurrentReader { stamps, .. }, .. } =
            &self.view;
        let command = Command::new("LRANGE").arg(&timelines.tenant.keys().home(*reader)).arg("0").arg("-1");
        let home = Request::read(timelines.tenant.slot(*reader), command);
        let mut answers =
            Answers::ordered(&timelines.tenant, [stamps_request(&timelines.tenant, *reader), home]).await?;
        let (again, home) = (answers.answer()?, answers.answer()?);
        let again = read_stamps(*reader, again)?;
        let is_same = again.epoch == home.epoch && (again.graph, again.marks) == (stamps.graph, stamps.marks);
        // H29: between the two looks a completion may have taken a mark for what this home lacks.
        if !is_same {
            return Ok(None);
        }
        home::parse(home.ok()?).map(Some)
    }
}

/// Fills a home, to the end also if nobody waits for that.
pub(super) fn filled(by: Viewpoint<'_>) -> JoinHandle<()> {
    let (timelines, reader) = (by.timelines.clone(), by.reader);
    by.timelines.graph.journal.tasks.beside(async move {
        if let Err(e) = super::fill(&timelines, reader).await {
            tracing::debug!("the home of account {reader} could not be filled: {e}");
            meters::fill("failed");
        }
    })
}

/// Whether entries of that author belong into the reader's home at all.
fn is_wanted(state: &ReaderState, reader: AccountId, author: u64) -> bool {
    author == reader.get() || state.follows(author)
}
