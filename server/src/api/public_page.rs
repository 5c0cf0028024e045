//! Pages behind the addresses of accounts, statuses and hashtags, for whoever follows a link in a browser: what a guest
//! sees, and that the rest is read in an application.
//!
//! Invariant: what is hidden, suspended or not there gets one and the same page.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use tideline::post::Tag;
use tideline::{Account, PagePost};

use super::accounts::{named, post_of};
use crate::app::{App, Shared};
use crate::auth::log_in::is_in;
use crate::entity::{self, Status};
use crate::form::FormPage;
use crate::http::escape::escaped;
use crate::http::{Refusal, Timestamp};
use crate::show;
use crate::show::status::{StatusReader, status};

type PublicPage = Result<FormPage, Refusal>;

/// `GET /@:name`, `GET /users/:name`
pub(super) async fn account(State(app): State<Shared>, Path(name): Path<String>) -> PublicPage {
    let Some(account) = shown_account(&app, &name).await? else { return Ok(missing()) };
    let account = show::account::account(app.site(), &account);
    let fields = account
        .fields
        .iter()
        .map(|field| format!("<dt>{}</dt><dd>{}</dd>", escaped(&field.name), field.value));
    let fields: String = fields.collect();
    let at = format!("@{}@{}", account.acct, app.settings.domain());
    let body = format!(
        "<h1>{name}</h1><p>{at}</p>{note}{fields}{read}",
        name = escaped(called(&account)),
        at = escaped(&at),
        note = account.note,
        fields = if fields.is_empty() { fields } else { format!("<dl>{fields}</dl>") },
        read = read_in(&app, &at),
    );
    Ok(FormPage::new(format!("{} (@{})", called(&account), account.acct), body).unsearched(account.noindex))
}

/// `GET /@:name/:id`, `GET /users/:name/statuses/:id`
pub(super) async fn post(State(app): State<Shared>, Path((name, id)): Path<(String, String)>) -> PublicPage {
    let Ok(id) = post_of(&id) else { return Ok(missing()) };
    let Some(author) = shown_account(&app, &name).await? else { return Ok(missing()) };
    let post = match app.engine.as_nobody().post(id).await.map_err(Refusal::from) {
        Err(refusal) if refusal.status() == StatusCode::NOT_FOUND => return Ok(missing()),
        post => post?,
    };
    let Some(status) = shown_post(&app, &post).filter(|_| post.said_by() == author.id) else {
        return Ok(missing());
    };
    let by = called(&status.account);
    let passed_on = status
        .reblog
        .as_deref()
        .map(|original| format!("<p>{} passes on:</p>{}", escaped(by), said(original)));
    let quoted =
        status.quote.as_ref().map(|quote| format!("<blockquote>{}</blockquote>", said(&quote.quoted_status)));
    let body = format!(
        "{}{}{}",
        passed_on.unwrap_or_else(|| said(&status)),
        quoted.unwrap_or_default(),
        read_in(&app, status.url.as_deref().unwrap_or_default()),
    );
    let title = format!("{by} (@{})", status.account.acct);
    let is_unsearched = status.account.noindex || status.group.as_ref().is_some_and(|group| group.noindex);
    Ok(FormPage::new(title, body).unsearched(is_unsearched))
}

/// `GET /tags/:tag`
pub(super) async fn tag(State(app): State<Shared>, Path(tag): Path<String>) -> FormPage {
    if Tag::new(&tag).is_err() {
        return missing();
    }
    let tag = format!("#{}", tag.trim_start_matches('#'));
    FormPage::new(tag.clone(), format!("<h1>{}</h1>{}", escaped(&tag), read_in(&app, &tag)))
}

/// The account of that name, if everybody may see it.
async fn shown_account(app: &App, name: &str) -> Result<Option<Account>, Refusal> {
    Ok(named(app, name).await?.filter(is_in))
}

fn shown_post(app: &App, post: &PagePost) -> Option<Status> {
    status(app.site(), StatusReader::default(), post)
}

fn called(account: &entity::Account) -> &str {
    match account.display_name.trim() {
        "" => &account.acct,
        name => name,
    }
}

/// A status in HTML: who says something, what, and when.
fn said(status: &Status) -> String {
    let content = match status.spoiler_text.as_str() {
        "" => status.content.clone(),
        warning => format!("<details><summary>{}</summary>{}</details>", escaped(warning), status.content),
    };
    format!(
        "<h1><a href=\"{page}\">{name}</a></h1>{content}<p>{when}</p>",
        page = escaped(&status.account.url),
        name = escaped(called(&status.account)),
        when = moment(status.created_at),
    )
}

fn moment(at: Timestamp) -> String {
    let text = at.to_string();
    let (day, time) = text.split_once('T').unwrap_or((&text, ""));
    format!("<time datetime=\"{text}\">{day}, {} UTC</time>", time.get(..5).unwrap_or_default())
}

/// Tells where somebody reads on.
fn read_in(app: &App, what: &str) -> String {
    format!(
        "<p>This site is read, and answered, in an application: open any app or web client for Mastodon, and look \
         there for <strong>{}</strong>. <a href=\"/\">About {}</a></p>",
        escaped(what),
        escaped(&app.settings.title),
    )
}

fn missing() -> FormPage {
    FormPage::notice("Nothing here", "There is nothing at this address, or nothing that everybody may see.")
        .status(StatusCode::NOT_FOUND)
}
