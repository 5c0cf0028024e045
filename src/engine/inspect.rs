//! The reasons why a reader sees what it sees: what is stored of an account, and the newest page of its home, entry by
//! entry.

mod archive;
mod names;
mod post;
mod ranking;

use std::collections::{BTreeMap, HashSet};

use serde::{Serialize, Serializer};

pub use archive::{ArchiveStanding, ArchivedOwner, PostTier};
pub use names::{StoredClaim, StoredNames};
pub use post::{ListLength, ListMembership, PostInspection, PostListing};
pub use ranking::{HiddenPost, RankingInspection};

use super::Engine;
use crate::account::{Account, Mode};
use crate::bucket::Bucket;
use crate::cluster::{Command, Request};
use crate::document::{IdList, LEFT_OUT};
use crate::error::{CallFuture, ErrorKind, Result};
use crate::graph::{self, GroupRole, GroupStaff};
use crate::ids::{AccountId, PostId};
use crate::journal::{self, Journal, Task};
use crate::keys::OwnKey;
use crate::limits::OwnLimits;
use crate::post::{NamedList, PostRef};
use crate::sharded::Layout;
use crate::tenant::{Answers, Tenant, no_account};
use crate::timeline::{self, HiddenBecause, Query, StoredHome, StoredHomeEntry, StoredOutbox};

/// Posts on the page that is explained.
const PAGE: usize = 20;
/// Entries of the journal that are listed.
const ENTRIES_MAX: usize = 100;

/// A look at what is stored of an account, and at why the newest page of its home looks as it does.
///
/// It is read in several trips: while the account changes, its parts may be of different moments. As JSON (it is
/// `Serialize`) ids are strings, because they don't fit a double.
#[derive(Debug, Clone, Serialize)]
pub struct Inspection {
    /// Its record, with the counts that it holds; serialized also what others needn't know.
    #[serde(serialize_with = "whole_record")]
    pub account: Account,
    /// The bucket in which its keys lie.
    pub bucket: u16,
    /// The slot of that bucket.
    pub slot: u16,
    /// The day of the last read that was noted: days since 1970.
    pub last_read_day: Option<u32>,
    /// Its names and those that it is to have, if it was registered, or somebody tried.
    pub names: Option<StoredNames>,
    /// Its limits of its own.
    pub limits: OwnLimits,
    /// Of a group, the members who own it and may act; of one that nobody looks after none. `None`: it is no group.
    pub owners: Option<Vec<AccountId>>,
    /// The sizes of its sets.
    pub sets: SetSizes,
    /// How many documents a service keeps with it.
    pub documents: u64,
    /// How many notifications it has, whether they show or not.
    pub notifications: u64,
    /// How many other accounts each of its hashes says something of, and how many it leaves out of its home.
    pub says_of_others: BTreeMap<&'static str, u64>,
    /// The random bytes that change with what it likes and bookmarks, in hexadecimal; `None`: it never did.
    pub ties_stamp: Option<String>,
    /// Its home, as stored.
    pub home: StoredHome,
    /// Its outbox, as stored.
    pub outbox: StoredOutbox,
    /// Where its posts lie, if the tenant has an archive.
    pub archive: Option<ArchiveStanding>,
    /// Authors with a pull mark: their posts are not in the home, or not for sure.
    pub pulls: Vec<AccountId>,
    /// What the journal of its bucket holds that concerns it, up to a hundred entries.
    pub journal: Vec<OpenTask>,
    /// What a read of the newest 20 posts of its home would look at, newest first, and what else the home's last
    /// records hold.
    pub page: Vec<HomeCandidate>,
    /// Why there is no page, if the read failed.
    pub page_error: Option<String>,
}

/// An account with all that its record tells.
fn whole_record<S: Serializer>(account: &Account, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Whole<'a> {
        #[serde(flatten)]
        account: &'a Account,
        mode: Mode,
        #[serde(serialize_with = "crate::ids::as_text")]
        pushed_since: u64,
        blocks: u64,
        hides: u64,
    }
    let Account { mode, pushed_since, blocks, hides, .. } = *account;
    Whole { account, mode, pushed_since, blocks, hides }.serialize(serializer)
}

/// The sizes of an account's sets, counted now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SetSizes {
    /// Accounts that it follows.
    pub following: u64,
    /// Accounts that follow it.
    pub followers: u64,
    /// The layout of its followers' edges.
    pub followers_layout: Layout,
    /// Accounts that it mutes.
    pub mutes: u64,
    /// Accounts that it blocks.
    pub blocks: u64,
    /// From whom it hides.
    pub hides: u64,
    /// Accounts that wait for its answer.
    pub requests: u64,
    /// Posts on its list of mentions.
    pub mentions: u64,
    /// Posts that it likes.
    pub likes: u64,
    /// Posts that it has bookmarked.
    pub bookmarks: u64,
    /// Posts that it reposts without a comment.
    pub reposts: u64,
}

