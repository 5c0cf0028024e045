//! Clients of a whole site, on a real cluster: what they are answered, and what they are not.

#![expect(clippy::unwrap_used, reason = "helpers of tests, too")]

#[path = "../client/mod.rs"]
#[expect(dead_code, reason = "what speaks TLS is the other test program's")]
mod client;

mod accounts;
mod admission;
mod backends;
mod browser;
mod chats;
mod contract;
mod faults;
mod forms;
mod groups;
mod judged;
mod letters;
mod limits;
mod links;
mod logs;
mod notifications;
mod oauth;
mod own_limits;
mod pages;
mod postbox;
mod posts;
mod public_pages;
mod ranked;
mod reports;
#[path = "../requests/mod.rs"]
mod requests;
mod search;
mod served;
mod services;
mod sessions;
mod sign_up_page;
mod strange;
mod timelines;
mod walk;
