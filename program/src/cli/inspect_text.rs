//! The tables of `tideline inspect`.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{ContentArrangement, Table};
use tideline::sharded::Layout;
use tideline::{
    Account, AccountId, AccountLimit, AccountState, ArchiveStanding, HiddenPost, HomeStatus, HomeVerdict,
    Inspection, OpenTask, PostId, RankingInspection, StoredClaim, StoredHome, StoredHomeEntry, StoredOutbox,
};

/// Pulled authors, and posts of an outbox, that are named: few, for ids are long and share one cell. `--json` names
/// more.
const NAMED: usize = 4;

/// Everything, with ages as of `now_ms`.
pub(crate) fn render(of: &Inspection, now_ms: u64) -> String {
    let mut parts = vec![summary(of, now_ms).to_string()];
    parts.push("The home's last entries, the last one first:".into());
    parts.push(entries(&of.home, now_ms).to_string());
    parts.push("The newest page of the home, and what else the last entries hold:".into());
    parts.push(page(of, now_ms).to_string());
    parts.extend(of.page_error.iter().map(|e| format!("the page could not be read: {e}")));
    parts.push(journal(&of.journal));
    parts.join("\n")
}

/// Posts and how they are scored, the most important first, and those that were met among them and don't show.
pub(crate) fn ranking(of: &RankingInspection, now_ms: u64) -> String {
    let mut scored = table();
    scored.set_header(["post", "author", "written", "score", "terms"]);
    for post in &of.posts {
        let terms = post.score.terms().iter().map(|(name, term)| format!("{name} {term:.2}"));
        scored.add_row([
            post.id.to_string(),
            post.author.to_string(),
            age(post.id, now_ms),
            format!("{:.2}", post.total),
            terms.collect::<Vec<_>>().join(", "),
        ]);
    }
    let hidden = |post: &HiddenPost| format!("{} by {} doesn't show: {}", post.id, post.author, post.because);
    let mut parts = vec![
        "The newest posts of the home that show, by importance (of one author two one behind the other at most, so a \
         lower score may stand before a higher one):"
            .to_owned(),
        scored.to_string(),
    ];
    parts.extend(of.hidden.iter().map(hidden));
    parts.join("\n")
}

pub(super) fn journal(tasks: &[OpenTask]) -> String {
    if tasks.is_empty() {
        return "nothing that concerns it is open in the journal of its bucket".into();
    }
    let line = |task: &OpenTask| {
        let checkpoint = if task.checkpoint.is_empty() { "not begun" } else { &task.checkpoint };
        format!("to be done: {} ({checkpoint}; instance {})", task.what, task.owner)
    };
    tasks.iter().map(line).collect::<Vec<_>>().join("\n")
}

pub(super) fn table() -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
    table
}

fn owned_by(owners: &[AccountId]) -> String {
    match owners {
        [] => "nobody who may act: `tideline moderate owner` makes a member its owner".to_owned(),
        owners => owners.iter().map(AccountId::to_string).collect::<Vec<_>>().join(", "),
    }
}

fn summary(of: &Inspection, now_ms: u64) -> Table {
    let mut table = table();
    let mut row = |what: &str, text: String| {
        table.add_row([what.to_owned(), text]);
    };
    row("account", described(&of.account));
    row("names", names(of, now_ms));
    row("place", format!("bucket {}, slot {}", of.bucket, of.slot));
    row("last read", of.last_read_day.map_or("never noted".into(), |day| days_ago(day, now_ms)));
    let own = AccountLimit::ALL
        .into_iter()
        .filter_map(|limit| Some(format!("{} {}", limit.as_str().replace('_', " "), of.limits.of(limit)?)));
    let own = own.collect::<Vec<_>>().join(", ");
    row("own limits", if own.is_empty() { "none: as others".to_owned() } else { own });
    if let Some(owners) = &of.owners {
        row("owned by", owned_by(owners));
    }
    let sets = &of.sets;
    let layout = if sets.followers_layout == Layout::Spread { "spread" } else { "local" };
    row("follows", format!("{} accounts", sets.following));
    row("followed by", format!("{} accounts, {layout}; {} wait to be let", sets.followers, sets.requests));
    row("restricts", format!("{} muted, {} blocked, {} hidden from", sets.mutes, sets.blocks, sets.hides));
    row("mentioned", format!("in {} posts", sets.mentions));
    let ties = of.ties_stamp.as_deref().map_or(String::new(), |stamp| format!("; stamp {stamp}"));
    row(
        "likes",
        format!("{} posts; {} bookmarked, {} reposted{ties}", sets.likes, sets.bookmarks, sets.reposts),
    );
    row("pulls", listed(of.pulls.iter().map(AccountId::to_string), of.pulls.len()));
    let of_others = of.says_of_others.iter().map(|(what, many)| format!("{} {many}", what.replace('_', " ")));
    row("says of others", of_others.collect::<Vec<_>>().join(", "));
    row("documents", of.documents.to_string());
    row("notifications", of.notifications.to_string());
    row("outbox", outbox(&of.outbox));
    row("home", home(&of.home, now_ms));
    if let Some(standing) = &of.archive {
        row("archive", archive(standing, now_ms));
        row("it says", in_archive(standing));
    }
    table
}

