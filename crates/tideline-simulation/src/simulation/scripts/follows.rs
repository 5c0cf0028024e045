//! Follow, unfollow, completion.

mod requests;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, close, lost_in_a_socket};
use crate::ids::AccountId;
use crate::keys::{Place, set_of_account};
use crate::modes::DeliveryWay;
use crate::simulation::ends;
use crate::simulation::gates::{At, Gate};
use crate::simulation::lua;
use crate::simulation::operations::toggle;
use crate::simulation::truth::State;
use crate::simulation::world::{HOUR_MS, Toggle, world};
use crate::{Mode, rules};
pub(in crate::simulation) use requests::{
    another_request, approved_and_joined, approved_while_it_unfollows, asked_again_while_it_is_listed,
    rejection_in_a_socket, taking_back_in_a_socket,
};

/// H55: a follow lies in a frozen server's socket, and who sent it is dead. An unfollow finds nothing to do.
pub(in crate::simulation) fn follow_in_a_socket() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        let lost =
            lost_in_a_socket("change", toggle(Toggle::Follow, stage.engines[0].clone(), reader, author))
                .await;
        stage.unfollow(1, reader, author).await;
        lost.deliver();
        world(|w| {
            if State::of(w, reader).following.contains_key(&author) {
                w.violated("R follows X: its unfollow was acknowledged after that follow");
            }
        });
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H21: an unfollow lies in a frozen server's socket; its repetition was acknowledged, and R follows again.
pub(in crate::simulation) fn unfollow_in_a_socket() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.follow(0, reader, author).await;
        stage.settled().await;
        let copy = close(0, At::Copied, "change");
        stage.unfollow(0, reader, author).await;
        copy.open();
        stage.settled().await;
        stage.follow(1, reader, author).await;
        stage.settled().await;
        copy.deliver();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H12, H13: the removal of an edge stalls; R follows again.
pub(in crate::simulation) fn removal_stalls() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        stage.follow(0, reader, author).await;
        stage.settled().await;
        let removal = close(0, At::Before, "set_remove");
        stage.unfollow(0, reader, author).await;
        removal.reached().await;
        stage.follow(1, reader, author).await;
        super::pause(30).await;
        removal.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// As before, and R's server fails over, and all clocks are set back.
pub(in crate::simulation) fn removal_stalls_and_clocks_turn_back() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        stage.follow(0, reader, author).await;
        stage.settled().await;
        world(|w| w.set_clocks(w.now_ms() + 10_000));
        let removal = close(0, At::Before, "set_remove");
        stage.unfollow(0, reader, author).await;
        removal.reached().await;
        stage.sync(reader);
        stage.fail_over(reader);
        world(|w| w.set_clocks(w.now_ms() - 10_000));
        stage.follow(1, reader, author).await;
        super::pause(30).await;
        removal.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// A completion stalls before its edge. R unfollows, and that edge's removal stalls too; R follows again, by a third
/// instance. Then the two wake.
pub(in crate::simulation) fn edge_comes_late() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        let (edge, removal) = (close(0, At::Before, "set_add"), close(1, At::Before, "set_remove"));
        stage.follow(0, reader, author).await;
        edge.reached().await;
        super::pause(5).await;
        stage.unfollow(1, reader, author).await;
        removal.reached().await;
        super::pause(5).await;
        stage.follow(2, reader, author).await;
        super::pause(30).await;
        edge.open();
        super::pause(30).await;
        removal.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H16: a completion stands before its edge; X posts.
pub(in crate::simulation) fn posted_before_the_edge() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        let edge = close(0, At::Before, "set_add");
        stage.follow(0, reader, author).await;
        edge.reached().await;
        stage.publish(1, author).await;
        super::pause(30).await;
        edge.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H26: a completion stalls; R unfollows, X posts, R follows again. The mark is another one.
pub(in crate::simulation) fn another_mark() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        let (first, second) = (close(0, At::Before, "settle"), close(1, At::Before, "settle"));
        stage.follow(0, reader, author).await;
        first.reached().await;
        stage.unfollow(2, reader, author).await;
        super::pause(30).await;
        stage.publish(2, author).await;
        super::pause(30).await;
        stage.follow(1, reader, author).await;
        second.reached().await;
        first.open();
        super::pause(5).await;
        stage.read(1, reader, 20).await;
        second.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H26: whoever follows an author that is pulled keeps its mark.
pub(in crate::simulation) fn author_is_pulled() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::of([1, 3], Mode::Pull).await;
        stage.home_of(reader).await;
        stage.follow(0, reader, author).await;
        stage.settled().await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// An instance has R's state; R follows X, whom only the new mark shows.
