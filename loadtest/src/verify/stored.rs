//! What lies in the keys, for explanations and for breaking it on purpose. Spells keys itself: nothing of the engine
//! may stand between.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::Context as _;
use tideline::bucket::Bucket;
use tideline::cluster::{Command, Reply, Request};
use tideline::sharded::Order;
use tideline::{AccountId, Store};

use super::args::Sabotage;
use super::call::{Call, Switch};
use super::check::{Violation, Wrong};
use super::facts::{Tri, Window};
use super::rules::View;
use super::run::Run;
use super::setup::Setup;
use super::world::PostNo;

const HOME_ENTRY_LEN: usize = 16;
/// Homes that a hole may be made in: of the first accounts, as many as a small run has.
const HOMES_LOOKED_AT: u64 = 45;
/// The fewest entries of a home that is cut soon, and how many older ones stay where one is taken.
const FULL_HOME: usize = 16;
const OLD: usize = 2;
/// Posts that nobody should have that are told.
const UNKNOWN_MAX: usize = 4;

/// An account's mode as its record holds it: a letter, and what tells one change from the next.
pub(crate) async fn mode(store: &Store, account: u64) -> anyhow::Result<Vec<u8>> {
    let (record, slot) = key(store, 'a', account);
    let mode = ask(store, slot, Command::new("HGET").arg(&record).arg("m")).await?;
    Ok(mode.bytes().map_or_else(|_| b"P".to_vec(), <[u8]>::to_vec))
}

/// Whom an account has pull marks of.
pub(crate) async fn marks(store: &Store, account: u64) -> anyhow::Result<Vec<u64>> {
    let (marks, slot) = key(store, 'm', account);
    numbers(store, Command::new("HKEYS").arg(&marks), slot).await
}

/// Whether all that follow an account were summed up since somebody came or went, so that its record tells how many
/// they are.
async fn is_summed(store: &Store, account: u64) -> anyhow::Result<bool> {
    let (record, slot) = key(store, 'a', account);
    Ok(ask(store, slot, Command::new("HEXISTS").arg(&record).arg("nd")).await?.int()? == 0)
}

/// Notes whose followers are summed up.
pub(crate) async fn note_summed(run: &Run, setup: &Setup) -> anyhow::Result<()> {
    let store = setup.store().await?;
    let accounts = run.world().accounts.clone();
    let mut summed = BTreeSet::new();
    for account in accounts {
        if is_summed(&store, account).await? {
            summed.insert(account);
        }
    }
    run.count_event("records that told their followers", u64::try_from(summed.len())?);
    run.world().summed = summed;
    Ok(())
}

/// The top bit of a home's author: not a post, but a watermark.
const WATERMARK: u64 = 1 << 63;

/// A key of an account's own, and its slot.
fn key(store: &Store, letter: char, account: u64) -> (Vec<u8>, u16) {
    key_of(store, letter, account, &account.to_be_bytes())
}

pub(crate) fn key_of(store: &Store, letter: char, account: u64, name: &[u8]) -> (Vec<u8>, u16) {
    let (mut key, slot) = key_of_bucket(store, letter, store.keys().buckets().of_account(account));
    key.extend_from_slice(name);
    (key, slot)
}

/// A key of a bucket's own, and its slot.
pub(crate) fn key_of_bucket(store: &Store, letter: char, bucket: Bucket) -> (Vec<u8>, u16) {
    let buckets = store.keys().buckets();
    let key = format!("{}{{{}}}{letter}", store.keys().prefix(), buckets.tag(bucket));
    (key.into_bytes(), buckets.slot(bucket))
}

pub(crate) async fn ask(store: &Store, slot: u16, command: Command) -> anyhow::Result<Reply> {
    Ok(store.router().call(Request::read(slot, command)).await?)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_be_bytes)
}

/// The posts that an outbox has and that were not deleted.
pub(crate) async fn outbox(store: &Store, author: u64) -> anyhow::Result<Vec<u64>> {
    let (outbox, slot) = key(store, 'o', author);
    let command = Command::new("LRANGE").arg(&outbox).arg("0").arg("-1");
    let elements = ask(store, slot, command).await?.into_array()?;
    // The first one is longer: the floor.
    let ids = elements
        .iter()
        .filter_map(|element| Some(u64::from_be_bytes(element.bytes().ok()?.try_into().ok()?)));
    Ok(ids.filter(|id| id & WATERMARK == 0).collect())
}

