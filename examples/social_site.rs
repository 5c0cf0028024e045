//! A small social site on the command line: people sign up, follow each other, post with mentions and hashtags, answer,
//! and read. Each line says who does what:
//!
//! ```sh
//! cargo run --example social_site                              # starts a cluster, and ends it
//! cargo run --example social_site -- redis://10.0.0.1:6379     # uses one, under the prefix `site:`
//! ```
//!
//! ```text
//! ada sign up                     ben follow ada
//! ada post Low tide! @ben #beach  ben reply 1 On my way
//! ben home                        ada mentions
//! ada tag beach                   ada show 1
//! ada edit 1 High tide! #sea      ada delete 1
//! ```

mod shared;

use std::io::{BufRead as _, Write as _};
use std::time::Duration;

use tideline::post::{Draft, Edit, MentionedName, PostRef, Tag};
use tideline::sharded::{Name, Order, SortedSet};
use tideline::{AccountId, Engine, Error, ErrorKind, NewAccount, Page, Query, Result, Timeline};

/// How deep a conversation is shown.
const DEPTH: usize = 4;

/// Who is called what: a set of names, whose scores are the accounts' ids. A toy: of two who take one name at once
/// nobody is told.
struct People(SortedSet<Name>);

impl People {
    async fn accounts(&self, names: &[&str]) -> Result<Vec<Option<AccountId>>> {
        let lower = names.iter().map(|name| Name::new(name.to_lowercase()));
        let ids = self.0.scores(&lower.collect::<Result<Vec<_>>>()?).await?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "ids were counted from 1"
        )]
        let account = |id: Option<f64>| id.map(|id| AccountId::new(id as u64)).transpose();
        ids.into_iter().map(account).collect()
    }

    async fn account(&self, name: &str) -> Result<AccountId> {
        let found = self.accounts(&[name]).await?.first().copied().flatten();
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("nobody is called {name}")))
    }

    async fn add(&self, name: &str) -> Result<AccountId> {
        let id = self.0.len().await? + 1;
        #[expect(clippy::cast_precision_loss, reason = "so many won't sign up here")]
        self.0.add(&[(Name::new(name.to_lowercase())?, id as f64)]).await?;
        AccountId::new(id)
    }

    async fn name(&self, account: AccountId) -> Result<String> {
        #[expect(clippy::cast_precision_loss, reason = "as above")]
        let id = account.get() as f64;
        let found = self.0.page(id..=id, None, 1, Order::Ascending).await?.entries;
        Ok(found
            .first()
            .map_or_else(String::new, |(name, _)| String::from_utf8_lossy(name.as_bytes()).into()))
    }
}

struct Site {
    engine: Engine,
    people: People,
    /// Posts that were shown, by the numbers that they were shown with.
    shown: Vec<PostRef>,
}

