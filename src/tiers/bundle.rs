//! A post with all that lies beside it in its bucket: read from memory, as the archive takes it, and put together
//! again.

use futures::future::try_join_all;
use sha1::{Digest as _, Sha1};

use crate::archive::{ArchivedPost, ListKind, ListMember, MemberList, PartName};
use crate::cluster::TouchedServers;
use crate::error::{Error, Result};
use crate::functions::{LeavingPost, ThawedList};
use crate::ids::{AccountId, PostId};
use crate::member::MemberName;
use crate::post::LISTS;
use crate::post::PostHeader;
use crate::sharded::{ScoredMember, SortedSet, WholeSet};
use crate::stored::StoredPost;
use crate::tenant::Tenant;

/// Members that the lists of a post may have together for it to leave memory: it comes back with all of them, in one
/// step of its server.
pub(crate) const MEMBERS_MAX: usize = 2_048;
/// Posts whose lists are read at the same time.
const READ_AT_ONCE: usize = 64;
/// The trees of the lists that have pieces, among the parts of a post in the archive: each with its length.
const TREES: PartName = PartName(b't');

/// A post as it lies in memory.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bundle {
    pub(super) id: PostId,
    pub(super) stored: Vec<u8>,
    /// Its lists, in the order of [`LISTS`]; `None`: they are longer than they may be to leave.
    pub(super) lists: Option<[WholeSet; 4]>,
}

/// Reads posts with their lists, in the order of their ids here. `None`: nothing is there, or another account's post.
pub(super) async fn read(
    tenant: &Tenant,
    posts: &[(PostId, AccountId)],
    touched: &mut TouchedServers,
) -> Result<Vec<Option<Bundle>>> {
    let ask = posts.iter().map(|(id, _)| tenant.posts().request(*id)).collect();
    let mut found = Vec::with_capacity(posts.len());
    for ((id, author), answer) in posts.iter().zip(tenant.run_all(ask).await?) {
        touched.add(&answer);
        // Of one that can't be read nobody knows how long its lists are: it stays.
        let bytes = answer.reply.bytes().map(<[u8]>::to_vec).unwrap_or_default();
        found.push(match StoredPost::read_as(answer, PostHeader::parse)? {
            StoredPost::There(header) if header.author == *author => {
                Some(Bundle { id: *id, stored: bytes, lists: has_none(&header).then(no_lists) })
            }
            StoredPost::Unreadable(unreadable) if !unreadable.is_anothers(*author) => {
                Some(Bundle { id: *id, stored: bytes, lists: None })
            }
            StoredPost::There(_) | StoredPost::Gone | StoredPost::Unreadable(_) => None,
        });
    }
    let is_listed =
        |bundle: &&mut Bundle| bundle.lists.is_none() && PostHeader::parse(&bundle.stored).is_ok();
    let listed: Vec<&mut Bundle> = found.iter_mut().flatten().filter(is_listed).collect();
    let mut chunks = listed;
    while !chunks.is_empty() {
        let rest = chunks.split_off(READ_AT_ONCE.min(chunks.len()));
        try_join_all(chunks.into_iter().map(|bundle| bundle.read_lists(tenant))).await?;
        chunks = rest;
    }
    Ok(found)
}

fn has_none(header: &PostHeader) -> bool {
    header.likes == 0 && header.reposts == 0 && header.replies == 0 && header.quotes == 0
}

fn no_lists() -> [WholeSet; 4] {
    [(); 4].map(|()| WholeSet::empty())
}

impl Bundle {
    async fn read_lists(&mut self, tenant: &Tenant) -> Result<()> {
        let mut lists = no_lists();
        let mut room = MEMBERS_MAX;
        for (list, (_, name, _)) in lists.iter_mut().zip(LISTS) {
            let Some(whole) = list_of(tenant, self.id, name)?.whole(room).await? else { return Ok(()) };
            room -= whole.sets.iter().map(Vec::len).sum::<usize>().min(room);
            *list = whole;
        }
        self.lists = Some(lists);
        Ok(())
    }

    /// The time at which something came onto its lists last, by the scores of their members: milliseconds. 0: never.
    pub(super) fn listed_ms(&self) -> f64 {
        let members = self.lists.iter().flatten().flat_map(|list| list.sets.iter().flatten());
        members.map(|member| member.score).fold(0.0, f64::max)
    }

    /// The number of members that its lists have.
    pub(super) fn members(&self) -> usize {
        self.lists.iter().flatten().flat_map(|list| &list.sets).map(Vec::len).sum()
    }

    /// The number of bytes of it that are moved.
    pub(super) fn len(&self) -> usize {
        let members = self.lists.iter().flatten().flat_map(|list| list.sets.iter().flatten());
        self.stored.len() + members.map(|member| member.member.len() + 10).sum::<usize>()
    }

