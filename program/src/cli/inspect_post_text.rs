//! The tables of `tideline inspect --post`.

use tideline::post::PostRef;
use tideline::{ListMembership, PostInspection, PostTier};

use super::inspect_text::{age, journal, table};

/// Everything, with ages as of `now_ms`.
pub(crate) fn render(of: &PostInspection, now_ms: u64) -> String {
    let parts = [
        summary(of, now_ms),
        "Its lists:".into(),
        lists(of),
        "The lists that it is to be on:".into(),
        listings(of),
        journal(&of.journal),
    ];
    parts.join("\n")
}

fn summary(of: &PostInspection, now_ms: u64) -> String {
    let mut table = table();
    let mut row = |what: &str, text: String| {
        table.add_row([what.to_owned(), text]);
    };
    let other = |post: PostRef| format!("post {} of {}", post.id, post.author);
    row("post", format!("{} of {}, {} old", of.id, of.author, age(of.id, now_ms)));
    row("place", format!("bucket {}, slot {}; {} bytes", of.bucket, of.slot, of.bytes));
    if let Some(tier) = of.tier {
        row("lies in", lies_in(tier).into());
    }
    row("edited", format!("{} times", of.revision));
    row("for", audience(of));
    row("moderators", moderation(of).into());
    if let Some(original) = of.original {
        let what = if of.is_plain_repost { "reposts" } else { "quotes" };
        row(what, other(original));
    }
    if let Some(parent) = of.reply_to {
        row("answers", other(parent));
    }
    if let Some(root) = of.conversation {
        row("conversation", format!("of post {root}"));
    }
    table.to_string()
}

fn lies_in(tier: PostTier) -> &'static str {
    match tier {
        PostTier::Memory => "memory",
        PostTier::Archive => "the archive",
        PostTier::Both => "memory and the archive; what memory has counts",
        PostTier::MemoryAtLeast => "memory; the archive doesn't tell whether it has it too",
    }
}

fn audience(of: &PostInspection) -> String {
    let visibility = format!("{:?}", of.visibility).to_lowercase();
    match (of.only_to, of.not_to) {
        (0, 0) => visibility,
        (0, not) => format!("{visibility}, but not for {not} accounts"),
        (only, _) => format!("{visibility}, only for {only} accounts"),
    }
}

fn moderation(of: &PostInspection) -> &'static str {
    match (of.is_hidden, of.is_called_sensitive) {
        (false, false) => "say nothing",
        (true, false) => "hide it from all but its author",
        (false, true) => "call its attachments sensitive",
        (true, true) => "hide it from all but its author, and call its attachments sensitive",
    }
}

fn lists(of: &PostInspection) -> String {
    let mut table = table();
    table.set_header(["list", "the post says", "members"]);
    for list in &of.lists {
        table.add_row([list.list.to_owned(), list.said.to_string(), list.members.to_string()]);
    }
    table.to_string()
}

fn listings(of: &PostInspection) -> String {
    if of.listings.is_empty() {
        return "none".into();
    }
    let mut table = table();
    table.set_header(["list", "named", "is there"]);
    for listing in &of.listings {
        let named = if listing.is_named { "yes" } else { "by an earlier revision" };
        let place = match listing.place {
            ListMembership::On => "yes",
            ListMembership::Off => "no",
            ListMembership::Untold => "only the archive could tell, and it doesn't",
            ListMembership::TooOld => "no: the list holds newer posts only",
        };
        table.add_row([&listing.list, named, place]);
    }
    table.to_string()
}
