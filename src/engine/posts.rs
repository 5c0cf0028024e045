//! Posts: publishing, editing, deleting them.

use std::time::{Duration, Instant};

use tracing::Instrument as _;

use super::Engine;
use crate::account::{AccountState, Mode};
use crate::cluster::{Command, Epoch, Request};
use crate::context::{draw, no_account};
use crate::error::{Error, ErrorKind, Result};
use crate::fanout::{self, Delivery, Entry, FanoutState, Recipients, Reference, Task};
use crate::functions::{self, Deleted, Edited, Publish};
use crate::ids::{AccountId, PostId};
use crate::meters;
use crate::post::layout::{VISIBILITY_OFFSET, VISIBILITY_UNSAID};
use crate::post::{Audience, Draft, Edit, Header, Post, Visibility};
use crate::timeline::open_to;

/// Homes that have a post when it is acknowledged as "first".
const FIRST_HOMES: u64 = 1_000;
/// How often another instance's fan-out is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Tries of a publish whose reply is lost again and again.
const TRIES_MAX: usize = 8;

/// What has happened when a post is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PostAck {
    /// A primary has it.
    #[default]
    Accepted,
    /// Its replicas have it too: it survives a failover.
    Replicated,
    /// A thousand homes have it, or all if there are fewer.
    First,
    /// All homes have it.
    Delivered,
}

/// A post that was accepted.
#[derive(Debug, Clone)]
pub struct Published {
    /// Its id.
    pub id: PostId,
    /// Whether it was there already: published with the same token.
    pub is_repeat: bool,
    /// Its fan-out.
    pub delivery: Delivery,
}

impl Engine {
    /// Publishes a post. The author's next read shows it.
    ///
    /// With a token in the draft a repeated call gives the same post, whether or not the first one's reply was lost;
    /// without one, [`ErrorKind::Unknown`] means that there may be a post. [`ErrorKind::Overloaded`]: too much is
    /// waiting to be delivered; nothing was written.
    pub async fn publish(&self, author: AccountId, draft: &Draft) -> Result<Published> {
        self.publish_with(author, draft, self.context.settings.acknowledge.into()).await
    }

    /// The same, acknowledged at another moment than the settings say.
    pub async fn publish_with(&self, author: AccountId, draft: &Draft, ack: PostAck) -> Result<Published> {
        let span = tracing::debug_span!("publish", %author, ?ack);
        self.publish_now(author, draft, ack).instrument(span).await
    }

    async fn publish_now(&self, author: AccountId, draft: &Draft, ack: PostAck) -> Result<Published> {
        draft.check(self.context.settings.text_chars)?;
        let (mut published, epoch) = match self.check_references(author, draft).await {
            Ok(()) => self.send(author, draft).await?,
            // What a post refers to may have gone since it was published: a repeat gives it all the same.
            Err(e) => self.published_before(author, draft).await?.ok_or(e)?,
        };
        meters::post(if draft.repost_of.is_some() { "repost" } else { "post" });
        match ack {
            PostAck::Accepted => {}
            PostAck::Replicated => {
                self.context.acknowledge(crate::settings::Acknowledge::Replicated, &epoch).await?;
            }
            PostAck::First if !published.is_repeat => drop(published.delivery.first(FIRST_HOMES).await?),
            PostAck::Delivered if !published.is_repeat => drop(published.delivery.all().await?),
            // Whoever accepted it the first time may be at it still.
            PostAck::First | PostAck::Delivered => self.fanned_out(published.id).await?,
        }
        if matches!(ack, PostAck::First | PostAck::Delivered) {
            // Homes are on replicas by now; the post itself is as safe as the settings say.
            self.acknowledged(epoch).await?;
        }
        Ok(published)
    }

