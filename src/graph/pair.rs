//! `pair`: bringing what is derived from "R follows X" in line with it: R's edge among X's followers, R's pull mark.
//!
//! A follow is acknowledged with a pull mark: from then on R sees X's posts by pulling them, which is always right.
//! *Completion* takes the mark away once pushing works: the edge is there, and the home holds what was posted before.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quick_cache::sync::Cache;
use tokio::time::Instant;

use super::request::approved;
use super::toggles::{end_unwanted, follow_intent, is_wanted, requested};
use crate::account::Mode;
use crate::cluster::{Command, Request, Touched};
use crate::context::{Context, draw};
use crate::error::{Error, ErrorKind, Result};
use crate::fanout::Ended;
use crate::functions::{self, Look, Mark, PairLook, Settle, Settled};
use crate::ids::AccountId;
use crate::meters;
use crate::rules;

/// Ids that a completion reads of an outbox.
const IDS_MAX: u32 = 128;
/// What `author_look` gives as the mode of an account that is deleted, or being deleted.
const AUTHOR_GONE: u8 = b'X';
/// Rounds in which a tree that has grown is followed.
const ROUNDS_MAX: usize = 16;
/// A fill that is seen with the same nonce for so long has come to a halt.
const FILL_PATIENCE: Duration = Duration::from_secs(10);
/// Fills under way that are remembered.
const FILLS_SEEN: usize = 10_000;

/// Looks at whether one follows the other, and does what is left to do.
pub(crate) async fn settle_pair(
    context: &Arc<Context>,
    reader: AccountId,
    author: AccountId,
    may_drop: bool,
    touched: &mut Touched,
) -> Result<Ended> {
    match look(context, reader, author, touched).await? {
        Look::Following { since, mark, floor } => {
            if rules::holds("block_read_again") && !is_wanted(context, reader, author).await? {
                end_unwanted(context, reader, author, since).await?;
                // Whatever came of it: the next look takes the edge off, or finds the follow wanted after all.
                return Ok(Ended::Later);
            }
            let Some(mark) = mark else { return Ok(Ended::Done) };
            let follow = Follow { reader, author, since, mark, floor, may_drop };
            let ended = follow.complete(context, touched).await?;
            finish_request(context, reader, author).await?;
            Ok(ended)
        }
        Look::Not(stamp) => {
            // That R doesn't follow must last before the edge goes: else R follows again, without an edge.
            if rules::holds("fence_edge") {
                context.router().fence(touched).await?;
            }
            #[expect(clippy::cast_precision_loss, reason = "stamps are below 2^53")]
            let removed = context.followers(author)?.remove_below(&[(reader, stamp as f64)]).await?;
            touched.extend(&removed.touched);
            settle_request(context, reader, author).await
        }
        Look::Tree(_) => Err(Error::internal("the look at a pair went on with a tree")),
    }
}

async fn look(
    context: &Context,
    reader: AccountId,
    author: AccountId,
    touched: &mut Touched,
) -> Result<Look> {
    let keys = context.keys();
    let following = context.following(reader)?;
    for _ in 0..ROUNDS_MAX {
        let piece = following.piece_of(&author);
        let [set, place] = context.sets().piece_keys(&piece);
        let clock = keys.clock(context.bucket(reader));
        let of = [keys.marks(reader), keys.home(reader), clock, set, place];
        let command = PairLook { keys: of, leaf: piece.leaf() }.command(author);
        let answer = context.router().ask(Request::write(context.slot(reader), command)).await?;
        touched.add(&answer);
        match Look::parse(answer.ok()?)? {
            Look::Tree(tree) => drop(context.sets().piece_heirs(&piece, &tree)?),
            seen => return Ok(seen),
        }
    }
    Err(Error::unavailable(format!("what account {reader} follows was split again and again")))
}

/// A follow whose mark may be taken away.
struct Follow {
    reader: AccountId,
    author: AccountId,
    since: f64,
    mark: Mark,
    floor: Option<u64>,
    may_drop: bool,
}

impl Follow {
    async fn complete(&self, context: &Arc<Context>, touched: &mut Touched) -> Result<Ended> {
        let followers = context.followers(self.author)?;
        let keys = context.keys();
        let command = functions::author_look(
            keys.account(self.author),
            keys.outbox(self.author),
            followers.root_key(),
            self.floor,
            rules::size(IDS_MAX, 4),
        );
        let ask = || context.router().ask(Request::read(context.slot(self.author), command.clone()));
        let early = if rules::holds("edge_first") { None } else { Some(ask().await?) };
        let added = followers.add_greater(&[(self.reader, self.since)]).await?;
        touched.extend(&added.touched);
        // After that, and never from a cache: what is posted from now on finds the edge.
        let answer = match early {
            None => ask().await?,
            Some(early) => early,
        };
        touched.add(&answer);
        let (mode, _layout, reach, ids) = functions::parse_author_look(answer.ok()?)?;
        if rules::holds("fence_unmark") {
            context.router().fence(touched).await?;
        }
        if mode == AUTHOR_GONE {
            // Its deletion may have turned all followers away before our edge was written.
            return Ok(Ended::Later);
        }
        if rules::holds("mode_looked_at") && Mode::from_letter(mode) != Mode::Push {
            meters::completion("pulled");
            // An unfollow may have been settled before our edge was written: then it must be looked at again.
            return match look(context, self.reader, self.author, touched).await? {
                Look::Following { .. } => Ok(Ended::Done),
                _ => Ok(Ended::Later),
            };
        }
        for _ in 0..ROUNDS_MAX {
            let is_spread = followers.is_known_spread();
            let piece = is_spread.then(|| followers.part_piece_of(&self.reader));
            let settle = Settle {
                keys: [keys.account(self.reader), keys.marks(self.reader), keys.home(self.reader)],
                edge: piece.as_ref().map(|piece| (context.sets().piece_keys(piece), piece.leaf())),
                reader: self.reader,
                author: self.author,
                mark: self.mark,
                new_stamp: draw(),
                since: self.since,
                may_drop: self.may_drop,
                reach,
                fit: context.fit,
            };
            let answer = context.once(context.slot(self.reader), settle.command(&ids)).await?;
            touched.add(&answer);
            match (Settled::parse(answer.ok()?)?, &piece) {
                (Settled::Done, _) => {
                    meters::completion("done");
                    return Ok(Ended::Done);
                }
                (Settled::Left, _) => {
                    meters::completion("left");
                    return Ok(Ended::Done);
                }
                (Settled::Busy(nonce), _) => return self.wait_for_fill(context, nonce).await,
                (Settled::Changed | Settled::NoEdge, _) => return Ok(Ended::Later),
                (Settled::Tree(tree), Some(piece)) => drop(context.sets().piece_heirs(piece, &tree)?),
                (Settled::Tree(_), None) => {
                    return Err(Error::internal("settle named a tree that it wasn't given"));
                }
            }
        }
        Err(Error::unavailable(format!("followers of account {} were split again and again", self.author)))
    }

