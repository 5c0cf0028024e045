//! How an account stands to others, many at once. What it follows, mutes, blocks, hides from and has asked for lies in
//! its own bucket; what others do about it lies in theirs, and is read there too: what is derived from it in its own
//! comes later.

use super::toggles::requested_request;
use crate::account::Account;
use crate::cluster::{Batch, Command, Request};
use crate::error::Result;
use crate::functions::maybe_nonce;
use crate::ids::AccountId;
use crate::nonce::Nonce;
use crate::settings::check_asked;
use crate::sharded::Questions;
use crate::tenant::{Answers, Tenant, no_account};

/// How an account stands to another one. Between two of whom one blocks the other there is no follow and no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact by itself, and any of them may go together"
)]
pub struct Relationship {
    /// The other one.
    pub account: AccountId,
    /// It follows the other one.
    pub is_following: bool,
    /// The other one follows it.
    pub is_followed: bool,
    /// It waits for the other one's answer.
    pub has_requested: bool,
    /// The other one waits for its answer.
    pub is_requested: bool,
    /// It mutes the other one.
    pub is_muting: bool,
    /// It blocks the other one.
    pub is_blocking: bool,
    /// The other one blocks it.
    pub is_blocked: bool,
    /// It doesn't show its posts to the other one. Whether the other one does so is nobody else's affair.
    pub is_hiding: bool,
}

/// How `account` stands to others, in their order; `None`: there is no such account. Two batches, however many these
/// are.
pub(crate) async fn relationships(
    tenant: &Tenant,
    account: AccountId,
    others: &[AccountId],
) -> Result<Vec<Option<Relationship>>> {
    check_asked(others.len(), "accounts")?;
    if others.is_empty() {
        return Ok(Vec::new());
    }
    // First the requests: an approval may turn one into a follow between the two looks, never back.
    let requests = requests(tenant, account, others).await?;
    let edges = edges(tenant, account, others).await?;
    let relationship = |((other, requests), edges): ((&AccountId, Option<Requests>), Edges)| {
        // What a block ends goes a moment later.
        let is_apart = edges.is_blocking || edges.is_blocked;
        let requests = requests?;
        let is_approved = requests.received.is_some() && requests.received == requests.approved;
        let is_followed = edges.is_followed || is_approved;
        Some(Relationship {
            account: *other,
            is_following: edges.is_following && !is_apart,
            is_followed: is_followed && !is_apart,
            has_requested: requests.is_made && !edges.is_following && !is_apart,
            is_requested: requests.received.is_some() && !is_followed && !is_apart,
            is_muting: edges.is_muting,
            is_blocking: edges.is_blocking,
            is_blocked: edges.is_blocked,
            is_hiding: edges.is_hiding,
        })
    };
    Ok(others.iter().zip(requests).zip(edges).map(relationship).collect())
}

/// Requests between an account and another one.
struct Requests {
    /// The account has made one.
    is_made: bool,
    /// What the other one has made, and what was approved: with the same bytes it is a follow in a moment.
    received: Option<Nonce>,
    approved: Option<Nonce>,
}

/// Requests between an account and others; `None`: there is no such account.
async fn requests(
    tenant: &Tenant,
    account: AccountId,
    others: &[AccountId],
) -> Result<Vec<Option<Requests>>> {
    let keys = tenant.keys();
    let mut batch = Batch::new();
    batch.push(tenant.account_request(account));
    for own in [keys.requested(account), keys.approved(account)] {
        let command = Command::new("HMGET").arg(&own);
        let command = others.iter().fold(command, |command, other| command.arg(&other.to_bytes()));
        batch.push(Request::read(tenant.slot(account), command));
    }
    for other in others {
        batch.push(tenant.account_request(*other));
        batch.push(requested_request(tenant, *other, account));
    }
    let mut answers = Answers::of(tenant, batch).await?;
    let mut next = || answers.next();
    Account::parse(account, next()?)?.filter(Account::is_there).ok_or_else(|| no_account(account))?;
    let (made, approved) = (next()?.into_array()?, next()?.into_array()?);
    let mut found = Vec::with_capacity(others.len());
    for ((other, made), approved) in others.iter().zip(&made).zip(&approved) {
        let is_there = Account::parse(*other, next()?)?.is_some_and(|other| other.is_there());
        let requests = Requests {
            is_made: !made.is_nil(),
            received: maybe_nonce(&next()?)?,
            approved: maybe_nonce(approved)?,
        };
        found.push(is_there.then_some(requests));
    }
    Ok(found)
}

/// What stands between an account and another one, but for requests.
#[expect(clippy::struct_excessive_bools, reason = "as in a relationship")]
struct Edges {
    is_following: bool,
    is_muting: bool,
    is_blocking: bool,
    is_hiding: bool,
    is_followed: bool,
    is_blocked: bool,
}

async fn edges(tenant: &Tenant, account: AccountId, others: &[AccountId]) -> Result<Vec<Edges>> {
    let mut questions = Questions::default();
    let own =
        [tenant.following(account), tenant.mutes(account), tenant.blocks(account), tenant.hides(account)];
    for set in own {
        questions.scores(&set?, others.iter().copied());
    }
    for other in others {
        questions.scores(&tenant.following(*other)?, [account]);
        questions.scores(&tenant.blocks(*other)?, [account]);
    }
    let told = questions.ask(tenant.sets()).await?;
    let mut told = told.into_iter().map(|told| told.scores().into_iter().map(|score| score.is_some()));
    let mut next = || told.next().into_iter().flatten();
    let (following, muting, blocking, hiding) = (next(), next(), next(), next());
    let own = following.zip(muting).zip(blocking).zip(hiding);
    let edges = own.map(|(((is_following, is_muting), is_blocking), is_hiding)| Edges {
        is_following,
        is_muting,
        is_blocking,
        is_hiding,
        is_followed: next().any(|is_member| is_member),
        is_blocked: next().any(|is_member| is_member),
    });
    Ok(edges.collect())
}
