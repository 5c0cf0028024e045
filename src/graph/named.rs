//! `list`: bringing a post onto the lists of mentions and hashtags that it names; off again when it is deleted.
//!
//! A list is a local set in the bucket of the account, or of the hashtag: members are posts with their authors, their
//! scores milliseconds, so that the set's order is that of the ids. It is bounded ([`cut`](super::cut)).
//!
//! What stands on a list is a hint: whoever reads it asks the post whether it belongs there (still). Posts are taken
//! off only once they are gone for good, so an order that comes late never takes away what should be there.

use futures::future::join_all;

use super::chat::who_has_left;
use super::cut::{cut, is_due};
use super::lists::{COMPARED_TRIES, last_removal_in};
use crate::account::Account;
use crate::beginnings;
use crate::bucket::{Bucket, Buckets};
use crate::charter::TenantSettings;
use crate::cluster::TouchedServers;
use crate::error::{Error, ErrorCode, ErrorKind, Result};
use crate::functions::LastRemoval;
use crate::ids::{AccountId, PostId};
use crate::inbox::Notice;
use crate::journal::RunOutcome;
use crate::post::{NamedList, PostRef, Tag};
use crate::sharded::{Member, Order, SortedSet};
use crate::tenant::{Tenant, changed_always};
use crate::tiers;

/// Tries of a post between removals from other lists of the same buckets.
const TRIES_MAX: usize = 64;
/// Messages that stand on an account's list of chats: of each member who writes to it the newest.
const CHAT_ENTRIES_MAX: u32 = 1_000;
/// A list is as long as this many times its bound, and so many posts more, before nothing comes onto it any more until
/// the archive has taken some.
const WAITING_FACTOR: u64 = 4;
const WAITING_SLACK: u64 = 4_096;

/// A number that a list keeps of itself, as the score of a member that is no post.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ListNumber {
    /// What is missing with that score, or a lower one, has left.
    Floor,
    /// The archive may have posts with that score, or lower ones.
    Archived,
    /// A number that the archive must know of this list, or it lacks what it once had.
    Known,
}

impl ListNumber {
    pub(crate) const ALL: [Self; 3] = [Self::Floor, Self::Archived, Self::Known];

    fn letter(self) -> u8 {
        match self {
            Self::Floor => b'F',
            Self::Archived => b'A',
            Self::Known => b'S',
        }
    }
}

/// A member of a list of posts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ListItem {
    /// No post: something that the list says of itself.
    Number(ListNumber),
    /// A post whose author the list doesn't tell; also a place between posts: behind all with lower ids.
    Id(PostId),
    /// A post and its author.
    Post(PostRef),
}

impl ListItem {
    /// The post, if that and its author is told.
    pub(crate) fn post(self) -> Option<PostRef> {
        match self {
            Self::Post(post) => Some(post),
            Self::Number(_) | Self::Id(_) => None,
        }
    }
}

impl Member for ListItem {
    type Bytes = Vec<u8>;

    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Number(number) => vec![number.letter()],
            Self::Id(post) => post.get().to_be_bytes().to_vec(),
            Self::Post(post) => [post.id.get().to_be_bytes(), post.author.to_bytes()].concat(),
        }
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let post = |id: &[u8; 8]| PostId::from_u64(u64::from_be_bytes(*id));
        if let Some(number) = ListNumber::ALL.into_iter().find(|number| bytes == [number.letter()]) {
            return Ok(Self::Number(number));
        }
        match bytes.as_chunks::<8>() {
            ([id], []) => Ok(Self::Id(post(id)?)),
            ([id, author], []) => {
                Ok(Self::Post(PostRef { id: post(id)?, author: AccountId::from_bytes(author)? }))
            }
            _ => Err(Error::internal(format!("a list of posts holds {}", bytes.escape_ascii()))),
        }
    }

    /// Lists with floors stay in one slot, and a post without an author is a number as an account is.
    fn bucket(&self, buckets: Buckets) -> Bucket {
        match self {
            Self::Number(number) => buckets.of_bytes(&[number.letter()]),
            Self::Id(post) | Self::Post(PostRef { id: post, .. }) => buckets.of_account(post.get()),
        }
    }
}

