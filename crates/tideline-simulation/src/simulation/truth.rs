//! What is true, read from the stores themselves: whom an account follows, what it has posted, what is delivered.

use std::collections::{BTreeMap, BTreeSet};

use super::data::{Bytes, Data};
use super::shape::OUTBOX_SLACK;
use super::world::World;
use crate::Mode;
use crate::ids::{AccountId, PostId};
use crate::keys::{OwnKey, Place, set_of_account};
use crate::post::{NamedList, Post, PostRef, TagKey};
use crate::sharded::hash;
use crate::stored::ArchiveFloor;

/// Whom an account follows, mutes, blocks, hides from; with the scores, which tell one follow from the next.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct State {
    pub(super) following: BTreeMap<AccountId, f64>,
    pub(super) mutes: BTreeMap<AccountId, f64>,
    pub(super) blocks: BTreeMap<AccountId, f64>,
    pub(super) hides: BTreeMap<AccountId, f64>,
    /// Whose reposts it leaves out, and when mutes of its end (ms).
    pub(super) hidden_reposts: BTreeSet<AccountId>,
    mute_ends: BTreeMap<AccountId, u64>,
}

impl State {
    pub(super) fn of(world: &World, account: AccountId) -> Self {
        let set = |what| members(world, account, what);
        let remarks = |own| {
            let says =
                move |of: &AccountId| Some((*of, field(world, account, &world.keys.own(own, account), *of)?));
            world.accounts.iter().filter_map(says)
        };
        let end = |(of, says): (AccountId, Bytes)| Some((of, u64::from_be_bytes(says[1..].try_into().ok()?)));
        Self {
            following: set("following"),
            mutes: set("mutes"),
            blocks: set("blocks"),
            hides: set("hides"),
            hidden_reposts: remarks(OwnKey::HiddenReposts).map(|(of, _)| of).collect(),
            mute_ends: remarks(OwnKey::MuteEnds).filter_map(end).collect(),
        }
    }

    /// Whether it mutes that account at this time.
    pub(super) fn mutes_at(&self, of: AccountId, now_ms: u64) -> bool {
        self.mutes.contains_key(&of) && self.mute_ends.get(&of).is_none_or(|end| *end > now_ms)
    }
}

/// Which of the accounts are in a set of one of them that stays local.
fn members(world: &World, of: AccountId, what: &str) -> BTreeMap<AccountId, f64> {
    let data = world.data_of(of);
    let (bucket, name) = (world.keys.bucket_of(of), set_of_account(what, of));
    let key = world.keys.set(Place::Whole, bucket, &name);
    let score = |member: &AccountId| {
        let bytes = member.to_bytes();
        let place = match data.text(&key) {
            Ok(Some(tree)) => world.keys.piece(Place::Whole, bucket, &name, leaf(tree, hash(&bytes))),
            _ => key.clone(),
        };
        data.zset(&place).ok()??.get(bytes.as_slice()).copied()
    };
    world.accounts.iter().filter_map(|member| Some((*member, score(member)?))).collect()
}

/// The piece in which members with that hash are.
fn leaf(tree: &[u8], hash: u32) -> u32 {
    let is_split = |node: usize| tree.get(16 + node / 8).is_some_and(|byte| byte >> (7 - node % 8) & 1 == 1);
    let (mut piece, mut depth) = (0, 0);
    while is_split(1 << depth | piece as usize) {
        depth += 1;
        piece = hash & ((1 << depth) - 1);
    }
    piece
}

/// All pieces that have members.
pub(super) fn leaves(tree: &[u8]) -> Vec<u32> {
    let is_split = |node: usize| tree.get(16 + node / 8).is_some_and(|byte| byte >> (7 - node % 8) & 1 == 1);
    let (mut leaves, mut open) = (Vec::new(), vec![(0_u32, 0_u32)]);
    while let Some((piece, depth)) = open.pop() {
        match is_split(1 << depth | piece as usize) {
            true => open.extend([(piece, depth + 1), (piece | 1 << depth, depth + 1)]),
            false => leaves.push(piece),
        }
    }
    leaves
}

/// An account's posts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Posts {
    /// Not deleted, and above the outbox's floor.
    pub(super) live: BTreeSet<u64>,
    /// Those that have left the outbox. Nobody finds them there any more; a home that has them may show them still.
    pub(super) cut: BTreeSet<u64>,
    /// Up to here they have left it.
    pub(super) floor: u64,
    pub(super) deleted: BTreeSet<u64>,
    /// Up to here they have left memory. Which of those were deleted nobody knows any more.
    pub(super) archived: u64,
    /// Whose delivery isn't finished.
    pub(super) unsettled: BTreeSet<u64>,
}