fn described(account: &Account) -> String {
    let lock = if account.is_locked { ", locked" } else { "" };
    let login = account.login.as_ref().map(|login| format!(" ({login})")).unwrap_or_default();
    let rest = format!(
        "{:?}, {:?}{lock}, {} posts, {} followers, delivered by {:?}",
        account.kind, account.state, account.posts, account.followers, account.mode
    );
    format!("{}{login}: {}", account.id, rest.to_lowercase())
}

/// The kinds of names that it has; the names themselves stay where they are.
fn names(of: &Inspection, now_ms: u64) -> String {
    let since = |ms: u64| span(now_ms.saturating_sub(ms) / 1_000);
    let Some(names) = &of.names else { return "none: it was not registered".into() };
    let claim = |claim: &StoredClaim| {
        let what = if claim.is_login { "login" } else { "e-mail address" };
        match claim.names {
            Some(account) if account == of.account.id => what.to_owned(),
            Some(other) => format!("{what} (its claim names {other})"),
            None => format!("{what} (its claim is missing)"),
        }
    };
    let all = |claims: &[StoredClaim]| listed(claims.iter().map(claim), claims.len());
    let registered = of.account.registered_ms.map(|ms| format!("registered {} ago; ", since(ms)));
    let is_unconfirmed = of.account.state == AccountState::Unconfirmed;
    let registered = registered.filter(|_| !is_unconfirmed).unwrap_or_default();
    let attempt = names.attempt_since_ms.map(|ms| {
        let unconfirmed = if is_unconfirmed { "unconfirmed: " } else { "" };
        format!("; {unconfirmed}to get, since {}: {}", since(ms), all(&names.wanted))
    });
    format!("{registered}has: {}{}", all(&names.held), attempt.unwrap_or_default())
}

fn outbox(outbox: &StoredOutbox) -> String {
    let cut = outbox.cut_up_to.map_or(String::new(), |id| format!(", cut up to {id}"));
    let deleted = |is: bool| if is { " (deleted)" } else { "" };
    let newest = outbox.newest.iter().rev().map(|post| format!("{}{}", post.id, deleted(post.is_deleted)));
    let posts = usize::try_from(outbox.posts).unwrap_or(usize::MAX);
    format!("{} listed{cut}; the newest: {}", outbox.posts, listed(newest, posts))
}

fn archive(of: &ArchiveStanding, now_ms: u64) -> String {
    let floor = match of.upto {
        None => "has nothing of it".into(),
        Some(upto) => {
            format!("has all up to {upto} ({}), under token {} or a later one", age(upto, now_ms), of.settled)
        }
    };
    let next = of.looked_at_ms.map_or("nothing is due".into(), |at| {
        let left = at.saturating_sub(now_ms) / 1_000;
        if left == 0 { "looked at now".into() } else { format!("looked at in {}", span(left)) }
    });
    let unsettled = match of.unsettled {
        0 => String::new(),
        posts => format!("; {posts} deletions have yet to settle"),
    };
    let warm = listed(of.warm.iter().map(PostId::to_string), of.warm.len());
    format!(
        "{floor}; token {} was given out last; {} posts beyond those that stay, {next}; in memory too: \
         {warm}{unsettled}",
        of.token, of.waiting
    )
}

