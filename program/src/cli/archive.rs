//! `tideline archive`: where old posts go.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use tideline::{AccountId, ArchivedNow, PostId, RestoredPosts, StoppedTenant, TenantArchive};
use tideline_archive::{Archive, CopiedCount};

use super::fsck::{GOODBYE, Look};
use super::ids;
use super::progress::bar;
use super::target::{Target, found, open_archive};

/// Commands for a tenant's archive.
#[derive(Debug, Subcommand)]
pub(crate) enum ArchiveCommand {
    /// Begins it, for good: nothing starts without it any more. Stop the tenant's instances before.
    Begin(BeginArguments),
    /// Changes what stays in memory of each account. Stop the instances first.
    Keep(KeepArguments),
    /// Shows which archive the tenant has, what stays in memory, and how much there is in the archive.
    Status(StatusArguments),
    /// Moves what is due now. Instances do that by themselves.
    Run(RunArguments),
    /// Compares what the archive holds with what memory knows of it; `fsck` does that too, and looks at all the rest.
    Check(Look),
    /// Brings posts of an author back into memory that have left it. They leave again later.
    Restore(RestorePostsArguments),
    /// Has all posts found by their words: after search was begun, after an import, after the archive was restored from
    /// a copy. Instances do that for what they publish.
    Index(IndexArguments),
    /// Copies all of it to another place, for a tenant that is to go on there: from a file to PostgreSQL, or back. Stop
    /// the instances first.
    Copy(CopyArguments),
}

