//! Shapes of networks after published figures. Pure.

use serde::{Deserialize, Serialize};

use super::Degree;

/// The largest account of a network is followed by at most this share of all.
const MOST_SHARE: f64 = 0.9;
/// Of `seeds`: so many followers have ...
const SEEDS_FOLLOWERS: f64 = 1_000.0;
/// ... or exceed so many of all authors.
const SEEDS_SHARE: f64 = 0.001;

/// The tail of followers on Twitter, 2009, and of networks of which nobody knows it.
pub(crate) const FOLLOWERS_EXPONENT: f64 = 2.05;

/// How degrees of a graph are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Shape {
    /// How many an account follows: this says how many follows there are.
    pub(crate) following: Degree,
    /// How much an account is followed, in proportion to the others.
    pub(crate) followers: Degree,
}

/// A network whose shape is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Preset {
    /// Twitter, 2009 (41.7 million accounts): 35 on average; the tails fall with 2.05 (followers) and 2.67 (following).
    #[serde(rename = "twitter-2009")]
    Twitter2009,
    /// Who wrote about the Higgs boson on Twitter, 2012 (456,626 accounts, 14,855,842 follows): 32.5 on average, the
    /// largest has 51,386 followers. Its exponents are our guess.
    Higgs,
    /// Bluesky: 60 on average. Its exponents are our guess.
    Bluesky,
    /// The benchmark of Pequod (NSDI 2014): everybody follows 20 to 200, 110 on average.
    Twip,
    /// 0.1 % of all have more than 1,000 followers.
    Seeds,
    /// Everybody is alike: 50 followed, about 50 followers.
    Uniform,
}

impl Preset {
    /// Its shape, for a graph of so many accounts: nobody is followed by more than there are.
    pub(crate) fn shape(self, accounts: f64) -> Shape {
        let most = (accounts * MOST_SHARE).max(1.0);
        let power =
            |exponent: f64, mean: f64, most: f64| Degree::power_of_mean(exponent, mean.min(most), most);
        match self {
            Self::Twitter2009 => {
                Shape { following: power(2.67, 35.0, most), followers: power(FOLLOWERS_EXPONENT, 35.0, most) }
            }
            Self::Higgs => {
                let largest = most.min(accounts * 51_386.0 / 456_626.0).max(1.0);
                Shape { following: power(2.4, 32.5, most), followers: power(2.1, 32.5, largest) }
            }
            Self::Bluesky => Shape { following: power(2.4, 60.0, most), followers: power(2.1, 60.0, most) },
            Self::Twip => Shape {
                following: Degree::Uniform { least: 20_f64.min(most), most: 200_f64.min(most) },
                followers: power(FOLLOWERS_EXPONENT, 110.0, most),
            },
            Self::Seeds => {
                let least = SEEDS_FOLLOWERS * SEEDS_SHARE.powf(1.0 / (FOLLOWERS_EXPONENT - 1.0));
                let followers = Degree::Power { exponent: FOLLOWERS_EXPONENT, least, most: most.max(least) };
                Shape { following: power(2.67, followers.mean(), most), followers }
            }
            Self::Uniform => {
                let degree = 50_f64.min(most);
                let all_alike = Degree::Uniform { least: degree, most: degree };
                Shape { following: all_alike, followers: all_alike }
            }
        }
    }
}
