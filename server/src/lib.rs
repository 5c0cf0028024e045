//! Speaks HTTP to clients of Mastodon, on an [`Engine`](tideline::Engine): what they ask for, and get, is Mastodon's
//! client API.
//!
//! README.md shows the folders in their layers. What is stored is the engine's; here lie HTTP, JSON and HTML.

pub mod config;
pub mod entity;
pub mod http;
pub mod show;
