//! Plain text becomes HTML.

use std::ops::Range;

use tideline::post::{MentionedName, TextNames, WrittenTag};

use super::links::urls;
use crate::http::escape::{push, push_percent};

/// Letters of a URL that are shown, behind its scheme: clients show what is left as three dots.
const URL_SHOWN: usize = 30;
/// The relation of a text to what it links to: none.
const REL: &str = "nofollow noopener noreferrer";
/// The relation of a profile's field to what it links to: it may be the same one's.
const FIELD_REL: &str = "nofollow noopener noreferrer me";

/// The account that a mention means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MentionLink {
    /// Its login, as it is shown.
    pub name: String,
    /// Its page.
    pub url: String,
}

/// A piece that stands at a place of a text.
enum LinkedPiece<'t> {
    Url(&'t str),
    Mention(MentionLink),
    Hashtag(&'t WrittenTag, &'t str),
}

/// Makes HTML of a text: paragraphs where lines are blank between, and links for URLs, for hashtags, and for mentions
/// of whom `mentioned` knows; others stay text. `site` is the server's public URL. Of nothing but spaces `""`.
pub fn html(text: &str, site: &str, mentioned: impl Fn(&MentionedName) -> Option<MentionLink>) -> String {
    paragraphs(&linked(text, site, REL, mentioned))
}

/// Makes HTML of a field of a profile: without paragraphs, and whom it links to may tell by that whose profile it is.
pub fn field_html(text: &str, site: &str) -> String {
    linked(text, site, FIELD_REL, |_| None)
}

fn linked(
    text: &str,
    site: &str,
    rel: &'static str,
    mentioned: impl Fn(&MentionedName) -> Option<MentionLink>,
) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let parsed = TextNames::of(&text);
    let (mut html, mut done) = (String::with_capacity(text.len() * 2), 0);
    for (at, piece) in linked_pieces(&text, &parsed, mentioned) {
        // A name may be called like a scheme: what begins first counts.
        if at.start < done {
            continue;
        }
        push(&mut html, &text[done..at.start]);
        match piece {
            LinkedPiece::Url(url) => push_url(&mut html, url, rel),
            LinkedPiece::Mention(link) => push_mention(&mut html, &link),
            LinkedPiece::Hashtag(tag, written) => push_hashtag(&mut html, site, tag, written),
        }
        done = at.end;
    }
    push(&mut html, &text[done..]);
    html
}

/// All that is a link, by its place.
fn linked_pieces<'t>(
    text: &'t str,
    parsed: &'t TextNames,
    mentioned: impl Fn(&MentionedName) -> Option<MentionLink>,
) -> Vec<(Range<usize>, LinkedPiece<'t>)> {
    let urls = urls(text).into_iter().map(|at| (at.clone(), LinkedPiece::Url(&text[at])));
    let mentions = parsed.mentions.iter();
    let mentions =
        mentions.filter_map(|name| Some((name.at.clone(), LinkedPiece::Mention(mentioned(name)?))));
    let hashtags = parsed.hashtags.iter();
    let hashtags = hashtags.map(|tag| (tag.at.clone(), LinkedPiece::Hashtag(tag, &text[tag.at.clone()])));
    let mut all: Vec<_> = urls.chain(mentions).chain(hashtags).collect();
    all.sort_by_key(|(at, _)| at.start);
    all
}

/// Lines become paragraphs. No tag that is in them has a line's end.
fn paragraphs(html: &str) -> String {
    let mut made = String::with_capacity(html.len() + 16);
    let mut is_open = false;
    for line in html.lines() {
        match (line.trim().is_empty(), is_open) {
            (true, true) => made.push_str("</p>"),
            (true, false) => {}
            (false, true) => made.push_str("<br />"),
            (false, false) => made.push_str("<p>"),
        }
        is_open = !line.trim().is_empty();
        if is_open {
            made.push_str(line);
        }
    }
    if is_open {
        made.push_str("</p>");
    }
    made
}

