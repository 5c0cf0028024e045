//! What must be true of posts' lists once nothing is under way: they hold what refers to their post and who likes it,
//! nothing else, and the post knows how many that are.

use std::collections::{BTreeMap, BTreeSet};

use super::data::{Bytes, Data};
use super::truth;
use super::world::{World, world};
use crate::bucket::Bucket;
use crate::graph::{LIKES, LISTS};
use crate::ids::{AccountId, PostId};
use crate::keys::{Place, list_of_post, set_of_account};
use crate::post::{Post, PostRef, Reference};
use crate::sharded::Member as _;

/// All members of a local set, with their scores.
fn members(world: &World, bucket: Bucket, name: &[u8]) -> BTreeMap<Bytes, f64> {
    let data = &world.nodes[usize::from(bucket.index())].data;
    let key = world.keys.set(Place::Whole, bucket, name);
    let of = |data: &Data, key: &[u8]| data.zset(key).ok().flatten().cloned().unwrap_or_default();
    let Ok(Some(tree)) = data.text(&key) else { return of(data, &key) };
    let pieces = truth::leaves(tree).into_iter();
    pieces.flat_map(|piece| of(data, &world.keys.piece(Place::Whole, bucket, name, piece))).collect()
}

pub(super) fn of_account(world: &World, what: &str, account: AccountId) -> BTreeMap<PostRef, f64> {
    let name = set_of_account(what, account);
    let all = members(world, world.keys.bucket_of(account), &name).into_iter();
    all.filter_map(|(member, score)| Some((PostRef::from_bytes(&member).ok()?, score))).collect()
}

/// Who should be on which list of which post.
type Wanted = BTreeMap<(PostId, u8), BTreeSet<Bytes>>;

pub(super) fn check_lists(when: &str) {
    world(|w| {
        let (mut posts, mut wanted) = (BTreeMap::new(), Wanted::new());
        let mut reposts: BTreeMap<(AccountId, PostRef), Vec<PostId>> = BTreeMap::new();
        for author in w.accounts.clone() {
            for id in truth::posts(w, author).all() {
                let (Some(post), Ok(id)) = (truth::post(w, id, author), PostId::from_u64(id)) else {
                    continue;
                };
                let listed = PostRef { id, author };
                for to in Reference::of_post(&post) {
                    wanted.entry((to.to.id, to.kind)).or_default().insert(listed.to_bytes().to_vec());
                }
                if let Some(original) = post.passes_on() {
                    reposts.entry((author, original)).or_default().push(id);
                }
                posts.insert(listed, post);
            }
        }
        for account in w.accounts.clone() {
            let likes = of_account(w, "likes", account);
            if truth::is_deleted(w, account) && !likes.is_empty() {
                w.violated(format!("{when}: {account} is deleted, and likes {likes:?}"));
            }
            for post in likes.into_keys().filter(|post| posts.contains_key(post)) {
                wanted.entry((post.id, LIKES)).or_default().insert(account.to_bytes().to_vec());
            }
            check_reposts(w, when, account, &reposts);
        }
        for (of, post) in &posts {
            let header = post.header();
            for (kind, name, _) in LISTS {
                let listed = match truth::is_hot(w, *of) {
                    true => members(w, w.keys.bucket_of(of.author), &list_of_post(name, of.id)),
                    false => w.archive.as_ref().map(|archive| archive.list(of.id, kind)).unwrap_or_default(),
                };
                let listed: BTreeSet<Bytes> = listed.into_keys().collect();
                let should = wanted.remove(&(of.id, kind)).unwrap_or_default();
                if listed != should && !(is_given_again(w, *of, post) && listed.is_subset(&should)) {
                    w.violated(format!("{when}: {name} of {of:?} are {listed:?}, and should be {should:?}"));
                }
                let told = match kind {
                    Reference::REPLY => header.replies,
                    Reference::REPOST => header.reposts,
                    Reference::QUOTE => header.quotes,
                    _ => header.likes,
                };
                // A set of several pieces counts apart from them: what a function didn't come to, fsck finds.
                if told as usize != listed.len() && w.torn_calls == 0 {
                    w.violated(format!("{when}: {of:?} says {told} {name}, there are {}", listed.len()));
                }
            }
        }
        // Posts that are gone: some refer to them still, and accounts like them.
        let gone: BTreeSet<PostId> = w
            .accounts
            .clone()
            .into_iter()
            .flat_map(|a| truth::posts(w, a).deleted)
            .filter_map(|id| PostId::from_u64(id).ok())
            .collect();
        for id in gone {
            for (_, name, _) in LISTS {
                let bucket = id.bucket(w.keys.buckets());
                let is_anothers = posts.keys().any(|post| post.id == id);
                let left = members(w, bucket, &list_of_post(name, id));
                if !left.is_empty() && !is_anothers {
                    w.violated(format!("{when}: {id} is gone, and has {name}: {left:?}"));
                }
            }
        }
    });
}

/// Whether a failover has lost a post of that id: who referred to it refers to this one, on no list of it (harsh seed
/// 18960).
fn is_given_again(w: &World, of: PostRef, post: &Post) -> bool {
    w.lost_posts.get(&(of.id.get(), of.author)).is_some_and(|lost| lost.content() != post.content())
}

/// A post is reposted once, and that is noted.
fn check_reposts(
    w: &mut World,
    when: &str,
    account: AccountId,
    reposts: &BTreeMap<(AccountId, PostRef), Vec<PostId>>,
) {
    if truth::is_deleted(w, account) {
        return;
    }
    let (buckets, bucket) = (w.keys.buckets(), w.keys.bucket_of(account));
    let place =
        |(original, place): (PostRef, f64)| Some((original, PostId::at_place(buckets, bucket, place).ok()?));
    // What has failed half-way, and was given up, has noted a repost that nobody finds: the next of the same post takes
    // another id, and fsck finds the note (torn seeds 171 and 395).
    let is_needless = |repost: &PostId| w.torn_calls > 0 && truth::post(w, repost.get(), account).is_none();
    let noted = of_account(w, "reposts", account).into_iter().filter_map(place);
    let noted: BTreeMap<PostRef, PostId> = noted.filter(|(_, repost)| !is_needless(repost)).collect();
    let made: BTreeMap<PostRef, Vec<PostId>> = reposts
        .iter()
        .filter(|((by, _), _)| *by == account)
        .map(|((_, original), made)| (*original, made.clone()))
        .collect();
    let wanted: BTreeMap<PostRef, Vec<PostId>> =
        noted.into_iter().map(|(original, repost)| (original, vec![repost])).collect();
    if made != wanted {
        w.violated(format!("{when}: {account} has reposted {made:?}, and has noted {wanted:?}"));
    }
}
