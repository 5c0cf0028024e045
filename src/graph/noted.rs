//! Edges that were written not long ago, and whether their follows are there.
//!
//! An edge lies with its author, the follow that it stands for in another bucket. So a failover may lose the follow and
//! the entry that would have had it looked at, and a copy of what has written the edge may come when nobody looks any
//! more. Therefore the function that writes an edge notes it, in the same slot; once it has rested, whoever searches
//! that bucket's journal asks the follower. A follow that is not there leaves a `pair`, which takes the edge off. A
//! follower whose server is away is asked later, and keeps nobody else from being asked (H103).
//!
//! Who waits for a locked account's answer is listed in that account's bucket in the same way, and noted in the same
//! way.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};

use super::jobs::PairTask;
use super::pair::is_listed_wrongly;
use crate::bucket::Bucket;
use crate::cluster::{Answer, Command, Reply, Request, TouchedServers, impatiently};
use crate::error::{Error, Result};
use crate::functions::notes_drop;
use crate::ids::AccountId;
use crate::journal::{self, Journal, Recurring};
use crate::meters;
use crate::tenant::Tenant;

/// The time for which an edge rests before it is looked at: by then its pair is settled, as a rule.
const REST: Duration = Duration::from_secs(60);
/// The interval at which this instance looks for edges that have rested.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// Edges of a bucket that are looked at in one go; the rest the next time.
const EDGES_AT_ONCE: usize = 256;
/// Buckets whose edges are looked at side by side.
const BUCKETS_AT_ONCE: usize = 16;

/// A note, as it stands in its bucket.
struct Note {
    reader: AccountId,
    author: AccountId,
    /// It is no edge: the reader was listed as one who waits for the author's answer.
    is_request: bool,
    member: Vec<u8>,
    noted_ms: f64,
}

/// The byte that the note of a request ends with.
const REQUEST: u8 = b'w';

impl Note {
    fn parse([member, noted]: &[Reply; 2]) -> Result<Self> {
        let member = member.bytes()?;
        let (reader, author) =
            member.split_at_checked(8).ok_or_else(|| Error::internal("a note is short"))?;
        let (author, is_request) = match author.strip_suffix(&[REQUEST]) {
            Some(author) if author.len() == 8 => (author, true),
            _ => (author, false),
        };
        let (reader, author) = (AccountId::from_bytes(reader)?, AccountId::from_bytes(author)?);
        Ok(Self { reader, author, is_request, member: member.to_vec(), noted_ms: noted.double()? })
    }
}

/// Looks at edges that have rested.
#[derive(Debug)]
pub(crate) struct NotedEdgeLooks;

impl Recurring for NotedEdgeLooks {
    type Owner = Journal;

    fn pause(&mut self, _: &Journal) -> Duration {
        LOOK_EVERY
    }

    async fn round(&mut self, journal: &Arc<Journal>) {
        impatiently(look(journal)).await;
    }
}

async fn look(journal: &Arc<Journal>) {
    let buckets = journal::own_buckets(journal).await;
    stream::iter(rested(&journal.tenant, &buckets).await)
        .for_each_concurrent(BUCKETS_AT_ONCE, |(bucket, notes)| async move {
            // The notes themselves lie with a server that is away: they wait for it.
            if let Err(e) = look_at_all(journal, bucket, &notes).await {
                tracing::debug!("edges noted in bucket {bucket} wait: {e}");
            }
        })
        .await;
}

