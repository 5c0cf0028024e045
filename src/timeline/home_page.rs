//! A page of a home: the home and the reader's stamps in one trip with the outboxes that are pulled; all of the home, or all
//! outboxes, only where these don't do.

use std::sync::Arc;

use tokio::time::Instant;

use super::home::{self, HomeStatus, Proof, Window};
use super::merge::Direction;
use super::outbox::Newest;
use super::pulls::Pulls;
use super::read::{ROUNDS_MAX, Reading, Try, filled};
use super::sources::Source;
use crate::account::Mode;
use crate::cluster::{Answer, Batch, Command, Request};
use crate::error::{Error, Result};
use crate::ids::AccountId;
use crate::meters;
use crate::reader::{Current, ReaderState, Stamps, current, load_state, read_stamps, stamps_request};

/// A page that goes on from another one reads so many times more of the home at once.
const WINDOW_LATER: usize = 4;

/// What the first trip of a home page brought.
struct FirstTrip {
    stamps: Stamps,
    home: Window,
    status: HomeStatus,
    newest: Vec<(AccountId, Arc<Newest>)>,
}

impl Reading<'_> {
    fn is_newest(&self) -> bool {
        self.direction == Direction::Down && self.from == u64::MAX
    }

    /// Out of all outboxes, by what the reader follows at one moment. It costs more, and whatever changes meanwhile, it never
    /// has to begin anew.
    pub(super) async fn home_of_outboxes(&mut self) -> Result<Try> {
        let current = current(&self.timelines.readers, self.reader).await?;
        self.is_of(&current);
        self.sources.pull_all(None, &current.state, self.reader);
        self.merged(&current, "deep").await
    }

    /// This is the reader that the page is for.
    fn is_of(&mut self, current: &Current) {
        self.current = Some(current.clone());
        if self.judged.is_none() {
            self.timelines.traffic.read(current.state.to_pull());
        }
        self.note_read(&current.stamps);
    }

    pub(super) async fn home(&mut self) -> Result<Try> {
        let known = self.timelines.readers.state(self.reader);
        let whole = self.direction == Direction::Up;
        let Some(trip) = self.first_trip(known.as_deref(), whole).await? else { return Ok(Try::Again) };

        let is_same = |state: &Arc<ReaderState>| state.is_of(&trip.stamps);
        let state = match known {
            Some(state) if is_same(&state) => state,
            known => {
                let state = load_state(self.timelines, self.reader, known.as_deref()).await?;
                self.timelines.readers.remember(self.reader, state);
                return Ok(Try::Again);
            }
        };
        if self.may_fill && trip.home.proof == Proof::NotWhole {
            self.note_read(&trip.stamps);
            return Ok(Try::Homeless);
        }
        let current = Current { stamps: trip.stamps.clone(), state };
        self.is_of(&current);
        meters::pulls(trip.newest.len());
        self.feed_first(trip, &current.state, whole);
        self.merged(&current, self.sources.home_kind()).await
    }

    /// Shows what the sources have, and asks them for more, until the page is full. `deepest`: the deepest of them, in metrics.
    async fn merged(&mut self, current: &Current, mut deepest: &'static str) -> Result<Try> {
        let state = &current.state;
        for _ in 0..ROUNDS_MAX {
            self.show(state).await?;
            if self.is_done() {
                break;
            }
            match self.sources.wanting_home() {
                Some((number, Source::Window)) => {
                    deepest = "whole";
                    // A second look at the home needs the stamps again, before it.
                    let Some(records) = self.whole_home(&current.stamps).await? else {
                        return Ok(Try::Again);
                    };
                    self.sources.set_kind(number, Source::Home);
                    if let HomeStatus::Whole { floor } = home::status(&records) {
                        let posts = home::window(&records).posts;
                        let posts = posts.into_iter().filter(|e| is_wanted(state, self.reader, e.author));
                        self.sources.merge.feed(number, posts, floor.saturating_add(1));
                    } else {
                        self.sources.replace_home(number, state, self.reader);
                    }
                }
                Some((number, _)) => {
                    deepest = "deep";
                    self.sources.replace_home(number, state, self.reader);
                }
                None => {}
            }
            self.sources.ask(self.timelines, self.missing()).await?;
        }
        // What the last round brought; without it a page that found nothing might not move its cursor.
        self.show(state).await?;
        meters::read(deepest);
        meters::merge_width(self.sources.len());
        Ok(Try::Page(self.page()))
    }

    /// Stamps first, then the home, on one connection; and beside it the outboxes that the reader pulls, as far as is
    /// known. `None`: the replies came from two lives of a server.
    async fn first_trip(&self, known: Option<&ReaderState>, whole: bool) -> Result<Option<FirstTrip>> {
        let timelines = self.timelines;
        let home = timelines.keys().home(self.reader);
        let slot = timelines.slot(self.reader);
        let later = if self.is_newest() { 1 } else { WINDOW_LATER };
        let window = (self.limit + timelines.settings.home_margin as usize) * later;
        let from = if whole { 0 } else { -i64::try_from(window).unwrap_or(i64::MAX) };
        let range = Command::new("LRANGE").arg(&home).arg(from).arg("-1");
        let mut batch = Batch::new();
        batch.push_ordered([stamps_request(timelines, self.reader), Request::read(slot, range)]);
        let pulled = known.filter(|_| self.is_newest()).into_iter().flat_map(ReaderState::to_pull);
        let pulls = Pulls::plan(timelines, pulled, self.limit);
        pulls.ask(&mut batch);
        let mut answers = timelines.run_all(batch).await?.into_iter();
        let mut next = || answers.next().ok_or_else(|| Error::internal("an answer is missing"));
        let (stamps, records): (Answer, Answer) = (next()?, next()?);
        let stamps = read_stamps(self.reader, stamps)?;
        // H30: a failover lies between them, and may have brought old stamps back.
        if stamps.epoch != records.epoch {
            return Ok(None);
        }
        let newest = pulls.read(answers).await?;
        let records = home::parse(records.ok()?)?;
        let (home, status) = (home::window(&records), home::status(&records));
        Ok(Some(FirstTrip { stamps, home, status, newest }))
    }

    fn feed_first(&mut self, trip: FirstTrip, state: &Arc<ReaderState>, whole: bool) {
        for (author, newest) in &trip.newest {
            self.sources.feed_newest(*author, &newest.part, self.limit + 1);
            if state.marks_rest() {
                self.look_at_mark(*author, newest);
            }
        }
        for author in state.to_pull() {
            self.sources.add_outbox(author, None);
        }
        let (reader, takes) = (self.reader, self.sources.merge.takes());
        let posts = trip.home.posts.into_iter().filter(|e| takes(e) && is_wanted(state, reader, e.author));
        match (trip.home.proof, trip.status) {
            (Proof::NotWhole, _) => {
                self.sources.pull_all(None, state, self.reader);
                self.begin_fill();
            }
            // Everything above `from` that belongs here is here.
            (_, HomeStatus::Whole { floor }) if whole && floor <= self.from => {
                self.sources.add_home(Source::Home, posts, u64::MAX);
            }
            _ if whole => self.sources.pull_all(None, state, self.reader),
            (Proof::From(bound), _) => {
                self.sources.add_home(Source::Window, posts, bound.min(self.from));
            }
            (Proof::Nothing, _) => {
                self.sources.add_home(Source::Window, posts, self.from);
            }
        }
    }

    /// All of the home, if the stamps are still the same.
    async fn whole_home(&self, stamps: &Stamps) -> Result<Option<Vec<home::Record>>> {
        let timelines = self.timelines;
        let command = Command::new("LRANGE").arg(&timelines.keys().home(self.reader)).arg("0").arg("-1");
        let home = Request::read(timelines.slot(self.reader), command);
        let mut batch = Batch::new();
        batch.push_ordered([stamps_request(timelines, self.reader), home]);
        let mut answers = timelines.run_all(batch).await?.into_iter();
        let (Some(again), Some(home)) = (answers.next(), answers.next()) else {
            return Err(Error::internal("an answer is missing"));
        };
        let again = read_stamps(self.reader, again)?;
        let is_same = again.epoch == home.epoch && (again.graph, again.marks) == (stamps.graph, stamps.marks);
        // H29: between the two looks a completion may have taken a mark for what this home lacks.
        if !is_same {
            return Ok(None);
        }
        home::parse(home.ok()?).map(Some)
    }

    /// Notes, once a day, that the reader has read: its home stays.
    fn note_read(&self, stamps: &Stamps) {
        let today = self.timelines.today();
        if self.judged.is_some() || stamps.day.is_some_and(|day| day >= today) {
            return;
        }
        self.timelines.traffic.first_read();
        let (timelines, reader) = (self.timelines.clone(), self.reader);
        tokio::spawn(async move {
            if let Err(e) = timelines.router().call(timelines.read_noted(reader, today)).await {
                tracing::debug!("a read of account {reader} could not be noted: {e}");
            }
        });
    }

    fn begin_fill(&self) {
        if self.judged.is_some() || self.is_filling {
            return;
        }
        drop(filled(self.timelines, self.reader));
    }

    /// A mark that stands although the author is pushed again, and the home's floor has passed the last post that
    /// was not pushed: it can go. One that was set just now goes by itself.
    fn look_at_mark(&self, author: AccountId, newest: &Newest) {
        if self.judged.is_some() || newest.mode != Mode::Push {
            return;
        }
        let (key, now) = ((self.reader, author), Instant::now());
        if self.timelines.caches.asked.get(&key, now).is_some() {
            return;
        }
        self.timelines.caches.asked.put(key, now, ());
        let (timelines, reader, pushed_since) = (self.timelines.clone(), self.reader, newest.pushed_since);
        tokio::spawn(async move {
            if let Err(e) = super::unmark::unmark(&timelines, reader, author, pushed_since).await {
                tracing::debug!("the mark of {author} at {reader} stays for now: {e}");
            }
        });
    }
}

/// Whether entries of that author belong into the reader's home at all.
fn is_wanted(state: &ReaderState, reader: AccountId, author: u64) -> bool {
    author == reader.get() || state.follows(author)
}
