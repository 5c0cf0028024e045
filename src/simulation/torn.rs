//! Functions that fail half-way: each command of each function, in histories whose every oracle holds all the same.

use std::collections::{BTreeMap, BTreeSet};

use super::Live;
use super::lua::{self, Site, Sites};
use super::shape::Shape;

/// Functions none of whose commands is made to fail but those by `pcall`, and why that is not needed.
const WHOLE: &[(&str, &str)] = &[(
    "post_publish",
    "it asks for the only key that may be missing before it writes (`touch_first`), and what it writes anew, its author's \
     home, it writes last, by `pcall`; a half of it would be a second post",
)];

/// Functions that histories don't call, or seldom, and why what they leave half-done does no harm.
const ELSEWHERE: &[(&str, &str)] = &[
    ("account_create", ONE_WRITE),
    ("approve", "the entry first: without the approval it finds nothing"),
    ("clock_ids", ONE_WRITE),
    ("clock_stamps", ONE_WRITE),
    ("field_drop", ONE_WRITE),
    ("followers_counted", "the sum first; while the note stays it is summed up again"),
    ("home_deliver", "hints: what is delivered twice shows once"),
    ("home_deliver_to", "the same"),
    ("home_drop", ONE_WRITE),
    ("journal_claim", ONE_WRITE),
    ("list_drop", ONE_WRITE),
    ("list_recount", ONE_WRITE),
    ("marks_add", "a mark is always right, and stands before the stamp that tells of it"),
    ("marks_piece", "the same"),
    ("orphan_drop", ONE_WRITE),
    (
        "outbox_cut",
        "an operator's command, which is repeated; what a trim leaves is what `post_publish` may leave",
    ),
    ("outbox_import", "an import that fails is repeated; the count is found by fsck"),
    ("outbox_mend", "fsck finds what is left, and repairs it again"),
    ("piece_drop", ONE_WRITE),
    ("post_moderate", "what they say first; with the old bytes it is said again"),
    ("posts_recount", ONE_WRITE),
    ("profile_set", ONE_WRITE),
    ("report_add", "the report first; how many a reporter has open is a bound, not a promise"),
    ("report_move", "written where it goes before it leaves where it was"),
    ("set_recount", ONE_WRITE),
];

const ONE_WRITE: &str = "it writes once";

/// Whether a function is left whole.
pub(super) fn is_whole(function: &str) -> bool {
    WHOLE.iter().any(|(name, _)| function.ends_with(&format!("_{name}")))
}

/// Places that were reached: the first history that came there, and how often its command has failed.
pub(super) type Reached = BTreeMap<Site, (u64, u64)>;

/// What a history came to.
pub(super) fn note(reached: &mut Reached, seed: u64, sites: &Sites) {
    merge(reached, sites.iter().map(|(site, failed)| (site.clone(), (seed, *failed))).collect());
}

pub(super) fn merge(into: &mut Reached, from: Reached) {
    for (site, (seed, failed)) in from {
        let (first, times) = into.entry(site).or_insert((seed, 0));
        *first = seed.min(*first);
        *times += failed;
    }
}

/// `TIDELINE_SITE=function:line`, to see what `fail_the_rest` has seen.
pub(super) fn site_asked_for() -> Option<Site> {
    let (function, line) =
        std::env::var("TIDELINE_SITE").ok()?.split_once(':').map(|(f, l)| (f.to_owned(), l.parse()))?;
    Some((function, line.ok()?))
}

/// Lives once more through a history that came to each place that has not failed yet: there it fails the first time.
/// Gives the functions that have failed by now.
pub(super) fn fail_the_rest(reached: Reached, live: Live) -> BTreeSet<String> {
    let mut wrong = Vec::new();
    for (site, (seed, _)) in reached.iter().filter(|(_, (_, failed))| *failed == 0) {
        lua::fail_first(site.clone());
        let outcome = live(*seed, Shape::TORN, &[], false);
        assert!(
            outcome.sites.get(site).is_some_and(|failed| *failed > 0),
            "seed {seed} doesn't come to {site:?} again"
        );
        if !outcome.violations.is_empty() {
            let (function, line) = site;
            wrong.push(format!(
                "TIDELINE_SITE={function}:{line} TIDELINE_SEED={seed} replays: {:?}",
                outcome.violations
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    reached.into_keys().map(|(function, _)| function).collect()
}

/// The functions that write something, by what the library says of them.
fn writing(code: &str) -> BTreeSet<String> {
    let registered = code.lines().filter_map(|line| line.strip_prefix("register('"));
    let writes = registered.filter(|line| !line.contains("no-writes"));
    writes.filter_map(|line| line.split_once('\'')).map(|(name, _)| name.to_owned()).collect()
}

/// Each command of every function that writes has failed, or there is a reason why that isn't needed.
pub(super) fn assert_covered(failed: &BTreeSet<String>) {
    let has_reason = |name: &str| WHOLE.iter().chain(ELSEWHERE).any(|(other, _)| *other == name);
    let writing = writing(&crate::functions::code());
    let open: Vec<_> = writing.iter().filter(|name| !failed.contains(*name) && !has_reason(name)).collect();
    assert!(open.is_empty(), "these have never failed half-way, and nobody says why they need not: {open:?}");
    let unknown =
        WHOLE.iter().chain(ELSEWHERE).map(|(name, _)| *name).filter(|name| !writing.contains(*name));
    let unknown: Vec<_> = unknown.collect();
    assert!(unknown.is_empty(), "there are no such functions: {unknown:?}");
}
