//! Notices to accounts of what others did: their inboxes, and whether what stands there is still so.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use futures::future::try_join3;

use crate::cluster::{Answer, Batch, Command, Epoch, Request, TouchedServers};
use crate::error::Result;
use crate::functions::{self, maybe_nonce};
use crate::ids::AccountId;
use crate::inbox::{InboxEntry, Notice, NotificationId, NotificationKind, last_id};
use crate::post::PostRef;
use crate::sharded::Questions;
use crate::tenant::{Answers, Tenant};

/// Tells an author of a follow whose edge may lie elsewhere. It is told once, however often this runs.
pub(super) async fn tell_follow(
    tenant: &Tenant,
    author: AccountId,
    (reader, since): (AccountId, f64),
    touched: &mut TouchedServers,
) -> Result<()> {
    if !tenant.settings.keeps_notifications {
        return Ok(());
    }
    tell(tenant, author, Notice::of_follow(reader, since), touched).await
}

/// Tells who wrote a post of a group or a chat what is about to come onto a list of that, unless that stands in its
/// inbox already. Nothing takes it off when it is taken back, which who reads it looks at (H278).
pub(super) async fn tell_writer(
    tenant: &Tenant,
    post: PostRef,
    told: Notice,
    touched: &mut TouchedServers,
) -> Result<()> {
    let stored = tenant.posts().get_touching(post, touched).await?.readable()?;
    let stored = stored.filter(|stored| stored.header().author == post.author);
    let Some(stored) = stored.filter(|stored| stored.writer() != told.by) else { return Ok(()) };
    let writer = stored.writer();
    // Who has left sees nothing of it: it would take the place of what shows.
    let has_left = match (stored.chat(), stored.private_group()) {
        (Some(chat), _) => tenant.is_blocked(chat, writer).await?,
        (None, Some(group)) => tenant.following(writer)?.score(&group).await?.is_none(),
        (None, None) => false,
    };
    if has_left {
        return Ok(());
    }
    // A quote says where it stands itself.
    let within = if told.kind == NotificationKind::Quote { told.within } else { Some(post.author) };
    tell(tenant, writer, Notice { within, ..told }, touched).await
}

/// Tells an account what another bucket has.
async fn tell(tenant: &Tenant, account: AccountId, told: Notice, touched: &mut TouchedServers) -> Result<()> {
    let (keys, now_ms) = (tenant.keys(), tenant.router().now_ms());
    let add = functions::inbox_add(&[keys.inbox(account), keys.account(account)], told, now_ms);
    let answer = tenant.router().ask(Request::write(tenant.slot(account), add)).await?;
    touched.add(&answer);
    answer.ok().map(drop)
}

/// An account's inbox, the oldest entry first.
pub(crate) async fn inbox(tenant: &Tenant, account: AccountId) -> Result<Vec<InboxEntry>> {
    let all = Command::new("LRANGE").arg(&tenant.keys().inbox(account)).arg("0").arg("-1");
    InboxEntry::parse_all(tenant.router().call(Request::read(tenant.slot(account), all)).await?)
}

/// Takes an entry off an inbox. Gives whether it was there, and who acknowledged that.
pub(crate) async fn dismiss(
    tenant: &Tenant,
    account: AccountId,
    id: NotificationId,
) -> Result<(bool, Epoch)> {
    let answer = drop_from(tenant, account, None, &[id]).await?;
    let epoch = answer.epoch.clone();
    Ok((answer.ok()?.count()? > 0, epoch))
}

/// Takes all entries off an inbox that stand there now.
pub(crate) async fn clear(tenant: &Tenant, account: AccountId) -> Result<Epoch> {
    let last = Command::new("LINDEX").arg(&tenant.keys().inbox(account)).arg("-1");
    let answer = tenant.router().ask(Request::read(tenant.slot(account), last)).await?;
    let epoch = answer.epoch.clone();
    // H214: up to the last one that is there now: a copy that comes late takes nothing newer.
    let Some(upto) = last_id(&answer.ok()?)? else { return Ok(epoch) };
    let answer = drop_from(tenant, account, Some(upto), &[]).await?;
    let epoch = answer.epoch.clone();
    answer.ok().map(|_| epoch)
}

async fn drop_from(
    tenant: &Tenant,
    account: AccountId,
    upto: Option<NotificationId>,
    ids: &[NotificationId],
) -> Result<Answer> {
    let command = functions::inbox_drop(tenant.keys().inbox(account), upto, ids);
    tenant.router().ask(Request::write(tenant.slot(account), command)).await
}

/// Acts that are still so, of those which an account was told of and nobody takes off its inbox: follows, requests,
/// reposts, and likes of posts that it wrote as a member of a group or a chat.
#[derive(Debug, Default)]
pub(crate) struct StandingActs {
    followers: HashSet<AccountId>,
    /// Requests that wait for its answer.
    requests: HashMap<AccountId, [u8; 8]>,
    /// Reposts, and likes of what it wrote as a member.
    acts_on_posts: HashSet<Notice>,
}

