//! The outcome of several writes that were sent together. Pure: no I/O, no clock.

use crate::cluster::{Answer, TouchedServers};
use crate::error::{Error, ErrorKind, Result};

/// Gives the outcome of several writes, all of which were waited for. H283: if one of them may have run, its caller
/// hears that, whatever surely was not written elsewhere.
pub(crate) fn ended_together(writes: impl Iterator<Item = Result<()>>) -> Result<()> {
    let errors: Vec<Error> = writes.filter_map(Result::err).collect();
    let unknown = errors.iter().position(|error| error.kind() == ErrorKind::Unknown);
    errors.into_iter().nth(unknown.unwrap_or_default()).map_or(Ok(()), Err)
}

/// Gives the outcome of writes to several servers by their answers, of which nothing is read but who gave them.
pub(crate) fn written_together(answers: Vec<Result<Answer>>, touched: &mut TouchedServers) -> Result<()> {
    ended_together(answers.into_iter().map(|answer| {
        let answer = answer?;
        touched.add(&answer);
        answer.ok().map(drop)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_have_written_something_is_not_told_that_nothing_was() {
        let ended = |kinds: &[Option<ErrorKind>]| {
            let write = |kind: &Option<ErrorKind>| kind.map_or(Ok(()), |kind| Err(Error::new(kind, "so")));
            ended_together(kinds.iter().map(write)).err().map(|error| error.kind())
        };
        let (away, unknown) = (Some(ErrorKind::Unavailable), Some(ErrorKind::Unknown));
        assert_eq!(ended(&[None, None]), None);
        assert_eq!(ended(&[None, away]), away);
        assert_eq!([ended(&[away, None, unknown]), ended(&[unknown, away])], [unknown; 2]);
    }
}