/// The score of a post on a list.
#[expect(clippy::cast_precision_loss, reason = "milliseconds are below 2^53")]
pub(crate) fn list_score(post: PostId) -> f64 {
    post.unix_ms() as f64
}

/// One of the lists that posts name.
pub(crate) fn post_list(tenant: &Tenant, list: NamedList) -> Result<SortedSet<ListItem>> {
    Ok(match list {
        NamedList::Mentions(account) => tenant.sets().of_account(account, "mentions")?.pinned(),
        NamedList::Tagged(number) => tenant.sets().of_tag(number).pinned(),
        NamedList::Written(account) => tenant.sets().of_account(account, "written")?.pinned(),
        NamedList::Chats(account) => tenant.sets().of_account(account, "chats")?.pinned(),
    })
}

/// The posts that an account has written into groups and chats, the latest first: so many behind that one.
pub(crate) async fn written(
    tenant: &Tenant,
    writer: AccountId,
    after: Option<PostRef>,
    limit: usize,
) -> Result<Vec<PostRef>> {
    let after = after.map(|post| (ListItem::Post(post), list_score(post.id)));
    let list = post_list(tenant, NamedList::Written(writer))?;
    let page = list.page(.., after.as_ref(), limit, Order::Descending).await?;
    Ok(page.entries.into_iter().filter_map(|(listed, _)| listed.post()).collect())
}

/// A post whose lists were brought in line.
pub(crate) struct SettledLists {
    pub(crate) outcome: RunOutcome,
    /// Of a post into a group, who wrote it, if that is gone: then no list of its own has it.
    pub(crate) gone_writer: Option<AccountId>,
}

/// Looks at whether the post is there, and brings the lists in line with that. `once`: those that it was on, if it was
/// deleted.
pub(crate) async fn settle_lists(
    tenant: &Tenant,
    post: PostRef,
    once: &[NamedList],
    touched: &mut TouchedServers,
) -> Result<SettledLists> {
    let mut gone_writer = None;
    for n in 0..TRIES_MAX {
        if let Some(outcome) = settle_once(tenant, post, (once, &mut gone_writer), n, touched).await? {
            return Ok(SettledLists { outcome, gone_writer });
        }
    }
    Err(changed_always(ErrorKind::Unavailable, format_args!("lists that post {} names", post.id)))
}

/// One try; `n` were before it. `None`: look again.
async fn settle_once(
    tenant: &Tenant,
    post: PostRef,
    (once, gone_writer): (&[NamedList], &mut Option<AccountId>),
    n: usize,
    touched: &mut TouchedServers,
) -> Result<Option<RunOutcome>> {
    let Some(mut named) = named_by(tenant, post, touched).await? else {
        // That it is gone must last before the lists forget it.
        tenant.router().fence(touched).await?;
        take_off(tenant, post, once, touched).await?;
        return Ok(Some(RunOutcome::Done));
    };
    // H290: what an edit has added. From others it may have gone, and would come there as if it was new.
    if !once.is_empty() {
        named.lists.retain(|list| once.contains(list));
    }
    // H126: before the looks that follow. The post may be deleted, or the account whose list it is, and that settled,
    // before what we write arrives.
    let removals = named
        .lists
        .iter()
        .map(async |list| (*list, last_removal_in(tenant, tiers::bucket_of(tenant, *list), n).await));
    let mut to = join_all(removals).await;
    let mut owners = owners_of(tenant, &named.lists, touched).await;
    if let Some(group) = named.private_group {
        owners.but_for_those_outside(tenant, group, &named.lists).await;
    }
    if let Some(chat) = named.chat.filter(|_| tenant.settings.keeps_notifications) {
        named.untold.extend(who_has_left(tenant, chat, &named.lists).await?);
    }
    to.retain(|(list, _)| owners.are_there(list));
    *gone_writer = owners.gone.iter().find_map(|list| match list {
        NamedList::Written(writer) => Some(*writer),
        NamedList::Mentions(_) | NamedList::Tagged(_) | NamedList::Chats(_) => None,
    });
    named.lists.retain(|list| owners.are_there(list));
    let is_there = named_by(tenant, post, touched).await?.is_some();
    if !is_there {
        return Ok(None);
    }
    tenant.router().fence(touched).await?;
    let put = put_on(tenant, (post, &named), to, touched).await;
    // What lies on a server that is away keeps the post from no list elsewhere (H112).
    let mut failed = owners.failed;
    if n >= COMPARED_TRIES {
        // H53, H126: what was not compared is looked at again: whoever deletes may have been faster.
        let gone = match named_by(tenant, post, touched).await?.is_none() {
            true => named.lists,
            false => {
                let owners = owners_of(tenant, &named.lists, touched).await;
                failed = failed.and(owners.failed);
                owners.gone
            }
        };
        failed = failed.and(take_off(tenant, post, &gone, touched).await);
    }
    Ok(match failed.and(put)? {
        BroughtOn::All => Some(RunOutcome::Done),
        BroughtOn::NotAll => None,
    })
}

