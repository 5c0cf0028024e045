//! Passwords: hashed with Argon2id, a bounded number at once, by threads that make way for those that serve requests.

use std::fmt;
use std::num::NonZero;
use std::sync::Arc;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::Semaphore;

use super::RegistrationSettings;
use super::aside::ComputingPlaces;
use crate::error::{Error, ErrorCode, ErrorKind, Result};

/// Bytes of a salt.
const SALT_LEN: usize = 16;
/// Characters of a password at least, and bytes at most: a longer one would only cost time.
pub const PASSWORD_CHARS_MIN: usize = 8;
/// Bytes of a password.
pub const PASSWORD_BYTES_MAX: usize = 1_024;

/// Refuses what is too short or too long, and says nothing else about it.
pub(super) fn check(password: &str) -> Result<()> {
    if password.chars().count() < PASSWORD_CHARS_MIN || password.len() > PASSWORD_BYTES_MAX {
        return Err(Error::new(
            ErrorCode::PasswordOutOfRange,
            format!(
                "a password of that length: at least {PASSWORD_CHARS_MIN} characters and at most {PASSWORD_BYTES_MAX} \
                 bytes are allowed"
            ),
        ));
    }
    Ok(())
}

/// Hashes passwords.
pub(super) struct Passwords {
    argon2: Argon2<'static>,
    running: Arc<Semaphore>,
    aside: ComputingPlaces,
    /// Places for those that run and those that wait.
    places: Semaphore,
    most: usize,
    /// Compared with, where there is no account: that takes as long.
    nobodys: String,
}

impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passwords").field("most", &self.most).finish_non_exhaustive()
    }
}

impl Passwords {
    pub(super) async fn new(settings: &RegistrationSettings) -> Result<Self> {
        let params = Params::new(settings.memory_kib, settings.passes, 1, None);
        let params = params.map_err(|e| Error::invalid(format!("memory_kib, passes: {e}")))?;
        let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
        let at_once = settings.hashes_at_once.unwrap_or_else(cores);
        let most = at_once + settings.hashes_waiting;
        let mut passwords = Self {
            argon2: Argon2::new(Algorithm::Argon2id, Version::V0x13, params),
            running: Arc::new(Semaphore::new(at_once)),
            aside: ComputingPlaces::new(at_once),
            places: Semaphore::new(most),
            most,
            nobodys: String::new(),
        };
        // Drawn at each start: nobody knows a password that fits.
        let nobodys = u128::from_be_bytes(rand::random()).to_string();
        passwords.nobodys = passwords.hash(nobodys).await?;
        Ok(passwords)
    }

    /// A password's hash, with a salt of its own.
    pub(super) async fn hash(&self, password: String) -> Result<String> {
        let argon2 = self.argon2.clone();
        let salt: [u8; SALT_LEN] = rand::random();
        let hash = move || {
            let hash = argon2.hash_password_with_salt(password.as_bytes(), &salt);
            hash.map(|hash: PasswordHash| hash.to_string())
        };
        self.run(hash).await?.map_err(|e| Error::internal(format!("a password could not be hashed: {e}")))
    }

    /// Whether that is the password which was hashed; `None`: it is not, which takes as long to find out.
    pub(super) async fn is_hash_of(&self, hash: Option<String>, password: String) -> Result<bool> {
        let is_somebodys = hash.is_some();
        // Compared all the same: how long it takes must not tell whether there is somebody.
        let hash = hash.unwrap_or_else(|| self.nobodys.clone());
        let argon2 = self.argon2.clone();
        let compare = move || {
            let hash =
                PasswordHash::new(&hash).map_err(|_| Error::internal("a stored password's hash is none"))?;
            Ok(argon2.verify_password(password.as_bytes(), &hash).is_ok())
        };
        self.run(compare).await?.map(|is_same: bool| is_same && is_somebodys)
    }

    /// Whether a hash, which a right password was compared with, cost another amount than one costs now.
    pub(super) fn is_old(&self, hash: &str) -> bool {
        let params = PasswordHash::new(hash).ok().and_then(|hash| Params::try_from(&hash).ok());
        let costs = |params: &Params| (params.m_cost(), params.t_cost(), params.p_cost());
        params.is_some_and(|params| costs(&params) != costs(self.argon2.params()))
    }

    async fn run<T: Send + 'static>(&self, work: impl Fn() -> T + Send + Sync + 'static) -> Result<T> {
        // Not waited for: whoever finds none is told so at once.
        let _place = self.places.try_acquire().map_err(|_| {
            let text = format!(
                "{} passwords are being hashed or wait for that in this instance, which is as many as may be \
                 (hashes_waiting). Try again later",
                self.most
            );
            Error::new(ErrorKind::Overloaded, text)
        })?;
        let running = self.running.clone().acquire_owned().await;
        let running = running.map_err(|e| Error::internal(e.to_string()))?;

        let aside = self.aside.clone();
        // Who stops waiting doesn't end the work, nor give its place to others before it has ended.
        let hashing = tokio::spawn(async move {
            let hashed = aside.computed(work).await;
            drop(running);
            hashed
        });
        let failed = |e: &dyn fmt::Display| Error::internal(format!("hashing a password: {e}"));
        hashing.await.map_err(|e| failed(&e))?.map_err(|e| failed(&e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quick() -> RegistrationSettings {
        RegistrationSettings { memory_kib: 8, passes: 1, ..RegistrationSettings::default() }
    }

    #[tokio::test]
    async fn a_password_is_known_again_and_nobodys_never_is() {
        let passwords = Passwords::new(&quick()).await.unwrap();
        let hash = passwords.hash("correct horse".into()).await.unwrap();
        assert_ne!(hash, passwords.hash("correct horse".into()).await.unwrap(), "the salt is the same");
        let is = async |hash: Option<&String>, password: &str| {
            passwords.is_hash_of(hash.cloned(), password.into()).await.unwrap()
        };
        assert!(is(Some(&hash), "correct horse").await);
        assert!(!is(Some(&hash), "Correct horse").await);
        assert!(!is(None, "correct horse").await);
        assert!(!format!("{passwords:?}").contains("argon2"));
    }

    #[tokio::test]
    async fn a_hash_is_old_when_it_cost_another_amount() {
        let now = Passwords::new(&quick()).await.unwrap();
        let hash = now.hash("correct horse".into()).await.unwrap();
        assert!(!now.is_old(&hash) && !now.is_old("nonsense"));
        for settings in [
            RegistrationSettings { memory_kib: 16, ..quick() },
            RegistrationSettings { passes: 2, ..quick() },
        ] {
            let later = Passwords::new(&settings).await.unwrap();
            assert!(
                later.is_old(&hash)
                    && later.is_hash_of(Some(hash.clone()), "correct horse".into()).await.unwrap()
            );
        }
    }

    #[tokio::test]
    async fn more_than_may_wait_are_refused() {
        let settings = RegistrationSettings { hashes_at_once: Some(1), hashes_waiting: 1, ..quick() };
        let passwords = Passwords::new(&settings).await.unwrap();
        let _running = passwords.running.clone().acquire_owned().await.unwrap();
        let first = passwords.hash("one".into());
        let second = passwords.hash("two".into());
        let mut first = Box::pin(first);
        let mut second = Box::pin(second);
        assert!(futures::poll!(&mut first).is_pending() && futures::poll!(&mut second).is_pending());
        assert_eq!(passwords.hash("three".into()).await.unwrap_err().kind(), ErrorKind::Overloaded);
    }
}
