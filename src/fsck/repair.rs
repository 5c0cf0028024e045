//! Putting right what is out of step, by the ways that the engine has for that: a journal entry that has it looked at
//! again, a home that is dropped (the next read fills it), a function that looks once more before it writes. So a repair
//! that comes too late does nothing, and one that is repeated does nothing more.

use std::sync::Arc;

use super::deviation::{Deviation, FindingKind};
use super::key::{Form, form_of, list_of, owner_of};
use super::look::is_there;
use super::unit::Unit;
use super::{names, pairs, records, sets};
use crate::bucket::Bucket;
use crate::change::{BucketChange, Tries};
use crate::cluster::{Command, Reply, Request, Touched};
use crate::delivery::DeliverTask;
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{self, BucketWrite, Marking, MustBe, Writer};
use crate::graph::Graph;
use crate::graph::{
    self, BuryTask, ListTask, PairTask, ReferTask, TieTask, count_followers, graph_stamp, note_followers,
    take_off_list,
};
use crate::ids::AccountId;
use crate::journal;
use crate::keys::{Place, slot_of_key};
use crate::modes::ModeTask;
use crate::nonce::draw;
use crate::post::PostRef;
use crate::sharded::{LocalKey, SortedSet, State};
use crate::stored::stored_post;
use crate::tenant::Tenant;

/// Puts one deviation right, or has that done. Gives what should be looked at afterwards, besides itself.
pub(super) async fn repair(
    graph: &Arc<Graph>,
    deviation: &Deviation,
    drops_unreadable: bool,
) -> Result<Vec<Unit>> {
    match deviation {
        Deviation::Edge { kind, reader, author, .. } => edge(graph, *kind, *reader, *author).await?,
        Deviation::Nonce { kind: FindingKind::MarkMayGo, reader, author, .. } => {
            look_at_pair(graph, *reader, *author, true).await?;
        }
        Deviation::Nonce { reader, author, mark, .. } => {
            let marks = graph.keys().marks(*reader);
            write(graph, *reader, functions::field_drop(marks, &author.to_bytes(), mark)).await?;
        }
        Deviation::Request { reader, author, .. } => request(graph, *reader, *author).await?,
        Deviation::EntryMissing { reader, .. } => drop_home(graph, *reader).await?,
        Deviation::Home { kind, reader, detail } => home(graph, *kind, *reader, *detail).await?,
        Deviation::Count { account, field: "p", .. } => posts(graph, *account).await?,
        Deviation::Count { account, field: records::FOLLOWERS, .. } => {
            note_followers(graph, *account, &mut Touched::new()).await?;
            count_followers(graph, *account).await?;
        }
        Deviation::Count { account, field, .. } => size(graph, *account, field).await?,
        Deviation::ModeStuck { account, random } => {
            let task = ModeTask { author: *account, random: *random };
            journal::add(&graph.journal, graph.bucket(*account), task).await?;
        }
        Deviation::BurialStuck { account } => {
            journal::add(&graph.journal, graph.bucket(*account), BuryTask { account: *account }).await?;
        }
        Deviation::Outbox { author, post, .. } => {
            let keys = graph.keys();
            let of = [keys.post(*post), keys.outbox(*author), keys.account(*author)];
            let mended = write(graph, *author, functions::outbox_mend(&of, *author, post.get())).await?;
            if mended.int()? == 1 {
                let task = DeliverTask { post: *post, author: *author };
                journal::add(&graph.journal, graph.bucket(*author), task).await?;
            }
        }
        Deviation::Listing { .. }
        | Deviation::ListEntry { .. }
        | Deviation::Tie { .. }
        | Deviation::Reposted { .. }
        | Deviation::PostCount { .. } => around_a_post(graph, deviation).await?,
        Deviation::Misplaced { set, spot, member } => {
            graph.sets().remove_at(set, *spot, member).await?;
            let of = AccountId::from_bytes(member).ok().zip(owner_of(&set.name));
            let pair = of.filter(|(_, (_, what))| *what == b"followers");
            let pair = pair.map(|(member, (owner, _))| Unit::Pair(member, owner));
            return Ok(pair.into_iter().chain([Unit::Structure(set.clone())]).collect());
        }
        Deviation::Set { kind, set, detail } => return set_of(graph, *kind, set, detail).await,
        Deviation::Piece { set, piece, .. } => graph.sets().drop_piece(set, *piece).await?,
        Deviation::Key { kind, key, owner, detail } => {
            loose(graph, *kind, key, *owner, detail).await?;
        }
        Deviation::Journal { kind: FindingKind::EntryStale, bucket, entry, value } => {
            let _place = journal::reserve(&graph.journal, 1)?;
            journal::claim(&graph.journal, graph.journal.parse(*bucket, entry, value)?).await?;
        }
        Deviation::Lease { name } => {
            let slot = graph.keys().buckets().slot(Bucket(0));
            let command = Command::new("HDEL").arg(&graph.keys().living()).arg(name);
            graph.router().call(Request::write(slot, command)).await?;
        }
        Deviation::Claim { .. } | Deviation::Names { .. } => return names::repair(graph, deviation).await,
        Deviation::Unreadable { unit, .. } if drops_unreadable => unreadable(graph, unit).await?,
        Deviation::Journal { .. } | Deviation::Unreadable { .. } => return Err(left_alone()),
    }
    Ok(Vec::new())
}

