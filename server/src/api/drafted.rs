//! New statuses, as requests describe them, and where they go: to their authors' followers, into a group or a chat.

use axum::http::StatusCode;
use tideline::post::{Draft, Visibility};
use tideline::{AccountId, ErrorKind, PublishedPost};

use super::accounts::{id_of, known, post_of};
use super::chats;
use super::groups;
use super::written;
use crate::app::App;
use crate::http::{Params, Refusal};
use crate::keep;
use crate::show::status::visibility_named;

/// A new post, as a request describes it.
pub(super) struct DraftedPost {
    draft: Draft,
    /// With whom the chat is that it begins, or goes on with; `None`: where it goes it says itself.
    direct_to: Option<Vec<AccountId>>,
}

impl From<Draft> for DraftedPost {
    fn from(draft: Draft) -> Self {
        Self { draft, direct_to: None }
    }
}

impl DraftedPost {
    /// Publishes it. `token`: of who may send it again.
    pub(super) async fn publish(
        self,
        app: &App,
        me: AccountId,
        token: Option<String>,
    ) -> Result<PublishedPost, Refusal> {
        let draft = Draft { token, ..self.draft };
        Ok(match self.direct_to {
            Some(others) => app.settled(app.engine.publish_direct(me, &others, &draft)).await?,
            None => app.settled(app.engine.publish(me, &draft)).await?,
        })
    }
}

/// Refuses what a status may have with Mastodon, and not here.
pub(super) fn served(params: &Params) -> Result<(), Refusal> {
    let is_later = params.has("poll") || !params.texts("media_ids").is_empty();
    if is_later || params.filled("scheduled_at").is_some() {
        return Err(Refusal::invalid("Polls, media and scheduled statuses are not served yet"));
    }
    Ok(())
}

/// Reads what a request says that a new post is. `token`: of who may send it again.
pub(super) async fn draft(
    app: &App,
    me: AccountId,
    params: &Params,
    token: Option<&str>,
) -> Result<DraftedPost, Refusal> {
    served(params)?;
    let text = params.text("status").unwrap_or_default();
    let warning = params.text("spoiler_text").unwrap_or_default();
    let (text, warning) = written::with_warning(text, warning);
    written::check(app, text, warning)?;
    let (mut draft, groups) = written::draft(app, text).await?;
    let usual = keep::usual::of(app, me).await?;
    draft.sensitive = params.flag("sensitive").unwrap_or(usual.sensitive);
    if !warning.is_empty() {
        draft = draft.content_warning(warning);
        draft.sensitive = true;
    }
    draft.language = params.filled("language").and_then(written::language).or(usual.language);
    draft.visibility = match params.filled("visibility") {
        Some(name) => {
            let visibility = visibility_named(name);
            Some(visibility.ok_or_else(|| Refusal::validation("Visibility is not included in the list"))?)
        }
        None => usual.visibility,
    };
    let chat = params.filled("chat").map(id_of).transpose()?;
    let (mut in_group, mut in_chat) = (None, None);
    if let Some(id) = params.filled("in_reply_to_id") {
        let id = post_of(id)?;
        let parent = app.engine.as_reader(me).post(id).await.map_err(|e| match e.kind() {
            ErrorKind::NotFound => Refusal::new(
                StatusCode::NOT_FOUND,
                "The post you are trying to reply to does not appear to exist.",
            ),
            _ => e.into(),
        })?;
        // Of a plain repost its original is answered.
        let original = parent.original.as_ref().map(|original| &original.post);
        let answered = parent.post.as_ref().filter(|post| !post.is_plain_repost()).or(original);
        in_group = answered.and_then(|post| post.group());
        in_chat = answered.and_then(|post| post.chat());
        draft = draft.reply_to(parent.subject());
    }
    if let Some(id) = params.filled("quoted_status_id") {
        let quoted = app.engine.as_reader(me).post(post_of(id)?).await?.subject();
        draft = draft.quoting(quoted);
    }
    if let Some(chat) = chat {
        return Ok(chats::into(draft, chat).into());
    }
    // What answers a message is one, unless something else is said.
    let answers_message = in_chat.is_some() && params.filled("visibility").is_none();
    if answers_message || draft.visibility == Some(Visibility::Direct) {
        return as_message(app, me, draft, (in_chat, &groups), token).await;
    }
    let groups: Vec<AccountId> = in_group.into_iter().chain(groups).collect();
    if !groups.is_empty() {
        draft = into_group(app, me, draft, (&groups, token)).await?;
    }
    Ok(draft.into())
}