#[derive(Debug, Args)]
pub(crate) struct BeginArguments {
    /// So many of each account's newest posts stay in memory.
    #[arg(long, default_value_t = TenantArchive::HOT_DEFAULT.0)]
    hot_posts: u32,
    /// And all that are not as old as so many days.
    #[arg(long, default_value_t = TenantArchive::HOT_DEFAULT.1)]
    hot_days: u32,
    /// Begins search too: posts are found by their words. For good; also where the archive was begun before.
    #[arg(long)]
    search: bool,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
#[group(id = "kept", required = true, multiple = true)]
pub(crate) struct KeepArguments {
    /// So many of each account's newest posts stay in memory; not given: as many as before.
    #[arg(long, group = "kept")]
    hot_posts: Option<u32>,
    /// And all that are not as old as so many days; not given: as before.
    #[arg(long, group = "kept")]
    hot_days: Option<u32>,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct IndexArguments {
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct CopyArguments {
    /// Where to: an archive in which there is nothing yet, `sqlite:FILE` or `postgres://USER@HOST/DATABASE`. Others see
    /// the arguments of a process: an address with a password belongs in TIDELINE_ARCHIVE_TO.
    #[arg(long, env = "TIDELINE_ARCHIVE_TO", hide_env_values = true, value_name = "PLACE")]
    to: String,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    #[command(flatten)]
    target: Target,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Look at all accounts first, not only at those that have noted that something is due: goes through all keys.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct RestorePostsArguments {
    /// The author's id.
    #[arg(value_parser = ids::account)]
    account: AccountId,
    /// Posts' ids [default: the newest ones that have left memory].
    #[arg(value_parser = ids::post)]
    posts: Vec<PostId>,
    /// So many of the newest ones, up to 1,000.
    #[arg(long, default_value_t = 100, conflicts_with = "posts")]
    most: usize,
    #[command(flatten)]
    target: Target,
}

const NO_PLACE: &str = "where is the archive? Name it with --archive or TIDELINE_ARCHIVE: `sqlite:FILE`, or \
                        `postgres://USER:PASSWORD@HOST/DATABASE`";

pub(crate) async fn run(command: ArchiveCommand) -> anyhow::Result<ExitCode> {
    match command {
        ArchiveCommand::Begin(wanted) => begin(wanted).await?,
        ArchiveCommand::Keep(wanted) => keep(wanted).await?,
        ArchiveCommand::Status(wanted) => status(wanted).await?,
        ArchiveCommand::Run(wanted) => run_once(wanted).await?,
        ArchiveCommand::Check(wanted) => return Ok(super::fsck::run_archive(wanted).await),
        ArchiveCommand::Restore(wanted) => restore(wanted).await?,
        ArchiveCommand::Index(wanted) => index(wanted).await?,
        ArchiveCommand::Copy(wanted) => copy(wanted).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn begin(wanted: BeginArguments) -> anyhow::Result<()> {
    let config = wanted.target.config()?;
    let prefix = config.store.prefix.clone();
    let archive = wanted.target.archive_to_begin().await?.context(NO_PLACE)?;
    let builder = || tideline::Engine::builder().config(config.clone()).archive(archive.clone());
    let mut decision = found(builder().begin_archive(wanted.hot_posts, wanted.hot_days).await)?;
    if wanted.search {
        decision = found(builder().begin_search().await)?;
    }
    let begun = decision.archive.context("nothing was begun")?;
    println!(
        "The tenant under prefix `{prefix}` has the archive {}, decision {}.",
        begun.name, decision.number
    );
    println!("Of each account {} stay in memory.", staying(&begun));
    // Who begins search alone has named none.
    if !wanted.search && (begun.hot_posts, begun.hot_days) != (wanted.hot_posts, wanted.hot_days) {
        println!("It was begun before, with these: `tideline archive keep` changes them.");
    }
    if begun.search {
        println!(
            "New posts are found by their words; those that were there before once `tideline archive index` has run."
        );
    }
    println!(
        "Start the instances with it: `EngineBuilder::archive`; commands with --archive or TIDELINE_ARCHIVE."
    );
    Ok(())
}

async fn keep(wanted: KeepArguments) -> anyhow::Result<()> {
    let archive = wanted.target.archive().await?.context(NO_PLACE)?;
    let builder = wanted.target.builder_with(archive)?;
    let decision = found(builder.keep_in_memory(wanted.hot_posts, wanted.hot_days).await)?;
    let kept = decision.archive.context("the tenant has no archive")?;
    println!("Of each account {} stay in memory, by decision {}.", staying(&kept), decision.number);
    println!("What has to leave by that does so once the instances are up, or with `tideline archive run`.");
    Ok(())
}

fn staying(archive: &TenantArchive) -> String {
    let newest = format!("the newest {} posts", archive.hot_posts);
    match archive.hot_days {
        0 => newest,
        1 => format!("{newest}, and all of the last day,"),
        days => format!("{newest}, and all of the last {days} days,"),
    }
}

async fn status(wanted: StatusArguments) -> anyhow::Result<()> {
    let archive = wanted.target.archive().await?.context(NO_PLACE)?;
    let engine = found(wanted.target.builder_with(archive.clone())?.observe().await)?;
    let decided = engine.decision().archive.context("the tenant has no archive")?;
    let size = archive.size().await?;
    if wanted.json {
        let status = serde_json::json!({ "archive": decided, "posts": size.posts, "bytes": size.bytes });
        println!("{}", serde_json::to_string_pretty(&status)?);
        return Ok(());
    }
    println!("archive {}", decided.name);
    println!("    of each account {} stay in memory", staying(&decided));
    println!("    posts are {}found by their words", if decided.search { "" } else { "not " });
    println!("    in the archive: about {} posts, {} bytes on disk", size.posts, size.bytes);
    Ok(())
}

async fn run_once(wanted: RunArguments) -> anyhow::Result<()> {
    let archive = wanted.target.archive().await?.context(NO_PLACE)?;
    let settles_within = archive.settles_within();
    let engine = found(wanted.target.builder_with(archive)?.assist().await)?;
    if !settles_within.is_zero() {
        eprintln!("each step waits {} s until the archive's servers have it", settles_within.as_secs());
    }
    let moved = match wanted.all {
        true => engine.archive_all().await,
        false => engine.archive_due().await,
    };
    // Also after an error: whatever was begun is left to the service at once.
    engine.shutdown(GOODBYE).await?;
    let ArchivedNow { left, warm } = moved?;
    println!("{left} posts have left memory");
    if warm > 0 {
        println!(
            "{warm} more are in the archive, and stay for a while: somebody has liked or answered them lately"
        );
    }
    Ok(())
}

async fn restore(wanted: RestorePostsArguments) -> anyhow::Result<()> {
    let archive = wanted.target.archive().await?.context(NO_PLACE)?;
    let engine = found(wanted.target.builder_with(archive)?.assist().await)?;
    let restored = match wanted.posts.as_slice() {
        [] => engine.restore_newest(wanted.account, wanted.most).await,
        posts => engine.restore_archived(wanted.account, posts).await,
    };
    engine.shutdown(GOODBYE).await?;
    let RestoredPosts { back, were_there, missing } = restored?;
    println!("{back} posts have come back into memory; {were_there} were there");
    if !missing.is_empty() {
        let ids: Vec<String> = missing.iter().map(PostId::to_string).collect();
        anyhow::bail!("account {} has no such posts: {}", wanted.account, ids.join(", "));
    }
    Ok(())
}

async fn index(wanted: IndexArguments) -> anyhow::Result<()> {
    let archive = wanted.target.archive().await?.context(NO_PLACE)?;
    let engine = found(wanted.target.builder_with(archive)?.assist().await)?;
    let indexed = engine.index_all().await;
    engine.shutdown(super::fsck::GOODBYE).await?;
    println!("the index was brought in line with {} posts", indexed?.posts);
    Ok(())
}

async fn copy(wanted: CopyArguments) -> anyhow::Result<()> {
    let from = wanted.target.archive().await?.context(NO_PLACE)?;
    anyhow::ensure!(
        !wanted.target.has_archive_at(&wanted.to),
        "--to names the archive itself: name another place"
    );
    let held = found(wanted.target.builder_with(from.clone())?.hold_stopped().await)?;
    let archive = held.archive();
    // Not before it is clear that there is something to copy: it is made there.
    let copied = match open_archive(&wanted.to, true).await.context("the place of --to") {
        Ok(to) => copy_held(&held, &*from, &*to).await,
        Err(e) => Err(e),
    };
    let released = held.release().await;
    let CopiedCount { owners, posts, members, listed } = copied?;
    println!(
        "{posts} posts of {owners} accounts were copied, with {members} likes, answers, reposts and quotes, and \
         {listed} posts on lists of mentions and hashtags."
    );
    println!("The archive {} is at both places now. Start the instances with the new one.", archive.name);
    println!(
        "Put the old one away, and start nothing with it again: it lacks all that leaves memory from now on."
    );
    if archive.search {
        println!(
            "The index is not copied: posts are found by their words once `tideline archive index` has run there."
        );
    }
    released.context("the copy is complete, and instances can start once this command's lease is over")
}

/// Copies a tenant's archive, and names the copy, unless instances have started meanwhile.
async fn copy_held(
    held: &StoppedTenant,
    from: &dyn Archive,
    to: &dyn Archive,
) -> anyhow::Result<CopiedCount> {
    let about = usize::try_from(from.size().await?.posts)?;
    let bar = bar(about, "posts copied");
    let copied =
        tideline_archive::copy(from, to, held.buckets(), |count| bar.set_position(count.posts)).await;
    bar.finish_and_clear();
    let copied = copied?;
    held.still_held().await?;
    Ok(copied.adopt().await?)
}
