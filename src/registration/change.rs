//! Changing what was registered: login, e-mail address, password, profile.

use futures::future::try_join;

use super::attempt::{Attempt, AttemptStep, BegunAttempts, KillRule, credentials, is_done, refusal};
use super::{Registration, names, passwords};
use crate::beginnings::NameTask;
use crate::change::Tries;
use crate::claims;
use crate::cluster::{Command, Epoch, TouchedServers};
use crate::error::{CallFuture, ErrorKind, Result};
use crate::fields::{CredentialField, RecordField};
use crate::functions::{self, CompareAnswer, FieldValue};
use crate::ids::{AccountId, Claim};
use crate::journal;
use crate::nonce::draw;
use crate::profile::{Profile, ProfileUpdate};
use crate::settings::{Acknowledge, Receipt};
use crate::stored::profile_of;
use crate::tenant::{Tenant, account_changed_always};

/// Tries of one change between others of the same account.
const TRIES_MAX: usize = 16;

impl Registration {
    /// Gives an account another login; also one that has none yet. The old one is free for others then.
    ///
    /// [`ErrorKind::Conflict`]: somebody else has it, or another change of this account's names is under way.
    /// [`ErrorKind::Unavailable`]: nothing has changed. [`ErrorKind::Unknown`]: it may have.
    pub fn set_login<'a>(&'a self, account: AccountId, login: &'a str) -> CallFuture<'a, Receipt> {
        Box::pin(self.set_login_until(account, login, &|_| false))
    }

