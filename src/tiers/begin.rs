//! Taking the next token of an account, without which nobody changes what the archive has of it.

use std::time::Duration;

use crate::archive::{Archive, ArchiveToken, Owner, OwnerChange};
use crate::cluster::{Request, TouchedServers};
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{ArchiveBegin, ArchiveBeginAnswer, ErasedPost, StayingPosts, TokenCase};
use crate::ids::{AccountId, PostId};
use crate::nonce::draw;
use crate::stored::ArchiveFloor;
use crate::tenant::Tenant;

/// After how long somebody else begins a move anew that was begun and that nobody has ended, besides twice the time
/// that what is stored needs to settle.
const BEGUN_FOR: Duration = Duration::from_secs(30);
/// After how long a post is looked at whose deletion has begun: if it is there still, the archive is to have it again.
const DELETED_FOR: Duration = Duration::from_secs(10);
/// Within which time a change is made that was begun, for which somebody looks at it once it is settled.
const MADE_WITHIN: Duration = Duration::from_secs(5);

/// The archive of a tenant, what the tenant has decided of it, and the number of that decision.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tiers<'t> {
    pub(super) tenant: &'t Tenant,
    pub(super) archive: &'t dyn Archive,
    pub(super) stays: StayingPosts,
    /// The least age of posts that may have left.
    pub(super) left_after_ms: u64,
    pub(super) decision: u32,
}

/// A question for a token.
#[derive(Debug, Clone)]
pub(super) struct TokenAsk {
    pub(super) account: AccountId,
    pub(super) case: TokenCase,
    /// A number that the token's must be above.
    pub(super) above: u64,
    /// A post in memory that is to be deleted.
    pub(super) erased: Option<PostId>,
    /// Posts below the account's floor that are looked at.
    pub(super) warm: Vec<PostId>,
}

/// A token that was given out, and what its bucket said with it.
#[derive(Debug, Clone)]
pub(super) struct Begun {
    pub(super) account: AccountId,
    pub(super) token: ArchiveToken,
    /// The outbox's first element.
    pub(super) first: Vec<u8>,
    /// Elements of the posts that may leave.
    pub(super) due: Vec<u64>,
}

impl Begun {
    /// The floor at which the archive ends so far.
    pub(super) fn floor(&self) -> Option<ArchiveFloor> {
        ArchiveFloor::parse(&self.first)
    }
}

impl<'t> Tiers<'t> {
    /// The tiers of a tenant that has an archive.
    pub(super) fn of(tenant: &'t Tenant) -> Result<Option<Self>> {
        let decision = tenant.known.decision();
        let Some((archive, decided)) = tenant.archive()?.zip(decision.archive) else { return Ok(None) };
        let (stays, left_after_ms) = (decided.stays(), decided.left_after_ms());
        Ok(Some(Self { tenant, archive, stays, left_after_ms, decision: decision.number }))
    }

    /// A change of what the archive has of an account, in which nothing changes yet.
    pub(super) fn change_under(&self, begun: &Begun) -> Result<OwnerChange> {
        let floor = begun.floor();
        Ok(OwnerChange {
            owner: self.owner(begun.account),
            token: begun.token,
            needs: floor.map(ArchiveFloor::needs).unwrap_or_default(),
            upto: floor.map_or_else(|| PostId::from_u64(0), |floor| Ok(floor.upto))?,
            posts: Vec::new(),
            erased: Vec::new(),
            buries: false,
        })
    }

    pub(super) fn owner(&self, account: AccountId) -> Owner {
        Owner { bucket: self.tenant.bucket(account), account }
    }

    /// The time for which a post stays that something was done with: a quarter of what every post stays at least.
    pub(super) fn touched_ms(&self) -> u64 {
        self.stays.ms / 4
    }

    /// The time at which a post is looked at again that stays, or comes back.
    pub(super) fn warm_until(&self) -> u64 {
        self.tenant.router().now_ms() + self.touched_ms().max(100)
    }

