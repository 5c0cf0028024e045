//! Reports about accounts.

use super::super::super::data::Value;
use super::super::Case;
use super::{AGAIN, AUTHOR, case, data, hash};

/// The same of reports.
pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "report_add",
            AGAIN,
            data([]),
            &["r", "d", "n", "k"],
            [b"100", b"10", b"\x01......1", AUTHOR.as_bytes(), b"12345678{\"reporter\":7,", b"1000"],
        ),
        // Full: the newest one of account 7 makes room.
        case(
            "report_add",
            AGAIN,
            data([("r", reports()), ("n", hash([("\0\0\0\0\0\0\0\x07", "2")]))]),
            &["r", "d", "n", "k"],
            [b"3", b"10", b"id.....4", AUTHOR.as_bytes(), b"12345678{\"reporter\":9,", b"1000"],
        ),
        // Our own first sending, which failed before its token.
        case(
            "report_add",
            AGAIN,
            data([("r", reports()), ("n", hash([(AUTHOR, "1")]))]),
            &["r", "d", "n", "k"],
            [b"100", b"10", b"id.....1", AUTHOR.as_bytes(), b"12345678{\"reporter\":7,", b"1000"],
        ),
        // The oldest of those that are resolved goes.
        case(
            "report_move",
            AGAIN,
            data([("r", hash([("id.....4", "12345678{\"reporter\":7,")])), ("d", reports())]),
            &["r", "d", "n"],
            [b"id.....4", b"12345678", b"87654321{\"reporter\":7,", b"3", AUTHOR.as_bytes()],
        ),
        case(
            "report_move",
            AGAIN,
            data([("r", reports()), ("n", hash([(AUTHOR, "2")]))]),
            &["r", "d", "n"],
            [b"id.....1", b"12345678", b"87654321{\"reporter\":7,", b"100", AUTHOR.as_bytes()],
        ),
        case(
            "report_move",
            AGAIN,
            data([("d", reports()), ("r", hash([]))]),
            &["d", "r", "n"],
            [b"id.....1", b"12345678", b"87654321{\"reporter\":7,", b"", AUTHOR.as_bytes()],
        ),
    ]
}

/// Reports: two by one account, and one by another.
fn reports() -> Value {
    hash([
        ("id.....1", "12345678{\"reporter\":7,"),
        ("id.....2", "12345678{\"reporter\":77,"),
        ("id.....3", "12345678{\"reporter\":7,"),
    ])
}
