//! Pages: what a request asks for, and the `Link` header that says where to go on.

use std::fmt::Display;

use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::escape::push_percent;
use super::json::{Json, json_text};
use super::params::{ParamTree, Params};

/// The highest id that there is; whatever is asked for above it is the newest.
const ID_MAX: u64 = i64::MAX as u64;
/// Parameters that say where a page begins: a link has its own.
const CURSORS: [&str; 4] = ["max_id", "since_id", "min_id", "offset"];

/// The lengths of pages of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit {
    /// Where a request doesn't say.
    pub default: usize,
    /// Whatever a request says.
    pub max: usize,
}

impl PageLimit {
    /// So many by default, and at most twice as many.
    pub const fn new(default: usize) -> Self {
        Self { default, max: 2 * default }
    }

    /// Reads `limit`: absent, 0 and what is no number are the default, a sign doesn't count, and too many are the most.
    pub fn of(self, params: &ParamTree) -> usize {
        match params.text("limit").map_or(0, |text| leading_number(text).unsigned_abs()) {
            0 => self.default,
            limit => usize::try_from(limit).unwrap_or(usize::MAX).min(self.max),
        }
    }
}

/// A request for a page. Each bound leaves out the id itself, which needn't exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// How many, at least 1.
    pub limit: usize,
    /// Only what is older.
    pub max_id: Option<u64>,
    /// Only what is newer, the newest first; `None` beside `min_id`.
    pub since_id: Option<u64>,
    /// Only what is newer, and of that what is next to it.
    pub min_id: Option<u64>,
}

impl PageRequest {
    /// Reads `limit`, `max_id`, `since_id` and `min_id`.
    ///
    /// As in Mastodon what is no number is 0: nothing is older than it, everything is newer. Empty ones are absent, and
    /// higher ones than any id that there can be are the highest.
    pub fn of(params: &ParamTree, limit: PageLimit) -> Self {
        let cursor = |name: &str| {
            let number = leading_number(params.filled(name)?);
            Some(u64::try_from(number).unwrap_or(0).min(ID_MAX))
        };
        let (max_id, min_id) = (cursor("max_id"), cursor("min_id"));
        let since_id = if min_id.is_some() { None } else { cursor("since_id") };
        Self { limit: limit.of(params), max_id, since_id, min_id }
    }

    /// Whether no id can be on this page, whatever there is.
    pub fn is_void(&self) -> bool {
        let above = self.since_id.max(self.min_id).unwrap_or(0);
        self.max_id.is_some_and(|below| below <= above + 1)
    }
}

impl PageRequest {
    /// Gives what is on this page of all that there is, which stands in the order of its ids, the highest first.
    pub fn of_ids<T>(self, all: &[T], id: impl Fn(&T) -> u64) -> &[T] {
        let begins = all.partition_point(|one| self.max_id.is_some_and(|below| id(one) >= below));
        let ends =
            all.partition_point(|one| self.since_id.max(self.min_id).is_none_or(|above| id(one) > above));
        let between = all.get(begins..ends).unwrap_or_default();
        let limit = self.limit.min(between.len());
        match self.min_id {
            Some(_) => &between[between.len() - limit..],
            None => &between[..limit],
        }
    }
}

/// The number that a text begins with, 0 if with none; no further than the largest there is.
fn leading_number(text: &str) -> i128 {
    let text = text.trim_start();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.bytes().map_while(|b| b.is_ascii_digit().then(|| i128::from(b - b'0')));
    sign * digits.fold(0, |number, digit| (number * 10 + digit).min(i128::from(u64::MAX)))
}

