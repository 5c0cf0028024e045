//! Settings of registration: what passwords cost.

/// Settings of registration: what a password's hash costs, and how many are computed at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistrationSettings {
    /// Memory that hashing a password takes, in KiB. Lower: stolen hashes are tried faster. The default is what OWASP
    /// recommends for Argon2id.
    pub memory_kib: u32,
    /// The number of times that this memory is gone through.
    pub passes: u32,
    /// Passwords hashed at once in this instance; each keeps a core busy for tens of milliseconds. `None`: as many as
    /// there are cores. On Linux they take what others leave; where that is little each is computed a second time, so
    /// memory may be needed for twice as many.
    pub hashes_at_once: Option<usize>,
    /// Passwords that wait for that; beyond it sign-ups and logins are refused as overloaded.
    pub hashes_waiting: usize,
}

impl Default for RegistrationSettings {
    fn default() -> Self {
        Self { memory_kib: 19 * 1024, passes: 2, hashes_at_once: None, hashes_waiting: 256 }
    }
}

impl RegistrationSettings {
    /// The first rule among these settings that they break.
    #[cfg(any(feature = "config", feature = "registration"))]
    pub(crate) fn broken_rule(&self) -> Option<&'static str> {
        let is_possible = self.hashes_at_once.is_none_or(|most| (1..=1_024).contains(&most));
        let rules = [
            ((8..=4 * 1024 * 1024).contains(&self.memory_kib), "memory_kib must be 8 to 4,194,304"),
            ((1..=100).contains(&self.passes), "passes must be 1 to 100"),
            (is_possible, "hashes_at_once must be 1 to 1,024"),
            (self.hashes_waiting <= 100_000, "hashes_waiting must be at most 100,000"),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map(|(_, rule)| rule)
    }
}
