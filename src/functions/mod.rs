//! The server-side functions, one typed wrapper each; only these files call them.
//!
//! The code is in `lua/`. Its library's name carries a version, so that two releases run side by side: raise
//! [`VERSION`] with every released change of the code. The router loads it where it is missing.

mod accounts;
mod clock;
mod followers;
mod fsck;
mod homes;
mod journal;
mod lists;
mod modes;
mod posts;
mod registration;
mod reports;
mod sets;
mod ties;

pub(crate) use accounts::{
    AuthorSeen, Changed, Compared, Edge, EdgeOp, GraphChange, Join, Joined, Look, Mark, PairLook, Settle,
    Settled, account_bury, account_create, account_delete, account_read, account_set, account_set_noted,
    approve, author_look, field_drop, mark, maybe_mark,
};
pub use clock::Clock;
pub(crate) use followers::{followers_counted, followers_note};
pub(crate) use fsck::{orphan_drop, outbox_mend, parse_recount, piece_drop, posts_recount, set_recount};
pub(crate) use homes::{
    Begun, HomeFit, home_begin, home_deliver, home_drop, home_finish, home_sweep, home_tidy,
};
pub(crate) use journal::{
    FanoutFacts, journal_add, journal_claim, journal_mark, journal_strike, lease_renew, parse_added,
    parse_struck,
};
pub(crate) use lists::{ListAnswer, ListChange, ListSet, list_drop, list_recount};
pub(crate) use modes::{By, Marking, Rates, Visited, mode_set, pulls_add};
pub(crate) use posts::{
    Left, PostChanged, Publish, Published, RepostAt, outbox_import, outbox_page, post_delete, post_edit,
    post_moderate,
};
#[cfg(feature = "registration")]
pub(crate) use registration::{
    FieldValue, SignUpBegun, claims_begin, claims_settle, credentials_set, profile_set, signup_begin,
};
pub(crate) use registration::{
    Holder, claim_holder, claim_take, claim_value, claims_void, parse_claim, parse_taken,
};
pub(crate) use reports::{ReportAdd, ReportAdded, report_ids, report_move};
pub(crate) use sets::{Added, Removed, SetAdd, SetRemove, Spread};
pub(crate) use sets::{count, guard_close, parse_count, set_split, string_drop};
pub(crate) use sets::{spread_beat, spread_begin, spread_copied, spread_drop, spread_end, spread_forget};
pub(crate) use ties::{TieAnswer, TieLook, TieSet, tie_look};

use crate::cluster::{Command, Library, Reply};
use crate::error::Error;

/// Version of the function library; part of every function's name.
pub const VERSION: u32 = 1;

/// In the order in which one part uses another.
const CODE: &str = concat!(
    include_str!("lua/prelude.lua"),
    include_str!("lua/sets.lua"),
    include_str!("lua/clock.lua"),
    include_str!("lua/homes.lua"),
    include_str!("lua/rates.lua"),
    include_str!("lua/journal.lua"),
    include_str!("lua/accounts.lua"),
    include_str!("lua/ties.lua"),
    include_str!("lua/posts.lua"),
    include_str!("lua/lists.lua"),
    include_str!("lua/followers.lua"),
    include_str!("lua/modes.lua"),
    include_str!("lua/registration.lua"),
    include_str!("lua/reports.lua"),
    include_str!("lua/fsck.lua"),
);

/// The code as it is loaded, for the simulation.
#[cfg(test)]
pub(crate) fn code() -> String {
    CODE.replace("@LIBRARY@", &library_name())
}

/// The library, as a router takes it.
pub fn library() -> Library {
    let name = library_name();
    Library::new(&name, &CODE.replace("@LIBRARY@", &name))
}

fn library_name() -> String {
    format!("tideline{VERSION}")
}

/// `FCALL tideline1_name numkeys key …`; arguments follow.
fn fcall(name: &str, keys: &[Vec<u8>]) -> Command {
    call("FCALL", name, keys)
}

/// The same for a function that writes nothing.
fn fcall_ro(name: &str, keys: &[Vec<u8>]) -> Command {
    call("FCALL_RO", name, keys)
}

fn call(verb: &str, name: &str, keys: &[Vec<u8>]) -> Command {
    let command = Command::new(verb).arg(format!("{}_{name}", library_name())).arg(keys.len());
    keys.iter().fold(command, Command::arg)
}

fn unexpected(function: &str, reply: &[Reply]) -> Error {
    Error::internal(format!("{function} answered {reply:?}, which this release does not know"))
}
