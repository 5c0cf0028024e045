//! A small social site on the command line: people sign up, follow each other, post with mentions and hashtags, answer,
//! like, bookmark, pass on, and read. Each line says who does what:
//!
//! ```sh
//! cargo run --example social_site                              # starts a cluster, and ends it
//! cargo run --example social_site -- redis://10.0.0.1:6379     # uses one, under the prefix `site:`
//! ```
//!
//! `help`, as a line or behind `--`, lists what can be done.

mod shared;

use std::collections::HashMap;
use std::io::{BufRead as _, Write as _};
use std::time::Duration;

use tideline::post::{Draft, Edit, MentionedName, PostRef, Tag, Visibility};
use tideline::profile::ProfileUpdate;
use tideline::registration::{Name, Registration, SignUp};
use tideline::{
    Account, AccountId, AccountKind, AccountUpdate, ActLimit, ChatQuery, Engine, Error, ErrorKind,
    FollowOutcome, GroupRole, ListQuery, NewReport, PagePost, PostId, Query, RankedFeed, RankedQuery, Report,
    ReportCategory, ReportQuery, Result, SpamJudge,
};

/// What `help` says.
const HELP: &str = "\
Each line says who does what:

  ada signup correct horse        ada login correct horse
  ada name Ada Lovelace           ben profile ada
  ben follow ada                  ben unfollow ada
  ben mute ada                    ben block ada
  ada post Low tide! @ben #beach  ada whisper Only to followers
  ben reply 1 On my way           ada show 1
  ada edit 1 High tide! #sea      ada delete 1
  ben like 1                      ben unlike 1
  ben bookmark 1                  ben unbookmark 1
  ben repost 1                    ben unrepost 1
  ben home                        ben mentions
  ben likes                       ben bookmarks
  ada likers 1                    ben tag beach
  ada found sailors               ben join sailors
  ben tell sailors Caller sails?     ben leave sailors
  ada say ben,cleo High tide?     ben chats
  ben important                   ben report 1 He shouts
  ada queue                       ada release 1
  ada drop 1

Numbers are those that posts are shown with. `help` shows this, an empty line ends.";

struct Site {
    engine: Engine,
    registration: Registration,
    /// Posts that were shown, by the numbers that they were shown with, and who wrote them.
    shown: Vec<(PostRef, AccountId)>,
}

