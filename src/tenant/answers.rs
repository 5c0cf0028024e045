//! Reading what a batch answered, one after the other, and what a scan gives, a page at a time.

use super::Tenant;
use crate::cluster::{Answer, Batch, Command, Reply, Request};
use crate::error::{Error, Result};
use crate::keys::slot_of_key;

/// Elements that one step of a scan passes, and the most steps, unless its caller knows better.
const SCAN_COUNT: u32 = 500;
const STEPS_MAX: u32 = 1_000_000;

/// Answers in the order in which they were asked for.
#[derive(Debug)]
pub(crate) struct Answers(std::vec::IntoIter<Answer>);

impl Answers {
    pub(crate) async fn of(tenant: &Tenant, batch: Batch) -> Result<Self> {
        Ok(Self(tenant.run_all(batch).await?.into_iter()))
    }

    /// Of questions that one server answers one after the other.
    pub(crate) async fn ordered(
        tenant: &Tenant,
        requests: impl IntoIterator<Item = Request>,
    ) -> Result<Self> {
        let mut batch = Batch::new();
        batch.push_ordered(requests);
        Self::of(tenant, batch).await
    }

    /// The next answer, which may be an error of the command itself.
    pub(crate) fn answer(&mut self) -> Result<Answer> {
        self.0.next().ok_or_else(|| Error::internal("an answer is missing"))
    }

    /// The next reply, unless it is an error.
    pub(crate) fn next(&mut self) -> Result<Reply> {
        self.answer()?.ok()
    }
}

/// A walk through a hash or a sorted set, a page at a time. What is there all the time is met, maybe twice.
#[derive(Debug)]
pub(crate) struct Scan<'k> {
    command: &'static str,
    key: &'k [u8],
    cursor: Option<String>,
    count: u32,
    steps_left: u32,
}

impl<'k> Scan<'k> {
    /// `command`: HSCAN or ZSCAN.
    pub(crate) fn new(command: &'static str, key: &'k [u8]) -> Self {
        let cursor = Some("0".to_owned());
        Self { command, key, cursor, count: SCAN_COUNT, steps_left: STEPS_MAX }
    }

    /// One that passes so many elements in a step, and ends after so many steps.
    pub(crate) fn bounded(self, count: u32, steps: u32) -> Self {
        Self { count, steps_left: steps, ..self }
    }

    /// The next fields and their values, or members and their scores; `None`: that was all.
    pub(crate) async fn next(&mut self, tenant: &Tenant) -> Result<Option<Vec<(Vec<u8>, Vec<u8>)>>> {
        let Some(steps_left) = self.steps_left.checked_sub(1) else { return Ok(None) };
        let Some(cursor) = self.cursor.take() else { return Ok(None) };
        let scan = Command::new(self.command).arg(self.key).arg(&*cursor).arg("COUNT").arg(self.count);
        let page = tenant.router().call(Request::read(slot_of_key(self.key), scan)).await?;
        let (next, pairs) = scan_parts(page)?;
        (self.cursor, self.steps_left) = (next, steps_left);
        let pair = |pair: &[Reply]| Ok((pair[0].bytes()?.to_vec(), pair[1].bytes()?.to_vec()));
        pairs.chunks_exact(2).map(pair).collect::<Result<_>>().map(Some)
    }
}

/// The parts that one step of a scan gave: where it goes on, unless that was all, and what it met.
pub(crate) fn scan_parts(page: Reply) -> Result<(Option<String>, Vec<Reply>)> {
    let parts = <[_; 2]>::try_from(page.into_array()?);
    let [next, met] = parts.map_err(|_| Error::internal("a scan gives two parts"))?;
    let next = Some(next.text()?).filter(|next| *next != "0").map(str::to_owned);
    Ok((next, met.into_array()?))
}