/// A draft as a message of the chat that it answers, or of the one with whom it mentions.
async fn as_message(
    app: &App,
    me: AccountId,
    draft: Draft,
    (in_chat, groups): (Option<AccountId>, &[AccountId]),
    token: Option<&str>,
) -> Result<DraftedPost, Refusal> {
    let mentioned = draft.content.mentions.iter().copied().filter(|account| !groups.contains(account));
    let mentioned: Vec<AccountId> = mentioned.collect();
    if in_chat.is_none() && mentioned.is_empty() && !groups.is_empty() {
        return Err(Refusal::validation(
            "Nobody writes to a group directly: mention it in a private status, or write to its staff",
        ));
    }
    // What is usual may have been something else when it was sent first.
    if let Some(token) = token
        && let Some(place) = sent_before(app, me, groups, token).await?
    {
        return Ok(place.of(draft).into());
    }
    Ok(match in_chat {
        Some(chat) => chats::into(draft, chat).into(),
        None => DraftedPost { draft, direct_to: Some(mentioned) },
    })
}

/// A draft that goes into the first of these groups into which somebody may post: what answers a post in a group goes
/// there too, and what mentions one. How far it goes the group says, so what is meant for fewer stays outside; and what
/// was meant for a private group, by who is no member, goes nowhere. What is sent again goes where it went: the sender
/// may have left the group since, or joined it.
async fn into_group(
    app: &App,
    me: AccountId,
    draft: Draft,
    (groups, token): (&[AccountId], Option<&str>),
) -> Result<Draft, Refusal> {
    if let Some(token) = token
        && let Some(place) = sent_before(app, me, groups, token).await?
    {
        return Ok(place.of(draft));
    }
    let is_narrow = match draft.visibility {
        Some(visibility) => visibility != Visibility::Public,
        None => known(app, me).await?.is_locked,
    };
    for group in groups {
        let is_private = known(app, *group).await?.is_locked;
        if app.engine.posts_into(*group, me).await? {
            if is_narrow && !is_private {
                continue;
            }
            return Ok(Draft { visibility: None, ..draft.group(*group) });
        }
        if is_private {
            let text =
                "That group is private, and you may not post into it: you are no member, or not on its staff";
            return Err(Refusal::new(StatusCode::FORBIDDEN, text));
        }
    }
    Ok(draft)
}

/// The place to which a post went that was sent before, with the same token.
enum SentPlace {
    /// To nowhere but its author's followers, or whom it mentions.
    Outside,
    Group(AccountId),
}

impl SentPlace {
    fn of(self, draft: Draft) -> Draft {
        match self {
            Self::Outside => draft,
            Self::Group(group) => Draft { visibility: None, ..draft.group(group) },
        }
    }
}

/// The place to which somebody has sent something with that token, if that wasn't a message.
async fn sent_before(
    app: &App,
    me: AccountId,
    groups: &[AccountId],
    token: &str,
) -> Result<Option<SentPlace>, Refusal> {
    if app.engine.published_as(me, token.to_owned()).await?.is_some() {
        return Ok(Some(SentPlace::Outside));
    }
    let posted = groups::posted_as(app, me, groups, token).await?;
    Ok(posted.map(|(group, _)| SentPlace::Group(group)))
}
