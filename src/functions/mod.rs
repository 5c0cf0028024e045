//! The server-side functions, one typed wrapper each; only these files call them.
//!
//! The code is in `lua/`. Its library's name, with which each function's begins, follows from the text: whoever changes
//! a letter of it makes another library, with nothing to remember. So two releases, and two builds, run side by side,
//! none ever replaces what another one calls, and a server that has lost the newer one says so instead of running an
//! older one. The router loads it where it is missing.

mod accounts;
mod archive;
mod clock;
mod counters;
mod followers;
mod fsck;
mod homes;
mod inbox;
mod journal;
mod lists;
mod modes;
mod names;
mod packed;
mod posts;
mod public;
mod registration;
mod reports;
mod sets;
mod settling;
mod tenant;
#[cfg(feature = "registration")]
mod tickets;
mod ties;
mod windows;
mod write;

pub(crate) use accounts::{
    AuthorSeen, CompareAnswer, Join, JoinAnswer, PairAnswer, PairLook, Settle, SettleAnswer, account_bury,
    account_create, account_read, author_look, field_drop, mark_renew, maybe_nonce, read_nonce, waiting_set,
};
pub(crate) use archive::{
    ArchiveBegin, ArchiveBeginAnswer, ArchiveMove, ArchiveMoveAnswer, ErasedPost, ErasedUnder, LeavingPost,
    MOVED_MAX, PostThaw, StayingPosts, ThawAnswer, ThawReason, ThawedList, TokenCase,
};
pub use clock::Clock;
pub(crate) use counters::{counter_add, parse_counter};
pub(crate) use followers::{followers_counted, followers_note};
pub(crate) use fsck::{
    ArchiveAccept, ArchiveAcceptAnswer, LISTED_AGAIN_MAX, orphan_drop, outbox_mend, parse_recount,
    piece_drop, posts_recount, set_recount,
};
pub(crate) use homes::{
    FillAnswer, HomeFit, home_begin, home_deliver, home_deliver_to, home_drop, home_finish, home_sweep,
    home_tidy,
};
pub(crate) use inbox::{inbox_add, inbox_drop};
pub(crate) use journal::{
    FanoutFacts, journal_add, journal_checkpoint, journal_strike, journal_take_over, lease_renew, lease_ttl,
    parse_added, parse_leases, parse_struck,
};
pub(crate) use lists::{LastRemoval, ListAnswer, ListChange, ListSet, list_drop, list_recount};
pub(crate) use modes::{DeliveryRates, ModeChanger, PullMarking, VisitAnswer, mode_set, pulls_add};
pub(crate) use names::{names_add, names_drop};
pub(crate) use posts::{
    ModerationStamp, PostChangeAnswer, PostVersion, PublicPlace, Publish, PublishAnswer, RepostPlace,
    TasksLeft, outbox_cut, outbox_import, outbox_page, post_delete, post_edit, post_moderate,
};
pub(crate) use public::{public_cut, public_drop};
#[cfg(feature = "registration")]
pub(crate) use registration::{
    FieldValue, SignUpAnswer, claims_begin, claims_settle, credentials_set, profile_set, signup_begin,
};
pub(crate) use registration::{
    Holder, claim_holder, claim_take, claim_value, claims_void, parse_claim, parse_taken,
};
pub(crate) use reports::{ReportAdd, ReportAddAnswer, report_ids, report_move};
pub(crate) use sets::{SetAdd, SetAddAnswer, SetRemove, SetRemoveAnswer, SpreadAnswer};
pub(crate) use sets::{count, guard_close, notes_drop, parse_count, set_split, string_drop};
pub(crate) use sets::{spread_beat, spread_begin, spread_copied, spread_drop, spread_end, spread_forget};
pub(crate) use settling::{
    ArchiveAgain, ArchiveAgainAnswer, UnsettledDeletion, archive_settled, burial_settled,
};
pub(crate) use tenant::{Grounds, decision_set, rights_missing, tenant_begin};
#[cfg(feature = "registration")]
pub(crate) use tickets::{
    StoredTicket, parse_taken_ticket, parse_ticket_change, ticket_drop, ticket_put, ticket_replace,
    ticket_take,
};
pub(crate) use ties::{TieLook, tie_look};
pub(crate) use windows::{ReachedLimit, TimeLimit, TimeLimitAnswer, TimeLimits};
pub(crate) use write::{
    BucketWrite, Cell, ExpectedValue, LeastState, MadeWrite, MemberPlace, WriteAnswer, WriteRefusal,
};

use std::sync::LazyLock;

use crate::bucket::mix64;
use crate::cluster::{Command, Library, Reply};
use crate::error::Error;
use crate::fields::{CredentialField, RecordField};

/// In the order in which one part uses another. Lua takes no more than 200 local names in one block: parts that none
/// uses have one of their own.
const CODE: &str = concat!(
    include_str!("lua/prelude.lua"),
    include_str!("lua/tenant.lua"),
    include_str!("lua/clock.lua"),
    include_str!("lua/inbox.lua"),
    include_str!("lua/sets.lua"),
    include_str!("lua/homes.lua"),
    include_str!("lua/rates.lua"),
    include_str!("lua/journal.lua"),
    include_str!("lua/archive.lua"),
    include_str!("lua/accounts.lua"),
    include_str!("lua/windows.lua"),
    "do\n",
    include_str!("lua/write.lua"),
    "end\n",
    include_str!("lua/ties.lua"),
    include_str!("lua/public.lua"),
    include_str!("lua/posts.lua"),
    "do\n",
    include_str!("lua/lists.lua"),
    "end\n",
    "do\n",
    include_str!("lua/followers.lua"),
    "end\n",
    "do\n",
    include_str!("lua/modes.lua"),
    "end\n",
    "do\n",
    include_str!("lua/registration.lua"),
    "end\n",
    "do\n",
    include_str!("lua/tickets.lua"),
    "end\n",
    "do\n",
    include_str!("lua/names.lua"),
    "end\n",
    "do\n",
    include_str!("lua/counters.lua"),
    "end\n",
    "do\n",
    include_str!("lua/reports.lua"),
    "end\n",
    "do\n",
    include_str!("lua/fsck.lua"),
    "end\n",
);

