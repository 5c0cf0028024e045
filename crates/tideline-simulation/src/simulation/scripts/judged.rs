//! What is held back: what shows is what a moderator has looked at.

use futures::FutureExt as _;
use futures::future::{LocalBoxFuture, ready};

use super::{Stage, close};
use crate::post::{Draft, Edit};
use crate::simulation::gates::At;
use crate::simulation::instances::judging;
use crate::simulation::world::world;
use crate::{CallFuture, DraftFacts, DraftJudge, Judgement, ReportQuery};

/// Holds what says so.
#[derive(Debug)]
struct Words;

impl DraftJudge for Words {
    fn judge<'a>(&'a self, facts: &'a DraftFacts<'a>) -> CallFuture<'a, Judgement> {
        let is_held = facts.content.text.starts_with("hold");
        let said = if is_held { Judgement::Hold("it says so".into()) } else { Judgement::Publish };
        Box::pin(ready(Ok(said)))
    }
}

/// H266: an instance has hidden a post for an edit, and is frozen; a moderator releases it by what it says until then.
pub(in crate::simulation) fn released_before_the_edit_is_made() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, moderator]) = Stage::with([1, 3]).await;
        let (number, judged) = judging(Words).await;
        let post = stage.engines[0].publish(author, &Draft::text("plain")).await.expect("a post").id;
        let editing = close(number, At::Before, "post_edit");
        let edited = tokio::spawn(async move {
            let edit = Edit { text: Some("hold this".into()), ..Edit::default() };
            judged.edit(author, post, &edit).await
        });
        editing.reached().await;
        let reports = stage.engines[1].reports(&ReportQuery::default()).await.expect("a queue").reports;
        stage.engines[1].decide_held(reports[0].id, moderator, true).await.expect("it is released");
        editing.open();
        drop(edited.await.expect("no panic"));
        let post = stage.engines[2].stored().post(post).await.expect("an answer").expect("it is there");
        if post.content().text != "plain" && !post.header().is_hidden() {
            world(|w| w.violated("an edit shows that is held back, and that nobody has looked at"));
        }
    }
    .boxed_local()
}
