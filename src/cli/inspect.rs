//! `tideline inspect`: what is stored of an account, and why its newest page looks as it does; or what is stored of a post.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use tideline::{AccountId, Engine, PostId};

use super::target::{Target, found};
use super::{inspect_post_text, inspect_text};

/// What to show.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The account's id.
    #[arg(required_unless_present = "post", conflicts_with = "post")]
    account: Option<u64>,
    /// A post's id: shows what is stored of it instead, but for what it says.
    #[arg(long, value_name = "ID")]
    post: Option<u64>,
    #[command(flatten)]
    target: Target,
    /// Print JSON: all that is known, ids as strings.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(wanted: Inspect) -> anyhow::Result<ExitCode> {
    let config = wanted.target.config()?;
    let place = format!("under prefix `{}`", config.store.prefix);
    let engine = found(Engine::builder().config(config).observe().await)?;
    let now_ms = engine.store().router().now_ms();
    let (text, json) = match (wanted.account, wanted.post) {
        (_, Some(post)) => {
            let post = PostId::from_u64(post)?;
            let found = engine.inspect_post(post).await.context(place)?;
            (inspect_post_text::render(&found, now_ms), serde_json::to_string_pretty(&found)?)
        }
        (account, None) => {
            let account = AccountId::new(account.unwrap_or_default())?;
            let found = engine.inspect(account).await.context(place)?;
            (inspect_text::render(&found, now_ms), serde_json::to_string_pretty(&found)?)
        }
    };
    println!("{}", if wanted.json { &json } else { &text });
    Ok(ExitCode::SUCCESS)
}
