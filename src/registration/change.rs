//! Changing what was registered: login, e-mail address, password, profile.

use futures::future::try_join;

use super::attempt::{Attempt, Dies, Step, credentials, is_done, refusal};
use super::{Registration, claims, names, passwords};
use crate::cluster::{Command, Touched};
use crate::context::{changed_always, draw};
use crate::error::{ErrorKind, Result};
use crate::functions::{self, Compared, FieldValue};
use crate::ids::{AccountId, Claim};
use crate::profile::{Profile, ProfileUpdate};

/// Tries of one change between others of the same account.
const TRIES_MAX: usize = 16;

impl Registration {
    /// Gives an account another login; also one that has none yet. The old one is free for others then.
    ///
    /// [`ErrorKind::Conflict`]: somebody else has it, or another change of this account's names is under way.
    pub async fn set_login(&self, account: AccountId, login: &str) -> Result<()> {
        self.set_login_until(account, login, &|_| false).await
    }

    /// The same, but stops dead after the first step for which `dies` is true.
    #[doc(hidden)]
    pub async fn set_login_until(&self, account: AccountId, login: &str, dies: Dies<'_>) -> Result<()> {
        let (login, claim) = names::login(login)?;
        self.set_claim(account, Some(claim), Claim::LOGIN, (&[("un", login.into_bytes())], &[]), dies).await
    }

    /// Gives an account another e-mail address, or none.
    ///
    /// Fails as [`set_login`](Self::set_login) does.
    pub async fn set_email(&self, account: AccountId, email: Option<&str>) -> Result<()> {
        let (email, claim) = email.map(names::email).transpose()?.unzip();
        let email = email.unwrap_or_default().into_bytes();
        self.set_claim(account, claim, Claim::EMAIL, (&[], &[("e", email)]), &|_| false).await
    }

    /// Gives an account a claim instead of the one of that kind that it has. `fields`: of its record, of its credentials.
    async fn set_claim(
        &self,
        account: AccountId,
        claim: Option<Claim>,
        kind: u8,
        fields: (&[FieldValue], &[FieldValue]),
        dies: Dies<'_>,
    ) -> Result<()> {
        let context = self.context();
        for _ in 0..TRIES_MAX {
            context.existing(account).await?;
            let mut touched = Touched::new();
            let [seen, held] = credentials(context, account, ["v", "c"], &mut touched).await?;
            let held = Claim::parse_all(&held.unwrap_or_default())?;
            let (old, kept): (Vec<Claim>, Vec<Claim>) = held.iter().partition(|held| held.kind() == kind);
            let mut wanted: Vec<Claim> = kept.into_iter().chain(claim).collect();
            wanted.sort_unstable();
            let taken = claim.into_iter().filter(|claim| !old.contains(claim)).collect();
            let mut attempt = Attempt { context, account, nonce: draw(), wanted, taken, touched, dies };
            if !begin(&mut attempt, &seen.unwrap_or_default()).await? {
                continue;
            }
            attempt.at(Step::Begun)?;
            attempt.take().await?;
            attempt.settle(fields.0, fields.1).await?;
            // Waits for replicas: only then the old one may go.
            if let Some((claim, taken)) = attempt.reread().await? {
                return Err(refusal(claim, taken));
            }
            let left: Vec<Claim> = old.into_iter().filter(|old| Some(*old) != claim).collect();
            // Whatever comes of it: nobody's claim is free for everybody.
            return claims::give_up_all(context, account, &left).await;
        }
        Err(changed_always(account))
    }

    /// Gives an account another password; also one that has none yet.
    pub async fn set_password(&self, account: AccountId, password: &str) -> Result<()> {
        passwords::check(password)?;
        let context = self.context();
        context.existing(account).await?;
        let hash = self.passwords.hash(password.into()).await?;
        let keys = [context.keys().account(account), context.keys().credentials(account)];
        for _ in 0..TRIES_MAX {
            let [seen] = credentials(context, account, ["v"], &mut Touched::new()).await?;
            let fields = [("h", hash.clone().into_bytes())];
            let command = functions::credentials_set(&keys, &seen.unwrap_or_default(), &draw(), &fields);
            if self.write(account, command).await? {
                return Ok(());
            }
        }
        Err(changed_always(account))
    }

    /// Hashes a password that is right anew, as the settings are now: once, and only if nothing has changed since.
    pub(super) async fn renew_hash(&self, account: AccountId, password: &str, seen: &[u8]) -> Result<bool> {
        let context = self.context();
        let hash = self.passwords.hash(password.into()).await?;
        let keys = [context.keys().account(account), context.keys().credentials(account)];
        let command = functions::credentials_set(&keys, seen, &draw(), &[("h", hash.into_bytes())]);
        self.write(account, command).await
    }

    /// What an account shows of itself; an empty profile if nothing was ever said.
    pub async fn profile(&self, account: AccountId) -> Result<Profile> {
        let (_, stored) = try_join(self.context().existing(account), self.stored_profile(account)).await?;
        Ok(stored.1)
    }

    async fn stored_profile(&self, account: AccountId) -> Result<(Vec<u8>, Profile)> {
        let context = self.context();
        Profile::parse(&context.router().call(context.profile_request(account)).await?)
    }

    /// Changes what an account shows of itself; any account has a profile.
    pub async fn update_profile(&self, account: AccountId, update: &ProfileUpdate) -> Result<Profile> {
        let context = self.context();
        context.existing(account).await?;
        let keys = [context.keys().account(account), context.keys().profile(account)];
        for _ in 0..TRIES_MAX {
            let (seen, profile) = self.stored_profile(account).await?;
            let profile = profile.updated(update);
            profile.check()?;
            let command = functions::profile_set(&keys, &seen, &profile.stored(&draw())?);
            if self.write(account, command).await? {
                return Ok(profile);
            }
        }
        Err(changed_always(account))
    }

    /// One try of a write that compares; false: something has changed, or nobody knows whether it was written.
    async fn write(&self, account: AccountId, command: Command) -> Result<bool> {
        let context = self.context();
        let answer = match context.once(context.slot(account), command).await {
            Err(e) if e.kind() == ErrorKind::Unknown => return Ok(false),
            answer => answer?,
        };
        let epoch = answer.epoch.clone();
        let is_done = is_done(Compared::parse(answer.ok()?)?, account)?;
        if is_done {
            context.acknowledge(context.settings.acknowledge, &epoch).await?;
        }
        Ok(is_done)
    }
}

/// The first step of a change; false: the credentials have changed since they were read.
async fn begin(attempt: &mut Attempt<'_>, seen: &[u8]) -> Result<bool> {
    let (context, account) = (attempt.context, attempt.account);
    let keys = [context.keys().account(account), context.keys().credentials(account)];
    let command =
        functions::claims_begin(&keys, &attempt.nonce, claims::patience_ms(), seen, &attempt.wanted);
    let answer = match context.once(context.slot(account), command).await {
        // It may have begun: ended, so that the next try needn't wait for a minute.
        Err(e) if e.kind() == ErrorKind::Unknown => return attempt.end().await.map(|()| false),
        answer => answer?,
    };
    attempt.touched.add(&answer);
    is_done(Compared::parse(answer.ok()?)?, account)
}
