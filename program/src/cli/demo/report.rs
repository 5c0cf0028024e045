//! The demonstration's output: a line for each stage, then a table, then what to try next.

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use tideline::Engine;
use tideline::cluster::{Command, Seed};
use tideline::sharded::Layout;

use super::check::Checked;
use super::figures::{grouped, ms, rate, seconds};
use super::graph::DemoGraph;
use super::load::LoadCounts;
use super::posts::{self, PublishCounts};
use super::reads::{self, Read};

/// Timelines that are wrong and named.
const NAMED: usize = 10;

pub(super) async fn loaded(engine: &Engine, graph: &DemoGraph, loaded: &LoadCounts) -> anyhow::Result<()> {
    let imported = &loaded.imported;
    println!(
        "1. Imported {} accounts, {} follows and {} old posts in {}.",
        grouped(graph.len()),
        grouped(imported.edges),
        grouped(imported.posts),
        seconds(imported.took)
    );
    let spread = match engine.inspect(DemoGraph::id(0)?).await?.sets.followers_layout {
        Layout::Spread => "spread over all buckets",
        Layout::Local => "in one slot",
    };
    println!("   {} follow account 1: its follower set is {spread}.", grouped(graph.followers(0)));
    let pulled: Vec<String> = DemoGraph::pulled().map(|account| (account + 1).to_string()).collect();
    println!(
        "   Accounts {} are celebrities, pulled and not pushed: {} followed them in {}.",
        pulled.join(", "),
        grouped(loaded.followed),
        seconds(loaded.following_took)
    );
    println!(
        "   Filled the homes of {} active readers in {}; the other {} are dormant and have none.",
        grouped(loaded.warmed),
        seconds(loaded.warming_took),
        grouped(graph.dormant().len())
    );
    Ok(())
}

pub(super) fn published(published: &PublishCounts) {
    println!(
        "2. Published {} posts, {} at once, with {} deliveries into homes, in {}.",
        grouped(published.posts.len()),
        posts::AT_ONCE,
        grouped(published.delivered),
        seconds(published.took)
    );
}

pub(super) fn read(read: &Read) {
    println!(
        "3. Read {} home pages of up to {} posts, {} at once, in {}; {} of the readers had been away.",
        grouped(read.active.count() + read.back.count()),
        reads::PAGE,
        reads::AT_ONCE,
        seconds(read.took),
        grouped(read.back.count())
    );
}

pub(super) fn checked(checked: &Checked) {
    if checked.wrong.is_empty() {
        println!(
            "4. Walked timelines to their end and compared them with a plain pull of all followees: \
             {} timelines compared ({} posts), all right.",
            grouped(checked.timelines),
            grouped(checked.posts)
        );
        return;
    }
    let wrong = checked.wrong.len();
    eprintln!(
        "4. {} timelines compared, {wrong} WRONG. This must not happen; please report it:",
        checked.timelines
    );
    checked.wrong.iter().take(NAMED).for_each(|text| eprintln!("   {text}"));
    if wrong > NAMED {
        eprintln!("   and {} more", wrong - NAMED);
    }
}

pub(super) async fn table(
    engine: &Engine,
    graph: &DemoGraph,
    loaded: &LoadCounts,
    published: &PublishCounts,
    read: &Read,
    checked: &Checked,
) -> anyhow::Result<()> {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    let mut row = |what: &str, text: String| {
        table.add_row([what.to_owned(), text]);
    };
    let imported = &loaded.imported;
    row("import", rate(imported.edges as u64, "follows", imported.took));
    row("fill", rate(loaded.warmed as u64, "homes", loaded.warming_took));
    row(
        "posts",
        format!(
            "{}, accepted after {}",
            rate(published.posts.len() as u64, "posts", published.took),
            published.accepted.text()
        ),
    );
    row(
        "deliveries",
        format!(
            "{}, {} in all",
            rate(published.delivered, "deliveries", published.took),
            grouped(published.delivered)
        ),
    );
    row("not delivered: dormant", grouped(published.dormant));
    row("not delivered: pulled", format!("{} (celebrities' posts)", grouped(published.pulled)));
    row("fan-out lag", format!("{} (post to last delivery)", published.lag.text()));
    let pages = (read.active.count() + read.back.count()) as u64;
    row(
        "home pages",
        format!("{}, {} posts on a page", rate(pages, "pages", read.took), read.posts.div_ceil(pages.max(1))),
    );
    row("page of an active reader", read.active.text());
    row("first page after absence", read.back.text());
    for (reader, walk) in &checked.deep {
        let per_page = walk.took / u32::try_from(walk.pages.max(1)).unwrap_or(u32::MAX);
        let follows = graph.following(*reader).len();
        let text = format!(
            "{} posts of {follows} authors, {} pages of {}",
            grouped(walk.ids.len()),
            walk.pages,
            ms(per_page)
        );
        row(&format!("to the end, account {}", reader + 1), text);
    }
    row(
        "timelines compared",
        match checked.wrong.len() {
            0 => format!("{}, all right", grouped(checked.timelines)),
            wrong => format!("{}, {wrong} WRONG", grouped(checked.timelines)),
        },
    );
    row("memory of the servers", format!("{} MB", grouped(used_memory(engine).await? / 1_000_000)));
    println!("{table}");
    Ok(())
}

async fn used_memory(engine: &Engine) -> anyhow::Result<u64> {
    let mut sum = 0;
    for (_, reply) in engine.store().router().ask_primaries(&Command::new("INFO").arg("memory")).await {
        let reply = reply?;
        let used = reply.text()?.lines().find_map(|l| l.strip_prefix("used_memory:")).unwrap_or_default();
        sum += used.trim().parse::<u64>().unwrap_or(0);
    }
    Ok(sum)
}

/// Prints what to do with all that.
pub(super) fn next(is_ours: bool, seeds: &[Seed], prefix: &str) {
    println!("\nWhat to try next:");
    if is_ours {
        println!(
            "  cargo run --release -- cluster up                          a cluster that stays, and with its address:"
        );
        println!(
            "  cargo run --release -- demo --cluster URL                  the same there; it leaves its keys"
        );
        println!(
            "  cargo run --release -- inspect 2 --cluster URL --prefix P  what is stored of an account, and why"
        );
        println!(
            "  cargo run --release -- mode 1 pull --cluster URL --prefix P  its followers pull it from now on"
        );
    } else {
        let shown: Vec<String> = seeds.iter().map(ToString::to_string).collect();
        println!("  cargo run --release -- inspect 2 --cluster {} --prefix {prefix}", shown.join(","));
        println!("      what is stored of an account, and why its page looks so; the keys of {prefix} stay");
    }
    println!("  cargo run --release -p loadtest -- verify    random histories with faults, against a model");
    println!("  cargo run --release -p loadtest -- fanout    fan-out beside other ways to do it");
    println!("  docs/design.md, docs/benchmarks.md           how it works, and what was measured");
}