pub(in crate::simulation) fn follow_after_a_read() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::of([1, 3], Mode::Pull).await;
        stage.publish(0, author).await;
        stage.home_of(reader).await;
        stage.read(1, reader, 3).await;
        stage.follow(0, reader, author).await;
        stage.read(1, reader, 3).await;
        stage.unfollow(0, reader, author).await;
        stage.read(1, reader, 3).await;
        stage.follow(0, reader, author).await;
        stage.fail_over(author);
        stage.read(1, reader, 3).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H19: R unfollows, the edge goes; R's server forgets the unfollow.
pub(in crate::simulation) fn unfollow_is_lost() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        stage.follow(0, reader, author).await;
        stage.settled().await;
        let removal = close(0, At::After, "set_remove");
        stage.unfollow(0, reader, author).await;
        removal.reached().await;
        stage.fail_over(reader);
        removal.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H17: X's server forgets the edge when the mark has just gone.
pub(in crate::simulation) fn edge_is_lost_at_the_author() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        let settle = close(0, At::After, "settle");
        stage.follow(0, reader, author).await;
        settle.reached().await;
        stage.fail_over(author);
        settle.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H18: X's followers are spread, so R's own server has the edge, and forgets it before the mark goes.
pub(in crate::simulation) fn edge_is_lost_at_the_reader() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        stage.spread_beside(0, author).await.expect("a spread set");
        let (edge, look) = (close(0, At::Before, "set_add"), close(0, At::After, "author_look"));
        stage.follow(0, reader, author).await;
        edge.reached().await;
        stage.sync(reader);
        edge.open();
        look.reached().await;
        stage.fail_over(reader);
        look.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// R's server forgets that R follows X, and what was to be done about that, when the edge is written. It stays; it is
/// counted.
pub(in crate::simulation) fn edge_outlives_its_follow() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        stage.sync(reader);
        let edge = close(0, At::After, "set_add");
        stage.follow(0, reader, author).await;
        edge.reached().await;
        stage.fail_over(reader);
        world(|w| w.kill(0));
        stage.turns().await;
        ends::check_followers(&stage.engines[1], "in the end").await;
    }
    .boxed_local()
}

/// H84: R's server is an hour ahead when R follows X, and fails over without that: the edge stays. R follows again, and
/// unfollows.
pub(in crate::simulation) fn follow_is_lost_with_a_clock_ahead() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        world(|w| w.nodes[1].clock_ahead_ms = HOUR_MS);
        let edge = close(0, At::After, "set_add");
        stage.follow(0, reader, author).await;
        edge.reached().await;
        stage.fail_over(reader);
        world(|w| w.kill(0));
        super::pause(5).await;
        stage.follow(1, reader, author).await;
        stage.settled().await;
        stage.unfollow(1, reader, author).await;
        stage.settled().await;
        stage.has_no_strays(author).await;
    }
    .boxed_local()
}

/// An edge and its removal lie in a frozen server's socket. Their repetitions were carried out long ago; now they
/// arrive, the edge first, and nobody looks at the pair any more.
pub(in crate::simulation) fn edge_comes_and_goes_late() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        let (edge, removal) = (close(0, At::Copied, "set_add"), close(0, At::Copied, "set_remove"));
        stage.follow(0, reader, author).await;
        stage.settled().await;
        edge.open();
        stage.unfollow(0, reader, author).await;
        stage.settled().await;
        removal.open();
        edge.deliver();
        ends::check_followers(&stage.engines[1], "with an edge that came late").await;
        removal.deliver();
        ends::check_followers(&stage.engines[1], "in the end").await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H14: R follows X; its next read shows what X has posted before.
pub(in crate::simulation) fn follow_shows_at_once() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.publish(0, author).await;
        stage.home_of(reader).await;
        stage.follow(0, reader, author).await;
        stage.read(1, reader, 3).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H24: a follow has looked at X's blocks; X blocks R; the follow writes.
pub(in crate::simulation) fn blocked_while_it_follows() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        let change = close(0, At::Before, "change");
        let engine = stage.engines[0].clone();
        let following = tokio::spawn(toggle(Toggle::Follow, engine, reader, author));
        change.reached().await;
        stage.engines[1].block(author, reader).await.expect("a block");
        stage.settled().await;
        world(|w| w.ends_all_follows(reader));
        change.open();
        drop(following.await);
        stage.settled().await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H20: a pair has seen that X blocks R, and stalls. X unblocks R, which ends its follow and follows again.
pub(in crate::simulation) fn unblocked_and_followed_again() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        stage.follow(0, reader, author).await;
        stage.settled().await;
        let seen = Gate::close(0, At::Before, "HGET", &world(|w| w.keys.account(reader)));
        stage.engines[0].block(author, reader).await.expect("a block");
        seen.reached().await;
        unblocks(&stage, author, reader).await;
        stage.unfollow(1, reader, author).await;
        super::pause(30).await;
        stage.follow(1, reader, author).await;
        super::pause(30).await;
        seen.open();
        stage.settled().await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// By instance 1; what a block ends has ended then.
