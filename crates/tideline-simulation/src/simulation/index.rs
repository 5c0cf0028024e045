//! The index of posts by their words: in memory as the archive is, and what must be true of it once nothing is under
//! way: it has the words of all posts that are there, as they are now, and nothing else.

use std::collections::BTreeMap;

use super::truth;
use super::world::{World, world};
use crate::archive::{IndexChange, IndexVersion, IndexedPost, SearchAsk, SearchPage};
use crate::ids::PostId;
use crate::post::{Visibility, words_of_post};

/// What the archive has of posts' words.
#[derive(Debug, Clone, Default)]
pub(super) struct IndexData(BTreeMap<PostId, (IndexVersion, Option<IndexedPost>)>);

impl IndexData {
    pub(super) fn version(&self, post: PostId) -> Option<IndexVersion> {
        self.0.get(&post).map(|(version, _)| *version)
    }

    pub(super) fn change(&mut self, change: &IndexChange) -> bool {
        let is_seen = self.version(change.key.post) == change.seen;
        if is_seen {
            self.0.insert(change.key.post, (change.version, change.post.clone()));
        }
        is_seen
    }

    /// What can be found.
    pub(super) fn posts(&self) -> BTreeMap<PostId, IndexedPost> {
        self.0.iter().filter_map(|(id, (_, post))| Some((*id, post.clone()?))).collect()
    }

    pub(super) fn find(&self, ask: &SearchAsk) -> SearchPage {
        let is_found = |post: &IndexedPost| {
            ask.words.iter().all(|word| post.words.contains(word))
                && (post.is_public || ask.reader == Some(post.author))
        };
        let all = self.posts();
        let below = all.iter().rev().filter(|(id, post)| id.get() < ask.below && is_found(post));
        let posts: Vec<_> = below.take(ask.most).map(|(id, post)| (*id, post.author)).collect();
        let from = posts.last().filter(|_| posts.len() >= ask.most).map_or(0, |(id, _)| id.get());
        SearchPage { posts, from }
    }
}

/// The words of all posts that are there.
fn wanted(world: &World) -> BTreeMap<PostId, IndexedPost> {
    let mut wanted = BTreeMap::new();
    for author in world.accounts.iter().copied().filter(|author| !truth::is_deleted(world, *author)) {
        for id in truth::posts(world, author).all() {
            let (Some(post), Ok(id)) = (truth::post(world, id, author), PostId::from_u64(id)) else {
                continue;
            };
            let words: Vec<String> = words_of_post(&post).into_iter().collect();
            let is_public = post.header().visibility == Visibility::Public && post.is_for_all();
            if !words.is_empty() {
                wanted.insert(id, IndexedPost { author, is_public, words });
            }
        }
    }
    wanted
}

/// Says what the index lacks, and what it should not have. Gives how many posts it has.
pub(super) fn check_index(when: &str) -> u64 {
    world(|w| {
        let Some(found) = w.archive.as_ref().filter(|archive| archive.searches) else { return 0 };
        let (found, wanted) = (found.index.posts(), wanted(w));
        for id in found.keys().chain(wanted.keys()) {
            let (found, wanted) = (found.get(id), wanted.get(id));
            if found != wanted {
                w.violated(format!(
                    "{when}: the index has {found:?} of post {id}, and should have {wanted:?}"
                ));
                break;
            }
        }
        found.len() as u64
    })
}