impl Posts {
    /// All that are there.
    pub(super) fn all(&self) -> impl Iterator<Item = u64> {
        self.live.iter().chain(&self.cut).copied()
    }
}

pub(super) fn posts(world: &World, author: AccountId) -> Posts {
    let data = world.data_of(author);
    let mut posts = Posts::default();
    let number = |bytes: &[u8]| Some(u64::from_be_bytes(bytes.try_into().ok()?));
    let outbox = data.list(&world.keys.outbox(author)).ok().flatten().map_or(&[][..], Vec::as_slice);
    posts.floor = floor_of(outbox);
    if posts.floor > 0 {
        posts.cut = stored(world, author).into_iter().filter(|id| *id <= posts.floor).collect();
    }
    let archived = archived_upto(world, author);
    posts.archived = archived;
    posts.live.extend(archived_posts(world, author));
    for element in outbox {
        match number(element) {
            // A move that has failed half-way.
            Some(id) if id & (u64::MAX >> 1) <= archived => {}
            Some(id) if id >> 63 == 1 => drop(posts.deleted.insert(id & (u64::MAX >> 1))),
            Some(id) if is_half_deleted(world, data, id) => drop(posts.deleted.insert(id)),
            Some(id) if id <= posts.floor => {}
            Some(id) => drop(posts.live.insert(id)),
            None => {}
        }
    }
    let journal = data.hash(&world.keys.journal(world.keys.bucket_of(author))).ok().flatten();
    for value in journal.into_iter().flat_map(BTreeMap::values) {
        if value.get(8) == Some(&b'D') && value.get(17..25) == Some(author.to_bytes().as_slice()) {
            posts.unsettled.extend(value.get(9..17).and_then(number));
        }
    }
    posts
}

/// Up to which id posts have left an outbox. Its floor comes first; of a cut that has failed half-way the new one
/// stands between ids, and no pull finds what it took the place of (torn seed 391, `LTRIM` fails).
fn floor_of(outbox: &[Bytes]) -> u64 {
    let floor = |element: &Bytes| Some(u64::from_be_bytes(element.strip_prefix(b"F")?.try_into().ok()?));
    outbox.iter().filter_map(floor).max().unwrap_or(0)
}

/// The ids of all posts of an author in memory, wherever they are listed.
fn stored(world: &World, author: AccountId) -> BTreeSet<u64> {
    let head = world.keys.post_head(world.keys.bucket_of(author));
    let data = world.data_of(author);
    let ids =
        data.keys().filter_map(|key| Some(u64::from_be_bytes(key.strip_prefix(&*head)?.try_into().ok()?)));
    ids.filter(|id| post(world, *id, author).is_some()).collect()
}

/// How many outboxes some posts have left.
pub(super) fn cut_outboxes(world: &World) -> u64 {
    let is_cut = |account: &&AccountId| {
        let outbox = world.data_of(**account).list(&world.keys.outbox(**account));
        outbox.ok().flatten().is_some_and(|outbox| floor_of(outbox) > 0)
    };
    world.accounts.iter().filter(is_cut).count() as u64
}

/// What an outbox lacks of its author's posts, or keeps: all above its floor, at least as many ids as it may list if
/// any have left it, and not many more.
fn miscut(world: &World, account: AccountId) -> Vec<String> {
    let outbox = world.data_of(account).list(&world.keys.outbox(account)).ok().flatten();
    let outbox = outbox.map_or(&[][..], Vec::as_slice);
    let (floor, listed) = (floor_of(outbox), outbox.len().saturating_sub(1));
    let most = world.outbox_posts as usize;
    let named = posts(world, account).live;
    let unnamed = stored(world, account).into_iter().filter(|id| *id > floor && !named.contains(id));
    let mut wrong: Vec<String> =
        unnamed.map(|id| format!("its outbox lacks {id}, which is above its floor, {floor}")).collect();
    // Where a cut has failed half-way its floor stands between ids, and the next one goes on from there.
    if world.torn_calls == 0 && (floor > 0 && listed < most || listed > most + OUTBOX_SLACK) {
        wrong.push(format!("its outbox lists {listed}, its floor is {floor}; it may list {most}"));
    }
    wrong
}

/// Whether a deletion has taken a post away and then failed, before it came to the outbox: the post is gone, and what
/// quotes it stands for itself, whatever the outbox says (torn seed 1 had `post_delete` fail so; whoever asked for it
/// was told that nothing was done).
fn is_half_deleted(world: &World, data: &Data, id: u64) -> bool {
    let is_gone = |id: PostId| data.text(&world.keys.post(id)).ok().flatten().is_none();
    world.torn_calls > 0 && PostId::from_u64(id).is_ok_and(is_gone)
}

