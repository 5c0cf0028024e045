//! Likes and bookmarks. What an account likes and bookmarks lies with it and is true; who likes a post lies with the
//! post, is derived, and `tie` brings it in line. Bookmarks are nobody else's affair.

use std::sync::Arc;

use super::jobs::TieTask;
use super::lists::{LIKES, last_removal, set_member};
use crate::change::{BucketChange, SetBound, Tries};
use crate::cluster::{Command, Epoch, Request, TouchedServers};
use crate::error::{Error, ErrorKind, Result};
use crate::fields::RecordField;
use crate::functions::{self, BucketWrite, ExpectedValue, LeastState, ListChange, TieLook, read_nonce};
use crate::graph::Graph;
use crate::ids::{AccountId, PostId};
use crate::inbox::Notice;
use crate::journal::{RunOutcome, reserve, reserve_for};
use crate::meters;
use crate::nonce::{Nonce, draw};
use crate::post::PostRef;
use crate::reader::{Tie, Ties};
use crate::sharded::{Checkpoint, SortedSet};
use crate::stored::StoredPost;
use crate::tenant::{Tenant, changed_always};

/// Tries of a look, and of what it brings in line, between changes and splits.
const TRIES_MAX: usize = 64;

fn bound_of(what: Tie, tenant: &Tenant) -> SetBound {
    match what {
        Tie::Like => SetBound { most: tenant.settings.likes_max, verb: "likes", noun: " posts" },
        Tie::Bookmark => {
            SetBound { most: tenant.settings.bookmarks_max, verb: "has bookmarked", noun: " posts" }
        }
    }
}

/// Likes or bookmarks a post, or takes that back. That it may be seen is the caller's affair.
pub(crate) async fn set_tie(
    graph: &Arc<Graph>,
    account: AccountId,
    post: PostRef,
    what: Tie,
    on: bool,
) -> Result<Epoch> {
    let tenant = &graph.tenant;
    let set = what.set(tenant, account)?;
    let bound = bound_of(what, tenant);
    let tries = &mut Tries::between_splits(account);
    loop {
        let once = async {
            let places = usize::from(what == Tie::Like);
            let _place = match on {
                true => reserve_for(&graph.journal, account, places)?,
                false => reserve(&graph.journal, places)?,
            };
            let (seen, _) = ties_stamp(tenant, account).await?;
            let stamp = draw();
            // Whoever was suspended or deleted still takes back.
            let least_state = if on { LeastState::Active } else { LeastState::Recorded };
            let write = BucketWrite::new("tie_set", &tenant.keys().account(account), least_state)
                .only_changes()
                .compare([(RecordField::TIES_STAMP, ExpectedValue::Exactly(seen))])
                // H54: also where nothing changes: a copy of the opposite that lies somewhere must not run after this.
                .set(RecordField::TIES_STAMP, &stamp);
            let mut change =
                BucketChange::new(&graph.journal, account, write, "like or bookmark").tell_unconfirmed();
            if what == Tie::Like {
                change = change.task(TieTask { account, post });
            }
            let made = change.member((&set, &post), on, bound, "").write(tries).await?;
            Ok(made.map(|made| {
                graph.readers.renew_ties(account, seen, |ties: &Ties| ties.changed(what, post, on, stamp));
                meters::graph_change(what.label(on));
                made.epoch
            }))
        };
        let once = once.await;
        if let Some(epoch) = tries.ended(once)? {
            return Ok(epoch);
        }
    }
}

/// Takes back what ties an account to a post that is gone, by its id alone: who wrote it only the account's own set can
/// say, so that is gone through.
pub(crate) async fn untie_gone(
    graph: &Arc<Graph>,
    account: AccountId,
    id: PostId,
    what: Tie,
) -> Result<Epoch> {
    // H54: before looking: a like that lies in a socket and is found nowhere must not run after this.
    let mut epoch = renew_ties(&graph.tenant, account).await?;
    for post in kept_of(&what.set(&graph.tenant, account)?, id).await? {
        epoch = set_tie(graph, account, post, what, false).await?;
    }
    Ok(epoch)
}

/// The entries that such a set keeps of a post of which only the id is known: after a failover two authors' may have
/// had it.
pub(crate) async fn kept_of(set: &SortedSet<PostRef>, id: PostId) -> Result<Vec<PostRef>> {
    let (mut kept, mut from) = (Vec::new(), Some(Checkpoint::START));
    while let Some(at) = from {
        let (members, next) = set.walk_members(at).await?;
        kept.extend(members.into_iter().filter(|post| post.id == id));
        from = next;
    }
    Ok(kept)
}

