//! Homes: tidying, filling.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, close, pause};
use crate::cluster::{Command, Request};
use crate::simulation::gates::{At, Gate};
use crate::simulation::world::world;

/// H3: other deliveries come between a length that is due and its tidying; the last of them is a late one.
pub(in crate::simulation) fn tidied_late() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, low, high]) = Stage::with([1, 0, 3]).await;
        stage.follow(0, reader, low).await;
        stage.follow(0, reader, high).await;
        stage.settled().await;
        stage.home_of(reader).await;
        let (first, second) = (close(0, At::Before, "home_tidy"), close(1, At::Before, "home_tidy"));
        // All within one millisecond: then ids go by bucket.
        stage.publish(0, high).await;
        stage.settled_at_once().await;
        stage.publish(0, low).await;
        first.reached().await;
        stage.publish(1, low).await;
        stage.publish(1, low).await;
        stage.publish(1, low).await;
        second.reached().await;
        first.open();
        second.open();
        stage.turns().await;
        // Its id is below the first one's: whoever shows it has passed that.
        stage.publish(1, low).await;
        stage.settled().await;
        stage.read(1, reader, 3).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// Many deliveries come between two watermarks: none stands where the front may go.
pub(in crate::simulation) fn tidied_too_late() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.follow(0, reader, author).await;
        stage.settled().await;
        stage.home_of(reader).await;
        let gates: Vec<_> = (0..16).map(|_| close(0, At::Before, "home_tidy")).collect();
        for _ in 0..26 {
            stage.publish(0, author).await;
            stage.turns().await;
        }
        gates.iter().for_each(Gate::open);
        stage.settled().await;
        let most = stage.engines[0].tenant().fit().most();
        let length = world(|w| {
            let command = Command::new("LLEN").arg(&w.keys.home(reader));
            w.execute(9, &Request::read(w.keys.slot_of(reader), command)).expect("an answer").reply.count()
        });
        let length = length.expect("a length");
        if length > most {
            world(|w| w.violated(format!("a home has {length} entries, more than {most}")));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H5: a home that is being filled is longer than a reader's window. A post whose id is above all that has arrived was
/// published before the fill began.
pub(in crate::simulation) fn window_of_a_fill() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, low, high]) = Stage::with([1, 0, 3]).await;
        stage.follow(0, reader, low).await;
        stage.follow(0, reader, high).await;
        stage.settled().await;
        stage.publish(1, high).await;
        stage.settled_at_once().await;
        let finish = close(0, At::Before, "home_finish");
        let fill = stage.warm_beside(0, reader);
        finish.reached().await;
        for _ in 0..4 {
            stage.publish(1, low).await;
            stage.settled_at_once().await;
        }
        stage.read(1, reader, 3).await;
        finish.open();
        fill.await.expect("a fill");
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H6: what arrived during a fill has an older watermark than what was pulled.
pub(in crate::simulation) fn watermarks_that_arrived() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, low, high]) = Stage::with([1, 0, 3]).await;
        stage.follow(0, reader, low).await;
        stage.follow(0, reader, high).await;
        stage.settled().await;
        stage.publish(1, high).await;
        stage.settled_at_once().await;
        let finish = close(0, At::Before, "home_finish");
        let fill = stage.warm_beside(0, reader);
        finish.reached().await;
        for _ in 0..4 {
            stage.publish(1, low).await;
            stage.settled_at_once().await;
        }
        finish.open();
        fill.await.expect("a fill");
        stage.read(1, reader, 3).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// A home is cut while it is filled: what was pulled ends below what was cut.
pub(in crate::simulation) fn cut_while_filled() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.follow(0, reader, author).await;
        stage.publish(0, author).await;
        stage.settled().await;
        let finish = close(0, At::Before, "home_finish");
        let fill = stage.warm_beside(0, reader);
        finish.reached().await;
        for _ in 0..16 {
            stage.publish(1, author).await;
            stage.settled().await;
        }
        finish.open();
        fill.await.expect("a fill");
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H8: P is published when everything was pulled, were the home created only then.
pub(in crate::simulation) fn published_before_the_home() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.follow(0, reader, author).await;
        stage.settled().await;
        let begin = close(0, At::Before, "home_begin");
        let fill = stage.warm_beside(0, reader);
        begin.reached().await;
        stage.publish(1, author).await;
        stage.settled().await;
        begin.open();
        fill.await.expect("a fill");
        stage.read(1, reader, 3).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H10: a fill stalls, the home is dropped, P finds none; another fill begins, and the first one finishes.
pub(in crate::simulation) fn two_fills() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.follow(0, reader, author).await;
        stage.settled().await;
        let (first, second) = (close(0, At::Before, "home_finish"), close(1, At::Before, "home_finish"));
        let stalled = stage.warm_beside(0, reader);
        first.reached().await;
        stage.drop_home(reader);
        stage.publish(1, author).await;
        stage.settled().await;
        let other = stage.warm_beside(1, reader);
        second.reached().await;
        first.open();
        stalled.await.expect("a fill");
        stage.read(2, reader, 3).await;
        second.open();
        other.await.expect("a fill");
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H39c: the first sending of a fill's beginning comes when the home that its repetition began is gone: were it the
/// same nonce, the stalled fill would finish the new home.
pub(in crate::simulation) fn nonce_sent_twice() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.follow(0, reader, author).await;
        stage.settled().await;
        let (begin, finish) = (close(0, At::Lost, "home_begin"), close(0, At::Before, "home_finish"));
        let fill = stage.warm_beside(0, reader);
        finish.reached().await;
        stage.drop_home(reader);
        stage.publish(1, author).await;
        stage.settled().await;
        begin.deliver();
        finish.open();
        fill.await.expect("a fill");
        stage.read(2, reader, 3).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// R follows X, whose ids don't reach down to the floor, while R's home is filled by a state without X.
pub(in crate::simulation) fn follow_during_a_fill() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        for _ in 0..7 {
            stage.publish(0, author).await;
        }
        stage.settled().await;
        let finish = close(0, At::Before, "home_finish");
        let fill = stage.warm_beside(0, reader);
        finish.reached().await;
        stage.follow(1, reader, author).await;
        pause(40).await;
        finish.open();
        fill.await.expect("a fill");
        stage.read(2, reader, 20).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// X's primary was replaced, and answers on. Who hasn't heard of that fills R's home, after X has posted at the new
/// one.
pub(in crate::simulation) fn filled_from_a_deposed_primary() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.follow(0, reader, author).await;
        stage.settled().await;
        stage.fail_over(author);
        world(|w| w.answers_on(3, &[1]));
        stage.publish(0, author).await;
        stage.settled().await;
        stage.drop_home(reader);
        stage.warm_beside(1, reader).await.expect("no panic");
        world(|w| w.answers_no_more(3));
        stage.ends_well().await;
    }
    .boxed_local()
}
