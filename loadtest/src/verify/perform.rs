//! Carries calls out on an engine.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tideline::archive::Archive;
use tideline::post::{Draft, Edit, PostRef, Tag, Visibility};
use tideline::registration::{Registration, RegistrationSettings};
use tideline::{
    AccountId, AccountState, AccountUpdate, Cursor, Delivery, Engine, ErrorCode, FollowOutcome, Mode,
    Moderation, NewAccount, PagePost, PostAck, PostId, Query, Range, Timeline,
};
use tokio::sync::Notify;

use super::archived::move_again_and_again;
use super::args::Sabotage;
use super::call::{Ack, Asked, Call, PostSpec, Reach, State, Switch, Tie, WITH_EACH, Way, Which};
use super::content::{self, tag_of, text_shown};
use super::fsck;
use super::over_http::Wire;
use super::setup::Setup;
use super::told::{Page, Reply, Shown, Ties};

/// Deliveries that somebody may ask about; more are forgotten.
const DELIVERIES_MAX: usize = 10_000;

/// An engine that takes calls.
#[derive(Debug)]
pub(crate) struct Performer {
    pub(super) engine: Engine,
    pub(super) registration: Registration,
    pub(super) archive: Option<Arc<dyn Archive>>,
    deliveries: Mutex<HashMap<u64, Delivery>>,
    /// If calls go over HTTP.
    wire: Option<Wire>,
    /// Whether failovers happen, and writes wait for replicas; or may be lost.
    is_replicated: bool,
    may_lose: bool,
    /// What is answered wrongly on purpose, and how often something was.
    pub(super) sabotage: Option<Sabotage>,
    pub(super) answered: AtomicU64,
    pub(super) held_back: HeldBack,
    /// All follows, to be made once more.
    pub(super) followed: Mutex<Vec<Call>>,
    /// The same moment by two clocks, one of which can't be set.
    pub(super) began: (Instant, SystemTime),
}

/// Posts that are late on purpose, and until when.
#[derive(Debug)]
pub(super) struct HeldBack {
    pub(super) posts: Mutex<HashSet<u64>>,
    pub(super) until: Notify,
}

pub(super) fn account(id: u64) -> tideline::Result<AccountId> {
    AccountId::new(id)
}

pub(super) fn id_of(post: u64) -> tideline::Result<PostId> {
    PostId::from_u64(post)
}

fn reference((id, author): (u64, u64)) -> tideline::Result<PostRef> {
    Ok(PostRef { id: PostId::from_u64(id)?, author: AccountId::new(author)? })
}

pub(super) fn reach_of(visibility: Visibility) -> Reach {
    match visibility {
        Visibility::Public => Reach::Public,
        Visibility::Unlisted => Reach::Unlisted,
        Visibility::Followers => Reach::Followers,
        Visibility::Direct => Reach::Direct,
    }
}

fn accounts(ids: Vec<u64>) -> tideline::Result<Vec<AccountId>> {
    ids.into_iter().map(AccountId::new).collect()
}

fn draft_of(spec: PostSpec) -> tideline::Result<Draft> {
    let visibility = |reach| match reach {
        Reach::Public => Visibility::Public,
        Reach::Unlisted => Visibility::Unlisted,
        Reach::Followers => Visibility::Followers,
        Reach::Direct => Visibility::Direct,
    };
    let mut draft = content::draft(spec.text);
    draft.visibility = spec.reach.map(visibility);
    draft.token = spec.token;
    draft.only_to = accounts(spec.only_to)?;
    draft.not_to = accounts(spec.not_to)?;
    draft.repost_of = spec.original.map(reference).transpose()?;
    draft.reply_to = spec.parent.map(reference).transpose()?;
    Ok(draft.mentions(accounts(spec.mentions)?).hashtags(spec.tags.into_iter().map(tag_of)))
}

