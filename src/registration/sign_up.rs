//! Signing up.

use std::fmt;

use super::attempt::{Attempt, AttemptStep, BegunAttempts, KillRule, credentials, refusal, unknown};
use super::{Registration, names, passwords};
use crate::account::{Account, AccountState, NewAccount};
use crate::beginnings::NameTask;
use crate::claims::{self, ClaimOutcome};
use crate::cluster::{Request, TouchedServers};
use crate::error::{CallFuture, Error, ErrorCode, ErrorKind, Result};
use crate::fields::{CredentialField, RecordField};
use crate::functions::{self, Holder, SignUpAnswer};
use crate::ids::{AccountId, Claim};
use crate::journal;
use crate::meters;
use crate::nonce::{Nonce, draw};
use crate::post::TOKEN_LEN_MAX;
use crate::profile::Profile;
use crate::settings::Acknowledge;

/// Tries of the first step, between others that begin to register the same id.
const BEGIN_TRIES_MAX: u32 = 3;

/// A request for an account: what somebody who signs up says.
#[derive(Clone, Default)]
pub struct SignUp {
    /// The account itself.
    pub account: NewAccount,
    /// The login, by which others call it: letters from a to z, digits, `_`, and between them `-` and `.`. Upper and
    /// lower case are the same.
    pub login: String,
    /// Its e-mail address, if it has one. Whether it is its own is the caller's to find out.
    pub email: Option<String>,
    /// Its password.
    pub password: String,
    /// The profile: what it shows of itself.
    pub profile: Profile,
    /// 1 to 64 bytes by which signing up twice is recognized: the second time, with the same names and password, gives
    /// the same account.
    pub token: Option<String>,
    /// Whether it has to be let in: once registered it is [`Waiting`](AccountState::Waiting), until
    /// [`update_account`](crate::Engine::update_account) says that it is active.
    pub waits: bool,
}

/// An account that was registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RegisteredAccount {
    /// Its id.
    pub id: AccountId,
    /// Whether it was there already: registered with the same token.
    pub is_repeat: bool,
    /// `Replicated`, whatever the setting `acknowledge` says; `Accepted` where a server had no replica, and
    /// [`Replicas`](crate::cluster::Replicas) says to go on without.
    pub reached: Acknowledge,
}

impl SignUp {
    /// Begins a request with a login and a password.
    pub fn new(login: impl Into<String>, password: impl Into<String>) -> Self {
        Self { login: login.into(), password: password.into(), ..Self::default() }
    }

    /// Gives the request an e-mail address.
    #[must_use]
    pub fn email(self, email: impl Into<String>) -> Self {
        Self { email: Some(email.into()), ..self }
    }

    /// Makes signing up twice the same as once.
    #[must_use]
    pub fn token(self, token: impl Into<String>) -> Self {
        Self { token: Some(token.into()), ..self }
    }

    /// Has it wait, once registered, until it is let in.
    #[must_use]
    pub fn waiting(self) -> Self {
        Self { waits: true, ..self }
    }
}

/// Without what is secret.
impl fmt::Debug for SignUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignUp")
            .field("account", &self.account)
            .field("login", &self.login)
            .finish_non_exhaustive()
    }
}

/// A sign-up that makes sense.
struct CheckedSignUp {
    login: String,
    email: Option<String>,
    /// In their order.
    claims: Vec<Claim>,
}

/// The part that the attempts of one call have in common.
#[derive(Default)]
struct OwnAttempts {
    hash: Option<String>,
    id: Option<AccountId>,
    begun: BegunAttempts,
}

impl SignUp {
    /// Refuses what no account could have, as `Invalid`; whether somebody else has it is asked by signing up.
    pub fn check(&self) -> Result<()> {
        self.checked().map(|_| ())
    }

