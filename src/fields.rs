//! The fields of an account's record and of its credentials, as they are stored; docs/keys.md says what each holds and
//! who writes it. They have their names here, in Rust and in the code of the functions.

macro_rules! fields {
    ($($of:ident { $($name:ident = $letters:literal,)+ })+) => {$(
        impl $of {
            $(pub(crate) const $name: &str = $letters;)+
            /// Every field by its name, but for the members of chats, which have none each.
            pub(crate) const ALL: &[(&str, &str)] = &[$((stringify!($name), Self::$name)),+];
        }
    )+};
}

/// Names the fields of a record.
pub(crate) enum RecordField {}

/// Names the fields of credentials.
pub(crate) enum CredentialField {}

fields! {
    RecordField {
        STATE = "s",
        KIND = "k",
        IS_LOCKED = "l",
        MODE = "m",
        PUSHED_SINCE = "b",
        POSTS = "p",
        GRAPH_STAMP = "g",
        MARKS_STAMP = "t",
        LAST_READ_DAY = "d",
        FOLLOWING = "nf",
        BLOCKS = "nb",
        HIDES = "nh",
        TIES_STAMP = "i",
        FOLLOWERS = "nr",
        UNCOUNTED_SINCE = "nd",
        LOGIN = "un",
        REGISTERED_AT = "at",
        ARCHIVE_TOKEN = "ar",
        UNSETTLED = "ae",
        BROUGHT_BACK = "tb",
        POSTS_COUNTED = "lp",
        DIRECT_POSTS_COUNTED = "ld",
        GROUP_POSTS_COUNTED = "lg",
        MENTIONS_COUNTED = "lm",
        FOLLOWS_COUNTED = "lf",
        REPORTS_COUNTED = "lr",
        OWN_LIMITS = "ol",
        RECIPIENTS = "nF",
        AWAKE = "fd",
        MODE_BY_HAND = "mf",
        DOCUMENTS_STAMP = "ds",
        PULLS = "pn",
        RATES = "ra",
    }
    CredentialField {
        CLAIMS = "c",
        LAST_ATTEMPT = "v",
        PASSWORD_HASH = "h",
        EMAIL = "e",
        SIGN_UP_TOKEN = "k",
        BEGINS_AS = "s",
        ATTEMPT = "n",
        BEGUN_AT = "t",
        WANTED = "w",
        LOGIN_TO_SHOW = "u",
    }
}

impl RecordField {
    /// One after the other, so that each stays short.
    pub(crate) const CHAT_MEMBERS: [&str; 8] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of a file between a line that begins so and the next heading.
    fn section<'t>(text: &'t str, begin: &str, end: &str) -> &'t str {
        let rest = text.split_once(begin).expect("it is there").1;
        rest.split(end).next().expect("the first part")
    }

    fn quoted(text: &str, quote: char) -> Vec<&str> {
        text.split(quote).skip(1).step_by(2).collect()
    }

    #[test]
    fn every_field_is_in_the_table_of_keys() {
        let page = include_str!("../docs/keys.md");
        for (fields, further, heading) in [
            (RecordField::ALL, &RecordField::CHAT_MEMBERS[..], "## Fields of a record"),
            (CredentialField::ALL, &[], "## Fields of credentials"),
        ] {
            let rows = section(page, heading, "\n## ").lines().filter_map(|line| line.split('|').nth(1));
            let told: Vec<&str> = rows.flat_map(|names| quoted(names, '`')).collect();
            let named: Vec<&str> =
                fields.iter().map(|(_, letters)| *letters).chain(further.iter().copied()).collect();
            assert!(named.iter().all(|field| told.contains(field)), "{named:?} and {told:?}");
            let each: std::collections::BTreeSet<&&str> = named.iter().collect();
            assert_eq!(each.len(), named.len(), "two have one spelling: {named:?}");
        }
    }
}
