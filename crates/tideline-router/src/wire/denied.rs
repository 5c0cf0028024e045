//! A server's words when it turns us away, and what helps.

/// The server's words, with advice; `rights`: what its user needs for what was asked.
pub(crate) fn denied(code: &str, rest: &str, rights: &str) -> String {
    let said = format!("{code} {}", rest.trim_end_matches('.'));
    match code {
        "NOAUTH" => format!(
            "{said}: the server wants a password; put it into the URL, as in redis://:PASSWORD@HOST:PORT or \
             redis://USER:PASSWORD@HOST:PORT"
        ),
        "WRONGPASS" => format!("{said}: the user's name or the password in the URL is wrong"),
        "NOPERM" => format!("{said}; the user needs `{rights}`"),
        _ => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_of_being_turned_away_has_its_own_advice() {
        let told = |code, rest| denied(code, rest, "+info");
        let none = told("NOAUTH", "Authentication required.");
        assert!(none.starts_with("NOAUTH Authentication required: the server wants a password"), "{none}");
        assert!(none.contains("redis://:PASSWORD@HOST:PORT") && !none.contains("+info"), "{none}");
        let wrong = told("WRONGPASS", "invalid username-password pair or user is disabled.");
        assert!(wrong.ends_with("the user's name or the password in the URL is wrong"), "{wrong}");
        let right = told("NOPERM", "this user has no permissions to run the 'info' command");
        assert!(right.ends_with("command; the user needs `+info`"), "{right}");
        assert_eq!(told("ERR", "no idea"), "ERR no idea");
    }
}
