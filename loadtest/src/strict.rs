//! `--strict`: what a command claims of what it measured reaches its exit code.

use clap::Args;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// All was carried out, and nothing is wrong.
    Right,
    /// Something was not carried out, or is not as it has to be.
    Wrong,
    /// A claim is not met, and that was asked for.
    Unmet,
}

impl From<bool> for End {
    fn from(is_right: bool) -> Self {
        if is_right { Self::Right } else { Self::Wrong }
    }
}

/// Whether claims count.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Strict {
    /// Exit code 3, if a claim is not met or could not be judged: which one is told. Without this it is told only
    #[arg(long = "strict")]
    pub(crate) is_on: bool,
}

impl Strict {
    /// How a command ends that was carried out (or not), and whose claims these are not met. What was not carried out
    /// is worse: claims of it say nothing.
    pub(crate) fn end(self, is_right: bool, unmet: &[String]) -> End {
        if !is_right || !self.is_on || unmet.is_empty() {
            return is_right.into();
        }
        unmet.iter().for_each(|claim| eprintln!("not met (--strict): {claim}"));
        End::Unmet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_count_only_if_that_was_asked_for_and_all_was_carried_out() {
        let (strict, lenient) = (Strict { is_on: true }, Strict { is_on: false });
        let unmet = ["it costs more".to_owned()];
        assert_eq!([strict.end(true, &[]), strict.end(true, &unmet)], [End::Right, End::Unmet]);
        assert_eq!([strict.end(false, &[]), strict.end(false, &unmet)], [End::Wrong; 2]);
        assert_eq!([lenient.end(true, &unmet), lenient.end(false, &unmet)], [End::Right, End::Wrong]);
    }
}
