//! `list`: bringing a post onto the lists of mentions and hashtags that it names; off again when it is deleted.
//!
//! A list is a local set in the bucket of the account, or of the hashtag: members are posts with their authors, their
//! scores milliseconds, so that the set's order is that of the ids. It is bounded: the oldest leave. Then a *floor*
//! stays behind, a member of one byte whose score says up to when posts have left; what stands below it doesn't count.
//!
//! What stands on a list is a hint: whoever reads it asks the post whether it belongs there (still). Posts are taken
//! off only once they are gone for good, so an order that comes late never takes away what should be there.

use futures::future::try_join_all;

use crate::account::Account;
use crate::bucket::{Bucket, Buckets};
use crate::cluster::Touched;
use crate::context::{Context, post_of};
use crate::error::{Error, Result};
use crate::fanout::Ended;
use crate::ids::{AccountId, PostId};
use crate::post::PostList;
use crate::rules;
use crate::sharded::{Member, Order, PAGE_MAX, SortedSet};

/// The floor's stored form.
const FLOOR: &[u8] = b"F";
/// A list is cut once it is longer than it should be by this part of it, and by so many: a cut costs a few trips.
const SLACK: (u64, u64) = (8, 8);

/// A member of a list of posts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Listed {
    /// Everything with its score or a lower one has left.
    Floor,
    /// A post whose author the list doesn't tell; also a place between posts: behind all with lower ids.
    Id(PostId),
    /// A post and its author.
    Post(PostId, AccountId),
}

impl Member for Listed {
    type Bytes = Vec<u8>;

    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Floor => FLOOR.to_vec(),
            Self::Id(post) => post.get().to_be_bytes().to_vec(),
            Self::Post(post, author) => [post.get().to_be_bytes(), author.to_bytes()].concat(),
        }
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let post = |id: &[u8; 8]| PostId::from_u64(u64::from_be_bytes(*id));
        if bytes == FLOOR {
            return Ok(Self::Floor);
        }
        match bytes.as_chunks::<8>() {
            ([id], []) => Ok(Self::Id(post(id)?)),
            ([id, author], []) => Ok(Self::Post(post(id)?, AccountId::from_bytes(author)?)),
            _ => Err(Error::internal(format!("a list of posts holds {}", bytes.escape_ascii()))),
        }
    }

    /// Lists with floors stay in one slot, and a post without an author is a number as an account is.
    fn bucket(&self, buckets: Buckets) -> Bucket {
        match self {
            Self::Floor => buckets.of_bytes(FLOOR),
            Self::Id(post) | Self::Post(post, _) => buckets.of_account(post.get()),
        }
    }
}

/// The score of a post on a list.
#[expect(clippy::cast_precision_loss, reason = "milliseconds are below 2^53")]
pub(crate) fn list_score(post: PostId) -> f64 {
    post.unix_ms() as f64
}

/// One of the lists that posts name.
pub(crate) fn post_list(context: &Context, list: PostList) -> Result<SortedSet<Listed>> {
    Ok(match list {
        PostList::Mentions(account) => context.sets().of_account(account, "mentions")?.pinned(),
        PostList::Tagged(number) => context.sets().of_tag(number).pinned(),
    })
}

/// Looks at whether the post is there, and brings the lists in line with that. `once`: those that it was on, if it was
/// deleted.
pub(crate) async fn settle_lists(
    context: &Context,
    post: PostId,
    author: AccountId,
    once: &[PostList],
    touched: &mut Touched,
) -> Result<Ended> {
    let named = named_by(context, post, author, touched).await?;
    // That it is gone must last before the lists forget it.
    context.router().fence(touched).await?;
    let Some(mut lists) = named else {
        take_off(context, post, author, once, touched).await?;
        return Ok(Ended::Done);
    };
    let gone = gone_among(context, &lists, touched).await?;
    lists.retain(|list| !gone.contains(list));
    put_on(context, post, author, &lists, touched).await?;
    // Looked at after that: whoever deleted the post, or dropped a list with its account, was faster.
    let is_gone =
        rules::holds("list_looked_again") && named_by(context, post, author, touched).await?.is_none();
    let gone = match is_gone {
        true => lists,
        false if rules::holds("list_owner_again") => gone_among(context, &lists, touched).await?,
        false => Vec::new(),
    };
    take_off(context, post, author, &gone, touched).await?;
    Ok(Ended::Done)
}

/// The lists that a post names, or has named: an edit that names one again leaves nothing to do, so it must be there by
/// then. `None`: there is no such post of that author (any more).
async fn named_by(
    context: &Context,
    post: PostId,
    author: AccountId,
    touched: &mut Touched,
) -> Result<Option<Vec<PostList>>> {
    let answer = context.router().ask(context.post_request(post)).await?;
    touched.add(&answer);
    let Some(post) = post_of(&answer.ok()?)? else { return Ok(None) };
    let all = || if rules::holds("listed_once_named") { post.lists_ever() } else { post.lists() };
    Ok((post.header().author == author).then(all))
}

