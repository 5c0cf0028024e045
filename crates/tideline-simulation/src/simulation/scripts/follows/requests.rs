//! What is asked of locked accounts.

use super::*;

/// H55: a request is taken back, and that lies there. Who asks again finds the request made.
pub(in crate::simulation) fn taking_back_in_a_socket() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::locked().await;
        stage.follow(2, reader, author).await;
        stage.settled().await;
        let lost =
            lost_in_a_socket("change", toggle(Toggle::Unfollow, stage.engines[0].clone(), reader, author))
                .await;
        stage.follow(1, reader, author).await;
        lost.deliver();
        stage.settled().await;
        if stage.engines[1].stored().follow_requests(author).await.expect("requests") != [reader] {
            world(|w| w.violated("a request that was acknowledged is gone"));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H55: a request is turned down, and that lies there. It is approved.
pub(in crate::simulation) fn rejection_in_a_socket() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::locked().await;
        stage.follow(2, reader, author).await;
        stage.settled().await;
        let engine = stage.engines[0].clone();
        let lost = lost_in_a_socket("change", async move { engine.reject(author, reader).await }).await;
        world(|w| w.open.insert((Toggle::Follow, reader, author), 1));
        stage.engines[1].approve(author, reader).await.expect("approved");
        lost.deliver();
        stage.settled().await;
        world(|w| {
            if !State::of(w, reader).following.contains_key(&author) {
                w.violated("an approval that was acknowledged has had no effect");
            }
        });
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H22: X approves a request; whoever is to look at that stalls. R takes the request back, and asks again.
pub(in crate::simulation) fn another_request() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::locked().await;
        stage.follow(2, reader, author).await;
        stage.settled().await;
        let (look, tidy) = (close(0, At::Before, "pair_look"), close(1, At::Before, "field_drop"));
        stage.engines[0].approve(author, reader).await.expect("approved");
        look.reached().await;
        stage.unfollow(1, reader, author).await;
        tidy.reached().await;
        stage.follow(2, reader, author).await;
        super::super::pause(50).await;
        look.open();
        super::super::pause(50).await;
        tidy.open();
        stage.settled().await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// R has asked to follow X, takes that back, and asks again, while the first request is on its way to X's list.
pub(in crate::simulation) fn asked_again_while_it_is_listed() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::locked().await;
        let listed = Gate::close(0, At::Before, "waiting_set", &world(|w| w.keys.waiting(author)));
        stage.follow(0, reader, author).await;
        listed.reached().await;
        stage.unfollow(1, reader, author).await;
        stage.follow(1, reader, author).await;
        super::super::pause(50).await;
        listed.open();
        stage.settled().await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// R has asked to follow X and takes that back; between its two looks, at the follow and at the request, X approves.
pub(in crate::simulation) fn approved_while_it_unfollows() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::locked().await;
        stage.follow(2, reader, author).await;
        stage.settled().await;
        let looks = ["ZSCORE", "HGET"].map(|look| {
            let key =
                if look == "ZSCORE" { following_key(reader) } else { world(|w| w.keys.requested(reader)) };
            Gate::close(1, At::After, look, &key)
        });
        let engine = stage.engines[1].clone();
        let unfollowing = tokio::spawn(toggle(Toggle::Unfollow, engine, reader, author));
        tokio::select! {
            () = looks[0].reached() => {}
            () = looks[1].reached() => {}
        }
        // A request that is approved becomes a follow that somebody wants.
        world(|w| *w.open.entry((Toggle::Follow, reader, author)).or_default() += 1);
        stage.engines[0].approve(author, reader).await.expect("approved");
        super::super::pause(50).await;
        looks.iter().for_each(Gate::open);
        unfollowing.await.expect("no panic").expect("an unfollow");
        stage.settled().await;
        world(|w| {
            if State::of(w, reader).following.contains_key(&author) {
                w.violated("R follows X still: its unfollow was acknowledged, and did nothing");
            }
        });
        stage.ends_well().await;
    }
    .boxed_local()
}

/// R asks, and X says yes: of the request nothing stays with X.
pub(in crate::simulation) fn approved_and_joined() -> LocalBoxFuture<'static, ()> {
    async {
        rules::short_cuts(true);
        let (stage, [reader, author]) = Stage::locked().await;
        stage.follow(2, reader, author).await;
        stage.settled().await;
        world(|w| w.open.insert((Toggle::Follow, reader, author), 1));
        stage.engines[0].approve(author, reader).await.expect("approved");
        stage.settled().await;
        stage.ends_well().await;
    }
    .boxed_local()
}
