//! Requests, as the bytes that go out. Pure.

use serde_json::Value;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// A request: nothing in it may hold an end of a line.
#[derive(Debug, Clone)]
pub(crate) struct Ask<'a> {
    method: Method,
    path: &'a str,
    token: Option<&'a str>,
    key: Option<&'a str>,
    acting_as: Option<&'a str>,
    body: Option<Value>,
}

impl<'a> Ask<'a> {
    pub(crate) fn new(method: Method, path: &'a str) -> Self {
        Self { method, path, token: None, key: None, acting_as: None, body: None }
    }

    pub(crate) fn get(path: &'a str) -> Self {
        Self::new(Method::Get, path)
    }

    pub(crate) fn post(path: &'a str, body: Value) -> Self {
        Self::new(Method::Post, path).body(body)
    }

    /// With this as JSON; null: with nothing.
    pub(crate) fn body(self, body: Value) -> Self {
        Self { body: Some(body).filter(|body| !body.is_null()), ..self }
    }

    /// Signed in with this token.
    pub(crate) fn token(self, token: &'a str) -> Self {
        Self { token: Some(token), ..self }
    }

    /// Whoever sends it again with the same key means the same thing.
    pub(crate) fn key(self, key: &'a str) -> Self {
        Self { key: Some(key), ..self }
    }

    /// For this account: with a token of a service.
    #[cfg(feature = "verify")]
    pub(crate) fn acting_as(self, account: &'a str) -> Self {
        Self { acting_as: Some(account), ..self }
    }

    /// All of it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        use std::fmt::Write as _;
        let body = self.body.as_ref().map(ToString::to_string);
        let mut head = format!("{} {} HTTP/1.1\r\nHost: localhost\r\n", self.method.name(), self.path);
        let mut header = |name: &str, value: &str| {
            // Writing to a text can't fail.
            let _ = write!(head, "{name}: {value}\r\n");
        };
        if let Some(token) = self.token {
            header("Authorization", &format!("Bearer {token}"));
        }
        if let Some(key) = self.key {
            header("Idempotency-Key", key);
        }
        if let Some(account) = self.acting_as {
            header("Tideline-Act-As", account);
        }
        if let Some(body) = &body {
            header("Content-Type", "application/json");
            header("Content-Length", &body.len().to_string());
        } else if self.method != Method::Get {
            header("Content-Length", "0");
        }
        head.push_str("\r\n");
        head.push_str(body.as_deref().unwrap_or_default());
        head.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_says_how_long_it_is() {
        let plain = Ask::get("/a?b=c").token("t").bytes();
        assert_eq!(plain, b"GET /a?b=c HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer t\r\n\r\n");
        let none = Ask::new(Method::Delete, "/a").bytes();
        assert_eq!(none, b"DELETE /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
        let text = String::from_utf8(Ask::post("/a", json!({ "b": "\u{1f30a}" })).key("k").bytes()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let wanted = "Idempotency-Key: k\r\nContent-Type: application/json\r\nContent-Length: 12";
        assert!(head.ends_with(wanted) && body == "{\"b\":\"\u{1f30a}\"}", "{text}");
    }
}