/// The entries of a home: id and author, or a watermark.
async fn home(store: &Store, reader: u64) -> anyhow::Result<Vec<(u64, u64)>> {
    let (key, slot) = key(store, 'h', reader);
    let entries =
        ask(store, slot, Command::new("LRANGE").arg(&key).arg("0").arg("-1")).await?.into_array()?;
    let entry = |entry: &Reply| {
        let bytes = entry.bytes().ok().filter(|bytes| bytes.len() == HOME_ENTRY_LEN)?;
        Some((number(&bytes[..8]), number(&bytes[8..])))
    };
    Ok(entries.iter().filter_map(entry).collect())
}

async fn numbers(store: &Store, command: Command, slot: u16) -> anyhow::Result<Vec<u64>> {
    let reply = ask(store, slot, command).await?.into_array()?;
    Ok(reply.iter().filter_map(|field| Some(number(field.bytes().ok()?))).collect())
}

/// Home, pull marks, following of the reader; outbox, mode and edge of the author.
pub(crate) async fn describe(setup: &Setup, violation: &Violation, run: &Run) -> anyhow::Result<String> {
    let store = setup.store().await?;
    let (reader, mut text) = (violation.reader, String::new());
    let post = violation.post.and_then(|no| run.world().post(no).cloned());
    let entries = home(&store, reader).await?;
    let spelled = entries.iter().map(|(id, author)| match *author {
        u64::MAX => format!("|{id}|"),
        author if author & WATERMARK != 0 => format!("|{id} filling|"),
        author => format!("{id} by {author}"),
    });
    let spelled = spelled.collect::<Vec<_>>().join(" ");
    let _ = writeln!(text, "stored, home of {reader} (watermarks between bars): {spelled}");
    let _ = writeln!(text, "stored, pull marks of {reader}: {:?}", marks(&store, reader).await?);
    if violation.wrong == Wrong::Miscounted && violation.other.is_none() {
        for what in ["blocks", "hides"] {
            let set = store.sets().of_account::<AccountId>(AccountId::new(reader)?, what)?.pinned();
            let page = set.page(.., None, 200, Order::Ascending).await?;
            let listed: Vec<u64> = page.entries.iter().map(|(other, _)| other.get()).collect();
            let _ = writeln!(text, "stored, {what} of {reader}: {listed:?}");
        }
        describe_counts(&store, run, &mut text, reader).await?;
    }
    if let (Some(post), Some(id)) = (&post, post.as_ref().and_then(|post| post.id)) {
        describe_post(&store, &mut text, (reader, post.author, id), &entries).await?;
    }
    if let Some(other) = violation.other {
        for (one, other) in [(reader, other), (other, reader)] {
            describe_pair(&store, &mut text, one, other).await?;
        }
    }
    Ok(text)
}

/// An account's record, what its outbox has besides what is known and the other way round, and what each instance
/// counts now.
async fn describe_counts(store: &Store, run: &Run, text: &mut String, account: u64) -> anyhow::Result<()> {
    let (record, slot) = key(store, 'a', account);
    let fields = ask(store, slot, Command::new("HGETALL").arg(&record)).await?.into_array()?;
    let fields = fields.iter().map(|field| field.bytes().map(|bytes| bytes.escape_ascii().to_string()));
    let _ =
        writeln!(text, "stored, record of {account}: {}", fields.collect::<Result<Vec<_>, _>>()?.join(" "));
    let stored: BTreeSet<u64> = outbox(store, account).await?.into_iter().collect();
    let known: BTreeSet<u64> = {
        let (world, now) = (run.world(), run.now());
        let now = Window { from: now, to: now };
        let own = world.posts.iter().flatten().filter(|post| post.author == account);
        own.filter(|post| post.exists(now) != Tri::No).filter_map(|post| post.id).collect()
    };
    let [unknown, missing] = [&stored - &known, &known - &stored];
    let _ = writeln!(text, "stored, in the outbox only: {unknown:?}; known only: {missing:?}");
    for id in unknown.iter().take(UNKNOWN_MAX) {
        let (post, _) = key_of(store, 'w', account, &id.to_be_bytes());
        let post = ask(store, slot, Command::new("GET").arg(&post)).await?;
        let said = post.bytes().map(|bytes| bytes.escape_ascii().to_string());
        let _ = writeln!(text, "stored, post {id}: {said:?}; known: {:?}", run.world().by_id.get(id));
    }
    let _ = writeln!(text, "not known what came of: {}", run.world().unsure_posts(account));
    for instance in 0..run.pool.len() {
        let counted = run.once(instance, Call::Counts { account }).await;
        let _ = writeln!(text, "instance {instance} counts {counted:?}");
    }
    Ok(())
}

