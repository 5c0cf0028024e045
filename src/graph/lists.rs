//! The lists of a post: who likes it, and what answers, reposts or quotes it. They lie beside the post, in its bucket,
//! and never spread; how many members each has stands in the post's header, written by the function that changes it.
//!
//! All of them are derived: of what a post says it refers to, and of what an account says it likes. So a list only
//! has members while its post is there, and whoever brings one in line reads the truth again.

use super::told::tell_writer;
use crate::bucket::Bucket;
use crate::cluster::{Command, Request, TouchedServers};
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{self, LastRemoval, ListAnswer, ListChange, ListSet};
use crate::ids::{AccountId, PostId};
use crate::inbox::Notice;
use crate::post::PostRef;
pub(crate) use crate::post::{LIKES, LISTS};
use crate::sharded::{Member, SortedSet};
use crate::tenant::{Tenant, changed_always};
use crate::tiers::thaw;

/// Tries of one change between splits of the list.
const TRIES_MAX: usize = 64;
/// So many tries of an addition are compared with the last removal. Beyond that somebody takes off all the time,
/// perhaps on purpose: then it is added whatever was taken off, and looked at again after that, which only a copy that
/// comes late slips through.
pub(crate) const COMPARED_TRIES: usize = 6;
/// Keys dropped in one call.
const KEYS_AT_ONCE: usize = 500;

/// The answers, reposts or quotes of a post: posts with their authors, by the time of their writing.
pub(crate) fn list(tenant: &Tenant, kind: u8, post: PostId) -> Result<SortedSet<PostRef>> {
    tenant.sets().of_post(post, layout_of(kind)?.0)
}

/// The accounts that like a post, by ticks of their own buckets.
pub(crate) fn likers(tenant: &Tenant, post: PostId) -> Result<SortedSet<AccountId>> {
    tenant.sets().of_post(post, layout_of(LIKES)?.0)
}

/// The name of a list, and where its length stands in the post.
fn layout_of(kind: u8) -> Result<(&'static str, usize)> {
    let found = LISTS.iter().find(|(letter, ..)| *letter == kind);
    found.map(|(_, name, offset)| (*name, *offset)).ok_or_else(|| {
        Error::internal(format!("posts have no list of the kind `{}` in this release", [kind].escape_ascii()))
    })
}

/// The time at which something was taken off a list in a post's bucket last. Whoever adds reads this before it looks at
/// what it adds: if that is gone, and settled, before the addition arrives, however late, then there is another one
/// (H126).
///
/// `None`, with the later of many tries: it is not compared.
pub(super) async fn last_removal(tenant: &Tenant, post: PostId, tries: usize) -> Result<Option<LastRemoval>> {
    last_removal_in(tenant, post.bucket(tenant.keys().buckets()), tries).await
}

/// The time at which something was taken off a list in a bucket last.
pub(super) async fn last_removal_in(
    tenant: &Tenant,
    bucket: Bucket,
    tries: usize,
) -> Result<Option<LastRemoval>> {
    if tries >= COMPARED_TRIES {
        return Ok(None);
    }
    let (keys, buckets) = (tenant.keys(), tenant.keys().buckets());
    let get = Command::new("GET").arg(&keys.last_removal(bucket));
    LastRemoval::parse(&tenant.router().call(Request::read(buckets.slot(bucket), get)).await?).map(Some)
}