/// Lists of posts, and what accounts have done with posts.
async fn around_a_post(graph: &Arc<Graph>, deviation: &Deviation) -> Result<()> {
    match deviation {
        Deviation::ListEntry { kind, post, author, list } => {
            if *kind == FindingKind::ListingNeedless {
                take_off_list(graph, *post, *author, *list).await?;
            }
            // An edit may have named the list meanwhile.
            let task = ListTask { post: *post, author: *author };
            journal::add(&graph.journal, post.bucket(graph.keys().buckets()), task).await?;
        }
        Deviation::Listing { post, author, to, kind } => {
            listing(graph, *kind, ReferTask { post: *post, author: *author, to: *to }).await?;
        }
        Deviation::Tie { kind: FindingKind::TieOfNothing, what, account, post, .. } => {
            graph::set_tie(graph, *account, *post, *what, false).await?;
        }
        Deviation::Tie { account, post, .. } => {
            let task = TieTask { account: *account, post: *post };
            journal::add(&graph.journal, graph.bucket(*account), task).await?;
        }
        Deviation::Reposted { kind, account, original, repost } => {
            let (noted, place) = (graph.reposts(*account)?, repost.place(graph.keys().buckets()));
            match kind {
                FindingKind::RepostUnnoted => noted.add_greater(&[(*original, place)]).await?,
                // Only this note: the next repost of the same has a higher place.
                _ => noted.remove_below(&[(*original, place + 1.0)]).await?,
            };
            // So that no instance goes on with what it remembers.
            graph::renew_ties(graph, *account).await?;
        }
        Deviation::PostCount { post, author, list, .. } => {
            graph::recount(graph, PostRef { id: *post, author: *author }, *list).await?;
        }
        _ => {}
    }
    Ok(())
}

/// Deletes a post that still can't be read: of the account whose outbox has it; else of whoever it says that it is.
async fn unreadable(graph: &Arc<Graph>, unit: &Unit) -> Result<()> {
    let (post, listed_by) = match unit {
        Unit::Post(post) => (*post, None),
        Unit::Listed { post, author } => (*post, Some(*author)),
        _ => return Err(left_alone()),
    };
    let answer = graph.router().ask(graph.post_request(post)).await?;
    if let Err(unreadable) = stored_post(answer)? {
        let author = listed_by.or(unreadable.author());
        graph::drop_unreadable(graph, post, &unreadable, author).await?;
    }
    Ok(())
}

pub(super) fn left_alone() -> Error {
    Error::new(ErrorKind::Invalid, "left to a person: nobody can tell what it should be")
}

async fn write(tenant: &Tenant, account: AccountId, command: Command) -> Result<Reply> {
    tenant.router().call(Request::write(tenant.slot(account), command)).await
}

async fn look_at_pair(
    graph: &Arc<Graph>,
    reader: AccountId,
    author: AccountId,
    may_drop: bool,
) -> Result<()> {
    let task = PairTask { reader, author, may_drop };
    journal::add(&graph.journal, graph.bucket(reader), task).await.map(drop)
}

async fn edge(graph: &Arc<Graph>, kind: FindingKind, reader: AccountId, author: AccountId) -> Result<()> {
    match kind {
        FindingKind::MarkMissing => mark(graph, reader, author).await,
        FindingKind::EdgeMissing | FindingKind::EdgeOld => {
            // What was posted meanwhile has reached nobody: pulled first, then completed like a new follow.
            mark(graph, reader, author).await?;
            look_at_pair(graph, reader, author, true).await
        }
        _ => look_at_pair(graph, reader, author, false).await,
    }
}

