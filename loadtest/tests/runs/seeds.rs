//! Seeds of the runs that tests start: fixed, so that a test is the same each time.

/// This one, unless `TIDELINE_SEED` says something else: a number, or `random`.
pub(crate) fn or(seed: u64) -> u64 {
    match std::env::var("TIDELINE_SEED").as_deref() {
        Ok("random") => rand::random(),
        Ok(other) => other.parse().expect("TIDELINE_SEED is a number, or `random`"),
        Err(_) => seed,
    }
}
