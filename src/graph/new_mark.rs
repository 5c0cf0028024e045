//! New marks: pull marks of follows that were decided while their author was open, and whose author has not been asked
//! since. Between that decision and the follow the author may have been locked: an instance may sleep there.
//!
//! So a follow begins with a mark that says so, and `pair`, which is going to look at the author anyway, asks whether
//! it is locked. If not, the follow was there while its author was open: the mark goes as every mark does, or another
//! one takes its place. If it is, the follow becomes a request. Until then the reader sees nothing of a locked author
//! that is for followers only.

use std::sync::Arc;

use super::change::{ChangeIntent, OwnCell, apply};
use super::jobs::PairTask;
use super::pair::wanted;
use super::request::approved;
use super::toggles::{following_edge, unfollow_intent};
use crate::cluster::{Command, Request, TouchedServers};
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{mark_renew, maybe_nonce};
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::journal::RunOutcome;
use crate::nonce::{Nonce, draw};
use crate::reader::{NEW_MARK, is_new_mark};
use crate::tenant::Tenant;

/// A new mark, drawn anew for each sending as all marks are.
pub(super) fn draw_new() -> Nonce {
    let mut mark = draw();
    // H85: until its author was asked, nothing shows that is for followers only.
    mark[..NEW_MARK.len()].copy_from_slice(&NEW_MARK);
    mark
}

/// Whether a reader's mark of an author is a new one.
pub(super) async fn is_unasked(tenant: &Tenant, reader: AccountId, author: AccountId) -> Result<bool> {
    let command = Command::new("HGET").arg(&tenant.keys().marks(reader)).arg(&author.to_bytes());
    let mark = tenant.router().call(Request::read(tenant.slot(reader), command)).await?;
    Ok(maybe_nonce(&mark)?.is_some_and(|mark| is_new_mark(&mark)))
}

/// The author has been asked, and the mark stays all the same: it is new no more. False: it is another one.
pub(super) async fn confirm(
    tenant: &Tenant,
    reader: AccountId,
    author: AccountId,
    mark: &Nonce,
    touched: &mut TouchedServers,
) -> Result<bool> {
    if !is_new_mark(mark) {
        return Ok(true);
    }
    let keys = [tenant.keys().marks(reader), tenant.keys().account(reader)];
    let command = mark_renew(&keys, author, &draw(), Some(mark), Some(&draw()));
    let answer = tenant.router().ask(Request::write(tenant.slot(reader), command).once()).await?;
    touched.add(&answer);
    Ok(answer.ok()?.count()? == 1)
}

/// Makes a request of a follow whose author was locked before it could be asked, if both are so still.
pub(super) async fn end_unapproved(
    graph: &Arc<Graph>,
    reader: AccountId,
    author: AccountId,
    (since, mark): (f64, Nonce),
) -> Result<RunOutcome> {
    let tenant = &graph.tenant;
    let following = tenant.following(reader)?;
    let end = async |asks: bool| {
        apply(graph, reader, || {
            Box::pin(async {
                let now = following.score(&author).await?;
                let is_same = now.is_some_and(|now| now.to_bits() == since.to_bits());
                let mut said = TouchedServers::new();
                if !is_same || is_let_in(tenant, reader, author, &mut said).await? {
                    return Ok(None);
                }
                // H52: as for a block: that it is locked must last.
                tenant.router().fence(&said).await?;
                // H85: another mark is of a follow that was made anew, or was let in: it stays.
                let seen = Some(mark);
                let unmarked = OwnCell { is_now: seen, ..OwnCell::gone(tenant.keys().marks(reader), author) };
                if !asks {
                    return Ok(Some(unfollow_intent(tenant, reader, author)?.cell(unmarked)));
                }
                Ok(Some(ChangeIntent {
                    edges: vec![following_edge(tenant, reader, author, false)?],
                    cells: vec![unmarked],
                    request: Some((author, None, Some(draw()))),
                    tasks: vec![PairTask { reader, author, may_drop: true }.into()],
                    ..ChangeIntent::default()
                }))
            })
        })
        .await
    };
    match end(true).await {
        // It asks as many as it may already, or may not ask.
        Err(e) if matches!(e.kind(), ErrorKind::Invalid) => end(false).await.map(drop)?,
        ended => ended.map(drop)?,
    }
    // Whatever came of it: the next look tells.
    Ok(RunOutcome::Later)
}

/// Whether an author lets that reader follow without asking: it isn't locked, or has said yes. One that is gone, or
/// blocks the reader, is somebody else's affair. `said`: whose word that is.
async fn is_let_in(
    tenant: &Tenant,
    reader: AccountId,
    author: AccountId,
    said: &mut TouchedServers,
) -> Result<bool> {
    match wanted(tenant, reader, author, said).await? {
        Some(card) if card.is_locked => Ok(approved(tenant, author, reader, said).await?.is_some()),
        _ => Ok(true),
    }
}

/// The error for a look that told of a tree.
pub(super) fn no_tree() -> Error {
    Error::internal("the look at a pair went on with a tree")
}
