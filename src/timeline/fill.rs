//! Filling a home that is not there: a reader comes back, or its home was dropped because that was simpler.
//!
//! The home is created first, under a nonce that vouches for nothing; then everything is pulled, uncached; then the
//! list is written anew with what arrived meanwhile. Who comes later joins; whoever finishes first, finishes.

use std::sync::Arc;

use super::Timelines;
use super::flights::{FlightTurn, Flights};
use super::merge::{Direction, Merge, PageEntry};
use super::outbox::{self, Part};
use crate::cluster::{Request, TouchedServers};
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{self, FillAnswer};
use crate::ids::AccountId;
use crate::meters;
use crate::nonce::{Nonce, draw};
use crate::reader::{CurrentReader, current};
use crate::stored::home_entry;
use crate::tenant::{Tenant, account_changed_always, no_account};

/// Posts pulled of each outbox at first.
const DEPTH_FIRST: usize = 8;
/// Rounds in which outboxes are read deeper, each time twice as deep.
const ROUNDS_MAX: usize = 6;
/// Tries to begin a fill whose reply is lost again and again.
const TRIES_MAX: usize = 8;
/// Outboxes read in one batch.
const OUTBOXES_AT_ONCE: usize = 2_000;

/// A nonce of a fill: the top bit says so, and all ones would say "whole".
fn draw_nonce() -> Nonce {
    let mut nonce = draw();
    nonce[0] = 0x80 | (nonce[0] & 0x7e);
    nonce
}

/// Fills that this instance runs, so that each home is filled once, however often it is read meanwhile.
pub(crate) type Fills = Flights<()>;

/// Fills the home of an account, if it has none. Tells whether it did; if this instance is at it already, it waits for
/// that.
pub(crate) async fn fill(timelines: &Arc<Timelines>, reader: AccountId) -> Result<bool> {
    let tenant = &timelines.tenant;
    let _filling = match timelines.fills.join(reader) {
        FlightTurn::Ours(filling) => filling,
        FlightTurn::Theirs(filling) => {
            filling.landed().await;
            return Ok(false);
        }
    };
    let Some(nonce) = begin(tenant, reader).await? else { return Ok(false) };
    meters::fill("begun");
    // H8: from here on whatever is published arrives in the home; what was published before is pulled.
    let wanted = tenant.decided().home_posts as usize;
    let (floor, posts) = pull_fenced(timelines, reader, wanted).await?;

    let entries = posts.iter().map(|post| home_entry(post.id, post.author));
    let command = functions::home_finish(tenant.keys().home(reader), &nonce, floor, tenant.fit(), entries);
    let finished = tenant.router().call(Request::write(tenant.slot(reader), command)).await?.count()? == 1;
    meters::fill(if finished { "finished" } else { "superseded" });
    Ok(finished)
}

/// Creates the home, or joins who is filling it; `None`: it is there.
async fn begin(tenant: &Tenant, reader: AccountId) -> Result<Option<Nonce>> {
    let keys = tenant.keys();
    let mut lost = None;
    for _ in 0..TRIES_MAX {
        let command = functions::home_begin(
            keys.account(reader),
            keys.home(reader),
            keys.days(tenant.bucket(reader)),
            &draw_nonce(),
            &reader.to_bytes(),
            tenant.today(),
        );
        match tenant.once(tenant.slot(reader), command).await {
            Err(e) if e.kind() == ErrorKind::Unknown => lost = Some(e),
            Err(e) => return Err(e),
            Ok(answer) => {
                return match FillAnswer::parse(answer.ok()?)? {
                    FillAnswer::Fill(nonce) => Ok(Some(nonce)),
                    FillAnswer::Whole => Ok(None),
                    FillAnswer::NoAccount => Err(no_account(reader)),
                };
            }
        }
    }
    Err(lost.unwrap_or_else(|| Error::internal("a fill was never begun")))
}

/// Pulls from servers that still are who they were when they answered, and have their replicas.
///
/// H72: "nothing else is above the floor" is what a home vouches for by their word alone. One that was deposed and cut
/// off answers, too; also when it is asked whom the reader follows. A server that is another one by now is asked anew.
async fn pull_fenced(timelines: &Timelines, reader: AccountId, wanted: usize) -> Result<HomeContents> {
    let tenant = &timelines.tenant;
    let (mut tries, mut changes) = (tenant.router().fence_tries(), 0);
    loop {
        let CurrentReader { stamps, state } = current(&timelines.graph.readers, reader).await?;
        let mut touched = TouchedServers::new();
        touched.add_epoch(&stamps.epoch);
        let followed = state.following().iter().filter_map(|id| AccountId::new(*id).ok());
        let authors: Vec<AccountId> = followed.chain([reader]).collect();
        let pulled = pull(tenant, &authors, wanted, &mut touched).await?;
        match tenant.router().fence(&touched).await {
            Ok(_) if state.is_of(&stamps) => return Ok(pulled),
            // It has changed meanwhile, or somebody else told it than who told the stamps.
            Ok(_) if changes < TRIES_MAX => changes += 1,
            Ok(_) => return Err(account_changed_always(reader)),
            Err(e) if e.kind() == ErrorKind::Conflict => tries.after(e).await?,
            Err(e) => return Err(e),
        }
    }
}