fn query_of(asked: Asked) -> tideline::Result<Query> {
    let post = |id: Option<u64>| id.map(PostId::from_u64).transpose();
    let timeline = match asked.which {
        Which::Home => Timeline::Home,
        Which::Profile { account: id, replies, reposts } => {
            Timeline::Profile { account: account(id)?, replies, reposts }
        }
        Which::Mentions => Timeline::Mentions,
        Which::Tag(number) => Timeline::Tag(Tag::new(&format!("#tide{number}"))?),
        Which::Replies(post) => Timeline::Replies(id_of(post)?),
        Which::Public => Timeline::Public,
    };
    let range = Range { max_id: post(asked.max)?, since_id: post(asked.since)?, min_id: post(asked.min)? };
    let cursor = asked.cursor.map(Cursor::below);
    Ok(Query {
        timeline,
        range,
        cursor,
        limit: Some(asked.limit),
        hydrate: asked.hydrate,
        ties: asked.hydrate,
        likers: if asked.around { WITH_EACH } else { 0 },
        replies: if asked.around { WITH_EACH } else { 0 },
    })
}

pub(super) fn shown(post: &PagePost) -> Shown {
    Shown {
        id: post.id.get(),
        author: post.author.get(),
        text: post.post.as_ref().map(|post| text_shown(post.content(), post.header().language())),
        passes_on: post.post.as_ref().and_then(|post| Some(post.header().original?.id.get())),
        account: post.account.as_ref().map(|account| (account.id.get(), account.followers)),
        original: post.original.as_ref().map(|original| (original.id.get(), original.account.id.get())),
        ties: post.ties.map(|own| Ties {
            likes: own.is_liked,
            has_bookmarked: own.is_bookmarked,
            has_reposted: own.repost.is_some(),
        }),
        likers: post.likers.iter().map(|account| account.id.get()).collect(),
        replies: post.replies.iter().map(shown).collect(),
    }
}

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// What everybody notes on an account.
pub(super) fn note_on(account: AccountId) -> String {
    format!("that is {account}")
}

impl Performer {
    /// With its archive, if it has one, which others may have too.
    pub(crate) async fn new(setup: &Setup, archive: Option<Arc<dyn Archive>>) -> tideline::Result<Self> {
        let engine = setup.engine(archive.clone()).await?;
        let settings = RegistrationSettings { memory_kib: 8, passes: 1, ..RegistrationSettings::default() };
        let registration = Registration::new(&engine, settings).await?;
        if archive.is_some() {
            tokio::spawn(move_again_and_again(engine.clone()));
        }
        let wire = match &setup.service {
            Some(token) => Some(Wire::serve(&engine, &registration, token.clone()).await?),
            None => None,
        };
        let performer = Self {
            wire,
            registration,
            engine,
            archive,
            deliveries: Mutex::default(),
            is_replicated: setup.is_replicated,
            may_lose: setup.may_lose,
            sabotage: setup.sabotage,
            answered: AtomicU64::default(),
            held_back: HeldBack { posts: Mutex::default(), until: Notify::new() },
            followed: Mutex::default(),
            began: (Instant::now(), SystemTime::now()),
        };
        if setup.sabotage == Some(Sabotage::AtOdds) {
            performer.decide_alone().await?;
        }
        Ok(performer)
    }

    /// Carries a call out; a failure is an answer too.
    pub(super) async fn answer(&self, call: Call) -> Reply {
        match Box::pin(self.carry_out(call)).await {
            Ok(reply) => reply,
            Err(e) => Reply::Failed {
                kind: format!("{:?}", e.kind()),
                message: e.to_string(),
                may_retry: e.kind().is_retryable(),
                is_archive_away: e.code() == ErrorCode::ArchiveAway,
            },
        }
    }

    async fn carry_out(&self, call: Call) -> tideline::Result<Reply> {
        let Some(wire) = &self.wire else { return self.try_perform(call).await };
        if let Some(reply) = wire.perform(&call).await? {
            return Ok(reply);
        }
        let over_http = match &call {
            Call::Relations { account, others } => Some((*account, others.clone())),
            _ => None,
        };
        match (self.try_perform(call).await?, over_http) {
            (Reply::Relations(told), Some((of, others))) => {
                Ok(Reply::Relations(wire.relations(of, &others, told).await?))
            }
            (reply, _) => Ok(reply),
        }
    }

