//! Queries and forms: `a=1&b%5B%5D=2`. Pure.

use percent_encoding::percent_decode;

use super::tree::{Filling, Mistake, ParamNode};

/// Reads them into a tree. A sign of percent that begins no byte stands for itself.
pub(super) fn read(text: &[u8], filling: &mut Filling) -> Result<(), Mistake> {
    for pair in text.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
        let at = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        let (name, value) = (decoded(&pair[..at])?, decoded(pair.get(at + 1..).unwrap_or_default())?);
        filling.put(&name, ParamNode::Values(vec![value]))?;
    }
    Ok(())
}

fn decoded(text: &[u8]) -> Result<String, Mistake> {
    let spaced: Vec<u8> = text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    let bytes: Vec<u8> = percent_decode(&spaced).collect();
    String::from_utf8(bytes).map_err(|_| Mistake::NotUtf8)
}