async fn describe_post(
    store: &Store,
    text: &mut String,
    (reader, author, id): (u64, u64, u64),
    entries: &[(u64, u64)],
) -> anyhow::Result<()> {
    let (outbox, slot) = key(store, 'o', author);
    let ids = numbers(store, Command::new("LRANGE").arg(&outbox).arg("0").arg("-1"), slot).await?;
    let place = ids.iter().position(|other| other & !WATERMARK == id);
    let is_struck = place.is_some_and(|place| ids[place] & WATERMARK != 0);
    let (record, _) = key_of(store, 'w', author, &id.to_be_bytes());
    let length = ask(store, slot, Command::new("STRLEN").arg(&record)).await?.int()?;
    let is_at_home = entries.contains(&(id, author));
    let _ = writeln!(
        text,
        "stored, post {id}: {length} bytes; in the home: {is_at_home}; in the outbox of {author}: place {place:?} of \
         {}, struck {is_struck}",
        ids.len()
    );
    describe_pair(store, text, reader, author).await
}

async fn describe_pair(store: &Store, text: &mut String, reader: u64, author: u64) -> anyhow::Result<()> {
    let mode = String::from_utf8_lossy(&mode(store, author).await?[..1]).into_owned();
    let (author_id, reader_id) = (AccountId::new(author)?, AccountId::new(reader)?);
    let followers = store.sets().of_account::<AccountId>(author_id, "followers")?;
    let layout = followers.layout().await?;
    let edge = followers.score(&reader_id).await?;
    let follow = store.sets().of_account::<AccountId>(reader_id, "following")?.pinned();
    let follow = follow.score(&author_id).await?;
    let _ = writeln!(
        text,
        "stored, {reader} follows {author} since {follow:?}, its edge there {edge:?}; mode of {author} {mode}, its \
         followers {layout:?}"
    );
    Ok(())
}

/// A reader and a post that shows in its home.
type Victim = (u64, PostNo, u64, u64);

/// Readers, and for each a post of somebody else's that shows in its home: the newest that is no repost.
fn victims(run: &Run) -> Vec<Victim> {
    let world = run.world();
    let now = run.now();
    let of = |reader: &u64| {
        let home = View::new(&world, *reader, Window { from: now, to: now }).home();
        let foreign = home.into_iter().filter_map(|no| Some((no, world.post(no)?)));
        let mut foreign = foreign.filter(|(_, post)| post.author > 10 && post.author != *reader);
        let (no, post) = foreign.find(|(_, post)| post.original.is_none())?;
        Some((*reader, no, post.id?, post.author))
    };
    world.accounts.iter().rev().filter_map(of).collect()
}

/// Takes the names from the first account that has some, or all reports from all buckets.
async fn take_names_or_reports(run: &Run, store: &Store, what: Sabotage) -> anyhow::Result<()> {
    let write = async |slot, command| store.router().call(Request::write(slot, command)).await;
    if what == Sabotage::Name {
        let now = run.now();
        let account =
            run.world().names.somebody(Window { from: now, to: now }).context("nobody has a name")?;
        eprintln!("Sabotage: the names of {account}.");
        let (credentials, slot) = key(store, 'x', account);
        write(slot, Command::new("HDEL").arg(&credentials).arg("c")).await?;
        return Ok(());
    }
    let buckets = store.keys().buckets();
    for bucket in buckets.all() {
        let ((open, slot), (resolved, _)) =
            (key_of_bucket(store, 'b', bucket), key_of_bucket(store, 'B', bucket));
        write(slot, Command::new("DEL").arg(&open).arg(&resolved)).await?;
    }
    Ok(())
}

/// Removes an entry from a home, if it is there.
async fn remove_entry(store: &Store, reader: u64, (id, author): (u64, u64)) -> anyhow::Result<bool> {
    let (home, slot) = key(store, 'h', reader);
    let entry = [id.to_be_bytes(), author.to_be_bytes()].concat();
    let remove = Command::new("LREM").arg(&home).arg("0").arg(&entry);
    Ok(store.router().call(Request::write(slot, remove)).await?.int()? > 0)
}

