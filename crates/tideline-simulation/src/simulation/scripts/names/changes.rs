//! Another login, address or password.

use super::*;

/// An account has changed its name, and its old one is still claimed for it.
pub(in crate::simulation) fn old_name_still_claimed() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        succeeds("a sign-up", &town.sign_up(1, town.form(0, 0)).await);
        let giving_up = close(0, At::Before, "guard_close");
        let change = town.set_login_beside(0, 0, 1);
        giving_up.reached().await;
        // It is the client's now, whether or not the old one is given up.
        world(|w| w.names.told.insert((town.ids[0], Claim::LOGIN), Some(town.names[1].clone())));
        for name in &town.names[..2] {
            look_up(&town.sites[1], Claim::LOGIN, name).await.expect("no faults");
        }
        giving_up.open();
        succeeds("another name", &end(change).await);
        town.ends_well().await;
    }
    .boxed_local()
}

/// An old name is given up when a stranger has got it.
pub(in crate::simulation) fn given_up_too_late() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        succeeds("a sign-up", &town.sign_up(1, town.form(0, 0)).await);
        let giving_up = close(0, At::Before, "guard_close");
        let change = town.set_login_beside(0, 0, 1);
        giving_up.reached().await;
        succeeds("a stranger", &town.sign_up(1, town.form(1, 0)).await);
        giving_up.open();
        succeeds("another name", &end(change).await);
        town.ends_well().await;
    }
    .boxed_local()
}

/// An old name is given up when the account has got it back.
pub(in crate::simulation) fn given_up_when_it_is_back() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        succeeds("a sign-up", &town.sign_up(1, town.form(0, 0)).await);
        let looking = Gate::close(0, At::Before, "GET", &town.key(0));
        let change = town.set_login_beside(0, 0, 1);
        looking.reached().await;
        // Whoever waits for that answer has given it up.
        world(|w| w.names.died(0));
        succeeds("the old name", &town.set_login(1, 0, 0).await);
        looking.open();
        drop(end(change).await);
        town.ends_well().await;
    }
    .boxed_local()
}

/// A change of name sleeps; a stranger gets that name, and the account begins to take a third one. The first goes on.
pub(in crate::simulation) fn settles_anothers_attempt() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        succeeds("a sign-up", &town.sign_up(2, town.form(0, 0)).await);
        let sleeping = close(0, At::Before, "claims_settle");
        let first = town.set_login_beside(0, 0, 1);
        sleeping.reached().await;
        pause(LONG_MS).await;
        succeeds("a stranger", &town.sign_up(2, town.form(1, 1)).await);
        let settling = close(1, At::Before, "claims_settle");
        let second = town.set_login_beside(1, 0, 2);
        settling.reached().await;
        sleeping.open();
        is_refused("who slept", &end(first).await);
        settling.open();
        succeeds("the third name", &end(second).await);
        town.ends_well().await;
    }
    .boxed_local()
}

/// A change of name is refused, and sleeps before it ends its attempt; when it wakes up another one is under way.
pub(in crate::simulation) fn ends_anothers_attempt() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        succeeds("a sign-up", &town.sign_up(2, town.form(0, 0)).await);
        succeeds("a stranger", &town.sign_up(2, town.form(1, 1)).await);
        let ending = close(0, At::Before, "claims_void");
        let first = town.set_login_beside(0, 0, 1);
        ending.reached().await;
        pause(LONG_MS).await;
        let settling = close(1, At::Before, "claims_settle");
        let second = town.set_login_beside(1, 0, 2);
        settling.reached().await;
        ending.open();
        is_refused("a stranger's name", &end(first).await);
        settling.open();
        succeeds("the third name", &end(second).await);
        town.ends_well().await;
    }
    .boxed_local()
}

/// A second change of name begins while the first is under way.
pub(in crate::simulation) fn changes_twice() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        succeeds("a sign-up", &town.sign_up(2, town.form(0, 0)).await);
        let settling = close(0, At::Before, "claims_settle");
        let first = town.set_login_beside(0, 0, 1);
        settling.reached().await;
        is_refused("a second change", &town.set_login(1, 0, 2).await);
        settling.open();
        succeeds("the first change", &end(first).await);
        town.ends_well().await;
    }
    .boxed_local()
}

/// A change of the address has read which names there are, and begins when the login is another one.
pub(in crate::simulation) fn begins_with_old_names() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        succeeds("a sign-up", &town.sign_up(2, town.form(0, 0)).await);
        let beginning = close(0, At::Before, "claims_begin");
        let (site, id) = (town.sites[0].clone(), town.ids[0]);
        let first = tokio::spawn(async move { site.set_email(id, Some("a@sea")).await });
        beginning.reached().await;
        succeeds("another login", &town.set_login(1, 0, 1).await);
        beginning.open();
        succeeds("an address", &end(first).await);
        town.ends_well().await;
    }
    .boxed_local()
}

/// A new password lies in a socket, and was sent again; another one is set; the copy runs.
pub(in crate::simulation) fn password_in_a_socket() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        succeeds("a sign-up", &town.sign_up(2, town.form(0, 0)).await);
        let copy = Gate::close(0, At::Copied, "credentials_set", b"");
        succeeds("a password", &town.sites[0].set_password(town.ids[0], "password of old").await);
        copy.stop_no_more();
        succeeds("a password", &town.sites[1].set_password(town.ids[0], "password of now").await);
        world(|w| w.names.passwords.insert(town.ids[0], "password of now".into()));
        copy.deliver();
        town.ends_well().await;
    }
    .boxed_local()
}

/// H132: a change of login is settled half-way: the account has the name, and its record shows the one before. Who did
/// that dies.
pub(in crate::simulation) fn settled_half_way() -> LocalBoxFuture<'static, ()> {
    async {
        let town = Town::new().await;
        succeeds("a sign-up", &town.sign_up(1, town.form(0, 0)).await);
        let settling = close(0, At::Before, "claims_settle");
        drop(town.set_login_beside(0, 0, 1));
        settling.reached().await;
        lua::fail_once(
            "claims_settle",
            "redis.call('HSET', keys[1], RECORD.STATE, is, RECORD.GRAPH_STAMP, graph",
        );
        let again = close(0, At::Before, "claims_settle");
        settling.open();
        again.reached().await;
        world(|w| w.kill(0));
        pause(LONG_MS).await;
        town.ends_well().await;
    }
    .boxed_local()
}
