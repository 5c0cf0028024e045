//! Pull marks that are new: of follows whose author is still to be asked whether it is locked.

use crate::nonce::Nonce;

/// What a new mark begins with, as the functions know it too. Of others it is one in four thousand million.
pub(crate) const NEW_MARK: [u8; 4] = *b"new\0";

/// Whether the author of a follow with this mark is still to be asked whether it is locked.
pub(crate) fn is_new_mark(mark: &Nonce) -> bool {
    mark.starts_with(&NEW_MARK)
}
