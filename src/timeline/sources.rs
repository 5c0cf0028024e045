//! The sources of one page, and asking them for more.

use std::sync::Arc;

use futures::future::{join_all, try_join_all};

use super::feed::{BelowFloor, ListOrigin, Origin};
use super::list;
use super::merge::{Direction, Merge, PageEntry};
use super::outbox::{self, Part};
use super::public::{self, PublicPart, PublicWindow};
use crate::archive::PageOrder;
use crate::bucket::Bucket;
use crate::error::{Error, ErrorCode, Result};
use crate::ids::{AccountId, IdMap, PostId};
use crate::post::{PostRef, SearchWords};
use crate::reader::ReaderState;
use crate::search::find;
use crate::stored::ArchiveFloor;
use crate::tenant::Tenant;
use crate::tiers::{BelowAsk, below};

/// Posts asked of an outbox at first, and at most, in one round.
const DEPTH: (usize, usize) = (8, 128);
/// Posts asked of the index beyond those that are missing: some will not show.
const SEARCH_MARGIN: usize = 8;
/// Outboxes of which is asked at once what lies below their floors: each is a question to another store.
const BELOW_AT_ONCE: usize = 16;
/// Posts asked of the archive in one round, of all accounts together, and of each at least: of many few come next.
const ARCHIVED_AT_ONCE: (usize, usize) = (512, 3);
/// Outboxes asked in one batch.
const OUTBOXES_AT_ONCE: usize = 2_000;

/// A source of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageSource {
    /// The last entries of the reader's home.
    Window,
    /// All of it.
    Home,
    /// The posts of one account; so many were asked for last time.
    Outbox(AccountId, usize),
    /// One of the lists that the page is of; the same.
    List(usize, usize),
    /// The public posts of one bucket; so many were asked for last time.
    Public(Bucket, usize),
    /// What the index finds.
    Search,
    /// What the outbox of one account has cut off.
    Below(AccountId),
    /// What the archive has of one account, below where its outbox ended; up: to there, and then its outbox again.
    Archive(AccountId, ArchiveFloor),
    /// What only the archive could tell, which is away.
    Away,
}

/// A merge, and what its sources are.
#[derive(Debug)]
pub(super) struct Sources {
    pub(super) merge: Merge,
    direction: Direction,
    /// Where the page begins.
    from: u64,
    kinds: Vec<PageSource>,
    /// The outboxes among them, and their numbers.
    pulled: IdMap<AccountId, usize>,
    /// The lists among them.
    lists: Vec<ListOrigin>,
    /// What is searched for, and by whom, if that is what the page is of. Apart: it is larger than all the rest.
    search: Option<Box<(SearchWords, AccountId)>>,
    /// Whether the archive has looked for as long as a search may take.
    pub(super) is_searched_long: bool,
    /// How much of the reader's home the page has used, in metrics; `None`: it is of no home.
    pub(super) home_depth: Option<&'static str>,
    /// Whether those are asked too whom the reader mutes: for who explains a page. Nothing of them shows.
    asks_muted: bool,
    /// Why the archive doesn't tell what it was asked.
    pub(super) held_up: Option<Error>,
    /// Posts that the archive has named since somebody took them.
    pub(super) archived: Vec<PostId>,
    /// What goes on where outboxes end.
    below: Option<Arc<dyn BelowFloor>>,
}

