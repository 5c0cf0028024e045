//! The decisions of a tenant.

use std::collections::BTreeMap;

use super::{fcall, fcall_ro};
use crate::cluster::Command;

/// On what grounds homes are cut and dropped, which are filled anew where they are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grounds {
    /// The tenant's decision of that number: where another one is known, nothing goes.
    Decision(u32),
    /// Nothing was decided yet, and these are an instance's own settings: where a decision is known, nothing goes.
    Own,
    /// Nothing was decided yet, and a tool has no settings that count: nothing goes.
    Nothing,
}

/// Writes the record of a new tenant, with what it decides from its beginning on; one that is there gets what it lacks
/// of its layout, format and buckets. Answers with 1 if it is new.
pub(crate) fn tenant_begin(
    record: Vec<u8>,
    format: u32,
    buckets: u16,
    decided: &BTreeMap<Vec<u8>, Vec<u8>>,
) -> Command {
    let command = fcall("tenant_begin", &[record]).arg(format).arg(buckets);
    decided.iter().fold(command, |command, (field, value)| command.arg(field).arg(value))
}

/// Writes a decision into the tenant's record, or into a bucket's key, unless one stands there that is not older; of
/// the same one what is missing. Answers with all fields as they stand there then.
pub(crate) fn decision_set(key: Vec<u8>, number: u32, fields: &BTreeMap<Vec<u8>, Vec<u8>>) -> Command {
    let command = fcall("decision_set", &[key]).arg(number);
    fields.iter().fold(command, |command, (field, value)| command.arg(field).arg(value))
}

/// Asks which of these commands the user may not use on a key like that. Answers with those.
pub(crate) fn rights_missing<'a>(key: &[u8], commands: impl Iterator<Item = &'a str>) -> Command {
    commands.fold(fcall_ro("rights_missing", &[]).arg(key), |asked, command| asked.arg(command))
}

/// Pushes the decision that a change of a set follows from; `None`: from no decision, so none is compared.
pub(super) fn push_decision(command: Command, decision: Option<u32>) -> Command {
    match decision {
        Some(number) => command.arg(number),
        None => command.arg(""),
    }
}

/// On what grounds homes go; `None`: somebody says so by hand.
pub(super) fn push_grounds(command: Command, grounds: Option<Grounds>) -> Command {
    match grounds {
        Some(Grounds::Decision(number)) => command.arg(number),
        Some(Grounds::Own) => command.arg("own"),
        Some(Grounds::Nothing) => command.arg("none"),
        None => command.arg(""),
    }
}
