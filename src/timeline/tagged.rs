//! Feeds of several hashtags. Pure: no I/O, no clock.

use crate::error::{Error, Result};
use crate::post::{Post, Tag};

/// Most further hashtags of each kind on a page.
pub const FURTHER_TAGS_MAX: usize = 4;

/// Hashtags beside the one that a page is of, or of which an account's posts are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct FurtherTags {
    /// Posts with one of these show as those with the page's own do, up to [`FURTHER_TAGS_MAX`]. Of an account only
    /// posts show that have one of these, if there are any.
    pub any: Vec<Tag>,
    /// Only posts show that have all of these: as many.
    pub all: Vec<Tag>,
    /// And none of these: as many.
    pub none: Vec<Tag>,
}

impl FurtherTags {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.any.is_empty() && self.all.is_empty() && self.none.is_empty()
    }
}

/// Hashtags as a page asks about them.
#[derive(Debug, Clone)]
pub(crate) struct TaggedSet {
    /// Each once, the page's own first. None: any post will do.
    any: Vec<Tag>,
    all: Vec<Tag>,
    none: Vec<Tag>,
}

impl TaggedSet {
    /// `own`: the hashtag that the page is of, if it is one of a hashtag.
    pub(super) fn new(own: Option<Tag>, further: &FurtherTags) -> Result<Self> {
        let FurtherTags { any, all, none } = further;
        for (tags, name) in [(any, "any"), (all, "all"), (none, "none")] {
            if tags.len() > FURTHER_TAGS_MAX {
                let text = format!(
                    "too many hashtags in `{name}`: {}; at most {FURTHER_TAGS_MAX} a page",
                    tags.len()
                );
                return Err(Error::out_of_range(text));
            }
        }
        let mut each: Vec<Tag> = own.into_iter().collect();
        for tag in any {
            if !each.contains(tag) {
                each.push(*tag);
            }
        }
        Ok(Self { any: each, all: all.clone(), none: none.clone() })
    }

    /// Of which hashtags the lists are read.
    pub(super) fn any(&self) -> &[Tag] {
        &self.any
    }

    /// Whether a post shows by what it says now, whomever it is for.
    pub(super) fn admits(&self, post: &Post) -> bool {
        (self.any.is_empty() || self.any.iter().any(|tag| post.says(tag)))
            && self.all.iter().all(|tag| post.says(tag))
            && !self.none.iter().any(|tag| post.says(tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::AccountId;
    use crate::post::Draft;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const NAMES: [&str; 6] = ["ebb", "flow", "tide", "neap", "spring", "slack"];

    fn tags(of: &BTreeSet<usize>) -> Vec<Tag> {
        of.iter().map(|n| Tag::new(NAMES[*n]).unwrap()).collect()
    }

    #[test]
    fn each_kind_has_a_bound_and_a_hashtag_counts_once() {
        let own = Tag::new("Tide").unwrap();
        let five = tags(&(0..5).collect());
        for further in [
            FurtherTags { any: five.clone(), ..FurtherTags::default() },
            FurtherTags { all: five.clone(), ..FurtherTags::default() },
            FurtherTags { none: five.clone(), ..FurtherTags::default() },
        ] {
            let refused = TaggedSet::new(Some(own), &further).unwrap_err().to_string();
            assert!(refused.contains("5; at most 4 a page"), "{refused}");
        }
        let same = FurtherTags { any: vec![own, five[0], own], ..FurtherTags::default() };
        assert_eq!(TaggedSet::new(Some(own), &same).unwrap().any(), [own, five[0]]);
        assert!(FurtherTags::default().is_empty() && !same.is_empty());
    }

    proptest! {
        /// The rule in words, hashtag by hashtag.
        #[test]
        fn a_post_shows_that_has_one_of_any_and_all_and_none(
            own in proptest::option::of(0usize..6),
            any in proptest::collection::btree_set(0usize..6, 0..4),
            all in proptest::collection::btree_set(0usize..6, 0..4),
            none in proptest::collection::btree_set(0usize..6, 0..4),
            has in proptest::collection::btree_set(0usize..6, 0..6),
        ) {
            let further = FurtherTags { any: tags(&any), all: tags(&all), none: tags(&none) };
            let set = TaggedSet::new(own.map(|own| Tag::new(NAMES[own]).unwrap()), &further).unwrap();
            let draft = Draft::text("so").hashtags(has.iter().map(|n| NAMES[*n]));
            let post = Post::new(AccountId::new(1).unwrap(), &draft);
            let is_any = own.is_none() && any.is_empty();
            let wanted = (is_any || own.is_some_and(|own| has.contains(&own)) || !has.is_disjoint(&any))
                && all.is_subset(&has)
                && has.is_disjoint(&none);
            prop_assert_eq!(set.admits(&post), wanted);
        }
    }
}
