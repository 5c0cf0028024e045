//! The lengths of a post's lists, against what stands in the post.

use std::sync::Arc;

use crate::cluster::Request;
use crate::error::Result;
use crate::fsck::ask;
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit};
use crate::functions;
use crate::graph::Graph;
use crate::graph::{LISTS, recount};
use crate::ids::AccountId;
use crate::journal::Matter;
use crate::post::{PostHeader, PostRef, Reference};
use crate::stored::StoredPost;
use crate::tenant::{Answers, Tenant};
use crate::tiers;

/// All numbers in a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PostCounts(pub(super) PostRef);

/// The number of members that a post says a list of it has.
pub(super) fn told(header: &PostHeader, list: u8) -> u64 {
    u64::from(match list {
        Reference::REPLY => header.replies,
        Reference::REPOST => header.reposts,
        Reference::QUOTE => header.quotes,
        _ => header.likes,
    })
}

impl Relation for PostCounts {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self(post) = *self;
        let slot = tenant.keys().buckets().slot(post.id.bucket(tenant.keys().buckets()));
        let mut requests = vec![tenant.posts().header_request(post.id)];
        for (_, name, _) in LISTS {
            let set = tenant.sets().of_post::<AccountId>(post.id, name)?;
            requests.push(Request::read(slot, functions::count(set.root_key())));
        }
        // What changes between shows.
        requests.push(tenant.posts().header_request(post.id));
        let mut answers = Answers::ordered(tenant, requests).await?;
        let header = |answer| StoredPost::read_head_as(answer, PostHeader::parse)?.readable();
        let before = header(answers.answer()?)?;
        let mut lengths = Vec::with_capacity(LISTS.len());
        for (list, ..) in LISTS {
            lengths.push((list, functions::parse_count(answers.next()?)?.0));
        }
        let after = header(answers.answer()?)?;
        if before.is_none() && after.is_none() {
            return self.in_archive(tenant).await;
        }
        let Some(header) = after.filter(|after| before == Some(*after) && after.author == post.author) else {
            return Ok(Observation::default());
        };
        Ok(self.compare(&header, lengths))
    }

    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        // Its numbers change where it lies in memory.
        tiers::thaw_of(&graph.tenant, self.0).await?;
        for list in &found.detail {
            recount(&graph.tenant, self.0, *list).await?;
        }
        Ok(Vec::new())
    }
}

impl PostCounts {
    /// Looks at the numbers of a post that has left memory, which has its lists where it is.
    async fn in_archive(self, tenant: &Tenant) -> Result<Observation> {
        let mut header = ask::headers(tenant, &[self.0]).await?;
        let header = header.posts.pop().flatten().and_then(StoredPost::found);
        let Some(header) = header.filter(|header| header.author == self.0.author) else {
            return Ok(Observation::default());
        };
        let mut lengths = Vec::with_capacity(LISTS.len());
        for (list, ..) in LISTS {
            match tiers::archived_len(tenant, (self.0.id, list)).await? {
                Some(members) => lengths.push((list, members)),
                None => return Ok(Observation::default()),
            }
        }
        Ok(self.compare(&header, lengths))
    }

    fn compare(self, header: &PostHeader, lengths: Vec<(u8, u64)>) -> Observation {
        let told = lengths.into_iter().map(|(list, members)| (list, told(header, list), members));
        let wrong = told.filter(|(_, told, members)| told != members);
        wrong.map(|(list, told, members)| self.found(list, told, members)).into()
    }

    fn found(self, list: u8, told: u64, members: u64) -> Deviation {
        let PostRef { id, author } = self.0;
        let name = char::from(list);
        let told = format!("post {id} says {told} of its list `{name}`, which has {members}");
        let (kind, excused_by) = (FindingKind::PostCountWrong, vec![Matter::Burial(author)]);
        Deviation { kind, at: Unit::of(self), detail: vec![list], told, excused_by }
    }
}