/// The lists among these whose account isn't there: deleted, being registered, or it never was.
async fn gone_among(context: &Context, lists: &[PostList], touched: &mut Touched) -> Result<Vec<PostList>> {
    let accounts: Vec<AccountId> = lists
        .iter()
        .filter_map(|list| match list {
            PostList::Mentions(account) => Some(*account),
            PostList::Tagged(_) => None,
        })
        .collect();
    let records = accounts.iter().map(|account| context.account_request(*account)).collect();
    let answers = context.run_all(records).await?;
    let mut gone = Vec::new();
    for (account, answer) in accounts.into_iter().zip(answers) {
        touched.add(&answer);
        if !Account::parse(account, answer.ok()?)?.is_some_and(|account| account.is_there()) {
            gone.push(PostList::Mentions(account));
        }
    }
    Ok(gone)
}

async fn put_on(
    context: &Context,
    post: PostId,
    author: AccountId,
    lists: &[PostList],
    touched: &mut Touched,
) -> Result<()> {
    let member = [(Listed::Post(post, author), list_score(post))];
    let added = try_join_all(lists.iter().map(async |list| {
        let set = post_list(context, *list)?;
        let added = set.add(&member).await?;
        let most = u64::from(most_on(context, *list));
        if added.len > most + (most / SLACK.0).max(rules::size(SLACK.1, 1)) {
            cut(&set, most).await?;
        }
        Ok::<_, Error>(added.touched)
    }));
    added.await?.iter().for_each(|of| touched.extend(of));
    Ok(())
}

/// Takes a post off a list that it doesn't name, or was deleted from. Whoever does has the post's lists looked at after
/// that: an edit may have named this one meanwhile.
pub(crate) async fn take_off_list(
    context: &Context,
    post: PostId,
    author: AccountId,
    list: PostList,
) -> Result<()> {
    let mut touched = Touched::new();
    named_by(context, post, author, &mut touched).await?;
    context.router().fence(&touched).await?;
    take_off(context, post, author, &[list], &mut touched).await
}

async fn take_off(
    context: &Context,
    post: PostId,
    author: AccountId,
    lists: &[PostList],
    touched: &mut Touched,
) -> Result<()> {
    let removed = try_join_all(lists.iter().map(async |list| {
        let removed = post_list(context, *list)?.remove(&[Listed::Post(post, author)]).await?;
        Ok::<_, Error>(removed.touched)
    }));
    removed.await?.iter().for_each(|of| touched.extend(of));
    Ok(())
}

/// Most posts on a list, apart from the slack.
fn most_on(context: &Context, list: PostList) -> u32 {
    match list {
        PostList::Mentions(_) => context.settings.mentions_max,
        PostList::Tagged(_) => context.settings.tag_posts_max,
    }
}

/// Lets the oldest go. The floor rises first: until they are gone, they don't count any more. It rises to just below the
/// last of the newest that may stay, as they are read: whoever arrives meanwhile, or cuts besides, only makes that lower
/// than it could be.
async fn cut(list: &SortedSet<Listed>, most: u64) -> Result<()> {
    let at_once = rules::size(PAGE_MAX, 8);
    let mut left = usize::try_from(most).unwrap_or(usize::MAX);
    let mut after = None;
    let until = loop {
        let page = list.page(.., after.as_ref(), at_once, Order::Descending).await?;
        let newest = page.entries.into_iter().filter(|(listed, _)| *listed != Listed::Floor);
        let newest: Vec<f64> = newest.take(left).map(|(_, score)| score).collect();
        left -= newest.len();
        match (newest.last(), page.next) {
            // Scores are whole milliseconds.
            (Some(last), _) if left == 0 => break last - 1.0,
            (_, Some(next)) => after = Some(next),
            _ => return Ok(()),
        }
    };
    list.add_greater(&[(Listed::Floor, until)]).await?;
    let oldest = list.page(..=until, None, at_once, Order::Ascending).await?.entries;
    let leave = oldest.into_iter().map(|(listed, _)| listed).filter(|listed| *listed != Listed::Floor);
    list.remove(&leave.collect::<Vec<_>>()).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_member_survives_its_bytes_and_orders_as_ids_do(a in 0..i64::MAX as u64, b in 0..i64::MAX as u64, by in 1..i64::MAX as u64) {
            let (post, other) = (PostId::from_u64(a).unwrap(), PostId::from_u64(b).unwrap());
            let author = AccountId::new(by).unwrap();
            for listed in [Listed::Floor, Listed::Id(post), Listed::Post(post, author)] {
                prop_assert_eq!(Listed::from_bytes(&listed.to_bytes()).unwrap(), listed);
            }
            let place = |post: PostId| (post.unix_ms(), Listed::Post(post, author).to_bytes());
            prop_assert_eq!(place(post).cmp(&place(other)), a.cmp(&b));
            // As a place it stands behind all lower ids, and before its own and all higher ones.
            let at = (other.unix_ms(), Listed::Id(other).to_bytes());
            prop_assert_eq!(place(post) < at, a < b);
        }

        #[test]
        fn reading_never_panics(bytes: Vec<u8>) {
            let _ = Listed::from_bytes(&bytes);
        }
    }
}
