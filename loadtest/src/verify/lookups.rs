//! Everybody looked up by all names, when nothing changes any more; and whether what was told of names all the time was
//! right.

use std::sync::Arc;

use futures::stream::{self, StreamExt as _};

use super::call::Call;
use super::comparisons::Subject;
use super::facts::Window;
use super::names::{Name, Question, Told};
use super::run::{Ended, Run};
use super::told::{Card, Reply};

/// Calls at the same time.
const AT_ONCE: usize = 16;
/// Names that are looked up in one call.
const NAMES: usize = 40;

/// Looks up the names of those of whom nobody can be sure.
pub(crate) async fn settle(run: &Arc<Run>) {
    let now = run.now();
    let unsure = run.world().names.unsure(Window { from: now, to: now });
    for account in unsure {
        let Some(cards) = cards(run, 0, Call::Names { account }).await else { continue };
        let card = cards.into_iter().next().flatten();
        run.world().names.settle(account, card.as_ref(), run.now());
    }
}

/// Looks everybody up, and checks all that was told since the last time.
pub(crate) async fn compare(run: &Arc<Run>) {
    let (names, people): (Vec<Name>, Vec<u64>) = {
        let world = run.world();
        (world.names.all().into_iter().collect(), world.names.everybody())
    };
    stream::iter(names.chunks(NAMES).enumerate())
        .for_each_concurrent(AT_ONCE, |(number, names)| find(run, number, names))
        .await;
    stream::iter(people).for_each_concurrent(AT_ONCE, |account| look_at(run, account)).await;
    stream::iter(names).for_each_concurrent(AT_ONCE, |name| log_in(run, name)).await;
    if run.has_given_up() {
        return;
    }
    let found = run.world().names.check();
    for (wrong, account, text) in found {
        run.wrong(wrong, account, None, text);
    }
}

async fn find(run: &Arc<Run>, number: usize, names: &[Name]) {
    let from = run.now();
    let call = Call::Find { names: names.iter().map(|name| name.shouted()).collect() };
    for (name, card) in names.iter().zip(cards(run, number, call).await.unwrap_or_default()) {
        tell(run, Question::Named(*name), card, from);
    }
}

async fn look_at(run: &Arc<Run>, account: u64) {
    let from = run.now();
    let number = usize::try_from(account).unwrap_or(0);
    if let Some(cards) = cards(run, number, Call::Names { account }).await {
        tell(run, Question::Account(account), cards.into_iter().next().flatten(), from);
    }
}

/// With the right password, and with the one before.
async fn log_in(run: &Arc<Run>, name: Name) {
    for is_old in [false, true] {
        let from = run.now();
        let holder = {
            let world = run.world();
            let holder = world.names.holder(name, Window { from, to: from });
            holder.map(|holder| holder.last_password(is_old))
        };
        let Some(password) = holder else { return };
        let call = Call::LogIn { name: name.text(), password: password.clone() };
        if let Some(cards) = cards(run, 0, call).await {
            tell(run, Question::Password(name, password), cards.into_iter().next().flatten(), from);
        }
    }
}

/// What a call tells of accounts; that it tells nothing is counted.
pub(super) async fn cards(run: &Run, instance: usize, call: Call) -> Option<Vec<Option<Card>>> {
    let subject = if matches!(call, Call::LogIn { .. }) { Subject::Passwords } else { Subject::Names };
    match run.call(instance, call).await {
        Ended::Done(Reply::Cards(cards)) => Some(cards),
        other => {
            run.skipped(subject, &other);
            None
        }
    }
}

fn tell(run: &Arc<Run>, question: Question, answer: Option<Card>, from: u64) {
    let window = Window { from, to: run.now() };
    run.world().names.tell(Told { question, answer, window });
}