/// Takes back what ties an account to these posts, as far as they are gone for good.
pub(crate) async fn untie_if_gone(
    graph: &Arc<Graph>,
    account: AccountId,
    posts: &[PostRef],
    what: Tie,
) -> Result<()> {
    let (mut touched, mut gone) = (TouchedServers::new(), Vec::new());
    let stored = graph.tenant.posts().get_many_touching(posts, &mut touched).await?;
    for (post, stored) in posts.iter().zip(stored) {
        let is_gone = match stored {
            // After a failover another author's post may have the id.
            StoredPost::There(found) => found.header().author != post.author,
            StoredPost::Gone => true,
            StoredPost::Unreadable(_) => false,
        };
        gone.extend(is_gone.then_some(*post));
    }
    // That it is gone must last before it is forgotten.
    graph.tenant.router().fence(&touched).await?;
    for post in gone {
        set_tie(graph, account, post, what, false).await?;
    }
    Ok(())
}

/// An account's ties stamp, and who told it; `None`: it has never liked or bookmarked.
pub(crate) async fn ties_stamp(tenant: &Tenant, account: AccountId) -> Result<(Option<Nonce>, Epoch)> {
    let command = Command::new("HGET").arg(&tenant.keys().account(account)).arg(RecordField::TIES_STAMP);
    let answer = tenant.router().ask(Request::read(tenant.slot(account), command)).await?;
    let epoch = answer.epoch.clone();
    let stamp = answer.ok()?;
    Ok((if stamp.is_nil() { None } else { Some(read_nonce(&stamp)?) }, epoch))
}

/// Renews an account's ties stamp, so that nobody goes on with what it remembers, and a copy of a change that lies in a
/// frozen server's socket is void. Who then looks for something and finds nothing may say so: if what was acknowledged
/// here lasts, then so does that.
pub(crate) async fn renew_ties(tenant: &Tenant, account: AccountId) -> Result<Epoch> {
    let tries = &mut Tries::between_splits(account);
    loop {
        let once = async {
            let record = tenant.keys().account(account);
            let write = BucketWrite::new("account_set", &record, LeastState::There)
                .set(RecordField::TIES_STAMP, &draw());
            let Some(answer) = tries.send(tenant, tenant.slot(account), write.alone()).await? else {
                return Ok(None);
            };
            let epoch = answer.epoch.clone();
            // Refused by an account that is gone: nothing is left there to renew.
            answer.ok().map(|_| Some(epoch))
        };
        let once = once.await;
        if let Some(epoch) = tries.ended(once)? {
            return Ok(epoch);
        }
    }
}

/// Looks at whether an account likes a post, and brings the post's list in line with that.
///
/// A list never has a member that its account doesn't like: an addition counts only if nothing was taken off since the
/// look (H126), and who takes one off names a tick that is below the next like.
pub(crate) async fn settle_tie(
    tenant: &Tenant,
    account: AccountId,
    post: PostRef,
    touched: &mut TouchedServers,
) -> Result<RunOutcome> {
    for n in 0..TRIES_MAX {
        // H53, H126: before the look. It may be taken back, and that settled, before what we write arrives.
        let removed = last_removal(tenant, post.id, n).await?;
        let look = look_at(tenant, account, post, touched).await?;
        // What was seen must last before the list says so: else nobody would look again.
        tenant.router().fence(touched).await?;
        let change = match look {
            TieLook::Tied(since) => ListChange::On(since, removed),
            TieLook::Not(tick) => ListChange::OffBelow(tick),
            TieLook::Tree(_) => return Err(Error::internal("the look at a like went on with a tree")),
        };
        let told = Notice::of_list(LIKES, post.id, account, post);
        let is_brought = set_member(tenant, (post, LIKES), (&account, told), change, touched).await?;
        // H53, H126: what was not compared is looked at again.
        let is_sure = removed.is_some() || matches!(look, TieLook::Not(_));
        if is_brought && (is_sure || look_at(tenant, account, post, touched).await? == look) {
            return Ok(RunOutcome::Done);
        }
    }
    let what = format_args!("like of post {} by account {account}", post.id);
    Err(changed_always(ErrorKind::Unavailable, what))
}

async fn look_at(
    tenant: &Tenant,
    account: AccountId,
    post: PostRef,
    touched: &mut TouchedServers,
) -> Result<TieLook> {
    let (keys, sets, set) = (tenant.keys(), tenant.sets(), tenant.likes(account)?);
    for _ in 0..TRIES_MAX {
        let piece = set.piece_of(&post);
        let [root, place] = sets.piece_keys(&piece);
        let of = [keys.account(account), keys.clock(tenant.bucket(account)), root, place];
        let command = functions::tie_look(&of, piece.leaf(), post, tenant.router().now_ms());
        let answer = tenant.router().ask(Request::write(tenant.slot(account), command)).await?;
        touched.add(&answer);
        match TieLook::parse(answer.ok()?)? {
            TieLook::Tree(tree) => drop(sets.piece_heirs(&piece, &tree)?),
            seen => return Ok(seen),
        }
    }
    Err(Error::unavailable(format!(
        "what account {account} likes was split at each of several looks; try again"
    )))
}
