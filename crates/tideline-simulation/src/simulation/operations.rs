//! What clients do.

use std::time::Duration;

use super::checks::{Before, Edited};
use super::history::History;
use super::truth;
use super::world::{Toggle, world};
use crate::AccountUpdate;
use crate::cluster::{Command, Request};
use crate::engine::Engine;
use crate::error::{ErrorKind, Result};
use crate::ids::{AccountId, PostId};
use crate::modes::DeliveryWay;
use crate::post::{Draft, Edit, PostRef, Visibility};
use crate::timeline::{Cursor, Query, Range};

/// Hashtags that posts bear.
pub(super) const TAGS: [&str; 2] = ["sea", "tide"];

/// Ways that accounts are brought onto, and back to what the policy says.
const WAYS: [Option<DeliveryWay>; 5] = {
    let (pull, push) = (Some(DeliveryWay::Pull), Some(DeliveryWay::Push));
    [pull, pull, push, push, None]
};

impl History {
    /// A client does something.
    pub(super) fn act(&mut self) {
        let engine = self.engine();
        let mix = self.mix;
        let (reader, author) =
            world(|w| (w.pick(&self.readers[..mix.readers]), w.pick(&self.authors[..mix.authors])));
        let mut dice = world(|w| w.below(1_000));
        let chosen = mix.shares.iter().find(|(_, share)| {
            let is_this = dice < *share;
            dice = dice.saturating_sub(*share);
            is_this
        });
        let what = chosen.map_or("read", |(what, _)| what);
        let what = with_an_archive().unwrap_or(what);
        self.count(what);
        match what {
            "publish" => {
                let by = if world(|w| w.chance(750)) { author } else { reader };
                let draft = self.draft();
                self.spawn(what, async move { retried(&engine, by, &draft).await });
            }
            "follow" => self.spawn(what, toggle(Toggle::Follow, engine, reader, author)),
            "unfollow" => self.spawn(what, toggle(Toggle::Unfollow, engine, reader, author)),
            "delete" => self.spawn(what, delete(engine, author)),
            "restrict" => self.restrict(engine, reader, author),
            "edit" => self.spawn(what, edit(engine, author)),
            "spread" => {
                let followers = engine.store().sets().of_account::<AccountId>(author, "followers");
                self.spawn(what, async move { followers?.spread().await });
            }
            "drop" => world(|w| {
                let home = w.keys.home(reader);
                let request = Request::write(w.keys.slot_of(reader), Command::new("DEL").arg(&home));
                drop(w.execute(9, &request));
            }),
            "answer" => self.spawn(what, async move {
                match world(|w| w.chance(800)) {
                    true => engine.approve(author, reader).await,
                    false => engine.reject(author, reader).await,
                }
            }),
            "upwards" => self.spawn(what, upwards(engine, reader)),
            "bury" => {
                let whom = if world(|w| w.chance(500)) { author } else { reader };
                world(|w| w.ends_all_follows(whom));
                self.spawn(what, async move { engine.delete_account(whom).await });
            }
            "lock" => {
                let locked =
                    AccountUpdate { is_locked: Some(world(|w| w.chance(500))), ..AccountUpdate::default() };
                self.spawn(what, async move { engine.update_account(author, &locked).await });
            }
            "cross" => {
                let whom = if world(|w| w.chance(800)) { author } else { reader };
                let way = world(|w| w.pick(&WAYS));
                self.spawn(what, async move { engine.set_way(whom, way).await.map(drop) });
            }
            "tie" => {
                let by = if world(|w| w.chance(700)) { reader } else { author };
                self.spawn(what, tie(engine, by));
            }
            "sweep" => self.spawn(what, async move { engine.sweep(0).await.map(drop) }),
            "move" => self.spawn(what, move_due(engine)),
            "warm" => self.spawn(what, async move { engine.warm(reader).await.map(drop) }),
            _ => {
                let engines: Vec<Engine> = self.engines.iter().map(|(_, engine)| engine.clone()).collect();
                self.spawn(what, scroll(engines, reader));
            }
        }
    }

    fn draft(&self) -> Draft {
        let (kind, named, token) =
            world(|w| (w.below(14), [w.pick(&self.readers), w.pick(&self.readers)], w.below(u64::MAX)));
        let draft = Draft::text(format!("token{token}"));
        let draft = match kind {
            0 => draft.visibility(Visibility::Direct).only_to(named),
            1 => draft.only_to(named),
            2 => draft.not_to([named[0]]),
            3 => draft.visibility(Visibility::Followers),
            4 | 5 => any_post().map_or(draft.clone(), |of| draft.reply_to(of)),
            6 | 7 => any_post().map_or(draft, Draft::repost),
            8 => any_post().map_or(draft.clone(), |of| draft.quoting(of)),
            _ => draft,
        };
        let says = |bit: u64| token & bit == 0 && !draft.is_plain_repost();
        let (mentions, tagged) = (says(4), says(8));
        let draft = if mentions { draft.mentions([named[0]]) } else { draft };
        let draft = if tagged { draft.hashtags([TAGS[(token >> 4 & 1) as usize]]) } else { draft };
        if token % 2 == 0 { Draft { token: Some(token.to_string()), ..draft } } else { draft }
    }