/// Work that is still to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OpenTask {
    /// The work that is to be done.
    pub what: String,
    /// The point that it came to; empty: not begun.
    pub checkpoint: String,
    /// The instance that has it.
    pub owner: String,
}

/// An entry that may stand on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct HomeCandidate {
    /// The post's id.
    pub id: PostId,
    /// Its author, as the entry says.
    pub author: AccountId,
    /// Whether it is among the home's last entries; if not, it was pulled, or lies deeper.
    pub is_in_home: bool,
    /// The verdict: whether it shows.
    pub verdict: HomeVerdict,
}

/// A verdict on an entry of a home: whether it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HomeVerdict {
    /// It shows.
    Shown,
    /// It doesn't.
    Hidden(HiddenBecause),
    /// The page was full before, or this entry lies deeper than what the read was sure of.
    NotReached,
}

impl Engine {
    /// Tells what is stored of an account, and why the newest page of its home looks as it does. Changes nothing: it
    /// notes no read, and fills no home.
    ///
    /// For people who look for a fault: it takes some ten round trips. An account that is being deleted still shows;
    /// [`NotFound`](crate::ErrorKind::NotFound): there is none.
    pub fn inspect(&self, account: AccountId) -> CallFuture<'_, Inspection> {
        Box::pin(async move {
            let (tenant, graph) = (&self.tenant, &self.graph);
            let record = tenant.account(account).await?.ok_or_else(|| no_account(account))?;
            let stored = timeline::stored(tenant, account).await?;
            let query = Query::home().limit(PAGE);
            let read = timeline::explain(self.as_reader(account).viewpoint(), &query).await;
            let (judged, page_error) = match read {
                Ok((_, judged)) => (judged, None),
                Err(e) => (Vec::new(), Some(e.to_string())),
            };
            let sizes = sizes(tenant, account);
            let ties_stamp = graph::ties_stamp(tenant, account).await?.0;
            Ok(Inspection {
                bucket: tenant.bucket(account).index(),
                slot: tenant.slot(account),
                last_read_day: stored.last_read_day,
                names: names::stored(tenant, account).await?,
                limits: self.own_limits(account).await?,
                owners: owners(tenant, &record).await?,
                sets: Box::pin(sizes).await?,
                documents: length(tenant, OwnKey::Documents, account).await?,
                notifications: graph::inbox(tenant, account).await?.len() as u64,
                says_of_others: says_of_others(tenant, account).await?,
                ties_stamp: ties_stamp.map(|stamp| format!("{:016x}", u64::from_be_bytes(stamp))),
                page: self.candidates(account, &stored.home.newest, &judged).await?,
                page_error,
                home: stored.home,
                outbox: stored.outbox,
                archive: archive::standing(tenant, account).await?,
                pulls: stored.pulls,
                journal: journal(&graph.journal, tenant.bucket(account), |task| task.concerns(account))
                    .await?,
                account: record,
            })
        })
    }

    /// The posts that the read has judged, and those that stand in the home besides: whom the reader doesn't follow, a
    /// read leaves out before it looks at the post.
    async fn candidates(
        &self,
        reader: AccountId,
        entries: &[StoredHomeEntry],
        judged: &[timeline::JudgedPost],
    ) -> Result<Vec<HomeCandidate>> {
        let post = |entry: &StoredHomeEntry| match entry {
            StoredHomeEntry::Post { id, author } => Some(PostRef { id: *id, author: *author }),
            _ => None,
        };
        let in_home: HashSet<PostRef> = entries.iter().filter_map(post).collect();
        let authors: HashSet<AccountId> = in_home.iter().map(|post| post.author).collect();
        let authors: Vec<AccountId> = authors.into_iter().collect();
        let scores = self.tenant.following(reader)?.scores(&authors).await?;
        let strangers: HashSet<AccountId> = authors
            .into_iter()
            .zip(scores)
            .filter(|(author, score)| score.is_none() && *author != reader)
            .map(|(author, _)| author)
            .collect();
        let left_out = in_home.iter().map(|post| {
            let is_stranger = strangers.contains(&post.author);
            let hidden = HomeVerdict::Hidden(HiddenBecause::NotFollowed);
            (*post, if is_stranger { hidden } else { HomeVerdict::NotReached })
        });
        let mut verdicts: BTreeMap<PostRef, HomeVerdict> = left_out.collect();
        for (post, verdict) in judged {
            let verdict = verdict.map_or_else(HomeVerdict::Hidden, |()| HomeVerdict::Shown);
            verdicts.insert(*post, verdict);
        }
        let candidate = |(post, verdict)| {
            let is_in_home = in_home.contains(&post);
            HomeCandidate { id: post.id, author: post.author, is_in_home, verdict }
        };
        Ok(verdicts.into_iter().rev().map(candidate).collect())
    }
}

