//! The fields of an account's record and of its credentials, as they are stored; docs/keys.md says what each holds and
//! who writes it.

/// Names the fields of a record.
pub(crate) enum RecordField {}

#[cfg_attr(not(feature = "registration"), expect(dead_code, reason = "one is the registration's"))]
impl RecordField {
    pub(crate) const STATE: &str = "s";
    pub(crate) const KIND: &str = "k";
    pub(crate) const IS_LOCKED: &str = "l";
    pub(crate) const MODE: &str = "m";
    pub(crate) const PUSHED_SINCE: &str = "b";
    pub(crate) const POSTS: &str = "p";
    pub(crate) const GRAPH_STAMP: &str = "g";
    pub(crate) const MARKS_STAMP: &str = "t";
    pub(crate) const LAST_READ_DAY: &str = "d";
    pub(crate) const FOLLOWING: &str = "nf";
    pub(crate) const BLOCKS: &str = "nb";
    pub(crate) const HIDES: &str = "nh";
    pub(crate) const TIES_STAMP: &str = "i";
    pub(crate) const FOLLOWERS: &str = "nr";
    pub(crate) const UNCOUNTED_SINCE: &str = "nd";
    pub(crate) const LOGIN: &str = "un";
    pub(crate) const REGISTERED_AT: &str = "at";
    pub(crate) const ARCHIVE_TOKEN: &str = "ar";
    pub(crate) const UNSETTLED: &str = "ae";
    pub(crate) const BROUGHT_BACK: &str = "tb";
    pub(crate) const POSTS_COUNTED: &str = "lp";
    pub(crate) const DIRECT_POSTS_COUNTED: &str = "ld";
    pub(crate) const GROUP_POSTS_COUNTED: &str = "lg";
    pub(crate) const MENTIONS_COUNTED: &str = "lm";
    pub(crate) const FOLLOWS_COUNTED: &str = "lf";
    pub(crate) const REPORTS_COUNTED: &str = "lr";
    pub(crate) const OWN_LIMITS: &str = "ol";
    pub(crate) const RECIPIENTS: &str = "nF";
    pub(crate) const AWAKE: &str = "fd";
    pub(crate) const MODE_BY_HAND: &str = "mf";
    pub(crate) const DOCUMENTS_STAMP: &str = "ds";
    /// One after the other, so that each stays short.
    pub(crate) const CHAT_MEMBERS: [&str; 8] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];
}

/// Names the fields of credentials.
pub(crate) enum CredentialField {}

#[cfg_attr(not(feature = "registration"), expect(dead_code, reason = "most are the registration's"))]
impl CredentialField {
    pub(crate) const CLAIMS: &str = "c";
    pub(crate) const LAST_ATTEMPT: &str = "v";
    pub(crate) const PASSWORD_HASH: &str = "h";
    pub(crate) const EMAIL: &str = "e";
    pub(crate) const SIGN_UP_TOKEN: &str = "k";
    pub(crate) const BEGINS_AS: &str = "s";
    pub(crate) const ATTEMPT: &str = "n";
    pub(crate) const BEGUN_AT: &str = "t";
    pub(crate) const WANTED: &str = "w";
    pub(crate) const LOGIN_TO_SHOW: &str = "u";
}

#[cfg(test)]
mod tests {
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
        let (here, page) = (include_str!("fields.rs"), include_str!("../docs/keys.md"));
        for (of, heading) in [
            ("impl RecordField {", "## Fields of a record"),
            ("impl CredentialField {", "## Fields of credentials"),
        ] {
            let rows = section(page, heading, "\n## ").lines().filter_map(|line| line.split('|').nth(1));
            let told: Vec<&str> = rows.flat_map(|names| quoted(names, '`')).collect();
            let named = quoted(section(here, of, "\n}"), '"');
            assert!(named.len() > 5, "{of}: {named:?}");
            assert!(named.iter().all(|field| told.contains(field)), "{named:?} and {told:?}");
        }
    }
}