    /// The home is being filled. A fill that has come to a halt is ended: the next read begins another.
    async fn wait_for_fill(&self, context: &Context, nonce: Mark) -> Result<Ended> {
        meters::completion("busy");
        if context.fills_seen.is_stale(self.reader, nonce) {
            let command = functions::home_drop(context.keys().home(self.reader), &nonce);
            context.router().call(Request::write(context.slot(self.reader), command)).await?;
            meters::fill("ended");
        }
        Ok(Ended::Later)
    }
}

/// Fills that were seen under way, and since when.
#[derive(Debug)]
pub(crate) struct FillsSeen(Cache<AccountId, Arc<Mutex<(Mark, Instant)>>>);

impl FillsSeen {
    pub(crate) fn new() -> Self {
        Self(Cache::new(FILLS_SEEN))
    }

    fn is_stale(&self, reader: AccountId, nonce: Mark) -> bool {
        let seen = match self.0.get(&reader) {
            Some(seen) => seen,
            None => {
                let seen = Arc::new(Mutex::new((nonce, Instant::now())));
                self.0.insert(reader, seen.clone());
                seen
            }
        };
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.0 != nonce {
            *seen = (nonce, Instant::now());
        }
        seen.1.elapsed() >= rules::size(FILL_PATIENCE, Duration::from_millis(300))
    }
}

/// R doesn't follow X: perhaps it has asked to, and perhaps X has said yes.
async fn settle_request(context: &Arc<Context>, reader: AccountId, author: AccountId) -> Result<Ended> {
    let keys = context.keys();
    let Some(request) = requested(context, reader, author).await? else {
        finish_request(context, reader, author).await?;
        return Ok(Ended::Done);
    };
    if !is_wanted(context, reader, author).await? {
        return withdraw(context, reader, author, request).await;
    }
    let approval = approved(context, author, reader).await?;
    if approval == Some(request) || approval.is_some() && !rules::holds("same_request") {
        let made = super::change::apply(context, reader, || {
            Box::pin(async {
                if requested(context, reader, author).await? != Some(request) {
                    return Ok(None);
                }
                let mut intent = follow_intent(context, reader, author)?;
                intent.request = Some((author, Some(request), None));
                Ok(Some(intent))
            })
        })
        .await;
        return match made {
            Ok(_) => Ok(Ended::Done),
            // It follows as many as it may: asking again later is its affair.
            Err(e) if e.kind() == ErrorKind::Invalid => withdraw(context, reader, author, request).await,
            Err(e) => Err(e),
        };
    }
    let set = Command::new("HSET").arg(&keys.waiting(author)).arg(&reader.to_bytes()).arg(&request);
    context.router().call(Request::write(context.slot(author), set)).await?;
    // It may have been taken back, and that settled, before we wrote.
    finish_request(context, reader, author).await?;
    Ok(Ended::Done)
}

/// Takes a request back, if it is still that one.
async fn withdraw(
    context: &Arc<Context>,
    reader: AccountId,
    author: AccountId,
    request: Mark,
) -> Result<Ended> {
    super::change::apply(context, reader, || {
        Box::pin(async {
            let is_same = requested(context, reader, author).await? == Some(request);
            is_same.then(|| super::toggles::unfollow_intent(context, reader, author)).transpose()
        })
    })
    .await?;
    Ok(Ended::Done)
}

/// R no longer asks: X's list needn't hold it, nor what X said to it.
async fn finish_request(context: &Context, reader: AccountId, author: AccountId) -> Result<()> {
    let keys = context.keys();
    for hash in [keys.waiting(author), keys.approved(author)] {
        let get = Command::new("HGET").arg(&hash).arg(&reader.to_bytes());
        let value = context.router().call(Request::read(context.slot(author), get)).await?;
        if value.is_nil() {
            continue;
        }
        // A newer request may have come since: only what was seen goes, if nothing is asked now.
        if requested(context, reader, author).await?.as_ref().map(Mark::as_slice) == Some(value.bytes()?) {
            continue;
        }
        let command = functions::field_drop(hash, &reader.to_bytes(), value.bytes()?);
        context.router().call(Request::write(context.slot(author), command)).await?;
    }
    Ok(())
}