/// Notes that have rested, of the buckets that have some and whose node answers.
async fn rested(tenant: &Tenant, buckets: &[Bucket]) -> Vec<(Bucket, Vec<Note>)> {
    let rest = u64::try_from(REST.as_millis()).unwrap_or(u64::MAX);
    let now = tenant.router().now_ms();
    // What is of the future was noted by a clock that was wrong.
    #[expect(clippy::cast_precision_loss, reason = "milliseconds are below 2^53")]
    let has_rested =
        |note: &Note| note.noted_ms <= now.saturating_sub(rest) as f64 || note.noted_ms > (now + rest) as f64;
    let request = |bucket: &Bucket| {
        let command = Command::new("ZRANGE").arg(&tenant.keys().notes(*bucket)).arg("0").arg(EDGES_AT_ONCE);
        Request::read(tenant.keys().buckets().slot(*bucket), command.arg("WITHSCORES"))
    };
    let answers = tenant.router().run(buckets.iter().map(request).collect()).await;
    let notes = |answer: Result<Answer>| {
        let notes = answer?.ok()?.into_array()?;
        let notes = notes.as_chunks::<2>().0.iter().map(Note::parse).collect::<Result<Vec<_>>>()?;
        Ok::<_, Error>(notes.into_iter().filter(has_rested).collect::<Vec<_>>())
    };
    let read =
        buckets.iter().zip(answers).map(|(bucket, answer)| (*bucket, notes(answer).unwrap_or_default()));
    read.filter(|(_, notes)| !notes.is_empty()).collect()
}

/// Looks at edges of a bucket, and drops their notes. What can't be looked at now has its note made new.
async fn look_at_all(journal: &Arc<Journal>, bucket: Bucket, notes: &[Note]) -> Result<()> {
    let tenant = &journal.tenant;
    let (mut looked_at, mut left) = (Vec::new(), Vec::new());
    match look_at(journal, notes).await {
        Ok(()) => looked_at.extend(notes),
        // H103: each by itself, or all wait for the one whose server is away.
        Err(_) => {
            for note in notes {
                match look_at(journal, std::slice::from_ref(note)).await {
                    Ok(()) => looked_at.push(note),
                    Err(e) => {
                        tracing::debug!(
                            "whether {} follows {} is asked later: {e}",
                            note.reader,
                            note.author
                        );
                        left.push(note);
                    }
                }
            }
        }
    }
    let (key, slot) = (tenant.keys().notes(bucket), tenant.keys().buckets().slot(bucket));
    if !looked_at.is_empty() {
        // H87: as they were noted: an edge that was written again meanwhile is noted anew, and that note stays.
        let drop =
            notes_drop(key.clone(), looked_at.iter().map(|note| (note.noted_ms, note.member.as_slice())));
        tenant.router().call(Request::write(slot, drop)).await?;
    }
    if !left.is_empty() {
        let renew = Command::new("ZADD").arg(&key).arg("XX");
        let now = tenant.router().now_ms();
        let renew = left.iter().fold(renew, |renew, note| renew.arg(now).arg(&note.member));
        tenant.router().call(Request::write(slot, renew)).await?;
    }
    Ok(())
}

/// Asks their followers about these edges. Those whose follow isn't there leave a task each.
async fn look_at(journal: &Arc<Journal>, notes: &[Note]) -> Result<()> {
    let tenant = &journal.tenant;
    let asked = notes.iter().map(|note| Ok((tenant.following(note.reader)?, note.author)));
    let mut said = TouchedServers::new();
    let since = tenant.sets().scores_said(&asked.collect::<Result<Vec<_>>>()?, &mut said).await?;
    // H86: that a follow is there must last, or its edge has to be looked at once more.
    tenant.router().fence(&said).await?;
    for (note, since) in notes.iter().zip(since) {
        let &Note { reader, author, is_request, .. } = note;
        let is_wrong = match (is_request, since) {
            // Whoever follows may be listed as waiting all the same (H127).
            (true, _) => is_listed_wrongly(tenant, reader, author).await?,
            (false, Some(_)) => false,
            // Who has unfollowed in the meantime has no edge any more, as a rule.
            (false, None) => tenant.followers(author)?.score(&reader).await?.is_some(),
        };
        if is_wrong {
            if !is_request {
                meters::stray_edge();
            }
            let task = PairTask { reader, author, may_drop: false };
            journal::add(journal, tenant.bucket(reader), task).await?;
        }
    }
    Ok(())
}