    fn checked(&self) -> Result<CheckedSignUp> {
        let (login, of_login) = names::login(&self.login)?;
        let email = self.email.as_deref().map(names::email).transpose()?;
        passwords::check(&self.password)?;
        self.profile.check()?;
        if let Some(token) = self.token.as_ref().filter(|token| !(1..=TOKEN_LEN_MAX).contains(&token.len())) {
            let text = format!("token: {} bytes; 1 to {TOKEN_LEN_MAX} are allowed", token.len());
            return Err(Error::out_of_range(text));
        }
        let (email, of_email) = email.unzip();
        let mut claims: Vec<Claim> = [of_login].into_iter().chain(of_email).collect();
        // All take them in one order: of several that want the same ones, one gets all.
        claims.sort_unstable();
        Ok(CheckedSignUp { login, email, claims })
    }
}

impl Registration {
    /// Registers an account. Once this returns, it is there, with all its names, on replicas too where there are any
    /// ([`RegisteredAccount::reached`]).
    ///
    /// [`ErrorKind::Conflict`]: somebody else has the login or the e-mail address, or is about to; nothing is left
    /// behind. [`ErrorKind::Overloaded`]: too many passwords wait to be hashed. [`ErrorKind::Unavailable`]: there is
    /// none, and the names are free, within a minute where the account's server doesn't answer. [`ErrorKind::Unknown`]:
    /// there may be the account; with a token signing up again tells, without one logging in does.
    pub fn sign_up<'a>(&'a self, sign_up: &'a SignUp) -> CallFuture<'a, RegisteredAccount> {
        Box::pin(async move { self.sign_up_until(sign_up, &|_| false).await })
    }