/// Takes an entry out of the first home that holds what its reader sees: others end above that post.
async fn take_entry(run: &Run, store: &Store) -> anyhow::Result<Victim> {
    for victim in victims(run) {
        let (reader, _, id, author) = victim;
        // The home must be there, or the engine would be right without it.
        drop(run.call(0, super::call::Call::Warm { account: reader }).await);
        if remove_entry(store, reader, (id, author)).await? {
            return Ok(victim);
        }
    }
    anyhow::bail!("no home holds what its reader sees")
}

/// Takes an old entry out of each home that has just got this post, if it is full: one that is cut away soon, and that
/// no first page shows. Tells whether there was any.
pub(super) async fn take_old_entries(store: &Store, post: u64) -> anyhow::Result<bool> {
    let mut is_taken = false;
    for reader in 1..=HOMES_LOOKED_AT {
        let entries = home(store, reader).await?;
        if entries.len() < FULL_HOME || !entries.iter().any(|(id, _)| *id == post) {
            continue;
        }
        let Some((id, author)) = entries.into_iter().filter(|(_, author)| author & WATERMARK == 0).nth(OLD)
        else {
            continue;
        };
        is_taken |= remove_entry(store, reader, (id, author)).await?;
    }
    Ok(is_taken)
}

/// Has the first home filled that lacks its reader's post then: its author's outbox has not got that post yet, nor
/// newer ones.
async fn fill_from_stale(run: &Run, store: &Store) -> anyhow::Result<Victim> {
    let write = async |slot, command| store.router().call(Request::write(slot, command)).await;
    for victim in victims(run) {
        let (reader, _, id, author) = victim;
        let (outbox, slot) = key(store, 'o', author);
        let ids =
            ask(store, slot, Command::new("LRANGE").arg(&outbox).arg("0").arg("-1")).await?.into_array()?;
        let ids: Vec<&[u8]> = ids.iter().filter_map(|id| id.bytes().ok()).collect();
        // The first one is no post, but the floor.
        let older = ids.iter().skip(1).take_while(|other| number(other) & !WATERMARK < id).count() + 1;
        let newest = ids.get(older..).filter(|newest| !newest.is_empty());
        let Some(newest) = newest else { continue };
        let (home_key, home_slot) = key(store, 'h', reader);
        write(home_slot, Command::new("DEL").arg(&home_key)).await?;
        let last = (older - 1).to_string();
        write(slot, Command::new("LTRIM").arg(&outbox).arg("0").arg(&last)).await?;
        drop(run.call(0, super::call::Call::Warm { account: reader }).await);
        let restore = newest.iter().fold(Command::new("RPUSH").arg(&outbox), |restore, id| restore.arg(*id));
        write(slot, restore).await?;
        let filled = home(store, reader).await?;
        if !filled.is_empty() && !filled.contains(&(id, author)) {
            return Ok(victim);
        }
    }
    anyhow::bail!("no home could be filled")
}

/// Breaks something that this test must find.
pub(crate) async fn sabotage(run: &Arc<Run>, setup: &Setup, what: Sabotage) -> anyhow::Result<()> {
    let store = setup.store().await?;
    let (reader, no, id, author) = match what {
        Sabotage::HomeEntry => take_entry(run, &store).await?,
        Sabotage::StaleFill => fill_from_stale(run, &store).await?,
        Sabotage::Name | Sabotage::Reports => return take_names_or_reports(run, &store, what).await,
        _ => *victims(run).first().context("there is nothing to break")?,
    };
    eprintln!("Sabotage: {what:?}; reader {reader}, post {no} ({id}) by {author}.");
    let write = async |slot, command| store.router().call(Request::write(slot, command)).await;
    match what {
        Sabotage::Post => {
            let (post, slot) = key_of(&store, 'w', author, &id.to_be_bytes());
            write(slot, Command::new("DEL").arg(&post)).await?;
        }
        Sabotage::Follow => {
            let pair = (reader, author);
            let now = run.now();
            run.world().follow_fact(pair).settle(now, false);
        }
        Sabotage::Mute => {
            let now = run.now();
            run.world().switch_fact(Switch::Mute, reader, author).change(now, now, true);
        }
        Sabotage::Edge => {
            let followers = store.sets().of_account::<AccountId>(AccountId::new(author)?, "followers")?;
            followers.remove(&[AccountId::new(reader)?]).await?;
        }
        // Taken above, or what instances do.
        _ => {}
    }
    Ok(())
}