impl Site {
    /// Does what a line says.
    async fn obey(&mut self, line: &str) -> Result<()> {
        if line == "help" {
            println!("{HELP}");
            return Ok(());
        }
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (verb, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        match verb {
            "signup" => {
                self.registration.sign_up(&SignUp::new(name, rest)).await?;
                println!("welcome, {name}");
            }
            "login" => match self.registration.check(name, rest).await? {
                Some(account) => println!("welcome back, {}", called(&account)),
                None => println!("that is not the password, or there is no {name}"),
            },
            _ => {
                self.act(self.registration.id_of(name).await?, verb, rest).await?;
                if let Some(done) = done(name, verb, rest) {
                    println!("{done}");
                }
            }
        }
        // Lists, counts and homes follow within milliseconds. Who types the next line sees them at once.
        self.engine.drained(Duration::from_secs(10)).await
    }

    /// Does what somebody wants.
    async fn act(&mut self, who: AccountId, verb: &str, rest: &str) -> Result<()> {
        let newest = ListQuery::default();
        match verb {
            "name" => {
                let update = ProfileUpdate { display_name: Some(rest.into()), ..ProfileUpdate::default() };
                self.registration.update_profile(who, &update).await.map(drop)
            }
            "follow" => self.engine.follow(who, self.registration.id_of(rest).await?).await.map(drop),
            "unfollow" => self.engine.unfollow(who, self.registration.id_of(rest).await?).await.map(drop),
            "mute" => self.engine.mute(who, self.registration.id_of(rest).await?).await.map(drop),
            "block" => self.engine.block(who, self.registration.id_of(rest).await?).await.map(drop),
            "post" => self.post(who, self.draft(rest).await?).await,
            "whisper" => self.post(who, self.draft(rest).await?.visibility(Visibility::Followers)).await,
            "reply" => {
                let (to, text) = self.numbered(rest)?;
                self.post(who, self.draft(text).await?.reply_to(to)).await
            }
            "edit" => {
                let (post, text) = self.own(who, rest)?;
                let edit = Edit::parsed(text, async |names| self.named(names).await).await?;
                self.engine.edit(who, post.id, &edit).await.map(drop)
            }
            "delete" => self.engine.delete(who, self.own(who, rest)?.0.id).await.map(drop),
            "like" => self.engine.like(who, self.numbered(rest)?.0.id).await.map(drop),
            "unlike" => self.engine.unlike(who, self.numbered(rest)?.0.id).await.map(drop),
            "bookmark" => self.engine.bookmark(who, self.numbered(rest)?.0.id).await.map(drop),
            "unbookmark" => self.engine.unbookmark(who, self.numbered(rest)?.0.id).await.map(drop),
            "repost" => self.engine.repost(who, self.numbered(rest)?.0.id).await.map(drop),
            "unrepost" => self.engine.undo_repost(who, self.numbered(rest)?.0.id).await.map(drop),
            "found" | "join" | "leave" | "tell" => self.act_in_group(who, verb, rest).await,
            "report" | "queue" | "release" | "drop" => self.look_after(who, verb, rest).await,
            "say" => self.say(who, rest).await,
            "chats" => self.chats(who).await,
            "home" => self.read(who, Query::home()).await,
            "important" => {
                let query = RankedQuery::of(RankedFeed::Home).with_ties();
                let page = self.engine.as_reader(who).read_ranked(&query).await?;
                self.print(&page.posts);
                Ok(())
            }
            "mentions" => self.read(who, Query::mentions()).await,
            "tag" => self.read(who, Query::tag(Tag::new(rest)?)).await,
            "profile" => self.profile(who, rest).await,
            "likes" => {
                let liked = self.engine.as_reader(who).likes(&newest).await?;
                self.print(&liked.posts);
                Ok(())
            }
            "bookmarks" => {
                let kept = self.engine.as_reader(who).bookmarks(&newest).await?;
                self.print(&kept.posts);
                Ok(())
            }
            "likers" => {
                let likers = self.engine.as_reader(who).likers(self.numbered(rest)?.0.id, &newest).await?;
                let names: Vec<&str> = likers.accounts.iter().map(|account| called(account)).collect();
                println!("liked by {}", if names.is_empty() { "nobody".into() } else { names.join(", ") });
                Ok(())
            }
            "show" => {
                let around = self.engine.as_reader(who).conversation(self.numbered(rest)?.0.id).await?;
                self.print(&[around.ancestors, vec![around.post], around.descendants].concat());
                Ok(())
            }
            _ => Err(Error::new(
                ErrorKind::Invalid,
                format!("nobody can {verb:?} here; `help` lists what can be done"),
            )),
        }
    }

    /// Does what somebody wants of a group.
    async fn act_in_group(&mut self, who: AccountId, verb: &str, rest: &str) -> Result<()> {
        let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
        if verb == "found" {
            // It has a name, and no password that anybody knows.
            let password = format!("{:x}", rand::random::<u128>());
            let group = self.registration.sign_up(&SignUp::new(name, password)).await?.id;
            let kind = AccountUpdate { kind: Some(AccountKind::Group), ..AccountUpdate::default() };
            self.engine.update_account(group, &kind).await?;
            self.engine.join_group(group, who).await?;
            // The first owner it gets from the service, which speaks for it.
            return self.engine.set_group_role(group, group, who, Some(GroupRole::Owner)).await.map(drop);
        }
        let group = self.registration.id_of(name).await?;
        match verb {
            "join" if self.engine.join_group(group, who).await?.value == FollowOutcome::Requested => {
                println!("{name} is asked");
                Ok(())
            }
            "join" => Ok(()),
            "leave" => self.engine.leave_group(group, who).await.map(drop),
            _ => self.post(who, self.draft(text).await?.group(group)).await,
        }
    }

    /// Tells moderators of a post, shows what they are told, decides on what was held back. Here everybody is one.
    async fn look_after(&mut self, who: AccountId, verb: &str, rest: &str) -> Result<()> {
        if verb == "report" {
            let (post, target, comment) = self.shown(rest)?;
            let report = NewReport {
                reporter: who,
                target,
                posts: vec![post.id],
                category: ReportCategory::Other,
                comment: comment.to_owned(),
                token: None,
            };
            return self.engine.report(&report).await.map(drop);
        }
        let reports = self.engine.reports(&ReportQuery::default()).await?.reports;
        if verb == "queue" {
            for Report { report, .. } in reports {
                let about = self.engine.stored().account(report.target).await?;
                let number =
                    |id| self.shown.iter().position(|(post, _)| post.id == id).map_or(0, |at| at + 1);
                let posts: Vec<String> =
                    report.posts.into_iter().map(|id| format!(" [{}]", number(id))).collect();
                println!("about {}{}: {}", called(&about), posts.concat(), report.comment);
            }
            return Ok(());
        }
        let (post, _) = self.numbered(rest)?;
        let of_it = |of: &&Report| of.report.category == ReportCategory::Held && of.report.posts == [post.id];
        let none = || Error::new(ErrorKind::NotFound, format!("post {} was not held back", post.id));
        let held = reports.iter().find(of_it).ok_or_else(none)?;
        self.engine.decide_held(held.id, who, verb == "release").await.map(drop)
    }

    /// Writes to one or several others, for nobody else.
    async fn say(&mut self, who: AccountId, rest: &str) -> Result<()> {
        let (names, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let mut others = Vec::new();
        for name in names.split(',') {
            others.push(self.registration.id_of(name).await?);
        }
        // The same people have the same chat.
        others.sort_unstable();
        let chat = self.engine.open_chat(who, &others, Some(names)).await?.value;
        self.post(who, self.draft(text).await?.chat(chat)).await
    }

    /// Somebody's chats, each with its newest messages, which are read then.
    async fn chats(&mut self, who: AccountId) -> Result<()> {
        let chats = self.engine.as_reader(who).chats(&ChatQuery::default()).await?.chats;
        if chats.is_empty() {
            println!("nothing");
        }
        for chat in chats {
            let names: Vec<&str> = chat.others.iter().map(|other| called(other)).collect();
            println!("with {}, {} unread", names.join(", "), chat.unread);
            self.read(who, Query::chat(chat.id)).await?;
            self.engine.read_chat(chat.id, who, None).await?;
        }
        Ok(())
    }

    /// The accounts of names in a text, all in one go.
    async fn named(&self, names: &[&MentionedName]) -> Result<Vec<Option<AccountId>>> {
        let logins: Vec<Name> = names.iter().map(|name| Name::Login(name.name.clone())).collect();
        let found = self.registration.find(&logins).await?;
        // Whoever is of another site is nobody here.
        let id = |(name, account): (&&MentionedName, Option<Account>)| {
            account.filter(|_| name.host.is_none()).map(|account| account.id)
        };
        Ok(names.iter().zip(found).map(id).collect())
    }

    async fn draft(&self, text: &str) -> Result<Draft> {
        Draft::parsed(text, async |names| self.named(names).await).await
    }

    async fn post(&mut self, who: AccountId, draft: Draft) -> Result<()> {
        let published = self.engine.publish(who, &draft).await?;
        let author = draft.group.or(draft.chat).unwrap_or(who);
        let number = self.number(PostRef { id: published.id, author }, who);
        println!(
            "posted [{number}]{}",
            if published.is_held { ": others see it once it is released" } else { "" }
        );
        Ok(())
    }

    /// Who somebody is, and the posts of that account.
    async fn profile(&mut self, who: AccountId, name: &str) -> Result<()> {
        let id = self.registration.id_of(name).await?;
        // With its counts as they are, and its display name.
        let account = self.engine.stored().account(id).await?;
        println!(
            "{}: {} posts, {} followers, follows {}",
            called(&account),
            account.posts,
            account.followers,
            account.following
        );
        self.read(who, Query::profile(id)).await
    }

    async fn read(&mut self, who: AccountId, query: Query) -> Result<()> {
        let page = self.engine.as_reader(who).read(&query.hydrated().with_ties()).await?;
        self.print(&page.posts);
        Ok(())
    }

    /// Prints posts, those that answer another one of them further to the right.
    fn print(&mut self, posts: &[PagePost]) {
        if posts.is_empty() {
            println!("nothing");
        }
        let mut depths: HashMap<PostId, usize> = HashMap::new();
        for entry in posts {
            let (Some(post), Some(author)) = (&entry.post, &entry.account) else { continue };
            let parent = post.header().reply_to.and_then(|parent| depths.get(&parent.id));
            let depth = parent.map_or(0, |above| above + 1);
            depths.insert(entry.id, depth);
            let number = self.number(PostRef { id: entry.id, author: entry.author }, entry.said_by());
            let (by, group) = match &entry.writer {
                Some(writer) if post.chat().is_some() => (called(writer), String::new()),
                Some(writer) => (called(writer), format!(" in {}", called(author))),
                None => (called(author), String::new()),
            };
            let text = &post.content().text;
            let passed_on = entry.original.as_ref().map(|original| {
                format!("passes on {}: {}", called(&original.account), original.post.content().text)
            });
            let (passed_on, around) = (passed_on.unwrap_or_default(), around(entry));
            println!("{:indent$}[{number}] {by}{group}: {text}{passed_on}{around}", "", indent = depth * 2);
        }
    }

    /// The number of a post, for people.
    fn number(&mut self, post: PostRef, by: AccountId) -> usize {
        let known = self.shown.iter().position(|(shown, _)| *shown == post);
        known.unwrap_or_else(|| {
            self.shown.push((post, by));
            self.shown.len() - 1
        }) + 1
    }

    /// The post that a text begins with the number of, and the rest.
    fn numbered<'t>(&self, text: &'t str) -> Result<(PostRef, &'t str)> {
        self.shown(text).map(|(post, _, rest)| (post, rest))
    }

    /// The same with who wrote it.
    fn shown<'t>(&self, text: &'t str) -> Result<(PostRef, AccountId, &'t str)> {
        let (number, rest) = text.split_once(' ').unwrap_or((text, ""));
        let at = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let post = at.and_then(|at| self.shown.get(at));
        let missing = || Error::new(ErrorKind::NotFound, format!("no post [{number}] was shown"));
        let (post, by) = *post.ok_or_else(missing)?;
        Ok((post, by, rest))
    }