    /// Registers an account, and stops dead after the first step for which `dies` is true, as a killed process would.
    #[doc(hidden)]
    pub fn sign_up_until<'a>(
        &'a self,
        sign_up: &'a SignUp,
        dies: KillRule<'a>,
    ) -> CallFuture<'a, RegisteredAccount> {
        Box::pin(async move {
            let registered = self.try_sign_up(sign_up, dies).await;
            meters::registration(match &registered {
                Ok(RegisteredAccount { is_repeat: false, .. }) => "registered",
                Ok(_) => "repeated",
                Err(e) if matches!(e.kind(), ErrorKind::Conflict | ErrorKind::Invalid) => "refused",
                Err(_) => "failed",
            });
            registered
        })
    }

    async fn try_sign_up(&self, sign_up: &SignUp, dies: KillRule<'_>) -> Result<RegisteredAccount> {
        let checked = sign_up.checked()?;
        let (mut tries, mut ours) = (self.tenant().router().fence_tries(), OwnAttempts::default());
        loop {
            match self.sign_up_once(sign_up, &checked, &mut ours, dies).await {
                // What it had begun is ended.
                Err(e) => tries.after(e).await?,
                registered => return registered,
            }
        }
    }

    /// One attempt, or what is left to do of an earlier one's.
    async fn sign_up_once(
        &self,
        sign_up: &SignUp,
        checked: &CheckedSignUp,
        ours: &mut OwnAttempts,
        dies: KillRule<'_>,
    ) -> Result<RegisteredAccount> {
        if let Some(repeated) = self.look_first(sign_up, checked, ours, dies).await? {
            return Ok(repeated);
        }
        // Before anything is written: nothing that takes long comes between beginning and settling.
        let hash = match &ours.hash {
            Some(hash) => hash.clone(),
            None => self.passwords.hash(sign_up.password.clone()).await?,
        };
        ours.hash = Some(hash.clone());
        let id = match sign_up.account.id.or(ours.id) {
            Some(id) => id,
            None => self.engine.new_account_id().await?,
        };
        ours.id = Some(id);
        let mut attempt = self.attempt(id, draw(), checked.claims.clone(), dies);
        // Later ones go on with what the first has written: that is to be brought to an end.
        if ours.begun.is_empty() {
            attempt.expect_replicas()?;
        }
        self.begin(&mut attempt, sign_up, checked, (hash, &mut ours.begun)).await?;
        attempt.at(AttemptStep::Begun)?;
        let reached = self.finish(attempt).await?;
        Ok(RegisteredAccount { id, is_repeat: false, reached })
    }

    fn attempt<'a>(
        &'a self,
        account: AccountId,
        nonce: Nonce,
        claims: Vec<Claim>,
        dies: KillRule<'a>,
    ) -> Attempt<'a> {
        let (tenant, touched) = (self.tenant(), TouchedServers::new());
        Attempt {
            tenant,
            account,
            nonce,
            wanted: claims.clone(),
            taken: claims,
            touched,
            reached: Acknowledge::default(),
            dies,
        }
    }

    async fn finish(&self, mut attempt: Attempt<'_>) -> Result<Acknowledge> {
        attempt.take().await?;
        let names = NameTask { account: attempt.account };
        let (journal, bucket) = (&self.graph().journal, self.tenant().bucket(attempt.account));
        let settled = journal::noted_before(journal, bucket, names, attempt.settle(&[], &[])).await?;
        let Some((claim, taken)) = settled else { return Ok(attempt.reached) };
        // A failover gave the name to somebody else: nobody was told of this account yet.
        self.engine.delete_account(attempt.account).await?;
        Err(refusal(claim, taken))
    }

    /// Whether the names are to be had, as far as that can be told before a password is hashed. Some: it was us who
    /// have got them, the last time that this was tried.
    async fn look_first(
        &self,
        sign_up: &SignUp,
        checked: &CheckedSignUp,
        ours: &OwnAttempts,
        dies: KillRule<'_>,
    ) -> Result<Option<RegisteredAccount>> {
        let tenant = self.tenant();
        let looks = checked.claims.iter().map(|claim| claims::look_request(tenant, claim)).collect();
        for (claim, answer) in checked.claims.iter().zip(tenant.run_all(looks).await?) {
            let Some((holder, value)) = functions::parse_claim(&answer.ok()?)? else { continue };
            if ours.begun.iter().any(|nonce| value.ends_with(nonce)) {
                // An attempt of this very call has left it.
                continue;
            }
            if let Some(token) = &sign_up.token
                && let Some(repeated) =
                    self.repeated(holder, (token, &sign_up.password), &checked.claims, dies).await?
            {
                return Ok(Some(repeated));
            }
            let answer = tenant.router().ask(claims::holder_request(tenant, holder, claim)).await?;
            match Holder::parse(answer.ok()?)? {
                Holder::Held => return Err(refusal(*claim, ClaimOutcome::Held(holder))),
                Holder::Wanted { age_ms, .. } if claims::is_young(age_ms) => {
                    return Err(refusal(*claim, ClaimOutcome::Wanted(holder)));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// The account that was registered with the same token, claims and password, if it is that one; brought to its end
    /// if it had not got there. Who knows a token alone is not the one who signed up.
    async fn repeated(
        &self,
        holder: AccountId,
        (token, password): (&str, &str),
        claims: &[Claim],
        dies: KillRule<'_>,
    ) -> Result<Option<RegisteredAccount>> {
        let tenant = self.tenant();
        let mut touched = TouchedServers::new();
        let (account, [of_token, attempt, hash, last], said) = loop {
            let Some(account) = tenant.account(holder).await? else { return Ok(None) };
            let seen = credentials(
                tenant,
                holder,
                [
                    CredentialField::SIGN_UP_TOKEN,
                    CredentialField::ATTEMPT,
                    CredentialField::PASSWORD_HASH,
                    CredentialField::LAST_ATTEMPT,
                ],
                &mut touched,
            )
            .await?;
            let said = claims::of_account(tenant, holder, &mut touched).await?;
            // H57: confirmed meanwhile, it may be changing its names: that attempt is not the sign-up's. It is
            // confirmed once.
            let was_open = account.state == AccountState::Unconfirmed;
            let is_open = |now: &Account| now.state == AccountState::Unconfirmed;
            if !was_open || tenant.account(holder).await?.as_ref().is_some_and(is_open) {
                break (account, seen, said);
            }
        };
        if of_token.as_deref() != Some(token.as_bytes()) || (said.held != claims && said.wanted != claims) {
            return Ok(None);
        }
        let hash = hash.map(String::from_utf8).transpose();
        let hash = hash.map_err(|_| Error::internal("an account's password hash is no text"))?;
        if !self.passwords.is_hash_of(hash, password.to_owned()).await? {
            return Ok(None);
        }
        let under = |nonce: Vec<u8>| {
            let nonce = nonce.try_into().map_err(|_| Error::internal("an attempt has 8 bytes"))?;
            let attempt = self.attempt(holder, nonce, claims.to_vec(), dies);
            // H58: who said so is fenced too: what the first time has written may not be on replicas yet.
            Ok::<_, Error>(Attempt { touched, ..attempt })
        };
        let reached = match (account.state, attempt, last) {
            (AccountState::Unconfirmed, Some(nonce), _) => self.finish(under(nonce)?).await?,
            (AccountState::Deleted | AccountState::Unconfirmed, ..) | (_, _, None) => return Ok(None),
            (_, _, Some(last)) => {
                let mut attempt = under(last)?;
                let unknown = |e: Error| if e.is_of_fence() { e } else { unknown(&e) };
                if let Some((claim, taken)) = attempt.reread().await.map_err(unknown)? {
                    return Err(refusal(claim, taken));
                }
                attempt.reached
            }
        };
        Ok(Some(RegisteredAccount { id: holder, is_repeat: true, reached }))
    }

    async fn begin(
        &self,
        attempt: &mut Attempt<'_>,
        sign_up: &SignUp,
        checked: &CheckedSignUp,
        (hash, begun): (String, &mut BegunAttempts),
    ) -> Result<()> {
        let tenant = self.tenant();
        let before = begun.len();
        let (keys, id) = (tenant.keys(), attempt.account);
        let of = [keys.account(id), keys.credentials(id), keys.profile(id)];
        let mut record = sign_up.account.clone().made_at(tenant.router().now_ms()).fields(draw());
        // Its state is the function's affair: unconfirmed, until the attempt is settled.
        record.retain(|(field, _)| *field != RecordField::STATE);
        record.push((RecordField::LOGIN, checked.login.clone().into_bytes()));
        let mut credentials = vec![(CredentialField::PASSWORD_HASH, hash.into_bytes())];
        credentials.extend(checked.email.clone().map(|email| (CredentialField::EMAIL, email.into_bytes())));
        credentials
            .extend(sign_up.token.clone().map(|token| (CredentialField::SIGN_UP_TOKEN, token.into_bytes())));
        if sign_up.waits {
            // H205: with the sign-up, or whoever dies behind it has left it where nobody is asked any more.
            credentials.push((CredentialField::BEGINS_AS, vec![AccountState::Waiting.letter()]));
        }
        let profile = sign_up.profile.stored(&draw())?;
        for tries_left in (0..BEGIN_TRIES_MAX).rev() {
            let (nonce, now_ms) = (draw(), tenant.router().now_ms());
            // Before it is sent: it may have begun though nobody says so, and then it is ours to end (H92).
            begun.push(nonce);
            let command = functions::signup_begin(
                &of,
                &nonce,
                now_ms,
                &attempt.wanted,
                &profile,
                &record,
                &credentials,
            );
            let request = Request::write(tenant.slot(id), command);
            // H56: sent again as it is, a copy that comes late would begin an attempt anew that somebody has ended, and
            // behind it a late copy of the last step would settle it.
            let request = request.once();
            let answer = match tenant.router().ask(request).await {
                Err(e) if e.kind() == ErrorKind::Unknown && tries_left > 0 => continue,
                answer => answer?,
            };
            attempt.touched.add(&answer);
            attempt.nonce = nonce;
            let SignUpAnswer::There(state) = SignUpAnswer::parse(answer.ok()?)? else { return Ok(()) };
            if AccountState::from_letter(state) != AccountState::Unconfirmed {
                break;
            }
            let said = claims::of_account(tenant, id, &mut attempt.touched).await?;
            let left = said.attempt.unwrap_or_default().0;
            let patience_ms = match begun.iter().position(|nonce| nonce[..] == left) {
                Some(ours) if ours >= before => {
                    attempt.nonce = begun[ours];
                    return Ok(());
                }
                // H92: that it was ended is lost.
                Some(_) => 0,
                // Somebody began to register that id, and never came back?
                _ => claims::patience_ms(),
            };
            if !claims::void(tenant, id, &left, patience_ms, &mut attempt.touched).await? {
                break;
            }
        }
        Err(Error::new(ErrorCode::IdTaken, format!("account {id} is there already, or is being registered")))
    }
}