    fn restrict(&mut self, engine: Engine, reader: AccountId, author: AccountId) {
        let (by, whom) = if world(|w| w.chance(500)) { (reader, author) } else { (author, reader) };
        let kind = world(|w| w.below(11));
        if kind == 2 {
            // It ends both follows, sooner or later.
            world(|w| {
                *w.open.entry((Toggle::Unfollow, by, whom)).or_default() += 1;
                *w.open.entry((Toggle::Unfollow, whom, by)).or_default() += 1;
            });
        }
        self.spawn("restrict", async move {
            match kind {
                0 => engine.mute(by, whom).await,
                1 => engine.unmute(by, whom).await,
                2 => engine.block(by, whom).await,
                3 => engine.unblock(by, whom).await,
                4 => engine.hide_from(by, whom).await,
                5 => engine.show_to(by, whom).await,
                6 => {
                    let ms = world(|w| w.pick(&[20, 150, 1_000]));
                    engine.mute_for(by, whom, Duration::from_millis(ms)).await
                }
                7 => engine.hide_reposts(by, whom).await,
                8 => engine.show_reposts(by, whom).await,
                9 => engine.set_note(by, whom, "cousin").await,
                _ => engine.set_note(by, whom, "").await,
            }
        });
    }
}

pub(super) async fn toggle(what: Toggle, engine: Engine, reader: AccountId, author: AccountId) -> Result<()> {
    let open = |by: i32| {
        world(|w| {
            let open = w.open.entry((what, reader, author)).or_default();
            *open = open.saturating_add_signed(by);
        });
    };
    open(1);
    let began = world(|w| w.commands);
    let done = match what {
        Toggle::Follow => engine.follow(reader, author).await.map(drop),
        Toggle::Unfollow => engine.unfollow(reader, author).await.map(drop),
    };
    if done.is_ok() && !world(|w| w.has_strayed(reader, began)) {
        // No copy of the opposite does anything now, also if a failover had lost that.
        world(|w| {
            let opposite = if what == Toggle::Follow { Toggle::Unfollow } else { Toggle::Follow };
            w.lost.remove(&(opposite, reader, author));
        });
    }
    // Of what was given up some copy may still be on its way.
    if done.is_ok() || done.as_ref().is_err_and(|e| e.kind() == ErrorKind::Invalid) {
        open(-1);
    }
    done
}

/// Publishes, again while nobody knows whether it has worked, if that is safe.
async fn retried(engine: &Engine, author: AccountId, draft: &Draft) -> Result<()> {
    let began = world(|w| w.now_ms());
    let mut lost = None;
    for _ in 0..3 {
        match engine.publish(author, draft).await {
            Err(e) if e.kind() == ErrorKind::Unknown && draft.token.is_some() => lost = Some(e),
            Ok(published) => {
                // A plain repost may have been there before.
                if !draft.is_plain_repost() {
                    check_time(published.id, began);
                }
                return Ok(());
            }
            Err(e) => return Err(lost.unwrap_or(e)),
        }
    }
    Ok(())
}

/// A post's id is of the time at which it was published, whatever the clock of its server says (L3: it shows where its
/// readers look; H44, H80).
fn check_time(post: PostId, began: u64) {
    world(|w| {
        let now = w.now_ms();
        if !(began..=now).contains(&post.unix_ms()) {
            w.violated(format!("{post:?} was published between {began} and {now}"));
        }
    });
}

/// What a client does instead where there is an archive: so that posts leave memory, and come back.
fn with_an_archive() -> Option<&'static str> {
    match world(|w| w.archive.is_some().then(|| w.below(1_000)))? {
        0..90 => Some("move"),
        90..220 => Some("tie"),
        _ => None,
    }
}

/// Has leave memory what is due.
async fn move_due(engine: Engine) -> Result<()> {
    let moved = engine.archive_due().await?;
    world(|w| w.archive.iter_mut().for_each(|archive| archive.warm += moved.warm));
    Ok(())
}

/// A post in the archive, now and then where there is one: so that it comes back.
fn archived_post() -> Option<PostRef> {
    world(|w| {
        let posts: Vec<PostRef> = w.archive.as_ref()?.posts().collect();
        (!posts.is_empty() && w.chance(500)).then(|| w.pick(&posts))
    })
}

