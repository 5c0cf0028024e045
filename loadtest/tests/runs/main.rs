//! The load test as people run it, small. One program of tests, since many of them wait: for servers that start, fail,
//! take over.

#![expect(clippy::unwrap_used, reason = "a helper of a test stops the test where it stands")]

mod addresses;
#[cfg(feature = "archive")]
mod archive;
mod compare;
#[cfg(target_os = "linux")] // CPU time can be read there.
mod costs;
mod documented;
mod fanout;
mod interrupted;
#[cfg(feature = "site")]
#[path = "../../../tests/support/program.rs"]
mod program;
#[cfg(feature = "site")]
mod prometheus;
mod ran;
#[cfg(all(target_os = "linux", feature = "verify"))]
mod secrets;
mod seeds;
#[cfg(feature = "site")]
mod serve;
#[cfg(feature = "verify")]
mod verify;