/// The contents of a home that is filled: where its floor is, and the posts above that, ascending.
type HomeContents = (u64, Vec<PageEntry>);

/// Reads outboxes, those that are cut highest deeper, until enough posts lie above all cuts.
async fn pull(
    tenant: &Tenant,
    authors: &[AccountId],
    wanted: usize,
    touched: &mut TouchedServers,
) -> Result<HomeContents> {
    let mut pull = Pull::new(authors.len(), wanted);
    for _ in 0..ROUNDS_MAX {
        let deepen = pull.take();
        for chunk in deepen.chunks(OUTBOXES_AT_ONCE) {
            let request = |n: &usize| outbox::end_request(tenant, authors[*n], pull.depths[*n] * 2);
            let answers = tenant.run_all(chunk.iter().map(request).collect()).await?;
            for (n, answer) in chunk.iter().zip(answers) {
                touched.add(&answer);
                pull.depths[*n] *= 2;
                pull.feed(*n, authors[*n], &outbox::read_end(answer.ok()?, pull.depths[*n])?);
            }
        }
    }
    Ok(pull.finish())
}

/// The newest posts of several outboxes, as far as these were read.
struct Pull {
    merge: Merge,
    /// How much of each was read.
    depths: Vec<usize>,
    /// Those that end where the archive begins: a fill doesn't read that.
    ended: Vec<bool>,
    wanted: usize,
    /// Newest first: as many as are wanted, and the newest that is left out.
    posts: Vec<PageEntry>,
}

impl Pull {
    fn new(outboxes: usize, wanted: usize) -> Self {
        let mut merge = Merge::new(Direction::Down, u64::MAX, 0);
        (0..outboxes).for_each(|_| _ = merge.open());
        Self {
            merge,
            depths: vec![DEPTH_FIRST / 2; outboxes],
            ended: vec![false; outboxes],
            wanted,
            posts: Vec::new(),
        }
    }

    /// Takes in what the end of an outbox has; of what was read before nothing comes twice. What was published
    /// meanwhile arrives in the home (H8).
    fn feed(&mut self, outbox: usize, author: AccountId, part: &Part) {
        let before = self.merge.bound_of(outbox);
        self.ended[outbox] = part.archived.is_some();
        self.merge.feed(outbox, part.entries(author).filter(|entry| entry.id < before), part.bound);
    }

    /// Takes what lies above all cuts. Gives the outboxes that have to be read deeper; none: there are enough posts.
    fn take(&mut self) -> Vec<usize> {
        self.posts.extend(self.merge.take((self.wanted + 1).saturating_sub(self.posts.len())));
        match self.wanted.saturating_sub(self.posts.len()) {
            0 => Vec::new(),
            missing => {
                // H166: what those hold up is in the archive, or below where that begins.
                let wanting = self.merge.wanting_for(missing).into_iter();
                wanting.filter(|outbox| !self.ended[*outbox]).collect()
            }
        }
    }

    fn finish(mut self) -> HomeContents {
        self.take();
        // H7: an outbox whose bound is b is complete from b on; all of them together, above the highest b - 1.
        let cut = self.merge.reached().saturating_sub(1);
        let left_out = self.posts.get(self.wanted).map(|entry| entry.id);
        // Everything up to the newest one that is left out goes, also others with its id.
        let floor = left_out.unwrap_or(cut);
        let mut posts = self.posts;
        posts.retain(|entry| entry.id > floor);
        posts.reverse();
        (floor, posts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn everything_above_the_floor_is_among_the_posts(
            outboxes in
                proptest::collection::vec((proptest::collection::btree_set(1u64..500, 0..40), 0usize..40), 1..8),
            most in 1usize..50
        ) {
            let mut all = Vec::new();
            let mut pull = Pull::new(outboxes.len(), most);
            for (number, (ids, read)) in (1..).zip(&outboxes) {
                let author = AccountId::new(number).unwrap();
                all.extend(ids.iter().map(|id| PageEntry { id: *id, author: number }));
                let ids: Vec<u64> = ids.iter().copied().skip(ids.len().saturating_sub(*read)).collect();
                let is_all = ids.len() == outboxes[usize::try_from(number).unwrap() - 1].0.len();
                let bound = if is_all { 0 } else { ids.first().copied().unwrap_or(u64::MAX) };
                let number = usize::try_from(number).unwrap() - 1;
                // Its end once more, further back, as a later round reads it.
                let end = ids[ids.len() / 2..].to_vec();
                let before = end.first().copied().unwrap_or(u64::MAX);
                pull.feed(number, author, &Part { ids: end, bound: before, floor: 0, archived: None });
                pull.feed(number, author, &Part { ids, bound, floor: 0, archived: None });
            }
            let (floor, posts) = pull.finish();
            let mut wanted: Vec<PageEntry> = all.into_iter().filter(|e| e.id > floor).collect();
            wanted.sort_unstable();
            prop_assert_eq!(posts, wanted);
        }
    }

    #[test]
    fn nonces_vouch_for_nothing() {
        for _ in 0..1_000 {
            let nonce = draw_nonce();
            assert!(nonce[0] & 0x80 != 0 && nonce != [0xff; 8]);
        }
    }
}