impl Sources {
    pub(super) fn new(
        (direction, from, until): (Direction, u64, u64),
        asks_muted: bool,
        below: Option<Arc<dyn BelowFloor>>,
    ) -> Self {
        Self {
            merge: Merge::new(direction, from, until),
            direction,
            from,
            kinds: Vec::new(),
            pulled: IdMap::default(),
            lists: Vec::new(),
            search: None,
            is_searched_long: false,
            home_depth: None,
            asks_muted,
            held_up: None,
            archived: Vec::new(),
            below,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Adds the reader's home, the last entries of it or all.
    pub(super) fn add_home(
        &mut self,
        is_whole: bool,
        entries: impl IntoIterator<Item = PageEntry>,
        bound: u64,
    ) {
        let number = self.merge.open();
        self.kinds.push(PageSource::Window);
        if is_whole {
            self.is_whole(number);
        } else {
            self.home_depth = Some("window");
        }
        self.merge.feed(number, entries, bound);
    }

    /// All of the home was read.
    pub(super) fn is_whole(&mut self, home: usize) {
        self.kinds[home] = PageSource::Home;
        self.home_depth = Some("whole");
    }

    /// Adds an outbox of which nothing was asked yet, at the place that others have come to, unless it is there.
    pub(super) fn add_outbox(&mut self, author: AccountId, at: Option<u64>) {
        if !self.pulled.contains_key(&author) {
            self.open_outbox(author, at);
        }
    }

    fn open_outbox(&mut self, author: AccountId, at: Option<u64>) -> usize {
        let number = match at {
            Some(bound) => self.merge.open_at(bound),
            None => self.merge.open(),
        };
        debug_assert_eq!(number, self.kinds.len());
        self.kinds.push(PageSource::Outbox(author, 0));
        self.pulled.insert(author, number);
        number
    }

    /// Adds a list that the page is of; nothing was asked of it yet.
    pub(super) fn add_list(&mut self, list: ListOrigin) {
        self.merge.open();
        self.kinds.push(PageSource::List(self.lists.len(), 0));
        self.lists.push(list);
    }

    /// Adds what all buckets have that is public, as a look has found it.
    pub(super) fn add_public(&mut self, tenant: &Tenant, window: &PublicWindow) {
        for (bucket, part) in tenant.keys().buckets().all().zip(window.iter()) {
            let number = self.merge.open();
            self.kinds.push(PageSource::Public(bucket, public::NEWEST));
            self.feed_public(number, part);
        }
    }

    fn feed_public(&mut self, number: usize, part: &PublicPart) {
        self.merge.feed(number, part.entries(), part.bound(self.direction, self.from));
    }

    /// Adds what a reader finds by these words; nothing was asked yet.
    pub(super) fn add_search(&mut self, words: SearchWords, reader: AccountId) {
        self.merge.open();
        self.kinds.push(PageSource::Search);
        self.search = Some(Box::new((words, reader)));
    }

    /// The newest posts of an account.
    pub(super) fn feed_newest(&mut self, author: AccountId, part: &Part, asked: usize) {
        let number = match self.pulled.get(&author) {
            Some(number) => *number,
            None => self.open_outbox(author, None),
        };
        self.kinds[number] = PageSource::Outbox(author, asked);
        self.feed_outbox(number, author, part);
    }

    /// Takes in what an outbox has. One that ends at a floor is complete down to there, and goes on below if anything
    /// does.
    fn feed_outbox(&mut self, number: usize, author: AccountId, part: &Part) {
        let goes_on = part.floor > 0 && self.below.is_some();
        let is_up = self.direction == Direction::Up;
        // Up: after a move that has failed half-way what was used up already may be told once more.
        let archived = part.archived.filter(|floor| !is_up || floor.upto.get() > self.merge.bound_of(number));
        if let Some(floor) = archived {
            self.kinds[number] = PageSource::Archive(author, floor);
            if is_up {
                // H176: what the archive has comes first.
                return;
            }
        } else if goes_on {
            self.kinds[number] = PageSource::Below(author);
        }
        let bound = if goes_on { part.floor.saturating_add(1) } else { part.bound };
        self.merge.feed(number, part.entries(author), bound);
    }

    /// Adds the outboxes of those of whom something may show.
    pub(super) fn pull(
        &mut self,
        authors: impl Iterator<Item = AccountId>,
        state: &ReaderState,
        reader: AccountId,
    ) {
        let asks_muted = self.asks_muted;
        for author in authors.filter(|id| *id == reader || asks_muted || !state.mutes(id.get())) {
            self.add_outbox(author, None);
        }
    }

    /// The home's end: all that the reader follows, and itself, take its place there.
    pub(super) fn replace_home(&mut self, home: usize, state: &ReaderState, reader: AccountId) {
        let floor = self.merge.retire(home);
        self.pull_all(Some(floor), state, reader);
    }

    /// The outboxes of all of whom something may show.
    pub(super) fn pull_all(&mut self, at: Option<u64>, state: &ReaderState, reader: AccountId) {
        self.home_depth = Some("deep");
        let asks_muted = self.asks_muted;
        let followed = state.following().iter().filter(|id| asks_muted || !state.mutes(**id));
        let followed = followed.filter_map(|id| AccountId::new(*id).ok());
        for author in followed.chain([reader]) {
            self.add_outbox(author, at);
        }
    }

    /// The home among the sources that hold everything up, if it does.
    pub(super) fn wanting_home(&self) -> Option<(usize, PageSource)> {
        let wanting = self.merge.wanting();
        let home =
            wanting.into_iter().find(|n| matches!(self.kinds[*n], PageSource::Window | PageSource::Home));
        home.map(|number| (number, self.kinds[number]))
    }

    /// Asks the outboxes and lists that hold up the next `missing` posts for more.
    pub(super) async fn ask(&mut self, tenant: &Tenant, missing: usize) -> Result<()> {
        let (mut asked, mut below, mut archived) = (Vec::new(), Vec::new(), Vec::new());
        let (mut public, mut lists) = (Vec::new(), Vec::new());
        for number in self.merge.wanting_for(missing) {
            match self.kinds[number] {
                PageSource::Outbox(author, depth) => {
                    let depth = (depth * 2).clamp(DEPTH.0, DEPTH.1);
                    self.kinds[number] = PageSource::Outbox(author, depth);
                    asked.push((number, author, depth));
                }
                PageSource::List(list, depth) => lists.push((number, list, list::depth(depth, missing))),
                PageSource::Public(bucket, depth) => {
                    let depth = public::depth(depth, missing);
                    self.kinds[number] = PageSource::Public(bucket, depth);
                    public.push((number, (bucket, depth)));
                }
                PageSource::Search => self.ask_search(tenant, number, missing).await?,
                PageSource::Below(author) => below.push((number, author)),
                PageSource::Archive(author, floor) => archived.push((number, author, floor)),
                PageSource::Window | PageSource::Home | PageSource::Away => {}
            }
        }
        self.ask_lists(tenant, &lists).await?;
        self.ask_below(&below, missing).await?;
        self.ask_archive(tenant, &archived, missing).await?;
        let (numbers, buckets): (Vec<usize>, Vec<_>) = public.into_iter().unzip();
        for (number, part) in numbers.into_iter().zip(public::look(tenant, &buckets).await?) {
            self.feed_public(number, &part);
        }
        for chunk in asked.chunks(OUTBOXES_AT_ONCE) {
            let request = |(number, author, depth): &(usize, AccountId, usize)| match self.end_of(*number) {
                None => outbox::end_request(tenant, *author, *depth),
                Some(from) => outbox::page_request(tenant, *author, self.direction, from, *depth),
            };
            let answers = tenant.run_all(chunk.iter().map(request).collect()).await?;
            for ((number, author, depth), answer) in chunk.iter().zip(answers) {
                let part = match self.end_of(*number) {
                    None => outbox::read_end(answer.ok()?, *depth)?,
                    Some(_) => outbox::read_page(answer.ok()?, self.direction)?,
                };
                self.feed_outbox(*number, *author, &part);
            }
        }
        Ok(())
    }

    async fn ask_below(&mut self, asked: &[(usize, AccountId)], missing: usize) -> Result<()> {
        let Some(below) = self.below.clone().filter(|_| !asked.is_empty()) else { return Ok(()) };
        let limit = missing.clamp(DEPTH.0, DEPTH.1);
        for chunk in asked.chunks(BELOW_AT_ONCE) {
            let answers = chunk.iter().map(async |(number, author)| {
                below.read(&Origin::Outbox(*author), self.merge.bound_of(*number), limit).await
            });
            for ((number, _), (posts, bound)) in chunk.iter().zip(try_join_all(answers).await?) {
                let entry = |post: &PostRef| PageEntry { id: post.id.get(), author: post.author.get() };
                self.merge.feed(*number, posts.iter().map(entry), bound);
            }
        }
        Ok(())
    }

    /// All at once: it is one question for the archive.
    async fn ask_archive(
        &mut self,
        tenant: &Tenant,
        asked: &[(usize, AccountId, ArchiveFloor)],
        missing: usize,
    ) -> Result<()> {
        if asked.is_empty() {
            return Ok(());
        }
        let ask = |(number, author, floor): &(usize, AccountId, ArchiveFloor)| BelowAsk {
            author: *author,
            floor: *floor,
            from: self.merge.bound_of(*number),
        };
        let asks: Vec<BelowAsk> = asked.iter().map(ask).collect();
        let order = match self.direction {
            Direction::Down => PageOrder::NewestFirst,
            Direction::Up => PageOrder::OldestFirst,
        };
        let of_each = (ARCHIVED_AT_ONCE.0 / asks.len()).max(ARCHIVED_AT_ONCE.1);
        let answers = match below(tenant, &asks, order, missing.clamp(DEPTH.0, DEPTH.1).min(of_each)).await {
            Ok(answers) => answers,
            Err(failure) => return self.hold_up(asked.iter().map(|(number, ..)| *number), failure),
        };
        for ((number, author, floor), found) in asked.iter().zip(answers) {
            let found = match found {
                Ok(found) => found,
                // It holds up what is below, and nobody else's.
                Err(failure) => {
                    self.hold_up([*number], failure)?;
                    continue;
                }
            };
            let entry = |id: &PostId| PageEntry { id: id.get(), author: author.get() };
            if found.bound == floor.upto.get() && self.direction == Direction::Up {
                self.kinds[*number] = PageSource::Outbox(*author, 0);
            }
            self.merge.feed(*number, found.ids.iter().map(entry), found.bound);
            self.archived.extend(found.ids);
        }
        Ok(())
    }

    /// Sources of which only the archive could tell more, and it doesn't. Any other failure stays one.
    fn hold_up(&mut self, sources: impl IntoIterator<Item = usize>, failure: Error) -> Result<()> {
        if failure.code() != ErrorCode::ArchiveAway {
            return Err(failure);
        }
        sources.into_iter().for_each(|number| self.kinds[number] = PageSource::Away);
        self.held_up.get_or_insert(failure);
        Ok(())
    }

    /// Whether the page can't go on, for what follows only the archive could tell.
    pub(super) fn is_held_up(&self) -> bool {
        self.held_up.is_some() && self.merge.wanting().iter().any(|n| self.kinds[*n] == PageSource::Away)
    }

    /// The place where an outbox is to be read on; `None`: at its end, which needs no search.
    fn end_of(&self, number: usize) -> Option<u64> {
        let from = self.merge.bound_of(number);
        (self.direction == Direction::Up || from < u64::MAX).then_some(from)
    }

    /// All at once: lists of several hashtags lie in as many slots.
    async fn ask_lists(&mut self, tenant: &Tenant, asked: &[(usize, usize, usize)]) -> Result<()> {
        let pages = asked.iter().map(|(number, list, depth)| {
            let (list, of) = &self.lists[*list];
            list::read_page(tenant, (list, *of), (self.direction, self.merge.bound_of(*number)), *depth)
        });
        let pages = join_all(pages).await;
        for ((number, list, depth), page) in asked.iter().zip(pages) {
            let (part, failure) = match page {
                Ok(read) => read,
                Err(failure) => {
                    self.hold_up([*number], failure)?;
                    continue;
                }
            };
            self.kinds[*number] = PageSource::List(*list, *depth);
            self.merge.feed(*number, part.entries, part.bound);
            failure.map_or(Ok(()), |failure| self.hold_up([*number], failure))?;
        }
        Ok(())
    }

    async fn ask_search(&mut self, tenant: &Tenant, number: usize, missing: usize) -> Result<()> {
        let Some((words, reader)) = self.search.as_deref() else { return Ok(()) };
        let below = self.merge.bound_of(number);
        let found = match find(tenant, words, *reader, below, missing + SEARCH_MARGIN).await {
            Ok(found) => found,
            Err(failure) => return self.hold_up([number], failure),
        };
        let entry = |post: &PostRef| PageEntry { id: post.id.get(), author: post.author.get() };
        self.merge.feed(number, found.posts.iter().map(entry), found.bound);
        self.is_searched_long = found.is_early;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deep_page_asks_nobody_whom_the_reader_mutes() {
        let state = ReaderState::of(&[2, 3, 4], &[3], &[]);
        let account = |id| AccountId::new(id).unwrap();
        for (asks_muted, wanted) in [(false, vec![1, 2, 4]), (true, vec![1, 2, 3, 4])] {
            let mut sources = Sources::new((Direction::Down, u64::MAX, 0), asks_muted, None);
            sources.pull_all(None, &state, account(1));
            let mut asked: Vec<u64> = sources.pulled.keys().map(|author| author.get()).collect();
            asked.sort_unstable();
            assert_eq!(asked, wanted);
        }
    }
}
