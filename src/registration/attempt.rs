//! An attempt: an account is to have claims. What is begun, taken, settled and ended, in this order; wherever it stops,
//! nobody has a name that he wasn't given, and what is left behind is free for others within a minute.

mod decide;

use self::decide::{ClaimFacts, ClaimStep};
use crate::claims::{self, ClaimOutcome};
use crate::cluster::{Command, Request, TouchedServers};
use crate::error::{Error, ErrorCode, ErrorKind, Result};
use crate::fields::CredentialField;
use crate::functions::{self, CompareAnswer, FieldValue, Holder};
use crate::ids::{AccountId, Claim};
use crate::nonce::{Nonce, draw};
use crate::settings::Acknowledge;
use crate::tenant::{Tenant, no_account};

/// A point at which a process may be killed, for tests.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptStep {
    /// The account says what it is to have.
    Begun,
    /// So many claims are taken.
    Claimed(usize),
    /// All of that is on replicas.
    Fenced,
    /// The account has them.
    Settled,
    /// They have been read again.
    Reread,
}

/// Says after which steps a process is killed.
pub(super) type KillRule<'a> = &'a (dyn Fn(AttemptStep) -> bool + Sync);

/// An attempt under way.
pub(super) struct Attempt<'a> {
    pub(super) tenant: &'a Tenant,
    pub(super) account: AccountId,
    pub(super) nonce: Nonce,
    /// What the account is to have.
    pub(super) wanted: Vec<Claim>,
    /// Those among them that it hasn't yet. In their order: of several that want the same ones, one gets all.
    pub(super) taken: Vec<Claim>,
    pub(super) touched: TouchedServers,
    /// What the last fence has proved of all that.
    pub(super) reached: Acknowledge,
    pub(super) dies: KillRule<'a>,
}

/// Attempts of one call so far, the last one too. What is left of one that came to nothing its own call ends at once: a
/// failover may have brought it back, and nobody else will for a minute.
pub(super) type BegunAttempts = Vec<Nonce>;

impl Attempt<'_> {
    pub(super) fn at(&self, step: AttemptStep) -> Result<()> {
        if (self.dies)(step) {
            return Err(Error::unavailable(format!("killed at {step:?}")));
        }
        Ok(())
    }

    /// Whether what it is to write can be fenced at all, before any of that is written.
    pub(super) fn expect_replicas(&self) -> Result<()> {
        let (tenant, buckets) = (self.tenant, self.tenant.keys().buckets());
        let of_claims = self.wanted.iter().map(|claim| buckets.slot(tenant.keys().bucket_of_claim(claim)));
        tenant.router().expect_replicas(of_claims.chain([tenant.slot(self.account)]))
    }

    fn keys(&self) -> [Vec<u8>; 2] {
        [self.tenant.keys().account(self.account), self.tenant.keys().credentials(self.account)]
    }

    /// Takes the claims; what it took before somebody else had one is given up again.
    pub(super) async fn take(&mut self) -> Result<()> {
        for n in 0..self.taken.len() {
            let claim = self.taken[n];
            let taken =
                claims::take(self.tenant, &claim, (self.account, &self.nonce), &mut self.touched).await;
            match taken {
                Ok(ClaimOutcome::Ours) => self.at(AttemptStep::Claimed(n + 1))?,
                Ok(taken) => {
                    self.end().await?;
                    return Err(refusal(claim, taken));
                }
                Err(e) => {
                    // Whoever can't be reached now is left to others, who wait a minute for that.
                    let _ = self.end().await;
                    return Err(e);
                }
            }
        }
        Ok(())
    }

    /// All are taken: they are the account's. Nobody takes them away any more, so they are on replicas before. Where
    /// that can't be had the attempt is ended, so that the next one needn't wait for a minute.
    pub(super) async fn settle(
        &mut self,
        record: &[FieldValue],
        credentials: &[FieldValue],
    ) -> Result<ClaimsReread> {
        // H130: before the account has them: a claim that is lost afterwards may be somebody else's, and both would
        // say so.
        if let Err(e) = self.tenant.router().fence_patiently(&self.touched).await {
            self.end().await?;
            return Err(e);
        }
        self.at(AttemptStep::Fenced)?;
        if !self.write_settled(record, credentials).await? {
            self.end().await?;
            let text = "the change took so long that others may have the name by now; try again";
            return Err(Error::new(ErrorKind::Conflict, text));
        }
        self.at(AttemptStep::Settled)?;
        let mut tries = self.tenant.router().fence_tries();
        loop {
            match self.reread().await {
                Err(e) => tries.after(e).await.map_err(|e| unknown(&e))?,
                reread => return reread,
            }
            // H91: a server failed over, and may have lost what the account said: all of that once more.
            self.touched = TouchedServers::new();
            if !self.write_settled(record, credentials).await.map_err(|e| unknown(&e))? {
                return Err(unknown(&"the account says something else by now"));
            }
        }
    }

    /// The last word of the attempt; false: it has been ended, or another one has come after it.
    async fn write_settled(&mut self, record: &[FieldValue], credentials: &[FieldValue]) -> Result<bool> {
        let command = functions::claims_settle(&self.keys(), &self.nonce, &draw(), record, credentials);
        let slot = self.tenant.slot(self.account);
        let answer = match self.tenant.router().ask(Request::write(slot, command)).await {
            Err(e) => {
                // If it was written, then it stays; else nobody need wait for that.
                drop(self.end().await);
                return Err(e);
            }
            Ok(answer) => answer,
        };
        self.touched.add(&answer);
        Ok(CompareAnswer::parse(answer.ok()?)? == CompareAnswer::Done)
    }

    /// Looks at all claims once more, and waits for replicas. A failover may have taken one back: then it is taken
    /// again.
    pub(super) async fn reread(&mut self) -> Result<ClaimsReread> {
        let looks = self.wanted.iter().map(|claim| claims::look_request(self.tenant, claim)).collect();
        let found = self.tenant.run_all(looks).await?;
        'claims: for (claim, answer) in self.wanted.clone().into_iter().zip(found) {
            self.touched.add(&answer);
            let named = functions::parse_claim(&answer.ok()?)?;
            let names_us = named.is_some_and(|(holder, _)| holder == self.account);
            let mut facts = ClaimFacts { names_us, ..ClaimFacts::default() };
            loop {
                match facts.step() {
                    ClaimStep::Next => break,
                    ClaimStep::Stop => break 'claims,
                    ClaimStep::AskLast => facts.is_last = Some(self.is_last().await?),
                    ClaimStep::Take => {
                        let of = (self.account, &draw());
                        let taken = claims::take(self.tenant, &claim, of, &mut self.touched).await?;
                        (facts.taken, facts.is_last) = (Some(taken), None);
                    }
                    ClaimStep::Lost(taken) => return Ok(Some((claim, taken))),
                }
            }
        }
        self.at(AttemptStep::Reread)?;
        // H58: that account and claims say so must last before anybody is told, or a failover takes the account back.
        self.reached = self.tenant.router().fence_patiently(&self.touched).await?.into();
        Ok(None)
    }

    /// Whether what the account says is the word of this attempt still. Else whoever has changed it since was told of
    /// the account, and what this one had taken may be somebody else's, rightly.
    async fn is_last(&mut self) -> Result<bool> {
        let [last] =
            credentials(self.tenant, self.account, [CredentialField::LAST_ATTEMPT], &mut self.touched)
                .await?;
        // H57: whoever reads again asks whether the names are still its own.
        Ok(last.as_deref() == Some(&self.nonce))
    }

    /// Ends the attempt: first the account wants nothing any more, then what it took is given up.
    pub(super) async fn end(&mut self) -> Result<()> {
        let mut tries = self.tenant.router().fence_tries();
        let free = loop {
            let mut said = TouchedServers::new();
            // First the account: an attempt that is over is never settled, wherever its last step lies.
            claims::void(self.tenant, self.account, &self.nonce, 0, &mut said).await?;
            let mut free = Vec::with_capacity(self.taken.len());
            for claim in &self.taken {
                let look = claims::holder_request(self.tenant, self.account, claim);
                let answer = self.tenant.router().ask(look).await?;
                said.add(&answer);
                // A twin of this attempt may have settled it: then they stay (H57).
                if Holder::parse(answer.ok()?)? == Holder::Free {
                    free.push(*claim);
                }
            }

            // H130: or a failover brings it back, and its last word, which may lie in some socket, counts when somebody
            // else has the name.
            match self.tenant.router().fence(&said).await {
                Ok(_) => break free,
                Err(e) => tries.after(e).await?,
            }
        };
        // As this attempt has written them: what a later one has taken since stands there otherwise.
        let value = functions::claim_value(self.account, &self.nonce);
        for claim in free {
            claims::give_up(self.tenant, &claim, &value).await?;
        }
        Ok(())
    }
}

