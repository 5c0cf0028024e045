//! Limits on how often somebody may do something: rules, and counts that all instances share.
//!
//! An instance counts by itself, and brings what it has counted to the engine's counters now and then, which tell it
//! what others have counted. So a count is off by a few, and costs next to nothing; what may be done a few times only
//! is brought in each time, and waited for. Not here: who asks, and from where (`api`).
//!
//! Invariant kept here: nobody is refused, or waits for long, because counting failed: then an instance goes by what it
//! has counted itself.

mod quota;
mod rules;
mod settings;
mod shared;
mod tally;

pub use quota::{Limit, Quota};
#[cfg(test)]
pub(crate) use rules::is_counted;
pub(crate) use rules::{
    CountedAct, RequestFacts, acts_of, application_token, large_list, letter_from, letter_to, log_in,
    log_in_as, taken_back,
};
pub use settings::LimitSettings;
pub(crate) use shared::RateLimits;
pub use shared::{LIMITED, UNSHARED};