    async fn try_perform(&self, call: Call) -> tideline::Result<Reply> {
        let engine = &self.engine;
        match call {
            Call::Create { .. } | Call::SetLock { .. } | Call::SetState { .. } => self.record(call).await?,
            Call::SetWay { account: id, way } => {
                let way = way.map(|way| match way {
                    Way::Push => tideline::DeliveryWay::Push,
                    Way::Pull => tideline::DeliveryWay::Pull,
                });
                drop(engine.set_way(account(id)?, way).await?);
            }
            Call::DeleteAccount { account: id } => drop(engine.delete_account(account(id)?).await?),
            Call::Follow { reader, author } => {
                let followed = engine.follow(account(reader)?, account(author)?).await?;
                return Ok(Reply::Flag(followed.value == FollowOutcome::Following));
            }
            Call::Unfollow { reader, author } => {
                engine.unfollow(account(reader)?, account(author)?).await?;
            }
            Call::Switch { account: by, other, what, on } => self.switch(by, other, what, on).await?,
            Call::Approve { account: by, requester } => {
                engine.approve(account(by)?, account(requester)?).await?;
            }
            Call::Reject { account: by, requester } => {
                engine.reject(account(by)?, account(requester)?).await?;
            }
            Call::Publish { author, post } => return self.publish(author, post).await,
            Call::Delivered { post } => self.delivered(post).await?,
            Call::Edit { author, post, text, tags, mentions } => {
                let hashtags = Some(tags.into_iter().map(tag_of).collect());
                let mentions = mentions.map(accounts).transpose()?;
                let edit = Edit { hashtags, mentions, ..content::edit(text) };
                engine.edit(account(author)?, id_of(post)?, &edit).await?;
            }
            Call::Delete { author, post } => drop(engine.delete(account(author)?, id_of(post)?).await?),
            Call::Hide { post, on } => {
                let moderation = Moderation { hidden: Some(on), sensitive: None };
                engine.moderate(id_of(post)?, moderation).await?;
            }
            Call::Unrepost { account: by, post } => {
                let _ = self.engine.undo_repost(account(by)?, id_of(post)?).await?;
            }
            Call::Tie { account: by, post, what, on } => self.tie(by, post, (what, on)).await?,
            Call::Read(asked) => return self.read(asked).await,
            Call::Sweep => drop(engine.sweep(0).await?),
            Call::Warm { account: id } => drop(engine.warm(account(id)?).await?),
            Call::Spread { account: id } => {
                let followers = engine.store().sets().of_account::<AccountId>(account(id)?, "followers")?;
                followers.spread().await?;
            }
            Call::Drained { within_ms } => {
                engine.drained(Duration::from_millis(within_ms)).await?;
                engine.count_now().await;
            }
            Call::Fsck { repairs } => {
                let report = engine.fsck(&fsck::options(repairs), &|_| ()).await?;
                return Ok(Reply::Fsck(report.into()));
            }
            Call::MoveDue | Call::ReachArchive | Call::Archived { .. } => {
                return self.look_into_archive(call).await;
            }
            Call::Say { .. } | Call::Leave { .. } | Call::Messages { .. } | Call::Chats { .. } => {
                return self.chat(call).await;
            }
            Call::Group(call) => return self.gather(call).await,
            look => return self.look(look).await,
        }
        Ok(Reply::Done)
    }

    async fn record(&self, call: Call) -> tideline::Result<()> {
        let mut update = AccountUpdate::default();
        let id = match call {
            Call::Create { account: id, is_locked, is_pulled } => {
                let mode = if is_pulled { Mode::Pull } else { Mode::Push };
                let new = NewAccount { id: Some(account(id)?), is_locked, mode, ..NewAccount::default() };
                return self.engine.create_account(new).await.map(drop);
            }
            Call::SetLock { account, is_locked } => {
                update.is_locked = Some(is_locked);
                account
            }
            Call::SetState { account, state } => {
                update.state = Some(match state {
                    State::Active => AccountState::Active,
                    State::Limited => AccountState::Limited,
                    State::Suspended => AccountState::Suspended,
                    State::Deleted => AccountState::Deleted,
                });
                account
            }
            _ => return Ok(()),
        };
        self.engine.update_account(account(id)?, &update).await.map(drop)
    }