async fn unblocks(stage: &Stage, author: AccountId, reader: AccountId) {
    let ends = (Toggle::Unfollow, reader, author);
    world(|w| *w.open.entry(ends).or_default() += 1);
    stage.engines[1].unblock(author, reader).await.expect("no block");
    world(|w| *w.open.entry(ends).or_default() -= 1);
}

/// H288: a block is taken back before its task has ended the other one's follow; then the other's server fails.
pub(in crate::simulation) fn unblocked_at_once() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.follow(0, reader, author).await;
        stage.settled().await;
        let looks = Gate::close(0, At::Before, "HGET", &world(|w| w.keys.account(reader)));
        stage.engines[0].block(author, reader).await.expect("a block");
        looks.reached().await;
        unblocks(&stage, author, reader).await;
        stage.fail_over(reader);
        looks.open();
        stage.settled().await;
        let stand = stage.engines[2].as_reader(reader).relationships(&[author]).await.expect("an account");
        if stand.iter().flatten().any(|stand| stand.is_following) {
            world(|w| w.violated(format!("{reader} follows {author}, who blocked it")));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

fn following_key(reader: AccountId) -> Vec<u8> {
    world(|w| w.keys.set(Place::Whole, w.keys.bucket_of(reader), &set_of_account("following", reader)))
}

/// H17 with the edge written by `join`.
pub(in crate::simulation) fn joined_edge_is_lost() -> LocalBoxFuture<'static, ()> {
    rules::short_cuts(true);
    edge_is_lost_at_the_author()
}

/// The edge is written, and the entry struck; R's server forgets all of the follow.
pub(in crate::simulation) fn joined_follow_is_lost() -> LocalBoxFuture<'static, ()> {
    async {
        rules::short_cuts(true);
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        let settle = close(0, At::After, "settle");
        stage.follow(0, reader, author).await;
        settle.reached().await;
        stage.fail_over(reader);
        settle.open();
        stage.settled().await;
        stage.has_no_strays(author).await;
    }
    .boxed_local()
}

/// H24 with the block found by `join`.
pub(in crate::simulation) fn blocked_before_it_joins() -> LocalBoxFuture<'static, ()> {
    rules::short_cuts(true);
    blocked_while_it_follows()
}

/// H26 with the mode told by `join`.
pub(in crate::simulation) fn joined_author_is_pulled() -> LocalBoxFuture<'static, ()> {
    rules::short_cuts(true);
    author_is_pulled()
}

/// A follow that is made in one call at the author is counted there, and nobody looks at the pair again.
pub(in crate::simulation) fn joined_follower_is_counted() -> LocalBoxFuture<'static, ()> {
    async {
        rules::short_cuts(true);
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.follow(0, reader, author).await;
        stage.settled().await;
        ends::check_followers(&stage.engines[1], "in the end").await;
    }
    .boxed_local()
}

/// An instance knows R; another has X, whom R follows, pulled; then R follows Y at the first. Its next page there shows
/// X.
pub(in crate::simulation) fn promoted_beside_a_follow() -> LocalBoxFuture<'static, ()> {
    async {
        rules::short_cuts(true);
        let (stage, [reader, author, other]) = Stage::with([1, 3, 2]).await;
        stage.follow(0, reader, author).await;
        stage.home_of(reader).await;
        stage.read(0, reader, 3).await;
        stage.set_way(1, author, DeliveryWay::Pull).await;
        stage.settled().await;
        stage.follow(0, reader, other).await;
        stage.publish(1, author).await;
        stage.settled().await;
        stage.read(0, reader, 3).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H128: A hides from R, and the function fails where the record is told from how many A hides. It is sent again.
pub(in crate::simulation) fn hidden_before_it_is_counted() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.follow(0, reader, author).await;
        stage.publish(0, author).await;
        stage.settled().await;
        lua::fail_once("change", "redis.call('HSET', keys[1], count_field, total)");
        stage.engines[0].hide_from(author, reader).await.expect("hidden");
        stage.read(1, reader, 20).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H155: A shows itself to R again, and the function fails where R leaves the set; nobody sends it again.
pub(in crate::simulation) fn shown_half_way() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.follow(0, reader, author).await;
        stage.publish(0, author).await;
        stage.engines[0].hide_from(author, reader).await.expect("hidden");
        stage.settled().await;
        let engine = stage.engines[0].clone();
        let showing = async move { engine.show_to(author, reader).await };
        super::given_up_half_way("change", "redis.call('ZREM', place, args[a + 1])", showing).await;
        stage.read(1, reader, 20).await;
        stage.ends_well().await;
    }
    .boxed_local()
}
