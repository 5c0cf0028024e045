//! Pull marks that are new: of follows whose author is still to be asked whether it is locked.

use crate::nonce::Nonce;

/// The first bytes of a new mark, as the functions know them too. Of others one in four thousand million begins with
/// them.
pub(crate) const NEW_MARK: [u8; 4] = *b"new\0";

/// Whether the author of a follow with this mark is still to be asked whether it is locked.
pub(crate) fn is_new_mark(mark: &Nonce) -> bool {
    mark.starts_with(&NEW_MARK)
}