/// Whether a post was put on all lists that it was to be on.
enum BroughtOn {
    All,
    /// Something was taken off lists since it was looked at.
    NotAll,
}

/// Lists that a post names.
struct NamedByPost {
    /// Also lists that it has named before: an edit that names one again leaves nothing to do, so it must be there by
    /// then.
    lists: Vec<NamedList>,
    hashtags: Vec<Tag>,
    /// Who wrote it.
    writer: AccountId,
    /// The chat that it is a message of.
    chat: Option<AccountId>,
    /// Who is not told of it: its writer, and who has left the chat.
    untold: Vec<AccountId>,
    /// The group whose members alone see it.
    private_group: Option<AccountId>,
}

/// `None`: there is no such post of that author (any more).
async fn named_by(
    tenant: &Tenant,
    post: PostRef,
    touched: &mut TouchedServers,
) -> Result<Option<NamedByPost>> {
    let stored = tenant.posts().get_touching(post, touched).await?.readable()?;
    let stored = stored.filter(|stored| stored.header().author == post.author);
    Ok(stored.map(|post| NamedByPost {
        // Also what it has named before: an edit may come between the look and what it is for (H53).
        lists: post.lists_ever(tenant.tags()),
        hashtags: post.content().hashtags.iter().filter_map(|tag| Tag::new(tag).ok()).collect(),
        writer: post.writer(),
        chat: post.chat(),
        untold: vec![post.writer()],
        private_group: post.private_group(),
    }))
}

/// Lists, sorted by what is known of their owners.
struct Owners {
    /// Lists whose account isn't there: deleted, being registered, or it never was.
    gone: Vec<NamedList>,
    /// Lists of whose account nobody can say.
    unknown: Vec<NamedList>,
    /// Mentions of who isn't in the private group that the post is for.
    outside: Vec<NamedList>,
    failed: Result<()>,
}

impl Owners {
    fn are_there(&self, list: &NamedList) -> bool {
        [&self.gone, &self.unknown, &self.outside].iter().all(|those| !those.contains(list))
    }

    /// Leaves out mentions of who isn't in a group. What their buckets say has to be fenced: they were asked before.
    async fn but_for_those_outside(&mut self, tenant: &Tenant, group: AccountId, lists: &[NamedList]) {
        let mentions = lists.iter().filter_map(|list| match list {
            NamedList::Mentions(account) if self.are_there(list) => Some((*list, *account)),
            _ => None,
        });
        let looks = mentions.map(async |(list, account)| {
            let follows = async { tenant.following(account)?.score(&group).await };
            (list, follows.await)
        });
        let looks = join_all(looks).await;
        for (list, follows) in looks {
            match follows {
                Ok(Some(_)) => {}
                // H273: it would take the place of what its owner may see.
                Ok(None) => self.outside.push(list),
                Err(e) => self.cannot_say(list, e),
            }
        }
    }