    /// Changes a login, and stops dead after the first step for which `dies` is true.
    #[doc(hidden)]
    pub fn set_login_until<'a>(
        &'a self,
        account: AccountId,
        login: &'a str,
        dies: KillRule<'a>,
    ) -> CallFuture<'a, Receipt> {
        Box::pin(async move {
            let (login, claim) = names::login(login)?;
            let fields = [(RecordField::LOGIN, login.into_bytes())];
            let set = self.set_claim(account, Some(claim), Claim::LOGIN, (&fields, &[]), dies);
            self.named_anew(account, set).await
        })
    }

    /// Gives an account another e-mail address, or none.
    ///
    /// Fails as [`set_login`](Self::set_login) does.
    pub fn set_email<'a>(&'a self, account: AccountId, email: Option<&'a str>) -> CallFuture<'a, Receipt> {
        Box::pin(self.set_email_until(account, email, &|_| false))
    }

    /// Changes an e-mail address, and stops dead after the first step for which `dies` is true.
    #[doc(hidden)]
    pub fn set_email_until<'a>(
        &'a self,
        account: AccountId,
        email: Option<&'a str>,
        dies: KillRule<'a>,
    ) -> CallFuture<'a, Receipt> {
        Box::pin(async move {
            let (email, claim) = email.map(names::email).transpose()?.unzip();
            let email = email.unwrap_or_default().into_bytes();
            self.set_claim(account, claim, Claim::EMAIL, (&[], &[(CredentialField::EMAIL, email)]), dies)
                .await
        })
    }

    /// Gives an account a claim instead of the one of that kind that it has. `fields`: of its record, of its
    /// credentials.
    async fn set_claim(
        &self,
        account: AccountId,
        claim: Option<Claim>,
        kind: u8,
        fields: (&[FieldValue], &[FieldValue]),
        dies: KillRule<'_>,
    ) -> Result<Receipt> {
        let tenant = self.tenant();
        let (mut tries, mut begun, mut changed) = (tenant.router().fence_tries(), BegunAttempts::new(), 0);
        while changed < TRIES_MAX {
            match self.try_claim((account, claim, kind), fields, &mut begun, dies).await {
                Ok(Some((left, reached))) => {
                    // It is made, and lasts. What can't be given up now is nobody's: whoever wants it gets it.
                    give_up_patiently(tenant, account, &left).await;
                    return Ok(Receipt { value: (), reached });
                }
                Ok(None) => changed += 1,
                // What it had begun is ended.
                Err(e) => tries.after(e).await?,
            }
        }
        Err(account_changed_always(account))
    }

    /// One attempt. Gives what the account had before, and what is true of what it has now; `None`: something else has
    /// changed its names meanwhile.
    async fn try_claim(
        &self,
        (account, claim, kind): (AccountId, Option<Claim>, u8),
        fields: (&[FieldValue], &[FieldValue]),
        begun: &mut BegunAttempts,
        dies: KillRule<'_>,
    ) -> Result<Option<(Vec<Claim>, Acknowledge)>> {
        let tenant = self.tenant();
        tenant.existing(account).await?;
        let mut touched = TouchedServers::new();
        // With the attempt that wrote them, which the first step compares: of two changes at once one looks again.
        let [seen, held] = credentials(
            tenant,
            account,
            [CredentialField::LAST_ATTEMPT, CredentialField::CLAIMS],
            &mut touched,
        )
        .await?;
        let held = Claim::parse_all(&held.unwrap_or_default())?;
        let (old, kept): (Vec<Claim>, Vec<Claim>) = held.iter().partition(|held| held.kind() == kind);
        let mut wanted: Vec<Claim> = kept.into_iter().chain(claim).collect();
        // In one order, as at a sign-up.
        wanted.sort_unstable();
        let taken = claim.into_iter().filter(|claim| !old.contains(claim)).collect();
        let (nonce, reached) = (draw(), Acknowledge::default());
        let mut attempt = Attempt { tenant, account, nonce, wanted, taken, touched, reached, dies };
        if begun.is_empty() {
            attempt.expect_replicas()?;
        }
        // Before it is sent: it may begin though nobody says so.
        begun.push(attempt.nonce);
        if !begin(&mut attempt, &seen.unwrap_or_default(), begun).await? {
            return Ok(None);
        }
        attempt.at(AttemptStep::Begun)?;
        attempt.take().await?;
        // H58: waits for replicas, also for the claims: only then the old one may go.
        if let Some((claim, taken)) = attempt.settle(fields.0, fields.1).await? {
            return Err(refusal(claim, taken));
        }
        let left = old.into_iter().filter(|old| Some(*old) != claim).collect();
        Ok(Some((left, attempt.reached)))
    }

    /// Gives an account another password; also one that has none yet.
    pub fn set_password<'a>(&'a self, account: AccountId, password: &'a str) -> CallFuture<'a, Receipt> {
        Box::pin(async move {
            passwords::check(password)?;
            let tenant = self.tenant();
            tenant.existing(account).await?;
            let hash = self.passwords.hash(password.into()).await?;
            let keys = [tenant.keys().account(account), tenant.keys().credentials(account)];
            let tries = &mut Tries::of(account);
            loop {
                let once = async {
                    let [seen] = credentials(
                        tenant,
                        account,
                        [CredentialField::LAST_ATTEMPT],
                        &mut TouchedServers::new(),
                    )
                    .await?;
                    let fields = [(CredentialField::PASSWORD_HASH, hash.clone().into_bytes())];
                    let command =
                        functions::credentials_set(&keys, &seen.unwrap_or_default(), &draw(), &fields);
                    self.write(account, command, tries).await
                };
                let once = once.await;
                if let Some(epoch) = tries.ended(once)? {
                    return self.acknowledged(epoch).await;
                }
            }
        })
    }

    /// Hashes a password that is right anew, as the settings are now: once, and only if nothing has changed since.
    pub(super) async fn renew_hash(&self, account: AccountId, password: &str, seen: &[u8]) -> Result<bool> {
        let tenant = self.tenant();
        let hash = self.passwords.hash(password.into()).await?;
        let keys = [tenant.keys().account(account), tenant.keys().credentials(account)];
        let command = functions::credentials_set(
            &keys,
            seen,
            &draw(),
            &[(CredentialField::PASSWORD_HASH, hash.into_bytes())],
        );
        let Some(epoch) = self.write(account, command, &mut Tries::of(account)).await? else {
            return Ok(false);
        };
        self.acknowledged(epoch).await.map(|_| true)
    }

    /// Reads what an account shows of itself; an empty profile if nothing was ever said.
    pub fn profile(&self, account: AccountId) -> CallFuture<'_, Profile> {
        Box::pin(async move {
            let (_, stored) = try_join(self.tenant().existing(account), self.stored_profile(account)).await?;
            Ok(stored.1)
        })
    }

    async fn stored_profile(&self, account: AccountId) -> Result<(Vec<u8>, Profile)> {
        let tenant = self.tenant();
        let stored = tenant.router().call(tenant.profile_request(account)).await?;
        profile_of(&stored).map_err(|e| e.context(format_args!("account {account}")))
    }

    /// Changes what an account shows of itself; any account has a profile.
    pub fn update_profile<'a>(
        &'a self,
        account: AccountId,
        update: &'a ProfileUpdate,
    ) -> CallFuture<'a, Receipt<Profile>> {
        Box::pin(async move {
            self.tenant().existing(account).await?;
            let written = self.write_profile(account, update);
            let (epoch, profile) = match update.display_name {
                Some(_) => self.named_anew(account, written).await?,
                None => written.await?,
            };
            Ok(self.acknowledged(epoch).await?.with(profile))
        })
    }

    async fn write_profile(&self, account: AccountId, update: &ProfileUpdate) -> Result<(Epoch, Profile)> {
        let keys = [self.tenant().keys().account(account), self.tenant().keys().profile(account)];
        let tries = &mut Tries::of(account);
        loop {
            let once = async {
                let (seen, profile) = self.stored_profile(account).await?;
                let profile = profile.updated(update);
                profile.check()?;
                let command = functions::profile_set(&keys, &seen, &profile.stored(&draw())?);
                let written = self.write(account, command, tries).await?;
                Ok(written.map(|epoch| (epoch, profile)))
            };
            let once = once.await;
            if let Some(written) = tries.ended(once)? {
                return Ok(written);
            }
        }
    }

    /// Makes a change of how an account is called.
    async fn named_anew<T>(&self, account: AccountId, change: impl Future<Output = Result<T>>) -> Result<T> {
        let graph = self.graph();
        journal::noted_before(&graph.journal, graph.tenant.bucket(account), NameTask { account }, change)
            .await
    }

    /// One try of a write that compares; `None`: something has changed, or nobody knows whether it was written.
    async fn write(&self, account: AccountId, command: Command, tries: &mut Tries) -> Result<Option<Epoch>> {
        let tenant = self.tenant();
        let Some(answer) = tries.send(tenant, tenant.slot(account), command).await? else {
            return Ok(None);
        };
        let epoch = answer.epoch.clone();
        Ok(is_done(CompareAnswer::parse(answer.ok()?)?, account)?.then_some(epoch))
    }

    pub(super) async fn acknowledged(&self, epoch: Epoch) -> Result<Receipt> {
        let tenant = self.tenant();
        let reached = tenant.acknowledge(tenant.settings.acknowledge, &epoch).await?;
        Ok(Receipt { value: (), reached })
    }
}