/// A post, if it is there, in memory or in the archive, and by that author.
pub(super) fn post(world: &World, id: u64, author: AccountId) -> Option<Post> {
    let post_id = PostId::from_u64(id).ok()?;
    let hot = world.data_of(author).text(&world.keys.post(post_id)).ok()?;
    let archived = || {
        let row = world.archive.as_ref()?.post(post_id).filter(|row| row.owner == author)?;
        (id <= archived_upto(world, author)).then_some(&row.stored)
    };
    let stored = hot.or_else(archived)?;
    Post::parse(stored).ok().filter(|post| post.header().author == author)
}

/// Whether a post lies in memory.
pub(super) fn is_hot(world: &World, post: PostRef) -> bool {
    world.data_of(post.author).has(&world.keys.post(post.id))
}

/// Up to which id the archive has an account's posts; 0: none.
pub(super) fn archived_upto(world: &World, author: AccountId) -> u64 {
    let outbox = world.data_of(author).list(&world.keys.outbox(author)).ok().flatten();
    let floors =
        outbox.map_or(&[][..], Vec::as_slice).iter().filter_map(|element| ArchiveFloor::parse(element));
    floors.map(|floor| floor.upto.get()).max().unwrap_or(0)
}

/// Whether a post is in memory below its author's floor, and the archive has forgotten it.
pub(super) fn half_forgotten(world: &World) -> bool {
    let is_lacking = |author: &AccountId| {
        let (upto, archived) = (archived_upto(world, *author), archived_posts(world, *author));
        !is_deleted(world, *author)
            && stored(world, *author).into_iter().any(|id| id <= upto && !archived.contains(&id))
    };
    world.archive.is_some() && world.accounts.iter().any(is_lacking)
}

/// An account's posts in the archive, as far as they count.
fn archived_posts(world: &World, author: AccountId) -> Vec<u64> {
    let upto = archived_upto(world, author);
    let rows = world.archive.iter().flat_map(|archive| archive.of(author));
    rows.map(PostId::get).filter(|id| *id <= upto).collect()
}

/// The posts that may be on a list, and whether they name it as they are now.
pub(super) fn naming(world: &World, list: NamedList, tags: TagKey) -> BTreeMap<(u64, AccountId), bool> {
    let mut naming = BTreeMap::new();
    for author in world.accounts.iter().filter(|author| !is_deleted(world, **author)) {
        for id in posts(world, *author).all() {
            let Some(post) = post(world, id, *author) else { continue };
            if post.lists_ever(tags).contains(&list) {
                naming.insert((id, *author), post.lists(tags).contains(&list));
            }
        }
    }
    naming
}

/// Whether an account is deleted, or being deleted.
pub(super) fn is_deleted(world: &World, account: AccountId) -> bool {
    let record = world.data_of(account).hash(&world.keys.account(account)).ok().flatten();
    record.and_then(|record| record.get(b"s".as_slice())).is_some_and(|state| state == b"d")
}

/// Whether an account is locked.
pub(super) fn is_locked(world: &World, account: AccountId) -> bool {
    let record = world.data_of(account).hash(&world.keys.account(account)).ok().flatten();
    record.and_then(|record| record.get(b"l".as_slice())).is_some_and(|lock| lock == b"1")
}

/// How accounts stand to each other, besides whom they follow.
pub(super) struct Between {
    pub(super) unasked: BTreeSet<(AccountId, AccountId)>,
    /// What one has asked of the other.
    pub(super) requested: BTreeMap<(AccountId, AccountId), Bytes>,
}

impl Between {
    pub(super) fn of(world: &World) -> Self {
        let request = |reader: AccountId, author: AccountId| {
            Some(((reader, author), field(world, reader, &world.keys.requested(reader), author)?))
        };
        let all = world.accounts.iter().flat_map(|r| world.accounts.iter().map(move |a| (*r, *a)));
        Self { unasked: unasked(world), requested: all.filter_map(|(r, a)| request(r, a)).collect() }
    }
}

/// Follows whose author is still to be asked whether it is locked.
pub(super) fn unasked(world: &World) -> BTreeSet<(AccountId, AccountId)> {
    let is_new = |reader: AccountId, author: AccountId| {
        let mark = field(world, reader, &world.keys.marks(reader), author);
        mark.is_some_and(|mark| mark.starts_with(b"new\0"))
    };
    let all = world.accounts.iter().flat_map(|r| world.accounts.iter().map(move |a| (*r, *a)));
    all.filter(|(reader, author)| is_new(*reader, *author)).collect()
}