/// `tideline` and a hash of the code.
static LIBRARY: LazyLock<String> = LazyLock::new(|| name_of(&with_letters(CODE)));

/// The code with the library's name, as it is written: fields by their names.
pub(crate) fn code() -> String {
    CODE.replace("@LIBRARY@", &LIBRARY)
}

/// The library, as a router takes it.
pub fn library() -> Library {
    Library::new(&LIBRARY, &with_letters(&code()))
}

/// The code with the letters of fields in the place of their names, which a server would look up with each call.
pub(crate) fn with_letters(code: &str) -> String {
    let of = [("RECORD.", RecordField::ALL), ("CREDENTIALS.", CredentialField::ALL)];
    of.iter().fold(code.to_owned(), |code, (of, fields)| {
        let mut parts = code.split(of);
        let mut lettered = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| c != '_' && !c.is_ascii_uppercase()).unwrap_or(part.len());
            let (name, rest) = part.split_at(end);
            let letters = fields.iter().find(|(field, _)| *field == name).map(|(_, letters)| *letters);
            let letters = letters.unwrap_or_else(|| panic!("{of}{name} is no field"));
            lettered.extend(["'", letters, "'", rest]);
        }
        lettered
    })
}

/// A library's name: 48 bits tell the few builds apart that ever meet.
fn name_of(code: &str) -> String {
    // FNV-1a, as good as any where nobody looks for two texts with one hash.
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    format!("tideline{:012x}", mix64(code.bytes().fold(0xcbf2_9ce4_8422_2325, hash)) >> 16)
}

/// `FCALL tideline…_name numkeys key …`; arguments follow. For wrappers, and the simulation.
pub(crate) fn fcall(name: &str, keys: &[Vec<u8>]) -> Command {
    call("FCALL", name, keys)
}

/// Calls a function that writes nothing.
fn fcall_ro(name: &str, keys: &[Vec<u8>]) -> Command {
    call("FCALL_RO", name, keys)
}

fn call(verb: &str, name: &str, keys: &[Vec<u8>]) -> Command {
    let command = Command::new(verb).arg(format!("{}_{name}", *LIBRARY)).arg(keys.len());
    keys.iter().fold(command, Command::arg)
}

/// Calls a function with keys that are encoded already.
fn fcall_with(name: &str, keys: &Command) -> Command {
    let mut command = Command::new("FCALL").arg(format!("{}_{name}", *LIBRARY)).arg(keys.count());
    command.extend(keys);
    command
}

fn unexpected(function: &str, reply: &[Reply]) -> Error {
    Error::internal(format!("{function} answered {reply:?}, which this release does not know"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two builds had one name for different code: each replaced the other's at every start, and arguments of one went
    /// to the code of the other.
    #[test]
    fn the_librarys_name_follows_from_its_text() {
        let loaded = with_letters(CODE);
        assert_ne!(name_of(&loaded), name_of(&loaded.replacen("local", "local ", 1)));
        assert_eq!(name_of(&loaded), *LIBRARY);
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        assert!(LIBRARY.chars().all(is_name), "{}", *LIBRARY);
        assert!(!code().contains("@LIBRARY@"));
    }

    /// A call up to the bracket that ends it.
    fn within_brackets(call: &str) -> &str {
        let mut open = 0;
        let end = call.find(|c| {
            open += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            c == ')' && open == 0
        });
        &call[..end.unwrap_or(call.len())]
    }

    /// A letter that stands in the code itself is one more place to look for whoever changes what is stored.
    #[test]
    fn the_code_names_fields_and_what_is_loaded_has_their_letters() {
        let loaded = with_letters(CODE);
        assert_eq!(loaded.lines().count(), CODE.lines().count());
        assert!(loaded.contains("redis.call('HGET', record, 's')"), "what says whether an account is there");
        let is_field = |text: &str| {
            [RecordField::ALL, CredentialField::ALL].concat().iter().any(|(_, letters)| *letters == text)
        };
        // The arguments of commands of hashes, over several lines; and fields that are collected before. The state of
        // an account that is being registered is a value.
        let spells = |code: &str| -> Vec<String> {
            let calls = code.match_indices("call('H").map(|(at, _)| &code[at..]);
            let calls = calls.map(|call| within_brackets(call).to_owned());
            let tables = code.lines().filter(|line| line.contains("field")).map(str::to_owned);
            let all = calls.chain(tables).map(|text| text.replace("RECORD.STATE, 'u'", ""));
            let spells = |text: &String| {
                let parts: Vec<&str> = text.split('\'').collect();
                let in_place = |before: &str| before.trim_end().ends_with([',', '{', '=']);
                parts.chunks_exact(2).any(|two| in_place(two[0]) && is_field(two[1]))
            };
            all.filter(spells).collect()
        };
        assert_eq!(spells(CODE), Vec::<String>::new(), "fields that have names");
        for planted in [
            "x = redis.call('HGET', record, 's')\n",
            "redis.call('HMGET', keys[2], RECORD.STATE,\n    'i')\n",
            "fields = { 'pn', pulled }\n",
            "if fields[i] ~= 's' then\n",
        ] {
            assert_eq!(spells(planted).len(), 1, "{planted}");
        }
    }
}