impl Site {
    /// Does what a line says.
    async fn obey(&mut self, line: &str) -> Result<()> {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (verb, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        if (verb, rest) == ("sign", "up") {
            let id = self.people.add(name).await?;
            self.engine.create_account(NewAccount { id: Some(id), ..NewAccount::default() }).await?;
            println!("welcome, {name}");
            return Ok(());
        }
        let who = self.people.account(name).await?;
        match verb {
            "follow" => self.engine.follow(who, self.people.account(rest).await?).await.map(drop),
            "unfollow" => self.engine.unfollow(who, self.people.account(rest).await?).await,
            "mute" => self.engine.mute(who, self.people.account(rest).await?).await,
            "block" => self.engine.block(who, self.people.account(rest).await?).await,
            "post" => self.post(who, self.draft(rest).await?).await,
            "reply" => {
                let (to, text) = self.numbered(rest)?;
                self.post(who, self.draft(text).await?.reply_to(to)).await
            }
            "repost" => self.post(who, Draft::repost(self.numbered(rest)?.0)).await,
            "edit" => {
                let (post, text) = self.numbered(rest)?;
                let edit = Edit::parsed(text, async |names| self.named(names).await).await?;
                self.engine.edit(who, post.id, &edit).await
            }
            "delete" => self.engine.delete(who, self.numbered(rest)?.0.id).await,
            "home" => self.read(who, Query::home()).await,
            "mentions" => self.read(who, Query::mentions()).await,
            "tag" => self.read(who, Query::tag(Tag::new(rest)?)).await,
            "profile" => self.read(who, Query::profile(self.people.account(rest).await?)).await,
            "show" => self.show(who, self.numbered(rest)?.0).await,
            _ => Err(Error::new(ErrorKind::Invalid, format!("nobody can {verb:?} here"))),
        }?;
        // Lists and homes follow within milliseconds. Who types the next line sees them at once.
        self.engine.drained(Duration::from_secs(10)).await
    }

    /// The accounts of names in a text, all in one go.
    async fn named(&self, names: &[&MentionedName]) -> Result<Vec<Option<AccountId>>> {
        let local: Vec<&str> = names.iter().map(|name| name.name.as_str()).collect();
        let accounts = self.people.accounts(&local).await?;
        Ok(names
            .iter()
            .zip(accounts)
            .map(|(name, account)| account.filter(|_| name.host.is_none()))
            .collect())
    }

    async fn draft(&self, text: &str) -> Result<Draft> {
        Draft::parsed(text, async |names| self.named(names).await).await
    }

    async fn post(&mut self, who: AccountId, draft: Draft) -> Result<()> {
        let id = self.engine.publish(who, &draft).await?.id;
        println!("posted [{}]", self.number(PostRef { id, author: who }));
        Ok(())
    }

    async fn read(&mut self, who: AccountId, query: Query) -> Result<()> {
        let page = self.engine.read(who, &query.hydrated()).await?;
        if page.posts.is_empty() {
            println!("nothing");
        }
        self.print(&page, 0).await
    }

    /// A post, and the answers to it, and the answers to those.
    async fn show(&mut self, who: AccountId, post: PostRef) -> Result<()> {
        let mut open = vec![(post, 0)];
        while let Some((post, depth)) = open.pop() {
            let query = Query { timeline: Timeline::Replies(post.id), ..Query::default() };
            let page = self.engine.read(who, &query.hydrated()).await?;
            if depth == 0 {
                println!("[{}] is answered by", self.number(post));
            }
            self.print(&page, depth + 1).await?;
            if depth < DEPTH {
                let answers = page.posts.iter().map(|reply| PostRef { id: reply.id, author: reply.author });
                open.extend(answers.map(|reply| (reply, depth + 1)));
            }
        }
        Ok(())
    }

    async fn print(&mut self, page: &Page, depth: usize) -> Result<()> {
        for entry in &page.posts {
            let author = self.people.name(entry.author).await?;
            let number = self.number(PostRef { id: entry.id, author: entry.author });
            let Some(post) = &entry.post else { continue };
            let passes_on = match &entry.original {
                Some((_, original, account)) => {
                    format!("passes on {}: {}", self.people.name(account.id).await?, original.content().text)
                }
                None => String::new(),
            };
            println!(
                "{:depth$}[{number}] {author}: {}{passes_on}",
                "",
                post.content().text,
                depth = depth * 2
            );
        }
        Ok(())
    }

    /// The number of a post, for people.
    fn number(&mut self, post: PostRef) -> usize {
        let known = self.shown.iter().position(|shown| *shown == post);
        known.unwrap_or_else(|| {
            self.shown.push(post);
            self.shown.len() - 1
        }) + 1
    }

    /// The post that a text begins with the number of, and the rest.
    fn numbered<'t>(&self, text: &'t str) -> Result<(PostRef, &'t str)> {
        let (number, rest) = text.split_once(' ').unwrap_or((text, ""));
        let at = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let post = at.and_then(|at| self.shown.get(at));
        let missing = || Error::new(ErrorKind::NotFound, format!("no post [{number}] was shown"));
        Ok((*post.ok_or_else(missing)?, rest))
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let (mut config, _cluster) = shared::config("site:").await?;
    // By default what others edit and delete shows within a second. Here everybody sits at one keyboard.
    config.engine.visible_within = Duration::ZERO;
    let engine = Engine::builder().config(config).start().await?;
    let people = People(engine.store().sets().named("people")?);
    let mut site = Site { engine: engine.clone(), people, shown: Vec::new() };
    println!("who does what? (`ada sign up`, `ada post Hello @ben #tide`, `ben home`; an empty line ends)");
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if line.trim().is_empty() {
            break;
        }
        if let Err(e) = site.obey(line.trim()).await {
            println!("sorry: {e}");
        }
        let _ = std::io::stdout().flush();
    }
    let left = engine.shutdown(Duration::from_secs(5)).await?;
    println!("good bye, {left} tasks left");
    Ok(())
}
