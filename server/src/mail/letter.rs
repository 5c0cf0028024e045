//! The texts of letters.

use lettre::message::Mailbox;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::{Address, Message};

const AUTOMATIC: HeaderName = HeaderName::new_from_ascii_str("Auto-Submitted");

/// The purpose of a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LetterKind {
    /// Somebody has signed up with this address.
    Confirmation,
    /// Somebody wants its account to have this address.
    NewAddress,
    /// The account has another address now: to the old one.
    AddressChanged,
    /// Somebody has forgotten its password.
    Password,
}

impl LetterKind {
    /// Its name in metrics and the log.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Confirmation => "confirmation",
            Self::NewAddress => "new_address",
            Self::AddressChanged => "address_changed",
            Self::Password => "password",
        }
    }
}

/// A letter to one address.
#[derive(Clone)]
pub(crate) struct Letter {
    pub(crate) kind: LetterKind,
    pub(crate) to: String,
    pub(crate) subject: String,
    pub(crate) text: String,
}

/// It may have a link in it that is as good as a password.
impl std::fmt::Debug for Letter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Letter").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Letter {
    /// Whether a letter can be sent to what somebody calls its address.
    pub(crate) fn can_go_to(address: &str) -> bool {
        address.parse::<Address>().is_ok()
    }

    /// Confirms the address of a sign-up.
    pub(crate) fn confirmation((title, login): (&str, &str), to: &str, link: &str) -> Self {
        let text = format!(
            "Hello @{login},\n\nsomebody, probably you, has signed up at {title} with this address. Follow this link \
             within two days to confirm that it is yours:\n\n{link}\n\nIf it was not you, do nothing.\n"
        );
        Self::new(LetterKind::Confirmation, title, "Confirm your e-mail address", to, text)
    }

    /// Confirms an address that an account is to have.
    pub(crate) fn new_address((title, login): (&str, &str), to: &str, link: &str) -> Self {
        let text = format!(
            "Hello @{login},\n\nyour account at {title} is to have this e-mail address. Follow this link within a day \
             to say so:\n\n{link}\n\nIf that was not you, do nothing.\n"
        );
        Self::new(LetterKind::NewAddress, title, "Confirm your new e-mail address", to, text)
    }

    /// Tells an address that it is an account's no more. It doesn't say which address is.
    pub(crate) fn address_changed((title, login): (&str, &str), to: &str) -> Self {
        let text = format!(
            "Hello @{login},\n\nyour account at {title} has another e-mail address now, and letters go there. If that \
             was not you, somebody else knows your password: write to whoever runs the site.\n"
        );
        Self::new(LetterKind::AddressChanged, title, "Your e-mail address has changed", to, text)
    }

    /// Lets somebody choose another password.
    pub(crate) fn password((title, login): (&str, &str), to: &str, link: &str) -> Self {
        let text = format!(
            "Hello @{login},\n\nsomebody, probably you, has asked for another password at {title}. Follow this link \
             within an hour to choose one; it works once, and logs you out everywhere:\n\n{link}\n\nIf it was not \
             you, do nothing: your password stays as it is.\n"
        );
        Self::new(LetterKind::Password, title, "Choose another password", to, text)
    }

    fn new(kind: LetterKind, title: &str, subject: &str, to: &str, text: String) -> Self {
        // A title is the site's own; it may have lines all the same.
        let plain: String = title.chars().filter(|c| !c.is_control()).collect();
        Self { kind, to: to.to_owned(), subject: format!("{plain}: {subject}"), text }
    }

    /// As it is sent; `None`: it can't be, to that address.
    pub(super) fn message(&self, from: &Mailbox) -> Option<Message> {
        // Parsed, not pasted together: what is no address becomes no header.
        let to = Mailbox::new(None, self.to.parse().ok()?);
        let message = Message::builder()
            .from(from.clone())
            .to(to)
            .subject(&self.subject)
            .message_id(Some(format!("<{:032x}@{}>", rand::random::<u128>(), from.email.domain())))
            .header(ContentType::TEXT_PLAIN)
            // Nobody's holiday answers it.
            .raw_header(HeaderValue::new(AUTOMATIC, "auto-generated".into()))
            .body(self.text.clone());
        message.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(title: &str, to: &str) -> Option<String> {
        let from = "Tide <no-reply@tide.example>".parse().unwrap();
        let letter = Letter::confirmation((title, "ada"), to, "https://tide.example/auth/confirm?token=x");
        assert!(!format!("{letter:?}").contains("token"));
        letter.message(&from).map(|message| String::from_utf8(message.formatted()).unwrap())
    }

    #[test]
    fn nothing_that_anybody_chooses_becomes_a_header() {
        let plain = sent("Tide", "ada@example.org").unwrap();
        assert!(
            plain.contains("\r\nMessage-ID: <") && plain.contains("\r\nAuto-Submitted: auto-generated\r\n")
        );
        assert!(plain.contains("To: ada@example.org\r\n") && plain.contains("\r\nSubject: Tide: Confirm"));
        let sly = sent("Tide\r\nBcc: eve@example.org", "ada@example.org").unwrap();
        let (head, _) = sly.split_once("\r\n\r\n").unwrap();
        assert!(!head.contains("\nBcc"), "{head}");
        for sly in
            ["ada@example.org\r\nBcc: eve@example.org", "a\nb@example.org", "ada@exa mple.org", "ada", "a@b>"]
        {
            assert!(sent("Tide", sly).is_none() && !Letter::can_go_to(sly), "{sly}");
        }
    }
}