fn in_archive(of: &ArchiveStanding) -> String {
    match (&of.owner_error, of.owner) {
        (Some(error), _) => format!("nothing: {error}"),
        (None, None) => "it has never had anything of it".into(),
        (None, Some(owner)) => {
            let buried = if owner.is_buried { "; the account was deleted" } else { "" };
            format!("all up to {}, token {}{buried}", owner.upto, owner.token)
        }
    }
}

fn listed(items: impl Iterator<Item = String>, count: usize) -> String {
    let named: Vec<String> = items.take(NAMED).collect();
    match count.saturating_sub(named.len()) {
        _ if named.is_empty() => "none".into(),
        0 => named.join(", "),
        more => format!("{}, and {more} more", named.join(", ")),
    }
}

fn home(home: &StoredHome, now_ms: u64) -> String {
    let status = match home.status {
        HomeStatus::Missing => return "missing: the next read fills it".into(),
        HomeStatus::Filling => "being filled: it vouches for nothing yet".into(),
        HomeStatus::Whole { floor: 0 } => "whole, from the first post on".into(),
        HomeStatus::Whole { floor } => match PostId::from_u64(floor) {
            Ok(floor) => format!("whole above its floor {floor} ({})", age(floor, now_ms)),
            Err(_) => format!("whole above its floor {floor}"),
        },
    };
    let nodes = home.list_nodes.map_or(String::new(), |n| format!(", list nodes: {n}"));
    let bytes = home.bytes.map_or(String::new(), |n| format!(", {n} bytes"));
    format!("{status}; {} entries{nodes}{bytes}", home.entries)
}

fn entries(home: &StoredHome, now_ms: u64) -> Table {
    let mut table = table();
    table.set_header(["entry", "id", "age", "author"]);
    for entry in home.newest.iter().rev() {
        let (what, id, author) = match entry {
            StoredHomeEntry::Post { id, author } => ("post", id, author.to_string()),
            StoredHomeEntry::Watermark(id) => ("watermark: all before are up to", id, String::new()),
            StoredHomeEntry::Filling(id) => {
                ("watermark of a fill: nothing is vouched for", id, String::new())
            }
        };
        table.add_row([what.to_owned(), id.to_string(), age(*id, now_ms), author]);
    }
    table
}

fn page(of: &Inspection, now_ms: u64) -> Table {
    let mut table = table();
    table.set_header(["post", "age", "author", "from", "shows"]);
    for candidate in &of.page {
        table.add_row([
            candidate.id.to_string(),
            age(candidate.id, now_ms),
            candidate.author.to_string(),
            if candidate.is_in_home { "home" } else { "elsewhere" }.to_owned(),
            match candidate.verdict {
                HomeVerdict::Shown => "yes".into(),
                HomeVerdict::Hidden(because) => format!("no: {because}"),
                HomeVerdict::NotReached => "further down".into(),
            },
        ]);
    }
    table
}

pub(super) fn age(id: PostId, now_ms: u64) -> String {
    if id.get() == 0 {
        return "-".into();
    }
    span(now_ms.saturating_sub(id.unix_ms()) / 1_000)
}

fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

fn days_ago(day: u32, now_ms: u64) -> String {
    match (now_ms / 86_400_000).saturating_sub(u64::from(day)) {
        0 => "today".into(),
        1 => "yesterday".into(),
        days => format!("{days} days ago"),
    }
}

#[cfg(test)]
mod tests {
    use tideline::OutboxPost;

    use super::*;

    #[test]
    fn of_many_posts_only_the_newest_few_are_named() {
        let post = |id| OutboxPost { id: PostId::from_u64(id).unwrap(), is_deleted: id == 449 };
        let stored = StoredOutbox { posts: 449, cut_up_to: None, newest: (410..450).map(post).collect() };
        let text = outbox(&stored);
        assert_eq!(text, "449 listed; the newest: 449 (deleted), 448, 447, 446, and 445 more");
    }
}
