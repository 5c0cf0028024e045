//! Posts on the lists of mentions and hashtags that they name.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fsck::ask::{self, leave};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit};
use crate::graph::Graph;
use crate::graph::{ListItem, ListStanding, ListTask, list_score, standing, standings, take_off_list};
use crate::ids::PostId;
use crate::journal::Matter;
use crate::post::{NamedList, Post, PostRef};
use crate::sharded::{Member as _, ScoredMember};
use crate::tenant::Tenant;

/// Posts looked at in one go.
const POSTS_AT_ONCE: usize = 200;

/// A post on a list that it names. On one that an earlier revision named it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct NamedListing {
    post: PostRef,
    list: NamedList,
}

/// The places where a post has to be listed.
fn listings(tenant: &Tenant, id: PostId, post: &Post) -> impl Iterator<Item = NamedListing> {
    let (named, is_private) = (PostRef { id, author: post.header().author }, post.private_group().is_some());
    // H273: who was in a private group by then nobody can tell any more.
    let is_owed = move |list: &NamedList| !(is_private && matches!(list, NamedList::Mentions(_)));
    let lists = post.lists(tenant.tags()).into_iter().filter(is_owed);
    lists.map(move |list| NamedListing { post: named, list })
}

/// The lists that a post names.
pub(super) fn of_post(tenant: &Tenant, id: PostId, post: &Post) -> Observation {
    Observation::units(listings(tenant, id, post))
}

/// The lists that posts name which have left memory: those from which one is missing that has not left them are looked
/// at.
pub(super) async fn of_archived(tenant: &Tenant, posts: &[(PostId, Post)]) -> Result<Observation> {
    let all: Vec<NamedListing> = posts.iter().flat_map(|(id, post)| listings(tenant, *id, post)).collect();
    let standings = standings(tenant, &all.iter().map(|of| (of.list, of.post)).collect::<Vec<_>>()).await?;
    let is_right = |(of, standing): &(NamedListing, ListStanding)| {
        standing.has_left || standing.score == Some(list_score(of.post.id))
    };
    let suspects = all.into_iter().zip(standings).filter(|found| !is_right(found));
    Ok(Observation::units(suspects.map(|(of, _)| of)))
}

/// Finds the posts on a list that don't seem to belong there: they are looked at.
pub(super) async fn on_list(
    tenant: &Tenant,
    list: NamedList,
    members: &[&ScoredMember],
) -> Result<Observation> {
    let mut listed = Vec::new();
    for entry in members {
        match ListItem::from_bytes(&entry.member)? {
            ListItem::Number(_) => {}
            ListItem::Post(post) => {
                listed.push((post, entry.score.total_cmp(&list_score(post.id)).is_eq()));
            }
            ListItem::Id(post) => {
                return Err(Error::internal(format!("a list names post {post} without its author")));
            }
        }
    }
    let (mut suspects, mut untold) = (Vec::new(), 0);
    for listed in listed.chunks(POSTS_AT_ONCE) {
        let posts: Vec<PostRef> = listed.iter().map(|(post, _)| *post).collect();
        let posts = ask::posts(tenant, &posts).await?;
        untold += posts.untold;
        for ((post, is_in_place), stored) in listed.iter().zip(posts.posts) {
            let Some(stored) = stored else { continue };
            // What can't be read is found for itself.
            let Ok(stored) = stored.known() else { continue };
            let stored = stored.filter(|stored| stored.header().author == post.author);
            let may_be_on = stored.is_some_and(|stored| stored.lists_ever(tenant.tags()).contains(&list));
            suspects.extend((!is_in_place || !may_be_on).then_some(NamedListing { post: *post, list }));
        }
    }
    Ok(Observation::units(suspects).but_for(untold))
}

/// Whether a list has an owner: nobody keeps the mentions of who isn't there.
async fn is_for_somebody(tenant: &Tenant, list: NamedList) -> Result<bool> {
    let Some(account) = list.account() else { return Ok(true) };
    Ok(tenant.account(account).await?.is_some_and(|account| account.is_there()))
}

impl Relation for NamedListing {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self { post: PostRef { id, author }, list } = *self;
        let ListStanding { score: on, has_left } = standing(tenant, list, self.post).await?;
        // After that: a post that was deleted meanwhile is taken off by whoever deleted it.
        let Ok(stored) = ask::post(tenant, self.post).await?.known() else {
            return Ok(Observation::default());
        };
        let stored = stored.filter(|stored| stored.header().author == author);
        let names = stored.as_ref().is_some_and(|stored| stored.lists(tenant.tags()).contains(&list));
        let may_be_on = stored.is_some_and(|stored| stored.lists_ever(tenant.tags()).contains(&list));
        let is_right = on == Some(list_score(id));
        Ok(if on.is_some() && !may_be_on {
            self.found(FindingKind::ListingNeedless)
        } else if names && !is_right && !has_left && is_for_somebody(tenant, list).await? {
            self.found(FindingKind::ListingMissing)
        } else {
            Observation::default()
        })
    }

    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        let post = self.post;
        if found.kind == FindingKind::ListingNeedless {
            take_off_list(&graph.tenant, post, self.list).await?;
        }
        // An edit may have named the list meanwhile.
        leave(&graph.journal, post.id.bucket(graph.tenant.keys().buckets()), ListTask { post }).await?;
        Ok(Vec::new())
    }
}

impl NamedListing {
    fn found(self, kind: FindingKind) -> Observation {
        let PostRef { id, author } = self.post;
        let mut excused_by = vec![Matter::Burial(author), Matter::NamedLists(self.post)];
        excused_by.extend(self.list.account().map(Matter::Burial));
        let told = format!("post {id} of {author} on the list of {}", self.list);
        [Deviation { kind, at: Unit::of(self), detail: Vec::new(), told, excused_by }].into()
    }
}