/// Some post that is there.
fn any_post() -> Option<PostRef> {
    if let Some(archived) = archived_post() {
        return Some(archived);
    }
    world(|w| {
        let of = |author: AccountId| truth::posts(w, author).live.into_iter().map(move |id| (id, author));
        let all: Vec<(u64, AccountId)> = w.accounts.clone().into_iter().flat_map(of).collect();
        if all.is_empty() {
            return None;
        }
        let (id, author) = w.pick(&all);
        Some(PostRef { id: PostId::from_u64(id).ok()?, author })
    })
}

async fn edit(engine: Engine, author: AccountId) -> Result<()> {
    let live: Vec<u64> = world(|w| truth::posts(w, author).all().collect());
    let Some(id) = world(|w| (!live.is_empty()).then(|| w.pick(&live))) else { return Ok(()) };
    let (post, sensitive) = (PostRef { id: PostId::from_u64(id)?, author }, world(|w| w.chance(500)));
    let (mentions, hashtags) = world(|w| {
        let (named, tags) = (w.pick(&w.accounts.clone()), w.below(4));
        let tags = TAGS.iter().zip([1, 2]).filter(|(_, bit)| tags & bit != 0).map(|(tag, _)| (*tag).into());
        let (named, tags) = (w.chance(500).then_some(named), tags.collect());
        (w.chance(300).then(|| named.into_iter().collect()), w.chance(500).then_some(tags))
    });
    // So that what finds it changes.
    let content_warning = world(|w| {
        let searches = w.archive.as_ref().is_some_and(|archive| archive.searches);
        (searches && w.chance(700)).then(|| Some(format!("warning{}", w.below(1_000))))
    });
    let edit = Edit { sensitive: Some(sensitive), mentions, hashtags, content_warning, ..Edit::default() };
    engine.edit(author, post.id, &edit).await?;
    world(|w| {
        let Some(now) = truth::post(w, id, author) else { return };
        let (text, revision) = (now.content().text.clone(), now.header().revision);
        // Reposts have no text.
        if !text.is_empty() {
            w.edits.push(Edited { command: w.commands, post, text, revision });
        }
    });
    Ok(())
}

/// Likes, bookmarks or reposts some post, or takes that back.
async fn tie(engine: Engine, by: AccountId) -> Result<()> {
    let Some(PostRef { id, .. }) = any_post() else { return Ok(()) };
    match world(|w| w.below(12)) {
        0..=3 => engine.like(by, id).await.map(drop),
        4..=6 => engine.unlike(by, id).await.map(drop),
        7 | 8 => engine.bookmark(by, id).await.map(drop),
        9 => engine.unbookmark(by, id).await.map(drop),
        10 => engine.repost(by, id).await.map(drop),
        _ => engine.undo_repost(by, id).await.map(drop),
    }
}

async fn delete(engine: Engine, author: AccountId) -> Result<()> {
    let live: Vec<u64> = world(|w| truth::posts(w, author).all().collect());
    if live.is_empty() {
        return Ok(());
    }
    let id = world(|w| w.pick(&live));
    engine.delete(author, PostId::from_u64(id)?).await.map(drop)
}

/// Reads a page or some, each at any instance.
async fn scroll(engines: Vec<Engine>, reader: AccountId) -> Result<()> {
    let (pages, limit) = world(|w| (w.pick(&[1, 1, 1, 2, 5]), w.pick(&[2, 3, 3, 10])));
    let mut cursor: Option<Cursor> = None;
    for _ in 0..pages {
        let engine = &engines[usize::from(world(|w| w.chance(500)))];
        let hydrate = world(|w| w.chance(300));
        let (ties, [likers, replies]) = world(|w| (w.chance(700), [0; 2].map(|_| w.pick(&[0, 0, 0, 2]))));
        let query = Query { cursor, limit: Some(limit), hydrate, ties, likers, replies, ..Query::home() };
        let before = Before::now();
        let page = engine.as_reader(reader).read(&query).await?;
        before.check(reader, &query, &page);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(())
}

/// The page right above some post.
async fn upwards(engine: Engine, reader: AccountId) -> Result<()> {
    let Some(PostRef { id, .. }) = any_post() else { return Ok(()) };
    let limit = world(|w| w.pick(&[2, 3, 20]));
    let range = Range { min_id: Some(id), ..Range::default() };
    let before = Before::now();
    let query = Query { range, limit: Some(limit), ..Query::home() };
    let page = engine.as_reader(reader).read(&query).await?;
    before.check_upwards(reader, &query, &page);
    Ok(())
}
