//! The server-side functions, one typed wrapper each; only these files call them.
//!
//! The code is `tideline.lua`. Its library's name carries a version, so that two releases run side by side: raise
//! [`VERSION`] with every released change of the code. The router loads it where it is missing.

mod clock;
mod sets;

pub use clock::Clock;
pub(crate) use sets::{Added, Removed, SetAdd, SetRemove, Spread};
pub(crate) use sets::{count, guard_close, parse_count};
pub(crate) use sets::{spread_beat, spread_begin, spread_copied, spread_drop, spread_end, spread_forget};

use crate::cluster::{Command, Library};

/// Version of the function library; part of every function's name.
pub const VERSION: u32 = 1;

/// The library, as a router takes it.
pub fn library() -> Library {
    let name = library_name();
    Library::new(&name, &include_str!("tideline.lua").replace("@LIBRARY@", &name))
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
