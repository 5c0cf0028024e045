//! Functions that fail half-way: each command of each function, in histories whose every oracle holds all the same.

use std::collections::{BTreeMap, BTreeSet};

use super::Live;
use super::elsewhere;
use super::lua::{self, Site, Sites};
use super::shape::Shape;

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
/// Gives the places that have failed by now.
pub(super) fn fail_the_rest(reached: Reached, shape: Shape, live: Live) -> BTreeSet<Site> {
    let mut wrong = Vec::new();
    for (site, (seed, _)) in reached.iter().filter(|(_, (_, failed))| *failed == 0) {
        lua::fail_first(site.clone());
        let outcome = live(*seed, shape, &[], false);
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
    reached.into_keys().collect()
}

/// The functions, by what the library says of them: whether they write something.
fn registered(code: &str) -> impl Iterator<Item = (&str, bool)> {
    let lines = code.lines().filter_map(|line| line.strip_prefix("register('"));
    lines.filter_map(|line| Some((line.split_once('\'')?.0, !line.contains("no-writes"))))
}

/// Every function that writes has failed, and each line of any that calls a command: in histories or on data that is
/// made for it.
pub(super) fn assert_covered(mut failed: BTreeSet<Site>) {
    failed.append(&mut elsewhere::sites());
    let functions: BTreeSet<&str> = failed.iter().map(|(function, _)| function.as_str()).collect();
    let code = crate::functions::code();
    let open: Vec<_> =
        registered(&code).filter(|(name, writes)| *writes && !functions.contains(name)).collect();
    assert!(open.is_empty(), "these have never failed half-way: {open:?}");
    let mut lines: BTreeSet<usize> = failed.iter().map(|(_, line)| *line).collect();
    registered(&code).filter(|(_, writes)| !writes).for_each(|(name, _)| lines.extend(lua::lines_of(name)));
    let open: Vec<_> = lua::commands().into_iter().filter(|(line, _)| !lines.contains(line)).collect();
    assert!(open.is_empty(), "no command of these lines has ever failed: {open:#?}");
}
