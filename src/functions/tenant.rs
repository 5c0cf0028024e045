//! What a tenant has decided.

use std::collections::BTreeMap;

use super::fcall;
use crate::cluster::Command;

/// Writes a decision into the tenant's record, or into a bucket's key, unless one stands there that is not older; of the same
/// one what is missing. Answers with all fields as they stand there then.
pub(crate) fn decision_set(key: Vec<u8>, number: u32, fields: &BTreeMap<Vec<u8>, Vec<u8>>) -> Command {
    let command = fcall("decision_set", &[key]).arg(number);
    fields.iter().fold(command, |command, (field, value)| command.arg(field).arg(value))
}

/// What a removal follows from; `None`: from no decision, so none is compared.
pub(super) fn push_decision(command: Command, decision: Option<u32>) -> Command {
    match decision {
        Some(number) => command.arg(number),
        None => command.arg(""),
    }
}