    /// Waits until a post's fan-out is over, whichever instance runs it.
    async fn fanned_out(&self, id: PostId) -> Result<()> {
        let until = Instant::now() + self.context.router().settings().deadline;
        loop {
            match self.fanout(id).await? {
                FanoutState::Done => return Ok(()),
                FanoutState::Here(mut delivery) => return delivery.all().await.map(drop),
                FanoutState::Elsewhere if Instant::now() < until => tokio::time::sleep(LOOK_AGAIN).await,
                FanoutState::Elsewhere => {
                    let text = format!("post {id} is written, and another instance is still delivering it");
                    return Err(Error::unavailable(text));
                }
            }
        }
    }

    /// The post that was published with the draft's token, if it has one.
    async fn published_before(&self, author: AccountId, draft: &Draft) -> Result<Option<(Published, Epoch)>> {
        let Some(token) = &draft.token else { return Ok(None) };
        let command = Command::new("GET").arg(&self.context.keys().token(author, token));
        let answer = self.context.router().ask(Request::read(self.context.slot(author), command)).await?;
        let epoch = answer.epoch.clone();
        let reply = answer.ok()?;
        if reply.is_nil() {
            return Ok(None);
        }
        let id = PostId::from_u64(u64::from_be_bytes(functions::mark(&reply)?))?;
        Ok(Some((self.repeat_of(id).await?, epoch)))
    }

    /// A post that was there already, with its fan-out as far as that can be watched here.
    async fn repeat_of(&self, id: PostId) -> Result<Published> {
        let delivery = match self.fanout(id).await? {
            FanoutState::Here(delivery) => delivery,
            FanoutState::Elsewhere => Delivery::elsewhere(),
            FanoutState::Done => Delivery(None),
        };
        Ok(Published { id, is_repeat: true, delivery })
    }

    /// What a post refers to must be there, be seen by its author, and be fit to be passed on.
    async fn check_references(&self, author: AccountId, draft: &Draft) -> Result<()> {
        for (what, target) in [("repost_of", draft.repost_of), ("reply_to", draft.reply_to)] {
            let Some(target) = target else { continue };
            let missing = || {
                Error::new(
                    ErrorKind::NotFound,
                    format!("{what}: there is no post {} of account {}", target.id, target.author),
                )
            };
            let post = self.stored(target.id).await?.0.ok_or_else(missing)?;
            let header = *post.header();
            if header.author != target.author {
                return Err(missing());
            }
            if target.author != author && !self.is_seen(author, &post).await? {
                return Err(missing());
            }
            if what == "repost_of" && !may_be_reposted(author, &header, &post) {
                return Err(Error::invalid(format!(
                    "post {} is {:?} and cannot be passed on to others",
                    target.id, header.visibility
                )));
            }
        }
        Ok(())
    }

    /// Whether `reader` may see another one's post, as a profile would show it.
    async fn is_seen(&self, reader: AccountId, post: &Post) -> Result<bool> {
        let context = &self.context;
        let header = post.header();
        let Some(author) = context.account(header.author).await? else { return Ok(false) };
        let Ok(for_followers) = open_to(reader, &author, post) else { return Ok(false) };
        if for_followers.is_some() && !self.is_following(reader, header.author).await? {
            return Ok(false);
        }
        Ok(!context.restricts(header.author, reader).await?)
    }

    /// A post as it is stored, and who told it.
    async fn stored(&self, id: PostId) -> Result<(Option<Post>, Epoch)> {
        let buckets = self.context.keys().buckets();
        let command = Command::new("GET").arg(&self.context.keys().post(id));
        let request = Request::read(buckets.slot(id.bucket(buckets)), command);
        let answer = self.context.router().ask(request).await?;
        let epoch = answer.epoch.clone();
        let reply = answer.ok()?;
        let post = if reply.is_nil() { None } else { Some(Post::parse(reply.bytes()?)?) };
        Ok((post, epoch))
    }

