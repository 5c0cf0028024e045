//! Random histories: whatever is asked in whatever order, archives answer as the model does.

use std::collections::HashMap;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tideline_archive::Archive;
use tideline_model::archive::{
    ArchiveToken, ListKind, ListMember, MemberList, MembersAsk, OwnerChange, PageContent, PageOrder,
    PartName, PostAsk, Prerequisite,
};

use crate::model::ModelArchive;
use crate::places::{account, ask, bucket_of, each, id, owner, post, walk};

/// Fixed; `TIDELINE_SEED=random` (or a number) tries others.
const SEEDS: [u64; 4] = [1, 2, 3, 4];
const STEPS: usize = 150;
/// Few, so that changes meet each other.
const OWNERS: u64 = 5;

pub(crate) fn seeds() -> Vec<u64> {
    match std::env::var("TIDELINE_SEED").as_deref() {
        Ok("random") => vec![rand::random()],
        Ok(seed) => seed.parse().map_or_else(|_| SEEDS.to_vec(), |seed| vec![seed]),
        Err(_) => SEEDS.to_vec(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn archives_answer_as_the_model_does() {
    for seed in seeds() {
        println!("seed {seed}");
        for (kind, place) in each().await {
            let mut history = History::new(seed);
            for step in 0..STEPS {
                history.step(&*place.archive, &format!("{kind:?}, seed {seed}, step {step}")).await;
            }
            assert_eq!(walk(&*place.archive).await, history.model.walk(), "{kind:?}, seed {seed}");
            // A history in which all is refused, or nothing, would show little.
            assert!(history.made > STEPS / 10 && history.refused > STEPS / 10, "{kind:?}, seed {seed}");
        }
    }
}

struct History {
    random: StdRng,
    model: ModelArchive,
    /// The highest token given out, of each owner.
    tokens: HashMap<u64, u64>,
    /// Changes of before, some of which are made again.
    sent: Vec<OwnerChange>,
    made: usize,
    refused: usize,
}

impl History {
    fn new(seed: u64) -> Self {
        Self {
            random: StdRng::seed_from_u64(seed),
            model: ModelArchive::default(),
            tokens: HashMap::new(),
            sent: Vec::new(),
            made: 0,
            refused: 0,
        }
    }

    async fn step(&mut self, archive: &dyn Archive, at: &str) {
        match self.random.random_range(0..10) {
            0..5 => self.change(archive, at).await,
            5..7 => self.read_pages(archive, at).await,
            7 => self.read_posts(archive, at).await,
            _ => self.read_members(archive, at).await,
        }
    }

    async fn change(&mut self, archive: &dyn Archive, at: &str) {
        let mut changes = Vec::new();
        for of in 1..=OWNERS {
            if self.random.random_bool(0.4) {
                changes.push(self.draw_change(of));
            }
        }
        // In any order: each is by itself.
        let turn = self.random.random_range(0..=changes.len());
        changes.rotate_left(turn);
        let outcomes = archive.change(&changes).await.expect(at);
        assert_eq!(outcomes, self.model.change(&changes), "{at}: {changes:?}");
        self.made += outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        self.refused += outcomes.iter().filter(|outcome| outcome.is_err()).count();
        self.sent.extend(changes);
    }

    /// A change of that owner: mostly the next one, sometimes one of before, or by a token that was given out twice.
    fn draw_change(&mut self, of: u64) -> OwnerChange {
        let before: Vec<&OwnerChange> = self.sent.iter().filter(|change| change.owner == owner(of)).collect();
        if !before.is_empty() && self.random.random_bool(0.2) {
            return before[self.random.random_range(0..before.len())].clone();
        }
        let last = self.tokens.entry(of).or_default();
        let has_new_token = self.random.random_bool(0.8);
        *last += u64::from(has_new_token || *last == 0);
        let number = *last;
        let state = self.model.owner(account(of));
        let needs = match self.random.random_range(0..4) {
            0 => Prerequisite::default(),
            1 => Prerequisite { token_number: number + 1, upto: None },
            2 => Prerequisite { token_number: 0, upto: Some(id(self.random.random_range(0..100))) },
            _ => Prerequisite {
                token_number: state.map_or(0, |state| state.token.number),
                upto: state.map(|state| state.upto),
            },
        };
        let mut posts = Vec::new();
        for place in 0..20 {
            if self.random.random_bool(0.2) {
                posts.push(self.draw_post(of, place * OWNERS + of));
            }
        }
        let is_in = |number: u64| posts.iter().any(|(post, _): &(_, _)| post_number(post) == number);
        let others = (0..20).map(|place| place * OWNERS + of).filter(|number| !is_in(*number));
        let others: Vec<u64> = others.collect();
        // Rarely: nothing comes in after that.
        let buries = self.random.random_bool(0.01);
        if buries {
            posts.clear();
        }
        OwnerChange {
            owner: owner(of),
            token: ArchiveToken { number, nonce: [u8::from(has_new_token); 8] },
            needs,
            upto: id(self.random.random_range(0..100)),
            erased: others.into_iter().filter(|_| self.random.random_bool(0.1)).map(id).collect(),
            posts,
            buries,
        }
    }

    fn draw_post(
        &mut self,
        of: u64,
        number: u64,
    ) -> (tideline_model::archive::ArchivedPost, Vec<MemberList>) {
        let mut drawn = post(of, number);
        drawn.change = self.random.random();
        if self.random.random_bool(0.3) {
            // Of few, so that some meet: and some go.
            let len = if self.random.random_bool(0.3) { 0 } else { 3 };
            drawn.parts.set(PartName(self.random.random_range(0..4)), vec![self.random.random(); len]);
        }
        let mut lists = Vec::new();
        for kind in 1..=2 {
            if self.random.random_bool(0.3) {
                let many = if self.random.random_bool(0.2) { 1_500 } else { self.random.random_range(0..4) };
                lists.push(MemberList { kind: ListKind(kind), first: 0, members: self.draw_members(many) });
            }
        }
        (drawn, lists)
    }

    fn draw_members(&mut self, many: u32) -> Vec<ListMember> {
        let width = self.random.random_range(1..20);
        let member = |n: u32| ListMember { score: f64::from(n / width), bytes: n.to_be_bytes().to_vec() };
        (0..many).map(member).collect()
    }

    async fn read_pages(&mut self, archive: &dyn Archive, at: &str) {
        let mut asks = Vec::new();
        for _ in 0..self.random.random_range(0..6) {
            let of = self.random.random_range(1..=OWNERS + 1);
            asks.push(ask(of, self.random.random_range(0..120), self.random.random_range(0..8)));
        }
        let order = if self.random.random() { PageOrder::NewestFirst } else { PageOrder::OldestFirst };
        let content = if self.random.random() { PageContent::Ids } else { PageContent::Posts };
        let pages = archive.pages(&asks, order, content).await.expect(at);
        let expected: Vec<_> = asks.iter().map(|ask| self.model.page(ask, order, content)).collect();
        assert_eq!(pages, expected, "{at}: {order:?}, {asks:?}");
    }

    async fn read_posts(&mut self, archive: &dyn Archive, at: &str) {
        let mut asks = Vec::new();
        for _ in 0..5 {
            let number = self.random.random_range(1..110);
            // Whose it is, if it is at all; its bucket is that one's.
            let of = (number - 1) % OWNERS + 1;
            let named = self.random.random_bool(0.5).then(|| account(of));
            asks.push(PostAsk { bucket: bucket_of(of), id: id(number), owner: named });
        }
        for (ask, answer) in asks.iter().zip(archive.posts(&asks).await.expect(at)) {
            let expected = self.model.post(ask.id);
            let owner = ask.owner.or(expected.as_ref().map(|post| post.owner));
            assert_eq!(answer.post, expected, "{at}: {ask:?}");
            assert_eq!(answer.owner, owner.and_then(|owner| self.model.owner(owner)), "{at}: {ask:?}");
        }
    }

    async fn read_members(&mut self, archive: &dyn Archive, at: &str) {
        let mut asks = Vec::new();
        for _ in 0..self.random.random_range(0..4) {
            let number = self.random.random_range(1..100);
            let of = (number - 1) % OWNERS + 1;
            let edge: u32 = self.random.random_range(0..1_600);
            let below = ListMember { score: f64::from(edge / 7), bytes: edge.to_be_bytes().to_vec() };
            asks.push(MembersAsk {
                bucket: bucket_of(of),
                post: id(number),
                kind: ListKind(self.random.random_range(1..=2)),
                below: self.random.random_bool(0.7).then_some(below),
                most: self.random.random_range(0..1_000),
            });
        }
        let answers = archive.members(&asks).await.expect(at);
        assert_eq!(answers.len(), asks.len(), "{at}");
        for (ask, answer) in asks.iter().zip(answers) {
            assert_eq!(answer.members, self.model.members(ask), "{at}: {ask:?}");
            let owner = self.model.post(ask.post).and_then(|post| self.model.owner(post.owner));
            assert_eq!(answer.owner, owner, "{at}: {ask:?}");
        }
    }
}

fn post_number(post: &tideline_model::archive::ArchivedPost) -> u64 {
    post.id.get()
}