/// Has a reader pull an author, if it follows.
async fn mark(tenant: &Tenant, reader: AccountId, author: AccountId) -> Result<()> {
    let head = tenant.keys().bucket_head(tenant.bucket(reader));
    let marking = Marking { head, author, mark: draw(), stamp: draw() };
    let command = marking.accounts(tenant.keys().marks(reader), &[reader]);
    let request = Request::write(tenant.slot(reader), command).touching_undeclared_keys().once();
    tenant.router().call(request).await.map(drop)
}

async fn request(graph: &Arc<Graph>, reader: AccountId, author: AccountId) -> Result<()> {
    let [requested, waiting, approved] = pairs::request_state(graph, reader, author).await?;
    if requested.is_some() {
        return look_at_pair(graph, reader, author, true).await;
    }
    let keys = graph.keys();
    for (hash, value) in [(keys.waiting(author), waiting), (keys.approved(author), approved)] {
        if let Some(value) = value {
            write(graph, author, functions::field_drop(hash, &reader.to_bytes(), &value)).await?;
        }
    }
    Ok(())
}

async fn drop_home(tenant: &Tenant, reader: AccountId) -> Result<()> {
    write(tenant, reader, Command::new("UNLINK").arg(&tenant.keys().home(reader))).await.map(drop)
}

async fn home(tenant: &Tenant, kind: FindingKind, reader: AccountId, detail: u64) -> Result<()> {
    let keys = tenant.keys();
    let home = keys.home(reader);
    match kind {
        FindingKind::FillHalted => {
            write(tenant, reader, functions::home_drop(home, &detail.to_be_bytes())).await.map(drop)
        }
        FindingKind::HomeUnlisted => {
            let day = Command::new("HGET").arg(&keys.account(reader)).arg("d");
            let day = tenant.router().call(Request::read(tenant.slot(reader), day)).await?;
            let day = day.count().ok().and_then(|day| u32::try_from(day).ok()).filter(|day| *day > 0);
            let day = day.unwrap_or_else(|| tenant.today());
            tenant.router().call(tenant.read_noted(reader, day)).await.map(drop)
        }
        FindingKind::HomeTooLong => {
            write(tenant, reader, functions::home_tidy(home.clone(), tenant.fit())).await?;
            let length = Command::new("LLEN").arg(&home);
            let length = tenant.router().call(Request::read(tenant.slot(reader), length)).await?.count()?;
            if length > tenant.fit().most() { drop_home(tenant, reader).await } else { Ok(()) }
        }
        _ => drop_home(tenant, reader).await,
    }
}

async fn posts(tenant: &Tenant, account: AccountId) -> Result<()> {
    let Some(posts) = records::posts(tenant, account).await? else { return Ok(()) };
    let keys = [tenant.keys().account(account), tenant.keys().outbox(account)];
    let command = functions::posts_recount(&keys, posts.told, &posts.last, posts.counted);
    // Posted or deleted meanwhile: found again, and counted again.
    write(tenant, account, command).await.map(drop)
}

async fn size(graph: &Arc<Graph>, account: AccountId, field: &'static str) -> Result<()> {
    let sets = records::counted(graph, account)?;
    let Some((_, set)) = sets.into_iter().find(|(of, _)| *of == field) else { return Ok(()) };
    let mut tries = Tries::of(account);
    while tries.begin().is_ok() {
        let (seen, _) = graph_stamp(graph, account).await?;
        let size = set.len().await?.to_string();
        let write = BucketWrite::new("account_set", &graph.keys().account(account), Writer::There)
            .compare([("g", MustBe::Exactly(Some(seen)))])
            .set("g", &draw())
            .set(field, size.as_bytes());
        let change = BucketChange::new(&graph.journal, account, write, "be changed");
        if change.write(&mut tries).await?.is_some() {
            break;
        }
    }
    Ok(())
}

async fn listing(graph: &Arc<Graph>, kind: FindingKind, task: ReferTask) -> Result<()> {
    let ReferTask { post, author, to } = task;
    let buckets = graph.keys().buckets();
    let exists = Command::new("EXISTS").arg(&graph.keys().post(post));
    let exists = graph.router().call(Request::read(buckets.slot(post.bucket(buckets)), exists)).await?;
    if kind == FindingKind::ListingNeedless && exists.int()? == 1 {
        // It refers to something else, and always will.
        return graph::unlist(graph, to, PostRef { id: post, author }).await;
    }
    journal::add(&graph.journal, post.bucket(buckets), task).await.map(drop)
}