/// The error for a name that is not to be had. What an e-mail address is never gets into a message.
pub(super) fn refusal(claim: Claim, taken: ClaimOutcome) -> Error {
    let (what, code) = match claim.kind() == Claim::LOGIN {
        true => ("this login", ErrorCode::LoginTaken),
        false => ("this e-mail address", ErrorCode::EmailTaken),
    };
    let text = match taken {
        ClaimOutcome::Wanted(_) => {
            format!("{what} is being registered by somebody else; if that fails it is free within a minute")
        }
        _ => format!("{what} is taken"),
    };
    Error::new(code, text)
}

/// `None`: the claims are the account's. Some: somebody else has that one by now.
pub(super) type ClaimsReread = Option<(Claim, ClaimOutcome)>;

pub(super) fn unknown(e: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Unknown, format!("written, but not known to be replicated: {e}"))
}

/// Reads what is stored in an account's credentials under these names, whatever its state.
pub(super) async fn credentials<const N: usize>(
    tenant: &Tenant,
    account: AccountId,
    fields: [&str; N],
    touched: &mut TouchedServers,
) -> Result<[Option<Vec<u8>>; N]> {
    let command = Command::new("HMGET").arg(&tenant.keys().credentials(account)).args(fields);
    let answer = tenant.router().ask(Request::read(tenant.slot(account), command)).await?;
    touched.add(&answer);
    let mut found = answer.ok()?.into_array()?.into_iter();
    let mut next = || found.next().and_then(|field| field.bytes().ok().map(<[u8]>::to_vec));
    Ok(std::array::from_fn(|_| next()))
}

/// The outcome of a write to an account's credentials or profile; true: it was done.
pub(super) fn is_done(compared: CompareAnswer, account: AccountId) -> Result<bool> {
    match compared {
        CompareAnswer::Done => Ok(true),
        CompareAnswer::Changed => Ok(false),
        CompareAnswer::NoAccount => Err(no_account(account)),
        CompareAnswer::JournalFull => {
            let text =
                format!("another change of account {account}'s names is under way; try again in a minute");
            Err(Error::new(ErrorKind::Conflict, text))
        }
    }
}
