//! `tideline inspect`: what is stored of an account, and why its newest page looks as it does; or what is stored of a
//! post.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use tideline::PostId;

use super::target::{Target, found};
use super::{ids, inspect_post_text, inspect_text, named};

/// The account or post to show.
#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    /// The account: its id, its login (`@42` is a login), or its e-mail address.
    #[arg(required_unless_present = "post", conflicts_with = "post")]
    account: Option<String>,
    /// A post's id: shows what is stored of it instead, but for what it says.
    #[arg(long, value_name = "ID", value_parser = ids::post)]
    post: Option<PostId>,
    /// Shows how the newest posts of the account's home are scored instead, in the order of a page by importance.
    #[arg(long, requires = "account")]
    ranking: bool,
    #[command(flatten)]
    target: Target,
    /// Print JSON: all that is known, ids as strings.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(wanted: InspectArguments) -> anyhow::Result<ExitCode> {
    let config = wanted.target.config()?;
    let place = format!("under prefix `{}`", config.store.prefix);
    let account = match &wanted.account {
        Some(account) => Some(named::id_of(account, &wanted.target).await?),
        None => None,
    };
    let engine = found(wanted.target.builder().await?.observe().await)?;
    let now_ms = engine.store().router().now_ms();
    let (text, json) = if let Some(post) = wanted.post {
        let stored = engine.inspect_post(post).await.context(place)?;
        (inspect_post_text::render(&stored, now_ms), serde_json::to_string_pretty(&stored)?)
    } else {
        let account = account.context("name an account's id, or --post and a post's")?;
        if wanted.ranking {
            let ranked = engine.inspect_ranking(account).await.context(place)?;
            let json = serde_json::to_string_pretty(&ranked)?;
            println!("{}", if wanted.json { json } else { inspect_text::ranking(&ranked, now_ms) });
            return Ok(ExitCode::SUCCESS);
        }
        let stored = engine.inspect(account).await.context(place)?;
        (inspect_text::render(&stored, now_ms), serde_json::to_string_pretty(&stored)?)
    };
    println!("{}", if wanted.json { &json } else { &text });
    Ok(ExitCode::SUCCESS)
}
