//! A browser, as far as forms go: it keeps its cookie, and fills in what the last page's form had.

use std::fmt::Write as _;

use super::client::{Answer, Client};
use super::served::{Served, URL};
use tokio::net::TcpStream;

pub(crate) struct Browser<'s> {
    site: &'s Served,
    pub(crate) cookie: String,
    pub(crate) page: String,
    /// Whom a proxy says that it is.
    from: &'static str,
    /// Whether its answers are held against what is documented.
    is_checked: bool,
}

/// A form: where it goes, and its hidden fields.
pub(crate) type Form = (String, Vec<(String, String)>);

impl<'s> Browser<'s> {
    /// Opens a page of the site, or a link to it.
    pub(crate) async fn open(site: &'s Served, path: &str) -> (Self, Answer) {
        Self::open_from(site, path, "127.0.0.1").await
    }

    pub(crate) async fn open_from(site: &'s Served, path: &str, from: &'static str) -> (Self, Answer) {
        let mut browser = Self { site, cookie: String::new(), page: String::new(), from, is_checked: true };
        let answer = browser.get(path).await;
        (browser, answer)
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        let path = path.strip_prefix(URL).unwrap_or(path);
        let headers = [("Cookie", self.cookie.as_str()), ("X-Forwarded-For", self.from)];
        let answer = self.connect().await.send("GET", path, &headers, "").await;
        self.keep(&answer);
        answer
    }

    /// Takes any answer from now on: what stands in the store is broken.
    pub(crate) fn takes_anything(&mut self) {
        self.is_checked = false;
    }

    async fn connect(&self) -> Client<TcpStream> {
        match self.is_checked {
            true => self.site.connect().await,
            false => Client::new(TcpStream::connect(self.site.address()).await.unwrap()),
        }
    }

    fn keep(&mut self, answer: &Answer) {
        if let Some(cookie) = answer.header("set-cookie") {
            assert!(cookie.contains("HttpOnly; SameSite=Lax"), "{cookie}");
            self.cookie = cookie.split(';').next().unwrap().to_owned();
        }
        self.page = answer.text();
    }

    /// The form of the page that has a button for that, and in which that stands.
    pub(crate) fn form(&self, act: &str, has: &str) -> Form {
        let forms = self.page.split("<form method=\"post\" action=\"").skip(1);
        let button = format!("name=\"act\" value=\"{act}\"");
        let mut forms = forms.map(|form| form.split("</form>").next().unwrap());
        let form = forms.find(|form| form.contains(&button) && form.contains(has));
        let form = form.unwrap_or_else(|| panic!("no form for {act}: {}", self.page));
        let inputs = form.split("<input type=\"hidden\" name=\"").skip(1);
        let field = |input: &str| {
            let (name, rest) = input.split_once("\" value=\"").unwrap();
            let value = rest.split('"').next().unwrap();
            // As a browser does; the ampersand last.
            (name.to_owned(), value.replace("&quot;", "\"").replace("&lt;", "<").replace("&amp;", "&"))
        };
        let mut fields: Vec<_> = inputs.map(field).collect();
        fields.push(("act".into(), act.into()));
        (form.split('"').next().unwrap().to_owned(), fields)
    }

    /// Fills a form in, and sends it.
    pub(crate) async fn submit(&mut self, act: &str, typed: &[(&str, &str)]) -> Answer {
        self.submit_one(act, "", typed).await
    }

    /// The same of the one in which that stands.
    pub(crate) async fn submit_one(&mut self, act: &str, has: &str, typed: &[(&str, &str)]) -> Answer {
        let (path, mut fields) = self.form(act, has);
        fields.extend(typed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        self.post(&(path, fields), URL).await
    }

    /// Sends a form, from a page of that origin.
    pub(crate) async fn post(&mut self, (path, fields): &Form, origin: &str) -> Answer {
        let headers = [
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Cookie", &self.cookie),
            ("Origin", origin),
            ("X-Forwarded-For", self.from),
        ];
        let pairs = fields.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
        let body = pairs.collect::<Vec<_>>().join("&");
        let answer = self.connect().await.send("POST", path, &headers, &body).await;
        if matches!(answer.status, 200 | 422 | 429) {
            self.keep(&answer);
        }
        answer
    }
}

fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut to, byte| {
        if byte.is_ascii_alphanumeric() {
            to.push(char::from(byte));
        } else {
            write!(to, "%{byte:02X}").unwrap();
        }
        to
    })
}