    /// The time at which a change that the archive makes now, and may lose, is looked at; 0: it loses none.
    pub(super) fn looked_at(&self) -> u64 {
        match self.archive.settles_within() {
            Duration::ZERO => 0,
            // Noted before it is made: who looks sooner makes it, too.
            _ => self.after(MADE_WITHIN),
        }
    }

    pub(super) fn after(&self, time: Duration) -> u64 {
        self.tenant.router().now_ms() + u64::try_from(time.as_millis()).unwrap_or(u64::MAX >> 1)
    }

    /// Record, outbox, the bucket's agenda.
    pub(super) fn keys(&self, account: AccountId) -> [Vec<u8>; 3] {
        let keys = self.tenant.keys();
        [keys.account(account), keys.outbox(account), keys.agenda(self.tenant.bucket(account))]
    }

    /// Takes tokens.
    pub(super) async fn begin(
        &self,
        asks: impl IntoIterator<Item = TokenAsk>,
        touched: &mut TouchedServers,
    ) -> Result<Vec<ArchiveBeginAnswer>> {
        let now_ms = self.tenant.router().now_ms();
        let begin = |ask: TokenAsk| {
            let erased = ask.erased.map(|id| ErasedPost {
                id,
                key: self.tenant.keys().post(id),
                again_at: self.after(DELETED_FOR),
            });
            let begin = ArchiveBegin {
                keys: self.keys(ask.account),
                account: ask.account,
                nonce: draw(),
                stays: self.stays,
                now_ms,
                again_at: self.after(BEGUN_FOR + 2 * self.archive.settles_within()),
                decision: self.decision,
                above: ask.above,
                case: ask.case,
                erased,
                looked_at: self.looked_at(),
                warm: ask.warm,
            };
            // H163: sent again it only takes one token more.
            Request::write(self.tenant.slot(ask.account), begin.command())
        };
        let mut begun = Vec::new();
        for answer in self.tenant.run_all(asks.into_iter().map(begin).collect()).await? {
            touched.add(&answer);
            begun.push(ArchiveBeginAnswer::parse(answer.ok()?)?);
        }
        Ok(begun)
    }

    /// Takes one token, whatever is due; on replicas. None: there is no such account, or the post that is to be deleted
    /// has left memory, or lies above the floor.
    pub(super) async fn token(&self, ask: TokenAsk, touched: &mut TouchedServers) -> Result<Option<Begun>> {
        let account = ask.account;
        let mut tries = self.tenant.router().fence_tries();
        let begun = loop {
            let mut said = TouchedServers::new();
            let begun = self.begin([ask.clone()], &mut said).await?.pop();
            match self.tenant.router().fence(&said).await {
                Err(e) => tries.after(e).await?,
                Ok(_) => {
                    touched.extend(&said);
                    break begun;
                }
            }
        };
        match begun {
            Some(ArchiveBeginAnswer::Begun { token, first, due }) => Ok(Some(Begun { account, token, first, due })),
            Some(ArchiveBeginAnswer::Undecided) => Err(Error::new(
                ErrorKind::Unavailable,
                "a bucket doesn't know yet that its tenant has an archive; instances tell it within the hour",
            )),
            Some(ArchiveBeginAnswer::Unsettled) => Err(Error::new(
                ErrorKind::Overloaded,
                format!(
                    "account {account} has deleted as many old posts as may wait for the archive to forget them \
                     for good, which takes at least {} s. Try again after that",
                    self.archive.settles_within().as_secs()
                ),
            )),
            Some(
                ArchiveBeginAnswer::Nothing
                | ArchiveBeginAnswer::NoAccount
                | ArchiveBeginAnswer::Deleted
                | ArchiveBeginAnswer::Cold
                // Of who asks for posts that came back alone.
                | ArchiveBeginAnswer::Moving,
            )
            | None => Ok(None),
        }
    }
}
