//! Who acts, and who acts more than others. Pure.

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;

use crate::report::count;
use crate::scenario::Activity;
use crate::stats::whole;

/// Accounts in random order: the first ones are picked more often than the others.
#[derive(Debug)]
pub(super) struct Skewed {
    accounts: Vec<u32>,
    split: Split,
}

impl Skewed {
    pub(super) fn new(accounts: u32, heavy_percent: f64, does_percent: f64, random: &mut StdRng) -> Self {
        let mut accounts: Vec<u32> = (0..accounts).collect();
        accounts.shuffle(random);
        let split = Split::new(accounts.len(), heavy_percent, does_percent);
        Self { accounts, split }
    }

    pub(super) fn pick(&self, random: &mut StdRng) -> u32 {
        self.accounts[self.split.pick(random)]
    }

    /// By account: how many times as often as the average it is picked.
    pub(super) fn shares(&self) -> Vec<f64> {
        let mut shares = vec![0.0; self.accounts.len()];
        for (place, account) in self.accounts.iter().enumerate() {
            shares[*account as usize] = self.split.share(place);
        }
        shares
    }
}

/// Those who act, and those who are away.
#[derive(Debug)]
pub(super) struct Acting {
    /// First those who act.
    accounts: Vec<u32>,
    split: Split,
}

impl Acting {
    pub(super) fn new(accounts: u32, activity: &Activity, random: &mut StdRng) -> Self {
        let mut accounts: Vec<u32> = (0..accounts).collect();
        accounts.shuffle(random);
        let active = part(accounts.len(), activity.active_percent).max(1);
        let split = Split::new(active, activity.readers_percent, activity.of_reads_percent);
        Self { accounts, split }
    }

    pub(super) fn all(&self) -> &[u32] {
        &self.accounts[..self.split.all]
    }

    /// A place among those who act.
    pub(super) fn pick(&self, random: &mut StdRng) -> usize {
        self.split.pick(random)
    }

    pub(super) fn at(&self, place: usize) -> u32 {
        self.accounts[place]
    }

    /// Somebody who is away takes the place of who is there; itself, if nobody is away.
    pub(super) fn replace(&mut self, place: usize, random: &mut StdRng) -> u32 {
        if self.split.all < self.accounts.len() {
            let away = random.random_range(self.split.all..self.accounts.len());
            self.accounts.swap(place, away);
        }
        self.accounts[place]
    }
}

/// Places, the first of which are picked more often.
#[derive(Debug)]
struct Split {
    all: usize,
    heavy: usize,
    /// How often one of the heavy places is picked.
    chance: f64,
}

impl Split {
    fn new(all: usize, heavy_percent: f64, does_percent: f64) -> Self {
        let heavy = part(all, heavy_percent);
        let chance = match heavy {
            0 => 0.0,
            heavy if heavy == all => 1.0,
            _ => does_percent / 100.0,
        };
        Self { all, heavy, chance }
    }

    fn pick(&self, random: &mut StdRng) -> usize {
        if random.random::<f64>() < self.chance {
            random.random_range(0..self.heavy)
        } else {
            random.random_range(self.heavy..self.all)
        }
    }

    fn share(&self, place: usize) -> f64 {
        let (of, chance) = if place < self.heavy {
            (self.heavy, self.chance)
        } else {
            (self.all - self.heavy, 1.0 - self.chance)
        };
        chance * count(self.all as u64) / count(of as u64)
    }
}

/// So many percent of a number.
fn part(all: usize, percent: f64) -> usize {
    usize::try_from(whole(count(all as u64) * percent / 100.0)).unwrap_or(all).min(all)
}