    /// Nobody can say whether a list is to have the post.
    fn cannot_say(&mut self, list: NamedList, why: Error) {
        self.unknown.push(list);
        if self.failed.is_ok() {
            self.failed = Err(why);
        }
    }
}

async fn owners_of(tenant: &Tenant, lists: &[NamedList], touched: &mut TouchedServers) -> Owners {
    let accounts: Vec<(NamedList, AccountId)> =
        lists.iter().filter_map(|list| Some((*list, list.account()?))).collect();
    let records = accounts.iter().map(|(_, account)| tenant.account_request(*account)).collect();
    let answers = tenant.router().run(records).await;
    let mut owners = Owners { gone: Vec::new(), unknown: Vec::new(), outside: Vec::new(), failed: Ok(()) };
    for ((list, account), answer) in accounts.into_iter().zip(answers) {
        let read = answer.and_then(|answer| {
            touched.add(&answer);
            Account::parse(account, answer.ok()?)
        });
        match read {
            Ok(Some(account)) if account.is_there() => {}
            Ok(_) => owners.gone.push(list),
            Err(e) => owners.cannot_say(list, e),
        }
    }
    owners
}

/// Puts a post on each of these lists that can be reached, unless something was taken off since; an error: on some it
/// could not be put.
async fn put_on(
    tenant: &Tenant,
    (post, named): (PostRef, &NamedByPost),
    lists: Vec<(NamedList, Result<Option<LastRemoval>>)>,
    touched: &mut TouchedServers,
) -> Result<BroughtOn> {
    let (mut all, mut brought) = (Ok(()), BroughtOn::All);
    let added = lists
        .into_iter()
        .map(async |(list, removed)| put_on_one(tenant, (post, named), list, removed?).await);
    for outcome in join_all(added).await {
        match outcome {
            Ok(Some(of)) => touched.extend(&of),
            Ok(None) => brought = BroughtOn::NotAll,
            Err(e) => all = all.and(Err(e)),
        }
    }
    all.map(|()| brought)
}

/// `None`: something was taken off since.
async fn put_on_one(
    tenant: &Tenant,
    (post, named): (PostRef, &NamedByPost),
    list: NamedList,
    removed: Option<LastRemoval>,
) -> Result<Option<TouchedServers>> {
    let (set, member) = (post_list(tenant, list)?, (ListItem::Post(post), list_score(post.id)));
    let to = match list {
        NamedList::Mentions(account) | NamedList::Chats(account) => Some(account),
        NamedList::Tagged(_) | NamedList::Written(_) => None,
    };
    let to = to.filter(|account| tenant.settings.keeps_notifications && !named.untold.contains(account));
    let told = to.map(|account| (tenant.keys().inbox(account), Notice::of_mention(named.writer, post)));
    let told = told.as_ref().map(|(inbox, told)| (inbox.as_slice(), *told));
    let decision = tenant.known.decision();
    let most = u64::from(most_on(decision.settings, list));
    let takes_most = WAITING_FACTOR * most + WAITING_SLACK;
    let waits = decision.is_made() && list.is_archived() && tenant.archive()?.is_some();
    if waits && told.is_some() {
        let members = set.len().await?;
        if members >= takes_most {
            // H291: before its owner is told: with each try it would be told anew.
            tiers::note_list(tenant, list).await?;
            return Err(too_many_wait(list, members));
        }
    }
    let Some(added) = set.add_unless_overtaken(member, removed, told).await? else { return Ok(None) };
    // Its number has doubled: more often nobody would notice.
    if let NamedList::Tagged(number) = list
        && added.members > 0
        && added.len.is_power_of_two()
        && let Some(tag) = named.hashtags.iter().find(|tag| tag.number(tenant.tags()) == number)
    {
        beginnings::list_hashtag(tenant, tag, added.len).await;
    }
    // H140: where nothing was decided nothing leaves, so there is nothing to look for.
    if decision.is_made() && is_due(list, added.len, most) {
        if waits {
            // What leaves needs its time there. H231: also where nothing comes on any more.
            tiers::note_list(tenant, list).await?;
            if added.len > takes_most {
                if added.members > 0 {
                    set.remove(&[ListItem::Post(post)]).await?;
                }
                return Err(too_many_wait(list, added.len));
            }
        } else {
            cut(tenant, list, decision).await?;
        }
    }
    Ok(Some(added.touched))
}

