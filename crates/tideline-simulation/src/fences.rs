//! Who does a step again whose fence fails is written down for each fence: a caller never hears of it (decision 0041).

use std::collections::BTreeMap;
use std::path::Path;

/// Each file with fences: how many, and who does the step again.
const FENCES: &[(&str, usize, &str)] = &[
    ("tenant/handle.rs", 1, "nobody has to: the write is done, and the error says so, `Unknown`"),
    ("delivery/ledger.rs", 3, TASKS),
    ("delivery/round.rs", 1, TASKS),
    ("delivery/task.rs", 1, TASKS),
    ("fsck/relations/names.rs", 1, REPAIRS),
    ("graph/archived.rs", 1, ROUNDS),
    ("graph/bury.rs", 3, TASKS),
    ("graph/deletion.rs", 1, TASKS),
    ("graph/complete.rs", 1, TASKS),
    ("graph/cut.rs", 1, "executors; for a tenant's decision `engine/decide.rs`, with `FenceTries`"),
    ("graph/lists.rs", 1, "executors; an import, which tells nobody, has none"),
    ("graph/named.rs", 3, "executors, an import with `FenceTries`; `take_off_list` is a repair of fsck's"),
    ("graph/new_mark.rs", 1, TASKS),
    ("graph/noted.rs", 1, "the next look at the note, which stays"),
    ("graph/pair.rs", 1, TASKS),
    ("graph/pair/asked.rs", 2, "executors; of `is_listed_wrongly` the next look at the note, which stays"),
    ("graph/reference.rs", 1, "executors; an import with `FenceTries`"),
    ("graph/succession.rs", 1, TASKS),
    ("graph/tie.rs", 2, "executors; what a page of likes forgets it forgets another time"),
    ("graph/unwanted.rs", 2, "executors; who takes a block back itself, with `FenceTries`"),
    ("journal/checkpoint.rs", 2, TASKS),
    ("journal/executor.rs", 1, TASKS),
    ("modes/hand_over.rs", 2, TASKS),
    ("search/settle.rs", 1, "executors; `Engine::index_all` with `FenceTries`"),
    ("registration/attempt.rs", 1, "itself, with `FenceTries`"),
    ("claims.rs", 1, "who takes names, with `FenceTries`: attempts, changes, sign-ups"),
    ("charter/layout.rs", 2, "who opens a store, with `FenceTries`"),
    ("charter/record.rs", 3, "itself, with `FenceTries`"),
    ("tiers/begin.rs", 1, "itself, with `FenceTries`"),
    ("tiers/settle.rs", 1, ROUNDS),
    ("tiers/store.rs", 1, "itself, with `FenceTries`"),
    ("timeline/fill.rs", 1, "itself, with `FenceTries`"),
];
const TASKS: &str = "executors: the entry stays, and is run again";
const ROUNDS: &str = "the next round of moves: what is due is noted until it is done";
const REPAIRS: &str = "the next run of fsck, which finds it again";

#[test]
fn every_fence_has_somebody_who_does_the_step_again() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src");
    let mut found = BTreeMap::new();
    count(&src, &src, &mut found);
    let told: BTreeMap<String, usize> =
        FENCES.iter().map(|(file, many, _)| ((*file).to_owned(), *many)).collect();
    assert_eq!(
        found, told,
        "the left side is what the sources say; this file has to say who does each step again"
    );
}

/// Fences of the engine, file by file.
fn count(src: &Path, folder: &Path, found: &mut BTreeMap<String, usize>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(src).unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            count(src, &path, found);
        } else if name.ends_with(".rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let many = text.matches(".fence(").count();
            if many > 0 {
                found.insert(name, many);
            }
        }
    }
}
