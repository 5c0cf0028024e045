//! Calls whose server no longer answers.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, close, pause};
use crate::simulation::gates::At;
use crate::simulation::history::note_end;
use crate::simulation::link;

/// H152: A deletes P; its server answers no more. The look after that ends, too: nothing was read. Then the server
/// wakes, and deletes P.
pub(in crate::simulation) fn deleted_by_a_silent_server() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author]) = Stage::with([3]).await;
        let post = stage.publish(0, author).await;
        let lost = close(0, At::Lost, "post_delete");
        let engine = stage.engines[0].clone();
        let call = tokio::spawn(async move {
            note_end("delete", link::called(engine.delete(author, post)).await);
        });
        pause(5).await;
        stage.silence(author, true);
        call.await.expect("it ends");
        stage.silence(author, false);
        lost.deliver();
        pause(1_000).await;
        stage.settled().await;
        stage.ends_well().await;
    }
    .boxed_local()
}
