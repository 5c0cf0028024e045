//! The relations of an account to others, many at once. What it follows, mutes, blocks, hides from and has asked for
//! lies in its own bucket; what others do about it lies in theirs, and is read there too: what is derived from it in
//! its own comes later.

use std::collections::BTreeSet;
use std::fmt;

use super::toggles::requested_request;
use crate::account::Account;
use crate::cluster::{Batch, Command, Reply, Request};
use crate::error::{Error, Result};
use crate::functions::maybe_nonce;
use crate::ids::AccountId;
use crate::keys::OwnKey;
use crate::nonce::Nonce;
use crate::reader::{MuteTerms, ReaderState};
use crate::settings::check_asked;
use crate::sharded::{Questions, SetAnswer};
use crate::tenant::{Answers, Tenant, no_account};

/// How an account stands to another one. Between two of whom one blocks the other there is no follow and no request.
#[derive(Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
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
    /// Reposts of the other one show in its home: it follows or asks to, and has not had them left out.
    #[serde(default)]
    pub shows_reposts: bool,
    /// It mutes the other one, and is told all the same what that does.
    #[serde(default)]
    pub is_told_all_the_same: bool,
    /// The end of its mute of the other one, in milliseconds since 1970; `None`: there is none, or it doesn't end.
    #[serde(default)]
    pub muted_until_ms: Option<u64>,
    /// Its private note on the other one.
    #[serde(default)]
    pub note: Option<String>,
}

impl fmt::Debug for Relationship {
    /// Without the note: what is printed so ends up in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relationship")
            .field("account", &self.account)
            .field("is_following", &self.is_following)
            .field("is_followed", &self.is_followed)
            .field("has_requested", &self.has_requested)
            .field("is_requested", &self.is_requested)
            .field("is_muting", &self.is_muting)
            .field("is_blocking", &self.is_blocking)
            .field("is_blocked", &self.is_blocked)
            .field("is_hiding", &self.is_hiding)
            .field("shows_reposts", &self.shows_reposts)
            .field("is_told_all_the_same", &self.is_told_all_the_same)
            .field("muted_until_ms", &self.muted_until_ms)
            .field("has_note", &self.note.is_some())
            .finish()
    }
}

/// Tells how `account` stands to others, in their order; `None`: there is no such account. Two batches, however many
/// these are, and a third one where neither of the first two has found a request or a follow.
pub(crate) async fn relationships(
    tenant: &Tenant,
    account: AccountId,
    others: &[AccountId],
) -> Result<Vec<Option<Relationship>>> {
    check_asked(others.len(), "accounts")?;
    if others.is_empty() {
        return Ok(Vec::new());
    }
    // First the requests: an approval may turn one into a follow between the two looks.
    let mut requests = requests(tenant, account, others).await?;
    let edges = edges(tenant, account, others).await?;
    ask_again(tenant, account, others, (&mut requests, &edges)).await?;
    let now = tenant.router().now_ms();
    let relationship = |((other, requests), edges): ((&AccountId, Option<Requests>), Edges)| {
        let is_apart = edges.is_apart();
        let requests = requests?;
        let is_approved = requests.received.is_some() && requests.received == requests.approved;
        let is_followed = edges.is_followed || is_approved;
        let Remarks { hides_reposts, mute, note } = requests.remarks;
        let is_muting = edges.is_muting && mute.until.is_none_or(|end| end > now);
        Some(Relationship {
            account: *other,
            is_following: edges.is_following && !is_apart,
            is_followed: is_followed && !is_apart,
            has_requested: requests.made.is_some() && !edges.is_following && !is_apart,
            is_requested: requests.received.is_some() && !is_followed && !is_apart,
            shows_reposts: (edges.is_following || requests.made.is_some()) && !is_apart && !hides_reposts,
            is_muting,
            is_told_all_the_same: is_muting && mute.is_told,
            muted_until_ms: mute.until.filter(|_| is_muting),
            note,
            is_blocking: edges.is_blocking,
            is_blocked: edges.is_blocked,
            is_hiding: edges.is_hiding,
        })
    };
    Ok(others.iter().zip(requests).zip(edges).map(relationship).collect())
}

/// On whom an account has a private note.
pub(crate) async fn noted(tenant: &Tenant, account: AccountId) -> Result<Vec<AccountId>> {
    accounts_in(tenant, account, &tenant.keys().own(OwnKey::Notes, account)).await
}

/// The accounts that are fields of one of an account's hashes.
pub(super) async fn accounts_in(tenant: &Tenant, account: AccountId, hash: &[u8]) -> Result<Vec<AccountId>> {
    let command = Command::new("HKEYS").arg(hash);
    let fields = tenant.router().call(Request::read(tenant.slot(account), command)).await?.into_array()?;
    fields.iter().map(|id| AccountId::from_bytes(id.bytes()?)).collect()
}

/// Requests between an account and another one.
struct Requests {
    /// What the account has made.
    made: Option<Nonce>,
    /// What the other one has made, and what was approved: with the same bytes it is a follow in a moment.
    received: Option<Nonce>,
    approved: Option<Nonce>,
    /// Read along.
    remarks: Remarks,
}

/// Remarks of an account on another one.
struct Remarks {
    hides_reposts: bool,
    mute: MuteTerms,
    note: Option<String>,
}

