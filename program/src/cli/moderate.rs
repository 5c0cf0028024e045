//! `tideline moderate`: the queue of those who look after a site, and their word on what stands in it.

use std::collections::{BTreeSet, HashMap};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;
use tideline::registration::{Name, Registration};
use tideline::{
    ASKED_MAX, AccountId, AccountLimit, Engine, ErrorKind, GroupRole, Moderation, PostId, Report,
    ReportCategory, ReportId, ReportList, ReportQuery,
};
use tideline_server::entity::ReportedStatus;
use tideline_server::http::{Day, Timestamp};
use tideline_server::moderation::reported_posts;

use super::named::{self, NamedAccount};
use super::target::{Target, with_registration};
use super::{ids, target};

/// Letters of a post that the list shows.
const EXCERPT_CHARS: usize = 70;

/// Commands for reports, and for posts.
#[derive(Debug, Subcommand)]
pub(crate) enum ModerateCommand {
    /// Shows reports and posts that were held back, the newest first: those that nobody has decided on.
    List(ListArguments),
    /// Releases a post that was held back: everybody sees it whom it is for.
    Release(ReportArguments),
    /// Deletes a post that was held back, for good.
    Drop(ReportArguments),
    /// Resolves a report, whatever was done about it.
    Resolve(ReportArguments),
    /// Hides a post from everybody except its author, or shows it again.
    Hide(HideArguments),
    /// Deletes a post for good, also one that can't be read: damaged, or of a later release.
    Delete(PostArguments),
    /// Makes a member of a group an owner of it: where those that there were have gone, or may do nothing.
    Owner(OwnerArguments),
    /// Shows the limits of an account's own, or changes those that are named.
    Limits(LimitsArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Those that somebody has resolved.
    #[arg(long)]
    resolved: bool,
    /// Only those about this account: its id, its login, or its e-mail address.
    #[arg(long, value_name = "ACCOUNT")]
    about: Option<String>,
    /// At most so many, up to 100.
    #[arg(long, default_value_t = 20, value_name = "N")]
    limit: usize,
    /// Only those that came before this report.
    #[arg(long, value_name = "REPORT", value_parser = report)]
    before: Option<ReportId>,
    #[command(flatten)]
    target: Target,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// The report's id.
    #[arg(value_parser = report)]
    report: ReportId,
    /// Who decides this, which stands in the report: its id, its login (`@42` is a login), or its e-mail address.
    #[arg(value_name = "MODERATOR")]
    moderator: String,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct HideArguments {
    /// The post's id.
    #[arg(value_parser = ids::post)]
    post: PostId,
    /// Show it again.
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct PostArguments {
    /// The post's id.
    #[arg(value_parser = ids::post)]
    post: PostId,
    /// Who has written it: its id, its login (`@42` is a login), or its e-mail address; of a post in a group the group.
    /// Of a post that can't be read nothing else tells.
    #[arg(value_name = "AUTHOR")]
    author: String,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct OwnerArguments {
    /// The group: its id, or its login.
    #[arg(value_name = "GROUP")]
    group: String,
    /// The member.
    #[command(flatten)]
    member: NamedAccount,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct LimitsArguments {
    #[command(flatten)]
    account: NamedAccount,
    /// Posts of all kinds within the span of `limits.posts`: a number, or `usual`, which is what others may.
    #[arg(long, value_name = "N", value_parser = own_limit)]
    posts: Option<OwnLimit>,
    /// Direct posts within the span of `limits.direct_posts`.
    #[arg(long, value_name = "N", value_parser = own_limit)]
    direct_posts: Option<OwnLimit>,
    /// Posts into groups within the span of `limits.group_posts`.
    #[arg(long, value_name = "N", value_parser = own_limit)]
    group_posts: Option<OwnLimit>,
    /// Mentions of who doesn't follow it within the span of `limits.mentions_of_strangers`.
    #[arg(long, value_name = "N", value_parser = own_limit)]
    mentions_of_strangers: Option<OwnLimit>,
    /// Follows within the span of `limits.follows`.
    #[arg(long, value_name = "N", value_parser = own_limit)]
    follows: Option<OwnLimit>,
    /// Reports within the span of `limits.reports`.
    #[arg(long, value_name = "N", value_parser = own_limit)]
    reports: Option<OwnLimit>,
    /// Accounts that it may follow, instead of `following_max`.
    #[arg(long, value_name = "N", value_parser = own_limit)]
    followed_accounts: Option<OwnLimit>,
    #[command(flatten)]
    target: Target,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A number of an account's own, or what others have.
#[derive(Debug, Clone, Copy)]
enum OwnLimit {
    Usual,
    Most(u32),
}

fn own_limit(text: &str) -> Result<OwnLimit, String> {
    match text {
        "usual" => Ok(OwnLimit::Usual),
        number => {
            number.parse().map(OwnLimit::Most).map_err(|_| "it is a number from 1 on, or `usual`".into())
        }
    }
}

fn report(text: &str) -> Result<ReportId, String> {
    let id = text.parse().ok().and_then(|id| ReportId::from_u64(id).ok());
    id.ok_or_else(|| "a report's id is a whole number below 2^63: `tideline moderate list` shows it".into())
}

pub(crate) async fn run(command: ModerateCommand) -> anyhow::Result<ExitCode> {
    match command {
        ModerateCommand::List(wanted) => list(wanted).await?,
        ModerateCommand::Release(wanted) => decide(wanted, ModeratorDecision::Release).await?,
        ModerateCommand::Drop(wanted) => decide(wanted, ModeratorDecision::Drop).await?,
        ModerateCommand::Resolve(wanted) => decide(wanted, ModeratorDecision::Resolve).await?,
        ModerateCommand::Hide(wanted) => hide(wanted).await?,
        ModerateCommand::Delete(wanted) => delete(wanted).await?,
        ModerateCommand::Owner(wanted) => owner(wanted).await?,
        ModerateCommand::Limits(wanted) => limits(wanted).await?,
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Debug, Clone, Copy)]
enum ModeratorDecision {
    Release,
    Drop,
    Resolve,
}

async fn decide(wanted: ReportArguments, decision: ModeratorDecision) -> anyhow::Result<()> {
    let decided = async |engine: &Engine, registration: &Registration| {
        let (id, by) = (wanted.report, named::find(&wanted.moderator, registration).await?.id);
        let report = engine.find_report(id).await?;
        let is_held = report.report.category == ReportCategory::Held;
        anyhow::ensure!(
            is_held || matches!(decision, ModeratorDecision::Resolve),
            "report {id} is about no post that was held back: `tideline moderate resolve` ends it"
        );
        anyhow::ensure!(
            !is_held || report.resolved_by.is_some() || !matches!(decision, ModeratorDecision::Resolve),
            "report {id} is about a post that was held back: `tideline moderate release` shows it, `drop` deletes it"
        );
        match decision {
            ModeratorDecision::Release => engine.decide_held(id, by, true).await,
            ModeratorDecision::Drop => engine.decide_held(id, by, false).await,
            ModeratorDecision::Resolve => engine.resolve_report(id, by).await,
        }?;
        let Some(by) = report.resolved_by else { return Ok(None) };
        let named = registration.find(&[Name::Id(by)]).await?.pop().flatten();
        Ok(Some(called(by, named.and_then(|account| account.login).as_deref())))
    };
    let report = wanted.report;
    let told = match (decision, with_registration(&wanted.target, decided).await?) {
        (ModeratorDecision::Release, None) => {
            "is resolved: everybody sees the post whom it is for".to_owned()
        }
        (ModeratorDecision::Drop, None) => "is resolved: the post is deleted".to_owned(),
        (ModeratorDecision::Resolve, None) => "is resolved".to_owned(),
        (ModeratorDecision::Drop, Some(by)) => {
            format!("was resolved before, by {by}: the post is deleted after all")
        }
        (ModeratorDecision::Release | ModeratorDecision::Resolve, Some(by)) => {
            format!("was resolved before, by {by}: nothing has changed")
        }
    };
    println!("Report {report} {told}.");
    Ok(())
}

async fn hide(wanted: HideArguments) -> anyhow::Result<()> {
    let engine = target::found(wanted.target.builder().await?.assist().await)?;
    let moderation = Moderation { hidden: Some(!wanted.undo), ..Moderation::default() };
    let moderated = engine.moderate(wanted.post, moderation).await;
    engine.shutdown(super::fsck::GOODBYE).await?;
    moderated?;
    match wanted.undo {
        true => println!("Everybody sees post {} whom it is for.", wanted.post),
        false => println!("Nobody but its author sees post {}.", wanted.post),
    }
    Ok(())
}

async fn delete(wanted: PostArguments) -> anyhow::Result<()> {
    let deleted = async |engine: &Engine, registration: &Registration| {
        let author = named::id_by(&wanted.author, registration).await?;
        Ok(engine.delete(author, wanted.post).await?)
    };
    with_registration(&wanted.target, deleted).await?;
    println!("Post {} is gone: it is deleted now, or was before.", wanted.post);
    Ok(())
}

async fn owner(wanted: OwnerArguments) -> anyhow::Result<()> {
    let owned = async |engine: &Engine, registration: &Registration| {
        let group = named::find(&wanted.group, registration).await?.id;
        let member = wanted.member.find(registration).await?;
        // The group itself stands for the service, which may all that an owner may.
        engine.set_group_role(group, group, member.id(), Some(GroupRole::Owner)).await?;
        Ok(member.described)
    };
    let member = with_registration(&wanted.target, owned).await?;
    println!("{member} owns group {} now.", wanted.group);
    Ok(())
}

impl LimitsArguments {
    fn changes(&self) -> Vec<(AccountLimit, Option<u32>)> {
        let wanted = AccountLimit::ALL.into_iter().filter_map(|limit| {
            let own = match limit {
                AccountLimit::Posts => self.posts,
                AccountLimit::DirectPosts => self.direct_posts,
                AccountLimit::GroupPosts => self.group_posts,
                AccountLimit::MentionsOfStrangers => self.mentions_of_strangers,
                AccountLimit::Follows => self.follows,
                AccountLimit::Reports => self.reports,
                AccountLimit::FollowedAccounts => self.followed_accounts,
            };
            own.map(|own| (limit, own))
        });
        let most = |own| if let OwnLimit::Most(most) = own { Some(most) } else { None };
        wanted.map(|(limit, own)| (limit, most(own))).collect()
    }
}

async fn limits(wanted: LimitsArguments) -> anyhow::Result<()> {
    let changes = &wanted.changes();
    let told = async |engine: &Engine, registration: &Registration| {
        let account = wanted.account.find(registration).await?.id();
        let own = match changes.is_empty() {
            true => engine.own_limits(account).await?,
            false => engine.limit_account(account, changes).await?.value,
        };
        Ok((account, own))
    };
    let (account, own) = with_registration(&wanted.target, told).await?;
    if wanted.json {
        println!("{}", serde_json::to_string_pretty(&own)?);
        return Ok(());
    }
    println!("Account {account}, beside what the settings say of all (what is off there limits nobody):");
    for limit in AccountLimit::ALL {
        let most = own.of(limit).map_or("as others".to_owned(), |most| format!("{most} at most"));
        println!("  {:<22} {most}", limit.as_str());
    }
    Ok(())
}

/// A report, with what the posts say that it names.
struct ListedReport {
    report: Report,
    posts: Vec<ReportedStatus>,
}

async fn list(wanted: ListArguments) -> anyhow::Result<()> {
    let asked = async |engine: &Engine, registration: &Registration| {
        let target = match &wanted.about {
            Some(about) => Some(named::find(about, registration).await?.id),
            None => None,
        };
        let query = ReportQuery {
            resolved: wanted.resolved,
            target,
            before: wanted.before,
            limit: Some(wanted.limit),
        };
        let ReportList { reports, older, lacks_some } = engine.reports(&query).await?;
        let mut listed = Vec::with_capacity(reports.len());
        for report in reports {
            let posts = reported_posts(engine, &report).await?;
            listed.push(ListedReport { report, posts });
        }
        Ok((logins(registration, &listed).await?, listed, (older, lacks_some)))
    };
    let (logins, listed, (older, lacks_some)) = with_registration(&wanted.target, asked).await?;
    if wanted.json {
        let reports: Vec<_> = listed.iter().map(ListedReport::as_json).collect();
        println!(
            "{}",
            serde_json::to_string_pretty(
                &json!({ "reports": reports, "older": older, "lacks_some": lacks_some })
            )?
        );
        return Ok(());
    }
    if listed.is_empty() {
        println!("{}", if wanted.resolved { "None is resolved." } else { "Nothing waits." });
    } else {
        println!("{}", queue(&listed, &logins));
    }
    if lacks_some {
        println!("A server is away: reports are missing about accounts that lie there.");
    }
    if let Some(older) = older {
        println!("There are older ones: --before {older}");
    }
    Ok(())
}

/// Logins of accounts that reports name.
type Logins = HashMap<AccountId, String>;

async fn logins(registration: &Registration, listed: &[ListedReport]) -> tideline::Result<Logins> {
    let named = listed.iter().flat_map(|ListedReport { report, .. }| {
        [Some(report.report.target), Some(report.report.reporter), report.resolved_by]
    });
    let named: BTreeSet<AccountId> = named.flatten().collect();
    let named: Vec<Name> = named.into_iter().map(Name::Id).collect();
    let mut logins = Logins::new();
    for some in named.chunks(ASKED_MAX) {
        let found = match registration.find(some).await {
            // Then their ids have to do.
            Err(e) if e.kind() == ErrorKind::Unavailable => continue,
            found => found?,
        };
        logins.extend(found.into_iter().flatten().filter_map(|account| Some((account.id, account.login?))));
    }
    Ok(logins)
}

/// An account's login, if any, beside its id.
fn called(id: AccountId, login: Option<&str>) -> String {
    login.map_or(id.to_string(), |login| format!("@{login} ({id})"))
}

/// The queue, each report in lines of its own.
fn queue(listed: &[ListedReport], logins: &Logins) -> String {
    let called = |id: AccountId| called(id, logins.get(&id).map(String::as_str));
    let mut lines = Vec::new();
    for ListedReport { report, posts } in listed {
        let of = &report.report;
        let (what, by) = match of.category {
            ReportCategory::Held => ("held back", "the judge".to_owned()),
            ReportCategory::Limit => ("limit reached", "the engine".to_owned()),
            ReportCategory::Spam => ("spam", called(of.reporter)),
            ReportCategory::Legal => ("unlawful", called(of.reporter)),
            ReportCategory::Violation => ("against rules", called(of.reporter)),
            _ => ("other", called(of.reporter)),
        };
        let came = Day(Timestamp(report.id.unix_ms()));
        lines.push(format!("{}  {came}  {what}: about {}, by {by}", report.id, called(of.target)));
        if !of.comment.is_empty() {
            lines.push(format!("    why: {}", in_a_line(&of.comment)));
        }
        for (post, id) in posts.iter().zip(&of.posts) {
            let said = said(post);
            let was = post
                .reported_as
                .as_ref()
                .filter(|was| said.as_ref().is_none_or(|said| !said.starts_with(*was)));
            let said = said.map_or("deleted, or not to be read now".to_owned(), |said| in_a_line(&said));
            lines.push(format!("    post {id}: {said}"));
            lines.extend(was.map(|was| format!("      when reported: {}", in_a_line(was))));
        }
        lines.extend(report.resolved_by.map(|by| format!("    resolved by {}", called(by))));
    }
    lines.join("\n")
}

/// All that a post says by now, as reports keep it: its warning, and its text.
fn said(post: &ReportedStatus) -> Option<String> {
    let warning = post.spoiler_text.as_deref().unwrap_or_default();
    post.text.as_ref().map(|text| format!("{warning}\n{text}").trim().to_owned())
}

/// The beginning of what somebody wrote; nothing of it moves a cursor.
fn in_a_line(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let begin: String = text.chars().take(EXCERPT_CHARS).map(plain).collect();
    if text.chars().nth(EXCERPT_CHARS).is_some() { begin + "…" } else { begin }
}

impl ListedReport {
    fn as_json(&self) -> serde_json::Value {
        json!({ "report": self.report, "texts": self.posts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_wrote_stays_in_its_line() {
        assert_eq!(in_a_line("one\ntwo\u{1b}[2J\u{7}"), "one two [2J ");
        assert_eq!(in_a_line(&"a".repeat(70)).chars().count(), 70);
        assert_eq!(in_a_line(&"é".repeat(71)).chars().last(), Some('…'));
    }
}