    async fn send(&self, author: AccountId, draft: &Draft) -> Result<(Published, Epoch)> {
        let context = &self.context;
        let post = Post::new(author, draft);
        let recipients = Recipients::of(&post);
        let mut post = post.encode();
        if draft.visibility.is_none() {
            // Where the lock is known, at the moment of publishing.
            post[VISIBILITY_OFFSET] = VISIBILITY_UNSAID;
        }
        let references = Reference::all(draft.repost_of, draft.reply_to);
        let mut lost = None;
        for _ in 0..TRIES_MAX {
            let _places = fanout::reserve(context, 1 + references.len())?;
            let entry = draw();
            let refers: Vec<(functions::Mark, Reference)> =
                references.iter().map(|to| (draw(), *to)).collect();
            let publish = self.command(author, draft, &post, entry, &refers)?;
            let bucket = context.bucket(author);
            let command = publish.command(context.keys().buckets(), bucket);
            // It carries random bytes, and only a token makes it safe to send twice.
            let request = Request::write(context.slot(author), command).touching_undeclared_keys().once();
            let answer = match context.router().ask(request).await {
                Err(e) if e.kind() == ErrorKind::Unknown && draft.token.is_some() => {
                    lost = Some(e);
                    continue;
                }
                answer => answer?,
            };
            let epoch = answer.epoch.clone();
            return match functions::Published::parse(answer.ok()?)? {
                functions::Published::New { id, mode, layout } => {
                    let mode = Mode::from_letter(mode);
                    let post = PostId::from_u64(id)?;
                    for (id, to) in refers {
                        let refer = Task::Refer { post, author, to };
                        let entry = Entry { id, ..Entry::new(bucket, context.instance, refer) };
                        drop(fanout::accept(context, entry));
                    }
                    let delivery = self.begin(author, post, entry, recipients.clone(), mode, layout).await?;
                    Ok((Published { id: post, is_repeat: false, delivery }, epoch))
                }
                functions::Published::Again(id) => Ok((self.repeat_of(PostId::from_u64(id)?).await?, epoch)),
                functions::Published::NoAccount => Err(no_account(author)),
                functions::Published::State(state) => {
                    let state = AccountState::from_letter(state);
                    Err(Error::invalid(format!("account {author} is {state:?}: it cannot post")))
                }
                functions::Published::JournalFull => Err(fanout::journal_full(context)),
            };
        }
        Err(lost.unwrap_or_else(|| Error::internal("a publish was never sent")))
    }