/// The owners of a group who count as such.
async fn owners(tenant: &Tenant, record: &Account) -> Result<Option<Vec<AccountId>>> {
    if !record.kind.is_group() {
        return Ok(None);
    }
    match GroupStaff::of(tenant, record.id).await {
        Ok(staff) => staff.holders(tenant, GroupRole::Owner).await.map(Some),
        // It is being deleted.
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

async fn sizes(tenant: &Tenant, account: AccountId) -> Result<SetSizes> {
    let followers = tenant.followers(account)?;
    Ok(SetSizes {
        following: tenant.following(account)?.len().await?,
        followers: followers.len().await?,
        followers_layout: followers.layout().await?,
        mutes: tenant.mutes(account)?.len().await?,
        blocks: tenant.blocks(account)?.len().await?,
        hides: tenant.hides(account)?.len().await?,
        requests: length(tenant, OwnKey::Waiting, account).await?,
        mentions: graph::post_list(tenant, NamedList::Mentions(account))?.len().await?,
        likes: tenant.likes(account)?.len().await?,
        bookmarks: tenant.bookmarks(account)?.len().await?,
        reposts: tenant.reposts(account)?.len().await?,
    })
}

async fn length(tenant: &Tenant, own: OwnKey, account: AccountId) -> Result<u64> {
    let length = Command::new("HLEN").arg(&tenant.keys().own(own, account));
    tenant.router().call(Request::read(tenant.slot(account), length)).await?.count()
}

async fn says_of_others(tenant: &Tenant, account: AccountId) -> Result<BTreeMap<&'static str, u64>> {
    let hashes = OwnKey::ALL.into_iter().filter_map(|own| Some((own.says_of_others()?, own)));
    let (names, hashes): (Vec<_>, Vec<_>) = hashes.unzip();
    let length = |own: OwnKey| Command::new("HLEN").arg(&tenant.keys().own(own, account));
    let asked = hashes.into_iter().map(|own| Request::read(tenant.slot(account), length(own)));
    let left_out = Command::new("HGET").arg(&tenant.keys().own(OwnKey::Documents, account)).arg(LEFT_OUT);
    let asked = asked.chain([Request::read(tenant.slot(account), left_out)]);
    let mut answers = Answers::of(tenant, asked.collect()).await?;
    let mut told = BTreeMap::new();
    for name in names {
        told.insert(name, answers.next()?.count()?);
    }
    told.insert("left_out", IdList::sorted_of(&answers.next()?)?.len() as u64);
    Ok(told)
}

/// The first entries in the journal of a bucket that are about something.
async fn journal(journal: &Journal, of: Bucket, is_about: impl Fn(&Task) -> bool) -> Result<Vec<OpenTask>> {
    let entries = journal::entries(journal, of).await?;
    let concerned = entries.into_iter().filter(|entry| is_about(&entry.task));
    let open = |entry: journal::JournalEntry| OpenTask {
        what: entry.task.describe(),
        checkpoint: entry.checkpoint,
        owner: format!("{:016x}", u64::from_be_bytes(entry.owner)),
    };
    Ok(concerned.take(ENTRIES_MAX).map(open).collect())
}

/// Names in a word where members are.
impl Serialize for Layout {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Local => "local",
            Self::Spread => "spread",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::DeliverTask;
    use crate::graph::{BuryTask, ListTask, PairTask, ReferTask};
    use crate::post::{PostRef, Reference};

    #[test]
    fn a_task_concerns_all_whom_it_names_and_is_described_in_words() {
        let id = |id| AccountId::new(id).unwrap();
        let post = PostRef { id: PostId::from_u64(77).unwrap(), author: id(1) };
        let to = PostRef { id: PostId::from_u64(66).unwrap(), author: id(2) };
        let to = Reference { kind: Reference::REPLY, to };
        let cases = [
            (Task::from(DeliverTask { post }), vec![1], "deliver post 77 of 1 to its followers"),
            (
                Task::from(ReferTask { post, to }),
                vec![1, 2],
                "list post 77 of 1 at post 66 of 2, or take it off",
            ),
            (
                Task::from(PairTask { reader: id(1), author: id(3), may_drop: true }),
                vec![1, 3],
                "bring the followers of 3 and the pull marks of 1 up to date",
            ),
            (
                Task::from(ListTask { post }),
                vec![1],
                "bring post 77 of 1 onto the lists of its mentions and hashtags, or take it off",
            ),
            (Task::from(BuryTask { account: id(2) }), vec![2], "take all traces of 2 away"),
        ];
        for (task, concerned, text) in cases {
            assert_eq!((1..=4).filter(|n| task.concerns(id(*n))).collect::<Vec<_>>(), concerned);
            assert_eq!(task.describe(), text);
        }
    }
}