/// A URL without its scheme and without its end, if it is long; a copy of what is shown has all of it.
fn push_url(html: &mut String, url: &str, rel: &str) {
    let scheme = url.find("://").map_or(0, |at| at + 3);
    let rest = &url[scheme..];
    let scheme = scheme + if rest.starts_with("www.") { 4 } else { 0 };
    let (scheme, rest) = url.split_at(scheme);
    let end = rest.char_indices().nth(URL_SHOWN).map_or(rest.len(), |(at, _)| at);
    let (shown, hidden) = rest.split_at(end);
    html.push_str("<a href=\"");
    push(html, url);
    html.push_str("\" target=\"_blank\" rel=\"");
    html.push_str(rel);
    html.push_str("\" translate=\"no\">");
    for (class, text) in [
        ("invisible", scheme),
        (if hidden.is_empty() { "" } else { "ellipsis" }, shown),
        ("invisible", hidden),
    ] {
        html.push_str("<span class=\"");
        html.push_str(class);
        html.push_str("\">");
        push(html, text);
        html.push_str("</span>");
    }
    html.push_str("</a>");
}

fn push_mention(html: &mut String, link: &MentionLink) {
    html.push_str("<span class=\"h-card\"><a href=\"");
    push(html, &link.url);
    html.push_str("\" class=\"u-url mention\">@<span>");
    push(html, &link.name);
    html.push_str("</span></a></span>");
}

