//! A few people who live on a site that somebody tries out: they follow each other, write, answer, like and pass on,
//! and somebody who looks can log in as any of them.

use std::time::Duration;

use anyhow::Context as _;
use futures::future::try_join_all;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tideline::post::{Draft, PostRef};
use tideline::profile::Profile;
use tideline::registration::{Registration, SignUp};
use tideline::{AccountId, Engine, PublishedPost, Query};

/// The password of all of them.
pub(super) const PASSWORD: &str = "low tide tonight";
/// Number of posts that each writes before anybody looks.
const FIRST_POSTS: usize = 3;
/// Seconds until somebody does something.
const PAUSE_S: std::ops::Range<f64> = 2.0..8.0;
/// The seed by which they follow each other, the same whenever they move in.
const SEED: u64 = 7;

/// The people who can live there.
const PEOPLE: [(&str, &str); 16] = [
    ("ada", "Ada of the Estuary"),
    ("ben", "Ben, mostly harmless"),
    ("cleo", "Cleo \u{1f980}"),
    ("dov", "Dov"),
    ("edda", "Edda Flood"),
    ("finn", "Finn Harbour"),
    ("gala", "Gala"),
    ("hugo", "Hugo on the pier"),
    ("ines", "In\u{ea}s Mar\u{e9}"),
    ("jun", "Jun"),
    ("kaya", "Kaya Driftwood"),
    ("leif", "Leif"),
    ("mina", "Mina M."),
    ("noor", "Noor"),
    ("otis", "Otis Ebb"),
    ("pia", "Pia"),
];
const SEEN: [&str; 10] = [
    "an oystercatcher",
    "somebody else's boat",
    "seven seals",
    "a very small crab",
    "the ferry, late again",
    "a rope with no end",
    "the first swallow",
    "a door in the sand",
    "fog",
    "a dog that owns the beach",
];
const WHERE: [&str; 8] = [
    "at low tide",
    "behind the harbour wall",
    "on the way to work",
    "where the pier was",
    "from the kitchen window",
    "just now",
    "between two showers",
    "at the lock",
];
const TAGS: [&str; 6] = ["#tide", "#harbour", "#birds", "#weather", "#Boats", "#SmallThings"];
const ANSWERS: [&str; 8] = [
    "again?",
    "I saw that too.",
    "Wonderful!",
    "Are you sure?",
    "Wait until tomorrow.",
    "That was me, sorry.",
    "Where exactly?",
    "No pictures?",
];

/// People who live on a site.
pub(super) struct Neighbours {
    engine: Engine,
    people: Vec<AccountId>,
    random: StdRng,
}

impl Neighbours {
    /// Has so many people live there; those who do already stay as they are.
    pub(super) async fn move_in(
        engine: &Engine,
        registration: &Registration,
        many: usize,
    ) -> anyhow::Result<Self> {
        let sign_up = async |(login, display_name): &(&str, &str)| {
            let mut profile = Profile::default();
            profile.display_name = (*display_name).into();
            profile.bio = "I live here, as long as somebody looks.".into();
            profile.shown_fields = vec![("bot".into(), "1".into())];
            let form =
                SignUp { profile, ..SignUp::new(*login, PASSWORD).token(format!("neighbour {login}")) };
            let registered = registration.sign_up(&form).await;
            registered.with_context(|| format!("{login} could not move in; without --neighbours nobody does"))
        };
        let registered = try_join_all(PEOPLE[..many].iter().map(sign_up)).await?;
        let people = registered.iter().map(|registered| registered.id).collect();
        let mut neighbours = Self { engine: engine.clone(), people, random: StdRng::seed_from_u64(SEED) };
        if registered.iter().any(|registered| !registered.is_repeat) {
            neighbours.meet().await?;
        }
        // From here on something else happens each time.
        neighbours.random = StdRng::from_rng(&mut rand::rng());
        Ok(neighbours)
    }

    /// They follow each other, most of them most others, and say something.
    async fn meet(&mut self) -> anyhow::Result<()> {
        for reader in self.people.clone() {
            for author in self.people.clone() {
                if reader != author && self.random.random_bool(0.6) {
                    self.engine.follow(reader, author).await?;
                }
            }
        }
        for _ in 0..FIRST_POSTS {
            for author in self.people.clone() {
                self.write(author, None).await?;
            }
        }
        Ok(())
    }

    async fn write(
        &mut self,
        author: AccountId,
        answered: Option<PostRef>,
    ) -> tideline::Result<PublishedPost> {
        let one_of = |random: &mut StdRng, all: &[&'static str]| *all.choose(random).unwrap_or(&"");
        let random = &mut self.random;
        let text = match answered {
            Some(_) => one_of(random, &ANSWERS).to_owned(),
            None => {
                format!("{} {} {}", one_of(random, &SEEN), one_of(random, &WHERE), one_of(random, &TAGS))
            }
        };
        // They name nobody.
        let draft = Draft::parsed(text, async |names| Ok(vec![None; names.len()])).await?;
        let draft = match answered {
            Some(post) => draft.reply_to(post),
            None => draft,
        };
        self.engine.publish(author, &draft).await
    }

    /// Somebody does something, every few seconds, until this is dropped. What can't be done now is done later, or by
    /// somebody else.
    pub(super) async fn live(mut self) {
        loop {
            tokio::time::sleep(Duration::from_secs_f64(self.random.random_range(PAUSE_S))).await;
            drop(self.does_something().await);
        }
    }

    async fn does_something(&mut self) -> tideline::Result<()> {
        let Some(who) = self.people.choose(&mut self.random).copied() else { return Ok(()) };
        let page = self.engine.as_reader(who).read(&Query::home().limit(20)).await?;
        let others: Vec<PostRef> = page
            .posts
            .iter()
            .filter(|post| post.author != who)
            .map(|post| PostRef { id: post.id, author: post.author })
            .collect();
        let about = others.choose(&mut self.random).copied();
        match (self.random.random_range(0..10), about) {
            (0..4, _) | (_, None) => self.write(who, None).await.map(drop),
            (4..6, Some(post)) => self.write(who, Some(post)).await.map(drop),
            (6..9, Some(post)) => self.engine.like(who, post.id).await.map(drop),
            (_, Some(post)) => self.engine.repost(who, post.id).await.map(drop),
        }
    }
}