    /// The post as the archive takes it.
    pub(super) fn archived(&self, owner: AccountId) -> Result<(ArchivedPost, Vec<MemberList>)> {
        let change = u64::from_be_bytes(*self.digest().first_chunk().unwrap_or(&[0; 8])) >> 1;
        let mut post = ArchivedPost::new(self.id, owner, change, self.stored.clone());
        let Some(lists) = &self.lists else { return Ok((post, Vec::new())) };
        let tree = |list: &WholeSet| {
            let len = u32::try_from(list.tree.len()).unwrap_or(u32::MAX).to_be_bytes();
            [len.as_slice(), &list.tree].concat()
        };
        let has_trees = lists.iter().any(|list| !list.tree.is_empty());
        let trees = if has_trees { lists.iter().flat_map(tree).collect() } else { Vec::new() };
        // Also where there are none: the archive may have some from an earlier time.
        post.parts.set(TREES, trees);
        let mut members_of = Vec::new();
        for (list, (letter, ..)) in lists.iter().zip(LISTS) {
            let member = |e: ScoredMember| ListMember { score: e.score, bytes: e.member };
            let mut members: Vec<ListMember> = list.members()?.into_iter().map(member).collect();
            members.sort_by(ListMember::order);
            // Also of an empty one: the archive may have more of it from an earlier time.
            members_of.push(MemberList { kind: ListKind(letter), first: 0, members });
        }
        Ok((post, members_of))
    }

    /// The post as a function makes sure that it still is so; `None`: it stays.
    pub(super) fn leaving(&self) -> Option<LeavingPost> {
        let lists = self.lists.as_ref()?;
        let piece_keys = lists.iter().flat_map(|list| list.piece_keys.iter().cloned()).collect();
        let pieces = lists.each_ref().map(|list| u8::try_from(list.piece_keys.len()).unwrap_or(u8::MAX));
        Some(LeavingPost { id: self.id, piece_keys, pieces, digest: Some(self.digest()) })
    }

    /// The digest that `archive_move` computes of what lies there.
    fn digest(&self) -> [u8; 20] {
        let mut digest = Sha1::new();
        digest.update(length(self.stored.len()));
        digest.update(&self.stored);
        for list in self.lists.iter().flatten() {
            digest.update(length(list.tree.len()));
            digest.update(&list.tree);
            for set in &list.sets {
                digest.update(length(set.len()));
                digest.update(packed(set));
            }
        }
        digest.finalize().into()
    }
}

fn length(len: usize) -> [u8; 4] {
    u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes()
}

/// Members as functions take them, and make them: score, length, bytes.
fn packed(set: &[ScoredMember]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for ScoredMember { score, member } in set {
        bytes.extend(score.to_be_bytes());
        bytes.extend(u16::try_from(member.len()).unwrap_or(u16::MAX).to_be_bytes());
        bytes.extend(member);
    }
    bytes
}

fn list_of(tenant: &Tenant, post: PostId, name: &str) -> Result<SortedSet<MemberName>> {
    tenant.sets().of_post(post, name)
}

/// The post's key, then those of its lists.
pub(super) fn keys_of(tenant: &Tenant, post: PostId) -> Result<Vec<Vec<u8>>> {
    let mut keys = vec![tenant.keys().post(post)];
    for (_, name, _) in LISTS {
        keys.push(list_of(tenant, post, name)?.root_key());
    }
    Ok(keys)
}

/// Puts the lists of a post together that comes back, and the keys of their pieces. `members`: of each list, all.
pub(super) fn thawed(
    tenant: &Tenant,
    post: &ArchivedPost,
    members: [Vec<ListMember>; 4],
) -> Result<([ThawedList; 4], Vec<Vec<u8>>)> {
    // H225: without it the post would not be what it was, and who knows the part would not find it.
    if let Some(part) = post.parts.names().find(|part| *part != TREES) {
        return Err(Error::internal(format!(
            "post {} can't be brought back from the archive by this release: a later one has stored a part of it named \
             `{}` there, and one that knows that part brings it back",
            post.id,
            [part.0].escape_ascii()
        )));
    }
    let mut trees = post.parts.get(TREES).unwrap_or_default();
    let (mut lists, mut keys) = (<[ThawedList; 4]>::default(), Vec::new());
    for ((list, (_, name, _)), members) in lists.iter_mut().zip(LISTS).zip(members) {
        let tree = match trees.split_first_chunk::<4>() {
            None => Vec::new(),
            Some((len, rest)) => {
                let len = usize::try_from(u32::from_be_bytes(*len)).unwrap_or(usize::MAX);
                let cut = || Error::internal(format!("the archive has post {} with a tree cut off", post.id));
                let (tree, rest) = rest.split_at_checked(len).ok_or_else(cut)?;
                trees = rest;
                tree.to_vec()
            }
        };
        let scored = members.into_iter().map(|m| ScoredMember { score: m.score, member: m.bytes }).collect();
        let whole = WholeSet::of(tree, scored)?;
        if !whole.tree.is_empty() {
            keys.extend(list_of(tenant, post.id, name)?.piece_keys_of(&whole.tree)?);
        }
        *list = ThawedList { tree: whole.tree, sets: whole.sets.iter().map(|set| packed(set)).collect() };
    }
    Ok((lists, keys))
}