/// The links of a page to those beside it: absolute URLs of the request with other cursors.
#[derive(Debug, Clone)]
pub struct PageLinks {
    /// The URL up to the cursor, with `?` or `&` behind it.
    base: String,
    next: Option<(&'static str, String)>,
    prev: Option<(&'static str, String)>,
}

impl PageLinks {
    /// The links of what was asked for with this URI, at a server that the world knows by `public_url` (without a slash
    /// behind it). All parameters of its query stay but those that say where a page begins.
    pub fn new(public_url: &str, uri: &Uri) -> Self {
        let mut base = format!("{public_url}{}?", uri.path());
        let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        for pair in pairs {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decoded(name), decoded(value));
            if CURSORS.contains(&name.as_str()) {
                continue;
            }
            push_percent(&mut base, &name);
            base.push('=');
            push_percent(&mut base, &value);
            base.push('&');
        }
        Self { base, next: None, prev: None }
    }

    /// Links a page of older ones: `max_id` is the last of this page, or a cursor.
    #[must_use]
    pub fn older(self, max_id: impl Display) -> Self {
        self.next("max_id", max_id)
    }

    /// Links a page of newer ones: `min_id` is the first of this page, or a cursor.
    #[must_use]
    pub fn newer(self, min_id: impl Display) -> Self {
        Self { prev: Some(("min_id", min_id.to_string())), ..self }
    }

    /// Links a next page that another parameter names: `offset`.
    #[must_use]
    pub fn next(self, name: &'static str, cursor: impl Display) -> Self {
        Self { next: Some((name, cursor.to_string())), ..self }
    }

    /// The header, the next page first; `None`: there is no link.
    pub fn header(&self) -> Option<HeaderValue> {
        let mut links = String::new();
        for (to, rel) in [(&self.next, "next"), (&self.prev, "prev")] {
            let Some((name, cursor)) = to else { continue };
            let comma = if links.is_empty() { "" } else { ", " };
            links.push_str(&format!("{comma}<{}{name}=", self.base));
            push_percent(&mut links, cursor);
            links.push_str(&format!(">; rel=\"{rel}\""));
        }
        if links.is_empty() { None } else { HeaderValue::from_str(&links).ok() }
    }

    fn on(&self, mut response: Response) -> Response {
        if let Some(links) = self.header() {
            response.headers_mut().insert(header::LINK, links);
        }
        response
    }
}

fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned()
}

/// A page as an answer: an array, and its links in the header. An empty one may have one, too: where nothing of what
/// was looked at shows, it goes on there.
#[derive(Debug, Clone)]
pub struct Paged<T>(pub Vec<T>, pub PageLinks);

impl<T: Serialize> IntoResponse for Paged<T> {
    fn into_response(self) -> Response {
        self.1.on(Json(self.0).into_response())
    }
}

/// An array that is text already, with links to the pages beside it.
#[derive(Debug, Clone)]
pub struct PagedText(pub String, pub PageLinks);

impl IntoResponse for PagedText {
    fn into_response(self) -> Response {
        self.1.on(json_text(self.0))
    }
}