async fn set_of(tenant: &Tenant, kind: FindingKind, set: &LocalKey, detail: &[u8]) -> Result<Vec<Unit>> {
    let sets_ = tenant.sets();
    match kind {
        FindingKind::GuardLeft => {
            let guard = tenant.keys().guard(set.bucket, &set.name);
            let slot = tenant.keys().buckets().slot(set.bucket);
            let close = Request::write(slot, functions::string_drop(guard, detail));
            tenant.router().call(close).await?;
        }
        FindingKind::TreeCountWrong => {
            let sight = sets_.sight(set).await?;
            sets_.recount(set, &sight, true).await?;
            // The record of its owner repeats the number, or the post whose list it is.
            let owner = owner_of(&set.name).map(|(owner, _)| Unit::Record(owner));
            let post = list_of(&set.name).map(|(post, _)| Unit::Post(post));
            return Ok(owner.into_iter().chain(post).collect());
        }
        FindingKind::ListOrphaned => {
            let Some((post, _)) = list_of(&set.name) else { return Ok(Vec::new()) };
            graph::drop_lists(tenant, &[post], &mut Touched::new()).await?;
        }
        _ => {
            // Only of its own sets the engine knows what members are.
            if owner_of(&set.name).is_none() && list_of(&set.name).is_none() {
                return Err(left_alone());
            }
            let root = sets::root_of(tenant, set)?;
            let whole = SortedSet::<AccountId>::beginning_at(sets_, &root);
            let (members, state) = sets::state_of(tenant, &root).await?;
            let is_orphaned = kind == FindingKind::PartOrphaned;
            // Far from being spread, nobody will look into the parts soon. Else they become parts of it, and what
            // doesn't belong there is found by what it means.
            let never_spreads = list_of(&set.name).is_some();
            if is_orphaned && state == State::Local && (never_spreads || members < sets_.spread_at() / 2) {
                drop_set(tenant, set).await?;
            } else {
                whole.spread().await?;
                return Ok(vec![Unit::Set(set.clone())]);
            }
        }
    }
    Ok(Vec::new())
}

/// Drops a part that belongs to nothing.
async fn drop_set(tenant: &Tenant, set: &LocalKey) -> Result<()> {
    let keys = tenant.sets().stored_keys(set).await?;
    let unlink = keys.iter().fold(Command::new("UNLINK"), |command, key| command.arg(key));
    let slot = tenant.keys().buckets().slot(set.bucket);
    tenant.router().call(Request::write(slot, unlink)).await.map(drop)
}

async fn loose(
    tenant: &Tenant,
    kind: FindingKind,
    key: &[u8],
    owner: Option<AccountId>,
    detail: &[u8],
) -> Result<()> {
    let Some(owner) = owner else { return Err(left_alone()) };
    let keys = tenant.keys();
    let form = form_of(keys, key);
    let command = match (kind, form) {
        (FindingKind::TokenEndless, _) => {
            let ttl = u64::try_from(tenant.settings.token_ttl.as_millis()).unwrap_or(u64::MAX);
            Command::new("PEXPIRE").arg(key).arg(ttl)
        }
        (FindingKind::TokenOfNoPost, _) => functions::string_drop(key.to_vec(), detail),
        (_, Form::Home(account)) => {
            let days = keys.days(tenant.bucket(account));
            functions::home_sweep(days, key.to_vec(), &account.to_bytes(), u32::MAX, None)
        }
        (_, Form::Set(set)) if set.place == Place::Part => {
            // In another slot than its account: nothing could look once more and drop it in one go. An account that is
            // created meanwhile has no followers to lose.
            return if is_there(tenant, owner).await? { Ok(()) } else { drop_set(tenant, &set).await };
        }
        (_, Form::Set(set)) => {
            let of = tenant.sets().stored_keys(&set).await?;
            let all: Vec<Vec<u8>> = std::iter::once(keys.account(owner)).chain(of).collect();
            functions::orphan_drop(&all)
        }
        _ => functions::orphan_drop(&[keys.account(owner), key.to_vec()]),
    };
    tenant.router().call(Request::write(slot_of_key(key), command)).await.map(drop)
}