impl StandingActs {
    /// Asks about those that these entries tell of.
    pub(crate) async fn of(tenant: &Tenant, account: AccountId, entries: &[InboxEntry]) -> Result<Self> {
        let by = |kind: NotificationKind| -> Vec<AccountId> {
            let of_kind = entries.iter().filter(|entry| entry.told.kind == kind);
            of_kind.map(|entry| entry.told.by).collect()
        };
        let (followers, requests, acts_on_posts) = try_join3(
            standing_followers(tenant, account, by(NotificationKind::Follow)),
            standing_requests(tenant, account, by(NotificationKind::FollowRequest)),
            standing_acts_on_posts(tenant, account, entries),
        )
        .await?;
        Ok(Self { followers, requests, acts_on_posts })
    }

    /// Whether what an entry tells of is still so, as far as entries stay whatever becomes of that.
    pub(crate) fn hold(&self, told: &Notice) -> bool {
        match told.kind {
            NotificationKind::Follow => self.followers.contains(&told.by),
            NotificationKind::FollowRequest => self.requests.get(&told.by) == Some(&told.about),
            // H278, H282: the entry stays when this is taken back: it lies elsewhere than the post, or may be of a
            // later repost.
            _ if is_asked_about(told) => self.acts_on_posts.contains(told),
            _ => true,
        }
    }
}

/// Finds those of these accounts that follow that one.
async fn standing_followers(
    tenant: &Tenant,
    account: AccountId,
    told: Vec<AccountId>,
) -> Result<HashSet<AccountId>> {
    let mut questions = Questions::default();
    for other in &told {
        questions.scores(&tenant.following(*other)?, [account]);
    }
    those_found(tenant, told, questions).await
}

/// Asks the questions, one about each of `asked` in that order, and gives those of which something was found.
async fn those_found<T: Eq + Hash>(
    tenant: &Tenant,
    asked: Vec<T>,
    questions: Questions,
) -> Result<HashSet<T>> {
    if asked.is_empty() {
        return Ok(HashSet::new());
    }
    let answers = questions.ask(tenant.sets()).await?;
    let are_found = answers.into_iter().map(|answer| answer.scores().iter().any(Option::is_some));
    Ok(asked.into_iter().zip(are_found).filter(|(_, is_found)| *is_found).map(|(of, _)| of).collect())
}

/// The requests of these accounts that wait for that one's answer.
async fn standing_requests(
    tenant: &Tenant,
    account: AccountId,
    told: Vec<AccountId>,
) -> Result<HashMap<AccountId, [u8; 8]>> {
    if told.is_empty() {
        return Ok(HashMap::new());
    }
    let listed = |hash: Vec<u8>| {
        let command = Command::new("HMGET").arg(&hash);
        let command = told.iter().fold(command, |command, other| command.arg(&other.to_bytes()));
        Request::read(tenant.slot(account), command)
    };
    let keys = tenant.keys();
    let asked = [listed(keys.waiting(account)), listed(keys.approved(account))];
    let mut answers = Answers::of(tenant, asked.into_iter().collect::<Batch>()).await?;
    let (waiting, approved) = (answers.next()?.into_array()?, answers.next()?.into_array()?);
    let mut stand = HashMap::new();
    for ((other, waiting), approved) in told.iter().zip(&waiting).zip(&approved) {
        let (waiting, approved) = (maybe_nonce(waiting)?, maybe_nonce(approved)?);
        stand.extend(waiting.filter(|_| approved != waiting).map(|nonce| (*other, nonce)));
    }
    Ok(stand)
}

/// Whether who did something with a post is asked whether that still stands.
fn is_asked_about(told: &Notice) -> bool {
    match told.kind {
        NotificationKind::Repost => true,
        NotificationKind::Like => told.within.is_some(),
        _ => false,
    }
}

/// The reposts of an account's posts, and the likes of what it wrote as a member of a group or a chat, that still
/// stand, by what those who did it say.
async fn standing_acts_on_posts(
    tenant: &Tenant,
    account: AccountId,
    entries: &[InboxEntry],
) -> Result<HashSet<Notice>> {
    let (mut questions, mut asked) = (Questions::default(), Vec::new());
    for InboxEntry { told, .. } in entries.iter().filter(|entry| is_asked_about(&entry.told)) {
        let Some(post) = told.post(account) else { continue };
        let acts = if told.kind == NotificationKind::Like {
            tenant.likes(told.by)?
        } else {
            tenant.reposts(told.by)?
        };
        questions.scores(&acts, [post]);
        asked.push(*told);
    }
    those_found(tenant, asked, questions).await
}