    async fn switch(&self, by: u64, other: u64, what: Switch, on: bool) -> tideline::Result<()> {
        let (by, other, engine) = (account(by)?, account(other)?, &self.engine);
        let done = match (what, on) {
            // Of every second account for so long that no run sees the end.
            (Switch::Mute, true) if other.get().is_multiple_of(2) => engine.mute_for(by, other, YEAR).await,
            (Switch::Mute, true) => engine.mute(by, other).await,
            (Switch::Mute, false) => engine.unmute(by, other).await,
            (Switch::Block, true) => engine.block(by, other).await,
            (Switch::Block, false) => engine.unblock(by, other).await,
            (Switch::Hide, true) => engine.hide_from(by, other).await,
            (Switch::Hide, false) => engine.show_to(by, other).await,
            (Switch::Note, true) => engine.set_note(by, other, &note_on(other)).await,
            (Switch::Note, false) => engine.set_note(by, other, "").await,
            (Switch::Reposts, true) => engine.hide_reposts(by, other).await,
            (Switch::Reposts, false) => engine.show_reposts(by, other).await,
            (Switch::LeftOut, on) => self.registration.leave_out(by, other, on).await,
        };
        done.map(drop)
    }

    async fn tie(&self, by: u64, post: u64, which: (Tie, bool)) -> tideline::Result<()> {
        let (by, post, engine) = (account(by)?, id_of(post)?, &self.engine);
        let _ = match which {
            (Tie::Like, true) => engine.like(by, post).await?,
            (Tie::Like, false) => engine.unlike(by, post).await?,
            (Tie::Bookmark, true) => engine.bookmark(by, post).await?,
            (Tie::Bookmark, false) => engine.unbookmark(by, post).await?,
        };
        Ok(())
    }

    async fn publish(&self, author: u64, post: PostSpec) -> tideline::Result<Reply> {
        let (author, ack) = (account(author)?, post.ack);
        let published = match ack.map(|ack| self.moment(ack)) {
            None => self.engine.publish(author, &draft_of(post)?).await?,
            Some(ack) => {
                let published = self.engine.publish_with(author, &draft_of(post)?, ack).await?;
                // With homes on a server that was away for long it says what the post has reached without them.
                let is_less = ack == PostAck::Delivered && published.reached == PostAck::Replicated;
                if self.is_replicated && published.reached != ack && !is_less {
                    let text = format!("replicas are required, {ack:?} was asked for: {published:?}");
                    return Err(tideline::Error::new(tideline::ErrorKind::Internal, text));
                }
                published
            }
        };
        let is_replicated = matches!(published.reached, PostAck::Replicated | PostAck::Delivered);
        // A failover may lose the first homes.
        let is_first = published.reached == PostAck::First && !self.may_lose;
        let is_delivered = ack.is_some() && (is_first || published.reached == PostAck::Delivered);
        let id = published.id.get();
        let mut deliveries = self.deliveries.lock().unwrap_or_else(PoisonError::into_inner);
        if !published.is_repeat && deliveries.len() < DELIVERIES_MAX {
            deliveries.insert(id, published.delivery);
        }
        Ok(Reply::Published { id, is_repeat: published.is_repeat, is_delivered, is_replicated })
    }

    /// What a failover may lose is asked for only where none happens.
    fn moment(&self, ack: Ack) -> PostAck {
        match ack {
            Ack::Replicated => PostAck::Replicated,
            Ack::First if !self.is_replicated => PostAck::First,
            Ack::First | Ack::Delivered => PostAck::Delivered,
        }
    }

    async fn delivered(&self, post: u64) -> tideline::Result<()> {
        let delivery = self.deliveries.lock().unwrap_or_else(PoisonError::into_inner).remove(&post);
        match delivery {
            Some(mut delivery) => delivery.all().await.map(drop),
            None => {
                let text = format!("the delivery of post {post} is not known here");
                Err(tideline::Error::new(tideline::ErrorKind::NotFound, text))
            }
        }
    }

    async fn read(&self, asked: Asked) -> tideline::Result<Reply> {
        let page = self.engine.as_reader(account(asked.reader)?).read(&query_of(asked)?).await?;
        let next = page.next.map(Cursor::id);
        let newer = page.newer.map(PostId::get);
        let (posts, lacks_archive) = (page.posts.iter().map(shown).collect(), page.lacks_archive);
        Ok(Reply::Page(Page { posts, next, newer, lacks_archive }))
    }
}