impl Remarks {
    /// The hashes in which they are.
    const OWN: [OwnKey; 3] = [OwnKey::HiddenReposts, OwnKey::MuteEnds, OwnKey::Notes];

    /// Of what stands there of one account. What a later release has written says nothing.
    fn parse([hidden, end, note]: [&Reply; 3]) -> Self {
        let text = |note: &[u8]| Some(std::str::from_utf8(ReaderState::remarked(note)?).ok()?.to_owned());
        Self {
            hides_reposts: !hidden.is_nil(),
            mute: end.bytes().map(MuteTerms::of_remark).unwrap_or_default(),
            note: note.bytes().ok().and_then(text),
        }
    }
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
    for own in [OwnKey::Requested, OwnKey::Approved].into_iter().chain(Remarks::OWN) {
        let command = Command::new("HMGET").arg(&keys.own(own, account));
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
    let remarks = [next()?.into_array()?, next()?.into_array()?, next()?.into_array()?];
    let [hidden, ends, notes] = &remarks;
    let remarks = hidden.iter().zip(ends).zip(notes);
    let mut found = Vec::with_capacity(others.len());
    for (((other, made), approved), ((hidden, end), note)) in
        others.iter().zip(&made).zip(&approved).zip(remarks)
    {
        let is_there = Account::parse(*other, next()?)?.is_some_and(|other| other.is_known_to_others());
        let requests = Requests {
            made: maybe_nonce(made)?,
            received: maybe_nonce(&next()?)?,
            approved: maybe_nonce(approved)?,
            remarks: Remarks::parse([hidden, end, note]),
        };
        found.push(is_there.then_some(requests));
    }
    Ok(found)
}

/// Looks at requests once more where both looks found neither a request nor a follow: a follow that was there at the
/// first one may have become a request before the second one.
async fn ask_again(
    tenant: &Tenant,
    account: AccountId,
    others: &[AccountId],
    (requests, edges): (&mut [Option<Requests>], &[Edges]),
) -> Result<()> {
    let (mut batch, mut unknown) = (Batch::new(), Vec::new());
    for ((other, requests), edges) in others.iter().zip(requests).zip(edges) {
        let Some(Requests { made, received, .. }) = requests.as_mut().filter(|_| !edges.is_apart()) else {
            continue;
        };
        let own = (made, edges.is_following, (account, *other));
        for (request, follows, (reader, author)) in [own, (received, edges.is_followed, (*other, account))] {
            // H153
            if request.is_none() && !follows {
                batch.push(requested_request(tenant, reader, author));
                unknown.push(request);
            }
        }
    }
    if unknown.is_empty() {
        return Ok(());
    }
    let mut answers = Answers::of(tenant, batch).await?;
    for request in unknown {
        *request = maybe_nonce(&answers.next()?)?;
    }
    Ok(())
}

/// The number of these accounts that don't follow `account`: not counting itself. One batch.
pub(crate) async fn strangers_among(
    tenant: &Tenant,
    account: AccountId,
    others: &[AccountId],
) -> Result<u16> {
    let others: BTreeSet<AccountId> = others.iter().copied().filter(|other| *other != account).collect();
    let mut questions = Questions::default();
    for other in &others {
        questions.scores(&tenant.following(*other)?, [account]);
    }
    let told = questions.ask(tenant.sets()).await?;
    let strangers =
        told.into_iter().map(SetAnswer::scores).filter(|scores| scores.iter().all(Option::is_none)).count();
    Ok(u16::try_from(strangers).unwrap_or(u16::MAX))
}

/// Tells of each of these whether `reader` follows it, or asks to follow it.
pub(crate) async fn follows_or_asks(
    tenant: &Tenant,
    reader: AccountId,
    authors: &[AccountId],
) -> Result<Vec<bool>> {
    let asks = async || {
        let command = Command::new("HMGET").arg(&tenant.keys().requested(reader));
        let command = authors.iter().fold(command, |command, author| command.arg(&author.to_bytes()));
        let asked = tenant.router().call(Request::read(tenant.slot(reader), command)).await?.into_array()?;
        Ok::<_, Error>(asked.iter().map(|request| !request.is_nil()).collect::<Vec<_>>())
    };
    if authors.is_empty() {
        return Ok(Vec::new());
    }
    // First the requests: an approval may turn one into a follow between the two looks.
    let mut found = asks().await?;
    let follows = tenant.following(reader)?.scores(authors).await?;
    found.iter_mut().zip(&follows).for_each(|(found, since)| *found |= since.is_some());
    // H153: a lock may turn a follow into a request.
    if found.contains(&false) {
        found.iter_mut().zip(asks().await?).for_each(|(found, asks)| *found |= asks);
    }
    Ok(found)
}

/// Edges between an account and another one, but for requests.
#[expect(clippy::struct_excessive_bools, reason = "as in a relationship")]
struct Edges {
    is_following: bool,
    is_muting: bool,
    is_blocking: bool,
    is_hiding: bool,
    is_followed: bool,
    is_blocked: bool,
}

impl Edges {
    /// Whether one of the two blocks the other: what a block ends goes a moment later.
    fn is_apart(&self) -> bool {
        self.is_blocking || self.is_blocked
    }
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
