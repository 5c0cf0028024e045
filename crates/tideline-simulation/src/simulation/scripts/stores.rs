//! Documents and tickets: changes that lie in a socket, and what a failover has lost.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use crate::ids::AccountId;
use crate::post::Draft;
use crate::registration::{Registration, TicketKind};
use crate::simulation::ends;
use crate::simulation::gates::{At, Gate};
use crate::simulation::instances::ids_in;
use crate::simulation::names::registering;
use crate::simulation::world::world;
use crate::{NewAccount, Query};

const CODE: TicketKind = TicketKind::new('c').expect("a letter");
const SECRET: &[u8] = b"secret";
const DAY: Duration = Duration::from_secs(86_400);
const NAME: &str = "filters";

/// Two instances, and an account.
async fn sites() -> ([Registration; 2], AccountId) {
    let ((_, engine, one), (_, _, other)) = (registering().await, registering().await);
    let id = ids_in(&[1])[0];
    engine.create_account(NewAccount { id: Some(id), ..NewAccount::default() }).await.expect("a new account");
    ([one, other], id)
}

/// H261: a change lies in a socket, and was sent again; somebody else changes the document; the copy runs.
pub(in crate::simulation) fn document_in_a_socket() -> LocalBoxFuture<'static, ()> {
    async {
        let ([one, other], id) = sites().await;
        let first = other.change_document(id, NAME, None, Some(b"first")).await.expect("no faults").value;
        let copy = Gate::close(0, At::Copied, "document_set", b"");
        let old = one.change_document(id, NAME, first.as_ref(), Some(b"old")).await.expect("no faults").value;
        copy.stop_no_more();
        other.change_document(id, NAME, old.as_ref(), Some(b"new")).await.expect("no faults");
        copy.deliver();
        let now = other.document(id, NAME).await.expect("no faults").map(|document| document.bytes);
        if now.as_deref() != Some(b"new") {
            world(|w| w.violated("a change that came late has undone another one of that document"));
        }
        ends::run_dry().await;
    }
    .boxed_local()
}

/// H261: the same of a document that is new; somebody else removes it.
pub(in crate::simulation) fn new_document_in_a_socket() -> LocalBoxFuture<'static, ()> {
    async {
        let ([one, other], id) = sites().await;
        let copy = Gate::close(0, At::Copied, "document_set", b"");
        let new = one.change_document(id, NAME, None, Some(b"new")).await.expect("no faults").value;
        copy.stop_no_more();
        other.change_document(id, NAME, new.as_ref(), None).await.expect("no faults");
        copy.deliver();
        if other.document(id, NAME).await.expect("no faults").is_some() {
            world(|w| w.violated("a document that was removed is there again"));
        }
        ends::run_dry().await;
    }
    .boxed_local()
}

/// H244: an instance remembers whom a reader follows; the reader leaves somebody out of its home, by another instance.
pub(in crate::simulation) fn left_out_beside_a_remembered_state() -> LocalBoxFuture<'static, ()> {
    async {
        let ((_, engine, one), (_, remembering, _)) = (registering().await, registering().await);
        let [reader, author] = ids_in(&[1, 3])[..] else { unreachable!("two were asked for") };
        for id in [reader, author] {
            engine
                .create_account(NewAccount { id: Some(id), ..NewAccount::default() })
                .await
                .expect("no faults");
        }
        engine.follow(reader, author).await.expect("no faults");
        engine.publish(author, &Draft::text("hello")).await.expect("no faults");
        ends::run_dry().await;
        let home =
            async || remembering.as_reader(reader).read(&Query::home()).await.expect("no faults").posts;
        assert_eq!(home().await.len(), 1);
        one.leave_out(reader, author, true).await.expect("no faults");
        if !home().await.is_empty() {
            world(|w| w.violated("who was left out of a home shows where its reader is remembered"));
        }
        ends::run_dry().await;
    }
    .boxed_local()
}

/// Who takes a code for the second time.
async fn taken_again(by: &Registration) {
    if by.take_ticket(CODE, SECRET).await.expect("no faults").is_some() {
        world(|w| w.violated("a ticket was taken twice"));
    }
    ends::run_dry().await;
}

/// A code is put, and a copy of that lies in a socket; it is taken; the copy runs.
pub(in crate::simulation) fn ticket_in_a_socket() -> LocalBoxFuture<'static, ()> {
    async {
        let ([one, other], _) = sites().await;
        let copy = Gate::close(0, At::Copied, "ticket_put", b"");
        one.put_ticket(CODE, SECRET, b"grant", DAY).await.expect("no faults");
        copy.stop_no_more();
        let taken = other.take_ticket(CODE, SECRET).await.expect("no faults");
        assert_eq!(taken.as_deref(), Some(&b"grant"[..]));
        copy.deliver();
        taken_again(&one).await;
    }
    .boxed_local()
}

/// A code is taken, and every server fails over at once.
pub(in crate::simulation) fn taken_before_a_failover() -> LocalBoxFuture<'static, ()> {
    async {
        let ([one, other], _) = sites().await;
        one.put_ticket(CODE, SECRET, b"grant", DAY).await.expect("no faults");
        world(|w| (0..w.nodes.len()).for_each(|number| w.sync(number)));
        other.take_ticket(CODE, SECRET).await.expect("no faults").expect("it is there");
        world(|w| (0..w.nodes.len()).for_each(|number| w.fail_over(number, 0)));
        taken_again(&one).await;
    }
    .boxed_local()
}