/// Puts a member on a list of a post, or takes it off; a list whose post is gone takes nobody. `told`: what the post's
/// author, or who wrote it as a member of that, is told of it, unless that did it. False: it was to be added, and
/// something has been taken off since its caller looked.
pub(super) async fn set_member<M: Member>(
    tenant: &Tenant,
    (post, kind): (PostRef, u8),
    (member, told): (&M, Option<Notice>),
    change: ListChange,
    touched: &mut TouchedServers,
) -> Result<bool> {
    let (name, count_offset) = layout_of(kind)?;
    let set = tenant.sets().of_post::<M>(post.id, name)?;
    let (sets, buckets) = (tenant.sets(), tenant.keys().buckets());
    // What was told once is forgotten, whether anything is told now or not.
    let told = told.filter(|_| tenant.settings.keeps_notifications || !matches!(change, ListChange::On(..)));
    let mut to_author = told.filter(|told| told.by != post.author);
    for _ in 0..TRIES_MAX {
        let piece = set.piece_of(member);
        let [root, place] = sets.piece_keys(&piece);
        let bytes = member.to_bytes();
        let wanted = ListSet {
            keys: [
                tenant.keys().post(post.id),
                root,
                place,
                tenant.keys().last_removal(post.id.bucket(buckets)),
            ],
            author: post.author,
            count_offset,
            leaf: piece.leaf(),
            piece_limit: sets.piece_limit(),
            change,
            member: bytes.as_ref(),
            told: to_author.map(|told| (tenant.keys().inbox(post.author), told)),
            now_ms: tenant.router().now_ms(),
        };
        let slot = buckets.slot(post.id.bucket(buckets));
        let answer = tenant.router().ask(Request::write(slot, wanted.command())).await?;
        touched.add(&answer);
        match ListAnswer::parse(answer.ok()?)? {
            // H171: what has left memory isn't gone.
            ListAnswer::NoPost if thaw(tenant, post, touched).await? => {}
            ListAnswer::OfMember => {
                if let Some(told) = to_author.take() {
                    tell_writer(tenant, post, told, touched).await?;
                    // H281: it must last before the list says so: who finds it there tells nobody.
                    tenant.router().fence(touched).await?;
                }
            }
            ListAnswer::Done | ListAnswer::NoPost => return Ok(true),
            ListAnswer::Overtaken => return Ok(false),
            ListAnswer::Tree(tree) => drop(sets.piece_heirs(&piece, &tree)?),
            ListAnswer::Full => sets.split_piece(&piece).await?,
            // Neither there nor gone: whoever can read it decides (H93).
            ListAnswer::Unreadable => return Err(no_decision(post.id)),
        }
    }
    Err(changed_always(ErrorKind::Conflict, format_args!("list of the {name} of post {}", post.id)))
}

/// The error for who would have to know what a post says that can't be read.
pub(super) fn no_decision(post: PostId) -> Error {
    Error::internal(format!(
        "post {post} can't be read by this release, so nothing about it is decided; a later one that can goes on"
    ))
}

/// Drops the lists of posts that are gone; those of posts that are there stay. The post goes first, in the same slot:
/// nothing can bring it back without its lists. Whoever says that there is none must be right when the last is
/// forgotten that knows of them: a primary that was replaced doesn't know lists that have begun since (H121), and one
/// that takes over may have them still (H125).
pub(crate) async fn drop_lists(
    tenant: &Tenant,
    posts: &[PostId],
    touched: &mut TouchedServers,
) -> Result<()> {
    let mut lists = Vec::with_capacity(LISTS.len() * posts.len());
    for post in posts {
        for (_, name, _) in LISTS {
            // What its members are doesn't matter for dropping it.
            lists.push((*post, tenant.sets().of_post::<AccountId>(*post, name)?));
        }
    }
    let exists = |(_, set): &(PostId, SortedSet<AccountId>)| {
        Request::read(slot_of(tenant, set), Command::new("EXISTS").arg(&set.root_key()))
    };
    let exist = tenant.run_all(lists.iter().map(exists).collect()).await?;
    // Most have none.
    for ((post, set), exists) in lists.iter().zip(exist) {
        // H121, H125: who says that there is none must be right when the entry is struck.
        touched.add(&exists);
        if exists.ok()?.int()? == 1 {
            drop_list(tenant, *post, set).await?;
        }
    }
    Ok(())
}

/// The first key says which pieces there are, and goes last.
async fn drop_list(tenant: &Tenant, post: PostId, set: &SortedSet<AccountId>) -> Result<()> {
    let mut keys = set.keys_at_home().await?;
    keys.reverse();
    for keys in keys.chunks(KEYS_AT_ONCE) {
        let all: Vec<Vec<u8>> = std::iter::once(tenant.keys().post(post)).chain(keys.to_vec()).collect();
        let command = functions::list_drop(&all);
        tenant.router().call(Request::write(slot_of(tenant, set), command)).await?;
    }
    Ok(())
}

fn slot_of(tenant: &Tenant, set: &SortedSet<AccountId>) -> u16 {
    tenant.keys().buckets().slot(set.home_bucket())
}

/// Writes how long a list of a post is into the post.
pub(crate) async fn recount(tenant: &Tenant, post: PostRef, kind: u8) -> Result<()> {
    let (name, offset) = layout_of(kind)?;
    let set = tenant.sets().of_post::<AccountId>(post.id, name)?;
    let keys = [tenant.keys().post(post.id), set.root_key()];
    let command = functions::list_recount(&keys, post.author, offset);
    tenant.router().call(Request::write(slot_of(tenant, &set), command)).await.map(drop)
}