/// `written` begins with its sign, whichever of the two it is.
fn push_hashtag(html: &mut String, site: &str, tag: &WrittenTag, written: &str) {
    html.push_str("<a href=\"");
    push(html, site);
    html.push_str("/tags/");
    push_percent(html, tag.tag.as_str());
    html.push_str("\" class=\"mention hashtag\" rel=\"tag\">#<span>");
    push(html, written.strip_prefix(['#', '\u{ff03}']).unwrap_or(written));
    html.push_str("</span></a>");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SITE: &str = "https://tide.example";

    fn of(text: &str) -> String {
        html(text, SITE, |name| {
            let is_here = name.host.as_deref().is_none_or(|host| host == "tide.example");
            let url = format!("{SITE}/@{}", name.name);
            (is_here && name.name.len() < 4).then(|| MentionLink { name: name.name.clone(), url })
        })
    }

    #[test]
    fn blank_lines_make_paragraphs_and_others_breaks() {
        assert_eq!(of("a\nb\r\n \n\nc\rd\n"), "<p>a<br />b</p><p>c<br />d</p>");
        assert_eq!((of(""), of(" \n\t\n ")), (String::new(), String::new()));
        assert_eq!(of("a & <b>"), "<p>a &amp; &lt;b&gt;</p>");
        assert_eq!(field_html("a\n\nb", SITE), "a\n\nb");
        let linked = field_html("https://a.example", SITE);
        assert!(linked.contains(" rel=\"nofollow noopener noreferrer me\" "), "{linked}");
    }

    #[test]
    fn urls_are_links_and_long_ones_are_shown_short() {
        let rel = "target=\"_blank\" rel=\"nofollow noopener noreferrer\" translate=\"no\"";
        let link = format!(
            "<p>(<a href=\"https://www.a.example/?x=1&amp;y=#z\" {rel}><span class=\"invisible\">https://www.</span>\
             <span class=\"\">a.example/?x=1&amp;y=#z</span><span class=\"invisible\"></span></a>)</p>"
        );
        assert_eq!(of("(https://www.a.example/?x=1&y=#z)"), link);
        let long = of("http://a.example/0123456789012345678901234567890");
        assert!(long.contains("<span class=\"ellipsis\">a.example/01234567890123456789</span>"), "{long}");
        assert!(long.contains("<span class=\"invisible\">01234567890</span></a>"), "{long}");
        for text in ["javascript://x", "data:text/html,x", "ftp://x"] {
            assert_eq!(of(text), format!("<p>{text}</p>"));
        }
    }

    #[test]
    fn names_that_are_known_and_hashtags_are_links() {
        let ada = "<span class=\"h-card\"><a href=\"https://tide.example/@ada\" class=\"u-url mention\">@<span>ada\
                   </span></a></span>";
        assert_eq!(of("@ada!"), format!("<p>{ada}!</p>"));
        assert_eq!(of("@ada@tide.example"), format!("<p>{ada}</p>"));
        assert_eq!(of("@nobody @ada@other.example"), "<p>@nobody @ada@other.example</p>");
        let tag = "<a href=\"https://tide.example/tags/gr%C3%BCn\" class=\"mention hashtag\" rel=\"tag\">#<span>\
                   Gr\u{fc}n</span></a>";
        assert_eq!(of("#Gr\u{fc}n"), format!("<p>{tag}</p>"));
        assert_eq!(of("\u{ff03}Gr\u{fc}n"), format!("<p>{tag}</p>"));
    }

    #[test]
    fn a_url_that_ends_like_an_attribute_is_none() {
        assert_eq!(text_of(&html("http://a.example/?b=", SITE, |_| None)), "http://a.example/?b=");
    }

    #[test]
    fn of_two_that_overlap_the_first_is_a_link() {
        let link = |name: &MentionedName| Some(MentionLink { name: name.name.clone(), url: SITE.into() });
        for (text, rest) in
            [("@http://a.example", "://a.example"), ("@a@http://b", "://b"), ("#http://c", "://c")]
        {
            let made = html(text, SITE, link);
            assert!(made.ends_with(&format!("{rest}</p>")) && made.matches("<a ").count() == 1, "{made}");
            assert!(text_of(&made).ends_with(rest) && !made.contains("_blank"), "{made}");
        }
    }

    /// The text of HTML; it panics where a tag is none of ours, or isn't closed.
    fn text_of(html: &str) -> String {
        let (mut rest, mut text, mut open) = (html, String::new(), Vec::new());
        while let Some(at) = rest.find(['<', '>', '"', '\'']) {
            text.push_str(&rest[..at]);
            let (tag, behind) = rest[at..].strip_prefix('<').unwrap().split_once('>').unwrap();
            rest = behind;
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "{html}");
            } else if tag == "br /" {
                assert_eq!(open, ["p"], "{html}");
            } else {
                let name = tag.split(' ').next().unwrap();
                assert!(["p", "a", "span"].contains(&name) && !tag.contains('<'), "{html}");
                // What stands outside of quotes: names of attributes, and an end. A URL may end with such a sign too.
                let outside: Vec<&str> = tag.split('"').step_by(2).collect();
                let (_, attributes) = outside.split_last().unwrap();
                let are_named = attributes.iter().all(|name| name.ends_with('='));
                assert!(tag.matches('"').count() % 2 == 0 && are_named && !tag.contains('\''), "{html}");
                open.push(name);
            }
        }
        assert!(open.is_empty(), "{html}");
        text.push_str(rest);
        let quotes =
            text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'");
        quotes.replace("&amp;", "&")
    }

    fn bare(text: &str) -> String {
        text.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect()
    }

    proptest! {
        #[test]
        fn nothing_of_a_text_is_markup_and_nothing_is_lost(
            text in "(https?://|@ada|@zz|#tag|<b>|</p>|&lt;|\\PC|[a-c<>\"'&@#/:.() \r\n]){0,40}|.{0,60}",
        ) {
            // A name is shown as its account is called, and the wide sign as the usual one.
            let name = |name: &MentionedName| {
                let url = format!("{SITE}/@{}", name.name);
                name.host.is_none().then(|| MentionLink { name: name.name.clone(), url })
            };
            let made = html(&text, SITE, name);
            prop_assert_eq!(bare(&text_of(&made)).replace('\u{ff03}', "#"), bare(&text).replace('\u{ff03}', "#"));
            prop_assert_eq!(made.is_empty(), text.trim().is_empty() || made.is_empty());
        }
    }
}
