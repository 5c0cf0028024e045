//! The terms on which an account mutes another one: until when, and whether it is told all the same what that does.
//! Pure.
//!
//! They are a remark beside the mute itself, and only where there is something to say. A release that doesn't know the
//! second form takes such a mute for one that doesn't end, and of which nothing is told.

use super::ReaderState;

/// The first byte of a remark that says that the account is told what the other one does.
const TOLD_FORM: u8 = 2;
/// Stands there in place of an end.
const ENDLESS: u64 = 0;

/// The terms on which an account mutes another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MuteTerms {
    /// When it ends (ms); `None`: it doesn't.
    pub(crate) until: Option<u64>,
    /// Whether the account has notifications of what the other one does.
    pub(crate) is_told: bool,
}

impl MuteTerms {
    /// The remark that says so; `None`: there is none, of a mute for good of which nothing is told.
    pub(crate) fn to_remark(self) -> Option<Vec<u8>> {
        let told = || [&[TOLD_FORM][..], &self.until.unwrap_or(ENDLESS).to_be_bytes()].concat();
        let ends = || self.until.map(|until| ReaderState::remark(&until.to_be_bytes()));
        if self.is_told { Some(told()) } else { ends() }
    }

    /// Of a stored remark; of one that can't be read, as if nothing were said.
    pub(crate) fn of_remark(stored: &[u8]) -> Self {
        let told = stored.strip_prefix(&[TOLD_FORM]);
        let until = told.or_else(|| ReaderState::remarked(stored)).and_then(|until| until.try_into().ok());
        let Some(until) = until.map(u64::from_be_bytes) else { return Self::default() };
        let is_told = told.is_some();
        Self { until: Some(until).filter(|until| !is_told || *until != ENDLESS), is_told }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_read_as_they_were_written() {
        for until in [None, Some(70)] {
            for is_told in [false, true] {
                let terms = MuteTerms { until, is_told };
                let stored = terms.to_remark();
                assert_eq!(stored.is_none(), terms == MuteTerms::default());
                assert_eq!(
                    stored.map_or_else(MuteTerms::default, |stored| MuteTerms::of_remark(&stored)),
                    terms
                );
            }
        }
        // As the releases before wrote it.
        let ends = ReaderState::remark(&70_u64.to_be_bytes());
        assert_eq!(MuteTerms::of_remark(&ends), MuteTerms { until: Some(70), is_told: false });
    }

    #[test]
    fn a_remark_of_another_form_says_nothing() {
        let stored = ReaderState::remark(&70_u64.to_be_bytes());
        for other in [&b""[..], b"\x03........", b"\x01short", b"\x02short", &[&stored[..], b"more"].concat()]
        {
            assert_eq!(MuteTerms::of_remark(other), MuteTerms::default());
        }
    }
}