/// The error for a list that takes no more posts until some have left for the archive.
fn too_many_wait(list: NamedList, members: u64) -> Error {
    let text = format!("most of {members} posts of the list {list:?} wait for the archive: try again later");
    Error::new(ErrorCode::ArchiveAway, text)
}

/// Notes what was touched where it went well. The first error of all, if there is one.
fn all_of(outcomes: Vec<Result<TouchedServers>>, touched: &mut TouchedServers) -> Result<()> {
    let mut all = Ok(());
    for outcome in outcomes {
        all = all.and(outcome.map(|of| touched.extend(&of)));
    }
    all
}

/// Takes a post off a list that it doesn't name, or was deleted from. Whoever does has the post's lists looked at after
/// that: an edit may have named this one meanwhile.
pub(crate) async fn take_off_list(tenant: &Tenant, post: PostRef, list: NamedList) -> Result<()> {
    let mut touched = TouchedServers::new();
    named_by(tenant, post, &mut touched).await?;
    tenant.router().fence(&touched).await?;
    take_off(tenant, post, &[list], &mut touched).await
}

async fn take_off(
    tenant: &Tenant,
    post: PostRef,
    lists: &[NamedList],
    touched: &mut TouchedServers,
) -> Result<()> {
    let removed = join_all(lists.iter().map(async |list| {
        let set = post_list(tenant, *list)?;
        let removed = set.remove_for_good(&[ListItem::Post(post)]).await?;
        // H189: also from where the list goes on.
        if tenant.archive()?.is_some() {
            let upto = set.score(&ListItem::Number(ListNumber::Archived)).await?;
            if upto.is_some_and(|upto| list_score(post.id) <= upto) {
                tiers::unlist(tenant, *list, post).await?;
            }
        }
        Ok::<_, Error>(removed.touched)
    }));
    all_of(removed.await, touched)
}

/// Most posts on a list, apart from the slack. What somebody has written is not cut: nobody else could tell it.
pub(crate) fn most_on(decided: TenantSettings, list: NamedList) -> u32 {
    match list {
        NamedList::Mentions(_) => decided.mentions_max,
        NamedList::Tagged(_) => decided.tag_posts_max,
        NamedList::Written(_) => u32::MAX,
        NamedList::Chats(_) => CHAT_ENTRIES_MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_member_survives_its_bytes_and_orders_as_ids_do(
            a in 0..i64::MAX as u64, b in 0..i64::MAX as u64, by in 1..i64::MAX as u64
        ) {
            let (post, other) = (PostId::from_u64(a).unwrap(), PostId::from_u64(b).unwrap());
            let author = AccountId::new(by).unwrap();
            let named = |id| ListItem::Post(PostRef { id, author });
            for listed in ListNumber::ALL.map(ListItem::Number).into_iter().chain([ListItem::Id(post), named(post)]) {
                prop_assert_eq!(ListItem::from_bytes(&listed.to_bytes()).unwrap(), listed);
            }
            let place = |post: PostId| (post.unix_ms(), named(post).to_bytes());
            prop_assert_eq!(place(post).cmp(&place(other)), a.cmp(&b));
            // As a place it stands behind all lower ids, and before its own and all higher ones.
            let at = (other.unix_ms(), ListItem::Id(other).to_bytes());
            prop_assert_eq!(place(post) < at, a < b);
        }

        #[test]
        fn reading_never_panics(bytes: Vec<u8>) {
            let _ = ListItem::from_bytes(&bytes);
        }
    }
}