/// Gives up what an account doesn't have any more, again while a fence fails.
async fn give_up_patiently(tenant: &Tenant, account: AccountId, claims: &[Claim]) {
    let mut tries = tenant.router().fence_tries();
    while let Err(e) = claims::give_up_all(tenant, account, claims).await {
        if let Err(e) = tries.after(e).await {
            return tracing::debug!("an old name of account {account} stays claimed, for nobody: {e}");
        }
    }
}

/// The first step of a change; false: the credentials have changed since they were read.
async fn begin(attempt: &mut Attempt<'_>, seen: &[u8], begun: &BegunAttempts) -> Result<bool> {
    let (tenant, account) = (attempt.tenant, attempt.account);
    let keys = [tenant.keys().account(account), tenant.keys().credentials(account)];
    let times = (tenant.router().now_ms(), claims::patience_ms());
    let command = functions::claims_begin(&keys, &attempt.nonce, times, seen, &attempt.wanted);
    let answer = match tenant.once(tenant.slot(account), command).await {
        // It may have begun: ended, so that the next try needn't wait for a minute.
        Err(e) if e.kind() == ErrorKind::Unknown => return attempt.end().await.map(|()| false),
        answer => answer?,
    };
    attempt.touched.add(&answer);
    let compared = CompareAnswer::parse(answer.ok()?)?;
    if compared == CompareAnswer::JournalFull {
        let [under_way] =
            credentials(tenant, account, [CredentialField::ATTEMPT], &mut attempt.touched).await?;
        let is_ours = |under_way: &Vec<u8>| begun.iter().any(|nonce| nonce[..] == under_way[..]);
        if let Some(left) = under_way.filter(is_ours) {
            // H92: that it was ended is lost.
            claims::void(tenant, account, &left, 0, &mut attempt.touched).await?;
            return Ok(false);
        }
    }
    is_done(compared, account)
}