impl Params {
    /// Reads what a page is asked for.
    pub fn page(&self, limit: PageLimit) -> PageRequest {
        PageRequest::of(self, limit)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(query: &str) -> PageRequest {
        Params::of_form(query.as_bytes()).unwrap().page(PageLimit::new(20))
    }

    fn links(uri: &str) -> PageLinks {
        PageLinks::new("https://tide.example", &uri.parse().unwrap())
    }

    #[test]
    fn a_limit_is_clamped() {
        let limits =
            [("", 20), ("0", 20), ("junk", 20), ("7", 7), ("-7", 7), ("40", 40), ("41", 40), ("5x", 5)];
        for (limit, wanted) in limits {
            assert_eq!(page(&format!("limit={limit}")).limit, wanted, "{limit}");
        }
        assert_eq!(page("limit=99999999999999999999999999999999999999999999").limit, 40);
        assert_eq!(page("").limit, 20);
    }

    #[test]
    fn cursors_are_numbers_or_0() {
        let cursor = |text: &str| page(&format!("max_id={text}")).max_id;
        assert_eq!(cursor(""), None);
        assert_eq!(cursor("8"), Some(8));
        assert_eq!(cursor("junk"), Some(0));
        assert_eq!(cursor("-3"), Some(0));
        assert_eq!(cursor("9223372036854775808"), Some(ID_MAX));
        assert!(page("max_id=1").is_void() && page("max_id=junk").is_void() && !page("max_id=2").is_void());
        assert!(
            page("max_id=9&since_id=8").is_void() && page("max_id=3&min_id=99999999999999999999").is_void()
        );
        assert!(!page("min_id=9223372036854775807").is_void() && !page("").is_void());
        let both = page("min_id=2&since_id=7&max_id=9");
        assert_eq!((both.min_id, both.since_id, both.max_id), (Some(2), None, Some(9)));
    }

    #[test]
    fn a_page_of_ids_is_what_stands_next_to_its_bounds_whether_these_are_there_or_not() {
        let all = [9, 7, 5, 3, 1];
        let on = |query: &str| page(query).of_ids(&all, |id| *id).to_vec();
        assert_eq!(on("limit=2"), [9, 7]);
        assert_eq!((on("limit=2&max_id=7"), on("limit=2&max_id=6")), (vec![5, 3], vec![5, 3]));
        assert_eq!((on("limit=2&since_id=2"), on("limit=2&min_id=2")), (vec![9, 7], vec![5, 3]));
        assert_eq!((on("min_id=3&max_id=9"), on("max_id=3&min_id=7")), (vec![7, 5], vec![]));
        assert_eq!((on("max_id=1"), on("min_id=9")), (vec![], vec![]));
    }

    #[test]
    fn a_link_goes_to_the_next_page_first_and_keeps_what_was_asked() {
        let links =
            links("/api/v1/timelines/tag/a%C3%A4?limit=1&any[]=x%20y&max_id=9&local").older(5).newer("7<");
        let base = "<https://tide.example/api/v1/timelines/tag/a%C3%A4?limit=1&any%5B%5D=x%20y&local=&";
        let wanted = format!("{base}max_id=5>; rel=\"next\", {base}min_id=7%3C>; rel=\"prev\"");
        assert_eq!(links.header().unwrap(), wanted);
    }

    #[test]
    fn a_page_has_the_links_that_it_is_given_whether_anything_shows_on_it_or_not() {
        let none: Paged<u8> = Paged(Vec::new(), links("/x"));
        assert!(!none.into_response().headers().contains_key(header::LINK));
        let empty: Paged<u8> = Paged(Vec::new(), links("/x").older(5));
        let text = PagedText("[]".into(), links("/x").older(5));
        for answer in [empty.into_response(), text.into_response()] {
            assert_eq!(answer.headers()[header::LINK], "<https://tide.example/x?max_id=5>; rel=\"next\"");
        }
    }

    proptest! {
        #[test]
        fn whatever_was_asked_a_link_is_one_and_is_read_as_it_was(query in "[a-c=&%0-9<>\"\\[\\]é+]{0,40}") {
            if let Ok(uri) = format!("/x?{query}").parse::<Uri>() {
                let header = PageLinks::new("http://h", &uri).older(3).header().unwrap();
                let header = header.to_str().unwrap();
                prop_assert_eq!(header.matches(['<', '>', '"']).count(), 4);
                let back = header.strip_prefix("<http://h/x?").unwrap().split('>').next().unwrap();
                if let Ok(asked) = Params::of_form(uri.query().unwrap_or_default().as_bytes()) {
                    let back = Params::of_form(back.as_bytes()).unwrap();
                    for name in asked.names() {
                        prop_assert_eq!(asked.text(name), back.text(name));
                    }
                }
            }
        }

        #[test]
        fn any_request_is_a_page(limit in ".{0,8}", max in "-?[0-9]{0,25}|.{0,8}", min in "-?[0-9]{0,25}") {
            let json = serde_json::json!({"limit": limit, "max_id": max, "min_id": min}).to_string();
            let page = Params::of_json(json.as_bytes()).unwrap().page(PageLimit::new(20));
            prop_assert!((1..=40).contains(&page.limit));
            page.is_void();
        }
    }
}