/// Edges that are noted, and not looked at yet.
pub(super) fn noted_edges(world: &World) -> usize {
    let notes = world.keys.buckets().all().zip(&world.nodes);
    let length =
        |bucket, data: &Data| data.zset(&world.keys.notes(bucket)).ok().flatten().map_or(0, BTreeMap::len);
    notes.map(|(bucket, node)| length(bucket, &node.data)).sum()
}

/// Whether a request to follow has been approved, and nobody has made a follow of it.
pub(super) fn is_forgotten(world: &World, reader: AccountId, author: AccountId) -> bool {
    let request = field(world, reader, &world.keys.requested(reader), author);
    request.is_some() && request == field(world, author, &world.keys.approved(author), reader)
}

/// Whether an account's list of those who wait for its answer is wrong about one of them.
pub(super) fn is_misled(world: &World, reader: AccountId, author: AccountId) -> bool {
    let request = field(world, reader, &world.keys.requested(reader), author);
    request != field(world, author, &world.keys.waiting(author), reader)
}

/// What one of an account's hashes says of another account.
fn field(world: &World, account: AccountId, key: &[u8], of: AccountId) -> Option<Bytes> {
    world.data_of(account).hash(key).ok().flatten()?.get(of.to_bytes().as_slice()).cloned()
}

/// What an account's posts say.
pub(super) fn texts(world: &World, author: AccountId) -> Vec<String> {
    let text = |id: u64| Some(post(world, id, author)?.content().text.clone());
    posts(world, author).all().filter_map(text).collect()
}

/// Entries in all journals.
pub(super) fn journal_entries(world: &World) -> usize {
    let length = |(bucket, data): (crate::bucket::Bucket, &Data)| {
        data.hash(&world.keys.journal(bucket)).ok().flatten().map_or(0, BTreeMap::len)
    };
    world.keys.buckets().all().zip(world.nodes.iter().map(|n| &n.data)).map(length).sum()
}

/// How an account is delivered.
pub(super) fn mode(world: &World, account: AccountId) -> Mode {
    let record = world.data_of(account).hash(&world.keys.account(account)).ok().flatten();
    let stored = record.and_then(|record| record.get(b"m".as_slice()));
    Mode::from_letter(stored.and_then(|mode| mode.first().copied()).unwrap_or_default())
}

/// Whom an account has pull marks of.
pub(super) fn marked(world: &World, reader: AccountId) -> BTreeSet<AccountId> {
    let marks = world.data_of(reader).hash(&world.keys.marks(reader)).ok().flatten();
    let has =
        |author: &&AccountId| marks.is_some_and(|marks| marks.contains_key(author.to_bytes().as_slice()));
    world.accounts.iter().filter(has).copied().collect()
}

/// Marks that make reads dearer and nothing wrong: of who is pushed, of whom nobody follows.
pub(super) fn needless_marks(world: &World) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for reader in &world.accounts {
        let following = State::of(world, *reader).following;
        for author in marked(world, *reader) {
            let what = match following.contains_key(&author) {
                false => "mark without a follow",
                true if mode(world, author) == Mode::Push => "mark of a pushed one",
                true => continue,
            };
            *counts.entry(what).or_default() += 1;
        }
    }
    counts
}

/// What an account's slot says of it in two places, differently: posts and outbox, the record's counts and what they
/// count.
pub(super) fn disagreements(world: &World, account: AccountId) -> Vec<String> {
    if is_deleted(world, account) {
        return Vec::new();
    }
    // What a function didn't come to, a number, a deleted post's id in its outbox, fsck finds. But whoever reads that
    // somebody blocks nobody asks for no block (H128, H155).
    let is_torn = world.torn_calls > 0;
    let (data, state, posts) = (world.data_of(account), State::of(world, account), posts(world, account));
    let record = data.hash(&world.keys.account(account)).ok().flatten();
    let count = |field: &str| {
        let text = record?.get(field.as_bytes())?;
        std::str::from_utf8(text).ok()?.parse::<usize>().ok()
    };
    let counts = [
        ("p", posts.all().count()),
        ("nf", state.following.len()),
        ("nb", state.blocks.len()),
        ("nh", state.hides.len()),
    ];
    let mut wrong: Vec<String> = counts
        .iter()
        .filter(|(field, wanted)| match count(field).unwrap_or(0) {
            told if is_torn => told < *wanted && *field != "p",
            told => told != *wanted,
        })
        .map(|(field, wanted)| format!("{field} is {:?}, there are {wanted}", count(field)))
        .collect();
    wrong.extend(miscut(world, account));
    for id in posts.live {
        if post(world, id, account).is_none() {
            wrong.push(format!("its outbox names {id}, which is not there"));
        }
    }
    wrong
}
