//! Publishing posts: what one may refer to, the write, and when it is acknowledged.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::Instrument as _;

use super::Engine;
use super::byline::Byline;
use super::posts::may_not_post;
use crate::account::Mode;
use crate::cluster::{Command, Epoch, Replicas, Request};
use crate::delivery::{DeliverTask, FanoutState, Recipients};
use crate::error::{CallFuture, Error, ErrorCode, ErrorKind, Result};
use crate::functions::{self, PublicPlace, Publish, RepostPlace, TimeLimits};
use crate::graph;
use crate::ids::{AccountId, PostId};
use crate::journal::{self, Delivery, DeliveryProgress, Hint, JournalEntry, Task};
use crate::meters;
use crate::nonce::{Nonce, draw};
use crate::post::layout::{FLAG_HIDDEN, FLAGS_OFFSET, VISIBILITY_OFFSET, VISIBILITY_UNSAID};
use crate::post::{Audience, Draft, Post, PostRef, Visibility};
use crate::settings::Acknowledge;
use crate::sharded::PiecePlace;
use crate::tenant::{account_changed_always, no_account, no_post};
use crate::tiers;
use crate::timeline::View;

/// Tries of one post, while its author changes, and while replies are lost.
const TRIES_MAX: usize = 64;
/// Homes that have a post when it is acknowledged as "first".
const FIRST_HOMES: u64 = 1_000;
/// Pause between looks at another instance's fan-out.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// A moment at which a post is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PostAck {
    /// A primary has it. A failover that its replica was not in time for may lose it.
    #[default]
    Accepted,
    /// All replicas of its primary have it too, at least one: it survives a failover.
    Replicated,
    /// A thousand homes have it, or all if there are fewer. A failover may lose it and them, as if it were accepted.
    First,
    /// All homes have it, and the post and all of these homes are on replicas too. Of an account that is pulled, or
    /// that nobody follows: the post is.
    Delivered,
}

/// A post that was accepted. Serializes without its fan-out, which [`Engine::fanout`] tells at any time.
#[derive(Debug, Clone, serde::Serialize)]
pub struct PublishedPost {
    /// Its id.
    pub id: PostId,
    /// Whether it was there already: published with the same token.
    pub is_repeat: bool,
    /// Whether it is [held back](crate::Judgement::Hold): nobody except its author sees it until a moderator says so.
    pub is_held: bool,
    /// What is true of it: the moment that was asked for. Where a server had no replica (and
    /// [`Replicas`](crate::cluster::Replicas) says to go on), `Accepted` instead of `Replicated`, `First` instead of
    /// `Delivered`; the latter also of a post whose fan-out was over before it was published again, unless replicas are
    /// required: nobody knows by then whether all had theirs. Where homes lie on servers that are away, `Accepted` or
    /// `Replicated` once the router's deadline is over; the fan-out goes on.
    pub reached: PostAck,
    /// Its fan-out.
    #[serde(skip)]
    pub delivery: Delivery,
}

/// Whether an error says that its writer may not post into a group or a chat now, or that there is none.
fn is_out(e: &Error) -> bool {
    let codes = [ErrorCode::NotAllowed, ErrorCode::NotActive, ErrorCode::Blocked];
    e.kind() == ErrorKind::NotFound || codes.contains(&e.code())
}

impl PublishedPost {
    fn accepted(id: PostId, is_repeat: bool, delivery: Delivery) -> Self {
        Self { id, is_repeat, is_held: false, reached: PostAck::Accepted, delivery }
    }
}

impl Engine {
    /// Publishes a post. The author's next read shows it.
    ///
    /// With a token in the draft a repeated call gives the same post, whether or not the first one's reply was lost;
    /// without one, [`ErrorKind::Unknown`] means that there may be a post. [`ErrorKind::Overloaded`]: too much is
    /// waiting to be delivered; nothing was written.
    pub fn publish<'a>(&'a self, author: AccountId, draft: &'a Draft) -> CallFuture<'a, PublishedPost> {
        self.publish_with(author, draft, self.tenant.settings.acknowledge.into())
    }