    /// The same, of a post that somebody has written.
    fn own<'t>(&self, who: AccountId, text: &'t str) -> Result<(PostRef, &'t str)> {
        let (post, by, rest) = self.shown(text)?;
        if by != who {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("only who wrote post {} can do that", post.id),
            ));
        }
        Ok((post, rest))
    }

    /// What an error says, with posts called by the numbers that they were shown with.
    fn retold(&self, error: &Error) -> String {
        let call = |text: String, (at, (post, _)): (usize, &(PostRef, AccountId))| {
            text.replace(&post.id.to_string(), &format!("[{}]", at + 1))
        };
        self.shown.iter().enumerate().fold(error.to_string(), call)
    }
}

/// What is said of something that shows nothing by itself.
fn done(name: &str, verb: &str, rest: &str) -> Option<String> {
    let number = rest.split(' ').next().unwrap_or_default();
    Some(match verb {
        "name" => format!("{name} is called {}", if rest.is_empty() { name } else { rest }),
        "follow" => format!("{name} follows {rest}"),
        "unfollow" => format!("{name} no longer follows {rest}"),
        "mute" => format!("{name} mutes {rest}"),
        "block" => format!("{name} blocks {rest}"),
        "found" => format!("{name} has founded {rest}"),
        "report" => format!("{name} has reported [{number}]"),
        "release" => format!("{name} has released [{number}]"),
        "drop" => format!("{name} has dropped [{number}]"),
        "leave" => format!("{name} has left {rest}"),
        "edit" => format!("{name} has edited [{number}]"),
        "delete" => format!("{name} has deleted [{number}]"),
        "like" => format!("{name} likes [{number}]"),
        "unlike" => format!("{name} no longer likes [{number}]"),
        "bookmark" => format!("{name} keeps [{number}]"),
        "unbookmark" => format!("{name} no longer keeps [{number}]"),
        "repost" => format!("{name} passes on [{number}]"),
        "unrepost" => format!("{name} no longer passes on [{number}]"),
        _ => return None,
    })
}