    fn command<'a>(
        &self,
        author: AccountId,
        draft: &Draft,
        post: &'a [u8],
        entry: functions::Mark,
        references: &[(functions::Mark, Reference)],
    ) -> Result<Publish<'a>> {
        let context = &self.context;
        let keys = context.keys();
        let bucket = context.bucket(author);
        let ttl = u64::try_from(context.settings.token_ttl.as_millis()).unwrap_or(u64::MAX);
        Ok(Publish {
            keys: [
                keys.clock(bucket),
                keys.account(author),
                keys.outbox(author),
                keys.home(author),
                keys.journal(bucket),
                context.followers(author)?.root_key(),
            ],
            token: draft.token.as_deref().map(|token| (keys.token(author, token), ttl)),
            post_head: keys.post_head(bucket),
            now_ms: context.router().now_ms(),
            post,
            author,
            journal_most: context.settings.journal_max,
            outbox_most: context.settings.outbox_posts,
            owner: context.instance,
            entry,
            fit: context.fit(),
            references: references.iter().map(|(entry, to)| (*entry, to.stored())).collect(),
        })
    }

    /// Runs what a publish has left in the journal.
    async fn begin(
        &self,
        author: AccountId,
        post: PostId,
        entry: functions::Mark,
        recipients: Recipients,
        mode: Mode,
        layout: u8,
    ) -> Result<Delivery> {
        let context = &self.context;
        if mode == Mode::Pull {
            return Ok(Delivery(None));
        }
        let followers = context.followers(author)?;
        if layout == b'S' && !followers.is_known_spread() {
            followers.layout().await?;
        }
        let task = Task::Deliver { post, author };
        let entry = Entry {
            id: entry,
            recipients: Some(recipients),
            ..Entry::new(context.bucket(author), context.instance, task)
        };
        Ok(fanout::accept(context, entry))
    }

    /// Changes what a post says; never who may see it. Only its author may.
    pub async fn edit(&self, author: AccountId, id: PostId, edit: &Edit) -> Result<()> {
        let context = &self.context;
        let buckets = context.keys().buckets();
        for _ in 0..TRIES_MAX {
            let (Some(post), _) = self.stored(id).await? else { return Err(no_post(id)) };
            if post.header().author != author {
                return Err(no_post_of(id, author));
            }
            edit.check(&post, context.settings.text_chars)?;
            let edited = post.edited(edit).encode();
            let command =
                functions::post_edit(context.keys().post(id), author, post.header().revision, &edited);
            let request = Request::write(buckets.slot(id.bucket(buckets)), command);
            let answer = context.router().ask(request).await?;
            let epoch = answer.epoch.clone();
            match Edited::parse(answer.ok()?)? {
                Edited::Done => return self.acknowledged(epoch).await,
                Edited::NoPost => return Err(no_post(id)),
                Edited::Foreign => return Err(no_post_of(id, author)),
                // Somebody else has edited it, or our own first sending has: edited again, it says the same.
                Edited::Revision => {}
            }
        }
        Err(Error::new(ErrorKind::Conflict, format!("post {id} is edited by others all the time; try again")))
    }

    /// Deletes a post, for good. Only its author may. What is deleted already is deleted.
    pub async fn delete(&self, author: AccountId, id: PostId) -> Result<()> {
        let context = &self.context;
        let buckets = context.keys().buckets();
        if id.bucket(buckets) != context.bucket(author) {
            return Err(no_post_of(id, author));
        }
        let (post, epoch) = self.stored(id).await?;
        // An earlier sending may have deleted it; that may not be on replicas yet.
        let Some(post) = post else { return self.acknowledged(epoch).await };
        let bucket = context.bucket(author);
        let refer =
            |to: Reference| Entry::new(bucket, context.instance, Task::Refer { post: id, author, to });
        let references = Reference::all(post.header().original, post.header().reply_to);
        let entries: Vec<Entry> = references.into_iter().map(refer).collect();
        let _places = fanout::reserve(context, entries.len())?;
        let keys = context.keys();
        let of = [keys.post(id), keys.outbox(author), keys.account(author), keys.journal(bucket)];
        let values: Vec<_> = entries.iter().map(|entry| (entry.id, entry.stored())).collect();
        let command = functions::post_delete(&of, author, id.get(), context.settings.journal_max, &values);
        let answer = context.router().ask(Request::write(context.slot(author), command)).await?;
        let epoch = answer.epoch.clone();
        match Deleted::parse(answer.ok()?)? {
            Deleted::Done | Deleted::NoPost => {}
            Deleted::Foreign => return Err(no_post_of(id, author)),
            Deleted::JournalFull => return Err(fanout::journal_full(context)),
        }
        entries.into_iter().for_each(|entry| drop(fanout::accept(context, entry)));
        self.acknowledged(epoch).await
    }

    /// Where the fan-out of a post is, whichever instance accepted it.
    pub async fn fanout(&self, id: PostId) -> Result<FanoutState> {
        fanout::state(&self.context, id).await
    }

    /// A post, whoever may see it; `None`: there is none. For moderation and tests: a timeline shows only what its
    /// reader may see.
    pub async fn post(&self, id: PostId) -> Result<Option<Post>> {
        Ok(self.stored(id).await?.0)
    }
}

fn may_be_reposted(by: AccountId, header: &Header, post: &Post) -> bool {
    match header.visibility {
        Visibility::Public | Visibility::Unlisted => post.audience() == Audience::Unnamed,
        // Its own followers have seen it; nobody else will.
        Visibility::Followers => header.author == by,
        Visibility::Direct => false,
    }
}

fn no_post(id: PostId) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no post {id}, or it was deleted"))
}

fn no_post_of(id: PostId, author: AccountId) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no post {id} of account {author}"))
}