    /// Publishes a post that is acknowledged at another moment than the settings say.
    pub fn publish_with<'a>(
        &'a self,
        author: AccountId,
        draft: &'a Draft,
        ack: PostAck,
    ) -> CallFuture<'a, PublishedPost> {
        let span = tracing::debug_span!("publish", %author, ?ack);
        Box::pin(self.publish_now(Byline::of(author, draft), draft, ack).instrument(span))
    }

    /// The post that the account has published with that token ([`Draft::token`]), while that is remembered; not one
    /// into a group.
    pub fn published_as(&self, author: AccountId, token: String) -> CallFuture<'_, Option<PostId>> {
        Box::pin(async move {
            Ok(self.published_before(author, Some(&token)).await?.map(|(published, _)| published.id))
        })
    }

    pub(super) async fn publish_now(&self, by: Byline, draft: &Draft, ack: PostAck) -> Result<PublishedPost> {
        draft.check(self.tenant.settings.text_chars)?;
        let draft = &by.with_own_token(draft);
        let (mut published, epoch) = match self.with_references(by, draft).await {
            Ok(draft) => match self.send_judged(by, &draft).await {
                // Of who may post there no more, as well; not of what a judge refuses, or nobody would hold (H218).
                Err(e) if by.is_elsewhere() && is_out(&e) => {
                    self.published_before(by.author, draft.token.as_deref()).await?.ok_or(e)?
                }
                sent => sent?,
            },
            // What a post refers to may have gone since it was published: a repeat gives it all the same.
            Err(e) => self.published_before(by.author, draft.token.as_deref()).await?.ok_or(e)?,
        };
        self.bring_to_writer(by, published.id).await;
        meters::post(if draft.repost_of.is_some() { "repost" } else { "post" });
        published.reached = match ack {
            PostAck::Accepted => ack,
            PostAck::Replicated => self.tenant.acknowledge(Acknowledge::Replicated, &epoch).await?.into(),
            PostAck::First => {
                let homes = self.wait_delivered(&mut published, FIRST_HOMES).await;
                let post = self.acknowledged(epoch).await?.reached;
                if homes.is_some() { ack } else { post.into() }
            }
            PostAck::Delivered => {
                // Homes' servers are fenced by the fan-out, the author's by nobody else: homes without the post itself
                // would name what is gone (H70).
                let post = self.tenant.acknowledge(Acknowledge::Replicated, &epoch);
                let homes = self.wait_delivered(&mut published, u64::MAX);
                match futures::future::join(post, homes).await {
                    (post, None) => post?.into(),
                    (Ok(Acknowledge::Replicated), Some(homes)) if homes.is_replicated => ack,
                    (post, Some(_)) => post.map(|_| PostAck::First)?,
                }
            }
        };
        Ok(published)
    }

    /// Waits until so many homes have a post, or all that are to get it. `None`: that waits for servers that are away,
    /// or nobody here knows. The post is written, so that is no error (H104): who takes it for one publishes it twice.
    async fn wait_delivered(&self, published: &mut PublishedPost, homes: u64) -> Option<DeliveryProgress> {
        let patience = self.tenant.router().settings().deadline;
        // Whoever accepted it the first time may be at it still.
        if published.is_repeat {
            self.fanned_out(published.id, patience).await
        } else {
            published.delivery.first_unless_held_up(homes, patience).await
        }
    }

    /// Waits until a post's fan-out is over, whichever instance runs it; the same otherwise.
    async fn fanned_out(&self, id: PostId, patience: Duration) -> Option<DeliveryProgress> {
        let until = Instant::now() + patience;
        loop {
            match self.fanout(id).await.ok()? {
                FanoutState::Done => return Some(self.finished().progress()),
                FanoutState::Here(mut delivery) => {
                    return delivery.first_unless_held_up(u64::MAX, patience).await;
                }
                FanoutState::Elsewhere if Instant::now() < until => tokio::time::sleep(LOOK_AGAIN).await,
                FanoutState::Elsewhere => return None,
            }
        }
    }

    /// The post that was published with that token, if there is one.
    pub(super) async fn published_before(
        &self,
        author: AccountId,
        token: Option<&str>,
    ) -> Result<Option<(PublishedPost, Epoch)>> {
        let Some(token) = token else { return Ok(None) };
        let command = Command::new("GET").arg(&self.tenant.keys().token(author, token));
        let answer = self.tenant.router().ask(Request::read(self.tenant.slot(author), command)).await?;
        let epoch = answer.epoch.clone();
        let reply = answer.ok()?;
        if reply.is_nil() {
            return Ok(None);
        }
        let id = PostId::from_u64(u64::from_be_bytes(functions::read_nonce(&reply)?))?;
        Ok(Some((self.as_published(id).await, epoch)))
    }

    /// The answer to whoever publishes a post again that is there already: how far its fan-out is, if this instance
    /// can tell.
    async fn as_published(&self, id: PostId) -> PublishedPost {
        let delivery = match self.fanout(id).await {
            Ok(FanoutState::Here(delivery)) => delivery,
            Ok(FanoutState::Done) => self.finished(),
            // The post is there, whoever can say how far it is.
            Ok(FanoutState::Elsewhere) | Err(_) => Delivery::elsewhere(),
        };
        PublishedPost::accepted(id, true, delivery)
    }

    /// A fan-out that somebody has finished: whether all of its servers had replicas, only the setting tells.
    fn finished(&self) -> Delivery {
        Delivery::over(self.tenant.router().replicas() == Replicas::Required)
    }

    /// Checks that what a post refers to is there, is seen by its author, and may be passed on. Of a plain repost the
    /// original is what is answered, and passed on. An answer belongs to its parent's conversation.
    async fn with_references<'d>(&self, by: Byline, draft: &'d Draft) -> Result<Cow<'d, Draft>> {
        let (author, mut draft) = (by.writer, self.with_members(by, draft).await?);
        if let Some(target) = draft.repost_of {
            let (subject, post) = self.referred(author, target).await.map_err(|e| e.context("repost_of"))?;
            if !may_be_reposted(author, &post) {
                let visibility = post.header().visibility;
                let text = format!("post {} is {visibility}: it cannot be reposted", subject.id);
                return Err(Error::new(ErrorCode::NotAllowed, text));
            }
            draft.to_mut().repost_of = Some(subject);
        }
        if let Some(target) = draft.reply_to {
            let (subject, post) = self.referred(author, target).await.map_err(|e| e.context("reply_to"))?;
            // H295: who reads it elsewhere may not know the chat, or the private group.
            let stays = post.chat().or(post.private_group()).is_none_or(|place| place == by.author);
            let conversation = post.header().conversation.unwrap_or(subject.id);
            let draft = draft.to_mut();
            draft.reply_to = stays.then_some(subject);
            draft.conversation = stays.then_some(draft.conversation.unwrap_or(conversation));
        }
        Ok(draft)
    }

    /// The post that is meant when an account likes, answers or passes on a post: of a plain repost its original.
    /// [`ErrorKind::NotFound`]: there is none, or the account may not see it.
    pub(crate) async fn subject(&self, actor: AccountId, post: PostId) -> Result<(PostRef, Arc<Post>)> {
        let (mut view, post) = self.deciding(actor, post).await?;
        view.subject(post).await
    }

    /// The post that is meant, of one whose author somebody claims to know.
    async fn referred(&self, actor: AccountId, post: PostRef) -> Result<(PostRef, Arc<Post>)> {
        let (mut view, found) = self.deciding(actor, post.id).await?;
        if found != post {
            return Err(no_post(post.id));
        }
        let subject = view.subject(post).await?;
        tiers::may_bring_back(&self.tenant, actor, subject.0).await?;
        Ok(subject)
    }

    async fn deciding(&self, actor: AccountId, post: PostId) -> Result<(View<'_>, PostRef)> {
        View::deciding(self.as_reader(actor).viewpoint(), post).await
    }

    /// Publishes a post that is fit for it. `is_held`: so that only its author sees it.
    pub(super) async fn send(
        &self,
        by: Byline,
        draft: &Draft,
        is_held: bool,
    ) -> Result<(PublishedPost, Epoch)> {
        let (tenant, author) = (&self.tenant, by.author);
        let post = by.post(draft);
        let recipients = Recipients::of(&post);
        let has_lists = !post.lists(tenant.tags()).is_empty();
        // Its id is not known before it is written.
        let tasks = |id: PostId| graph::tasks_about(tenant, id, &post, has_lists);
        let tails: Vec<(u8, Vec<u8>)> =
            tasks(PostId::from_u64(0)?).into_iter().map(|task| task.tail()).collect();
        let mut stored = post.encode();
        if draft.visibility.is_none() {
            // Where the lock is known, at the moment of publishing.
            stored[VISIBILITY_OFFSET] = VISIBILITY_UNSAID;
        }
        if is_held {
            // As if a moderator had hidden it at once.
            stored[FLAGS_OFFSET] |= FLAG_HIDDEN.to_be_bytes()[0];
        }
        let mut limits = match by.is_counted {
            true => TimeLimits::default(),
            false => self.limits_of_post(by.writer, &post).await?,
        };
        // Whoever may not post there takes no permit for it.
        let mut allowed_under = self.allowed_under(by).await?;
        if by.is_elsewhere() && !limits.limits.is_empty() {
            // What comes again with its token counts no more (H208). In the writer's bucket, before it is there.
            if let Some(before) = self.published_before(author, draft.token.as_deref()).await? {
                return Ok(before);
            }
            tenant.count_act(by.writer, &std::mem::take(&mut limits)).await?;
        }
        let mut lost = None;
        let until = Instant::now() + tenant.router().settings().deadline;
        for _ in 0..TRIES_MAX {
            let sent = (&stored[..], &limits, allowed_under);
            match self.try_to_send(author, draft, sent, (&tails, &tasks), &recipients).await {
                Ok(Some(published)) => return Ok(published),
                Ok(None) => match self.allowed_under(by).await {
                    Ok(under) => allowed_under = under,
                    Err(e) => return Err(lost.unwrap_or(e)),
                },
                // It carries random bytes, and only a token makes it safe to send twice; or that one reposts a post
                // once.
                Err(e)
                    if e.kind() == ErrorKind::Unknown
                        && Instant::now() < until
                        && (draft.token.is_some() || draft.is_plain_repost()) =>
                {
                    lost = Some(e);
                }
                // One that was lost may have been carried out, whatever this one is refused for.
                Err(e) => return Err(lost.unwrap_or(e)),
            }
        }
        Err(lost.unwrap_or_else(|| account_changed_always(author)))
    }

    /// Sends a post once. `None`: something has changed that it was made from.
    async fn try_to_send(
        &self,
        author: AccountId,
        draft: &Draft,
        (stored, limits, allowed_under): (&[u8], &TimeLimits, Option<Nonce>),
        (tails, tasks): (&[(u8, Vec<u8>)], &impl Fn(PostId) -> Vec<Task>),
        recipients: &Recipients,
    ) -> Result<Option<(PublishedPost, Epoch)>> {
        let (tenant, graph) = (&self.tenant, &self.graph);
        let _places = journal::reserve_for(&graph.journal, author, 1 + tails.len())?;
        let entry = draw();
        let entries: Vec<Nonce> = tails.iter().map(|_| draw()).collect();
        let left = entries.iter().zip(tails).map(|(id, (letter, rest))| (*id, *letter, rest.clone()));
        let noted = self.noted_repost(author, draft.repost_of.filter(|_| draft.is_plain_repost())).await?;
        let publish = self.command(author, draft, (stored, limits), entry, left.collect())?;
        let repost = noted.as_ref().map(|(_, at)| at.clone());
        let publish = Publish { repost, allowed_under, ..publish };
        let bucket = tenant.bucket(author);
        let piece_limit = tenant.sets().piece_limit();
        let command = publish.command(tenant.keys().buckets(), bucket, piece_limit);
        let request = Request::write(tenant.slot(author), command).touching_undeclared_keys().once();
        let answer = tenant.router().ask(request).await?;
        let epoch = answer.epoch.clone();
        match functions::PublishAnswer::parse(answer.ok()?)? {
            functions::PublishAnswer::New { id, mode, layout } => {
                let (mode, id) = (Mode::from_letter(mode), PostId::from_u64(id)?);
                for (id, task) in entries.into_iter().zip(tasks(id)) {
                    let entry = JournalEntry { id, ..JournalEntry::new(bucket, tenant.instance, task) };
                    drop(journal::accept(&graph.journal, entry));
                }
                let told = (entry, &epoch);
                let delivery = self.begin(author, id, told, recipients.clone(), mode, layout).await?;
                Ok(Some((PublishedPost::accepted(id, false, delivery), epoch)))
            }
            functions::PublishAnswer::Again(id) => {
                Ok(Some((self.as_published(PostId::from_u64(id)?).await, epoch)))
            }
            functions::PublishAnswer::Stamp => Ok(None),
            functions::PublishAnswer::Tree(tree) => {
                if let Some((piece, _)) = noted {
                    tenant.sets().piece_heirs(&piece, &tree)?;
                }
                Ok(None)
            }
            functions::PublishAnswer::PieceFull => {
                if let Some((piece, _)) = noted {
                    tenant.sets().split_piece(&piece).await?;
                }
                Ok(None)
            }
            functions::PublishAnswer::Limit => {
                let most = tenant.settings.reposts_max;
                Err(Error::new(
                    ErrorCode::LimitReached,
                    format!("account {author} has reposted {most} posts already, which is the limit"),
                ))
            }
            functions::PublishAnswer::TooOften(reached) => {
                Err(tenant.refusal(author, limits, reached, tenant.router().now_ms()))
            }
            functions::PublishAnswer::NoAccount => Err(no_account(author)),
            functions::PublishAnswer::State(state) => Err(may_not_post(author, state)),
            functions::PublishAnswer::Waits => Err(Error::new(
                ErrorKind::Overloaded,
                format!(
                    "as many posts of account {author} wait for the archive as may ({} and some more): nothing was \
                     written. They leave once it takes them; docs/archive.md",
                    tenant.decided().outbox_posts
                ),
            )),
            functions::PublishAnswer::JournalFull => Err(journal::journal_full(tenant)),
        }
    }

    /// The place where it is noted that an account has reposted something, of a plain repost; and the ties stamp as of
    /// now.
    pub(super) async fn noted_repost(
        &self,
        author: AccountId,
        original: Option<PostRef>,
    ) -> Result<Option<(PiecePlace, RepostPlace)>> {
        let Some(original) = original else { return Ok(None) };
        let (seen, _) = graph::ties_stamp(&self.tenant, author).await?;
        let piece = self.tenant.reposts(author)?.piece_of(&original);
        let keys = self.tenant.sets().piece_keys(&piece);
        let leaf = piece.leaf();
        Ok(Some((piece, RepostPlace { keys, leaf, original, seen, stamp: draw() })))
    }

    fn command<'a>(
        &self,
        author: AccountId,
        draft: &Draft,
        (post, limits): (&'a [u8], &'a TimeLimits),
        entry: Nonce,
        tasks: Vec<(Nonce, u8, Vec<u8>)>,
    ) -> Result<Publish<'a>> {
        let tenant = &self.tenant;
        let keys = tenant.keys();
        let bucket = tenant.bucket(author);
        // Once: a bound goes with the number of the decision that it is of.
        let decision = tenant.known.decision();
        let ttl = u64::try_from(tenant.settings.token_ttl.as_millis()).unwrap_or(u64::MAX);
        Ok(Publish {
            keys: [
                keys.clock(bucket),
                keys.account(author),
                keys.outbox(author),
                keys.home(author),
                keys.journal(bucket),
                tenant.followers(author)?.root_key(),
            ],
            repost: None,
            public: decision
                .public_posts()
                .filter(|_| draft.may_be_public(author))
                .map(|most| PublicPlace { key: keys.public_posts(bucket), most }),
            token: draft.token.as_deref().map(|token| (keys.token(author, token), ttl)),
            post_head: keys.post_head(bucket),
            now_ms: draft.moment(tenant.router().now_ms()),
            post,
            author,
            journal_most: tenant.settings.journal_max,
            outbox_most: decision.settings.outbox_posts,
            reposts_most: tenant.settings.reposts_max,
            stays: decision.archive.map(|archive| archive.stays()),
            owner: tenant.instance,
            entry,
            fit: tenant.fit_of(decision),
            limits,
            allowed_under: None,
            tasks,
        })
    }

    /// Runs what a publish has left in the journal.
    async fn begin(
        &self,
        author: AccountId,
        post: PostId,
        (entry, epoch): (Nonce, &Epoch),
        recipients: Recipients,
        mode: Mode,
        layout: u8,
    ) -> Result<Delivery> {
        let (tenant, graph) = (&self.tenant, &self.graph);
        if mode == Mode::Pull {
            return Ok(Delivery(None));
        }
        let followers = tenant.followers(author)?;
        if layout == b'S' && !followers.is_known_spread()
            // The post is written: whoever delivers it asks again.
            && let Err(e) = followers.layout().await
        {
            tracing::debug!("the followers of account {author} are spread, and how is asked later: {e}");
        }
        let task = DeliverTask { post: PostRef { id: post, author } };
        let entry = JournalEntry {
            id: entry,
            hint: Some(Hint::new(recipients)),
            seen_in: Some(epoch.clone()),
            ..JournalEntry::new(tenant.bucket(author), tenant.instance, task)
        };
        Ok(journal::accept(&graph.journal, entry))
    }
}

fn may_be_reposted(by: AccountId, post: &Post) -> bool {
    let header = post.header();
    match header.visibility {
        Visibility::Public | Visibility::Unlisted => post.audience() == Audience::Unnamed,
        // Its own followers have seen it; nobody else will.
        Visibility::Followers => header.author == by,
        Visibility::Direct => false,
    }
}