fn called(account: &Account) -> &str {
    let shown = account.profile.as_ref().map(|profile| profile.display_name.as_str());
    shown.filter(|name| !name.is_empty()).or(account.login.as_deref()).unwrap_or("somebody")
}

/// What stands beside a post: how many did what, and what its reader did. Of a plain repost: its original's.
fn around(entry: &PagePost) -> String {
    let original = entry.original.as_ref().map(|original| &original.post);
    let Some(post) = &entry.post else { return String::new() };
    let header = original.filter(|_| post.is_plain_repost()).unwrap_or(post).header();
    let ties = entry.ties.unwrap_or_default();
    let counts = [(header.likes, "liked"), (header.reposts, "reposted"), (header.replies, "answered")];
    let counts =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{what} {count}x"));
    let mine = [
        (ties.is_liked, "you like it"),
        (ties.is_bookmarked, "you keep it"),
        (ties.repost.is_some(), "you passed it on"),
    ];
    let mine = mine.iter().filter(|(is_so, _)| *is_so).map(|(_, what)| (*what).to_owned());
    let all: Vec<String> = counts.chain(mine).collect();
    if all.is_empty() { String::new() } else { format!(" ({})", all.join(", ")) }
}

#[tokio::main]
async fn main() -> Result<()> {
    if std::env::args().skip(1).any(|arg| ["help", "-h", "--help"].contains(&arg.as_str())) {
        println!("{HELP}");
        return Ok(());
    }
    let (mut config, _cluster) = shared::config("site:").await?;
    // By default what others edit and delete shows within a second. Here everybody sits at one keyboard.
    config.engine.visible_within = Duration::ZERO;
    config.engine.shows_profiles = true;
    let passwords = config.registration.clone();
    // What is said again and again waits until somebody has looked at it, and nobody says more than this.
    let judge = SpamJudge { holds_links_of_new: false, ..SpamJudge::default() };
    config.engine.limits.posts =
        Some(ActLimit { most_new: 100, ..ActLimit::of(300, Duration::from_secs(3_600)) });
    let engine = Engine::builder().config(config).judge(judge).start().await?;
    let mut site = Site {
        registration: Registration::new(&engine, passwords).await?,
        engine: engine.clone(),
        shown: Vec::new(),
    };
    println!(
        "who does what? (`ada signup correct horse`, `ada post Hello @ben #tide`, `ben home`; `help` lists all, an \
         empty line ends)"
    );
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if line.trim().is_empty() {
            break;
        }
        if let Err(e) = site.obey(line.trim()).await {
            println!("sorry: {}", site.retold(&e));
        }
        let _ = std::io::stdout().flush();
    }
    let left = engine.shutdown(Duration::from_secs(5)).await?;
    println!("good bye, {left} tasks left");
    Ok(())
}
