//! Letters: what they say, and sending them over SMTP beside the calls that ask for them.
//!
//! Invariants kept here: nobody waits for a mail server; what waits for one has a bound and an end; neither an address
//! nor what a letter says gets into a log; what users have chosen can't become a header of its own.

mod letter;
mod sender;
mod settings;

pub(crate) use letter::Letter;
pub use sender::{LETTERS, LETTERS_RETRIED, LETTERS_WAITING};
pub(crate) use sender::{LetterPlace, Mailer};
pub use settings::{MailSecret, MailSettings, MailTls};
