//! Registration: logins and e-mail addresses that one account only has, passwords, profiles. Optional: accounts that
//! were made without it know nothing of it.
//!
//! A name may hash to any bucket, and the account lies in its own: so a name is a *claim* there that names the account,
//! and the account names its claims. `crate::claims` says when one is free, `attempt` how an account gets some;
//! `sign_up`, `change` and `lookup` are the calls. Beside them two stores for what a service needs with its log-ins:
//! `tickets`, found by whoever has their secret, and `documents` of an account; and `counters` of what somebody tries.
//! Not here: who is logged in, and how often somebody may try.
//!
//! Invariants kept here: an account is there only once all its claims are taken, and on replicas; a claim is taken from
//! an account only once that one can't get it any more; what is secret lies in a key of its own, and gets into no
//! message.

#[cfg(feature = "registration")]
mod aside;
#[cfg(feature = "registration")]
mod attempt;
#[cfg(feature = "registration")]
mod beginnings;
#[cfg(feature = "registration")]
mod change;
#[cfg(feature = "registration")]
mod counters;
#[cfg(feature = "registration")]
mod documents;
#[cfg(feature = "registration")]
mod listed_ids;
#[cfg(feature = "registration")]
mod lookup;
#[cfg(feature = "registration")]
pub(crate) mod names;
#[cfg(feature = "registration")]
mod passwords;
mod settings;
#[cfg(feature = "registration")]
mod sign_up;
#[cfg(feature = "registration")]
mod tickets;

#[cfg(feature = "registration")]
pub use self::{
    attempt::AttemptStep,
    counters::{COUNTER_LASTS_MAX, COUNTER_NAME_BYTES_MAX},
    documents::DocumentChange,
    lookup::Name,
    names::{EMAIL_BYTES_MAX, LOGIN_CHARS_MAX, folded_name},
    passwords::{PASSWORD_BYTES_MAX, PASSWORD_CHARS_MIN},
    sign_up::{RegisteredAccount, SignUp},
    tickets::{TICKET_BYTES_MAX, TICKET_LASTS_MAX, TICKET_SECRET_BYTES_MAX, TicketKind},
};

#[cfg(feature = "registration")]
mod handle {
    use std::sync::Arc;

    use super::RegistrationSettings;
    use super::passwords::Passwords;
    use crate::engine::Engine;
    use crate::error::{CallFuture, Error};
    use crate::graph::Graph;
    use crate::tenant::Tenant;

    /// Registration, on an engine. Copies are cheap and share everything.
    ///
    /// ```no_run
    /// # async fn example(engine: tideline::Engine) -> tideline::Result<()> {
    /// use tideline::registration::{Name, Registration, RegistrationSettings, SignUp};
    ///
    /// let registration = Registration::new(&engine, RegistrationSettings::default()).await?;
    /// let ada = registration.sign_up(&SignUp::new("ada", "correct horse")).await?.id;
    /// assert_eq!(registration.check("ADA", "correct horse").await?.map(|account| account.id), Some(ada));
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Debug, Clone)]
    pub struct Registration {
        pub(super) engine: Engine,
        pub(super) passwords: Arc<Passwords>,
    }

    impl Registration {
        /// Registration for the tenant of an engine.
        pub fn new(engine: &Engine, settings: RegistrationSettings) -> CallFuture<'_, Self> {
            Box::pin(async move {
                if let Some(rule) = settings.broken_rule() {
                    return Err(Error::invalid(format!(
                        "registration settings: {rule}; they are {settings:?}"
                    )));
                }
                let passwords = Arc::new(Passwords::new(&settings).await?);
                Ok(Self { engine: engine.clone(), passwords })
            })
        }

        pub(super) fn tenant(&self) -> &Tenant {
            self.engine.tenant()
        }

        pub(super) fn graph(&self) -> &Graph {
            self.engine.graph()
        }
    }
}

#[cfg(feature = "registration")]
pub use handle::Registration;
pub use settings::RegistrationSettings;
