//! Timelines.

use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use tideline::post::Tag;
use tideline::{
    AccountId, ChosenAuthors, ChosenReplies, FURTHER_TAGS_MAX, FurtherTags, RankedFeed, Timeline,
};

use super::accounts::{self, id_of};
use super::page::{self, PostsSource, STATUSES};
use super::ranked;
use crate::app::{App, Shared};
use crate::auth::caller::Caller;
use crate::http::{PageLinks, PagedText, Params, Refusal};
use crate::keep;
use crate::keep::lists::RepliesPolicy;

type StatusPage = Result<PagedText, Refusal>;

/// `GET /api/v1/timelines/home`
pub(super) async fn home(State(app): State<Shared>, who: Caller, uri: Uri, params: Params) -> StatusPage {
    let me = who.user("read:statuses")?;
    if ranked::is_wanted(&params)? {
        let reader = (*app.engine.as_reader(me), RankedFeed::Home);
        return ranked::shown(&app, (&uri, Some(me)), reader, &params).await;
    }
    let source = PostsSource::Timeline(*app.engine.as_reader(me), Timeline::Home);
    page::timeline(&app, params.page(STATUSES), (&uri, Some(me)), source).await
}

/// `GET /api/v1/timelines/public`
pub(super) async fn public(State(app): State<Shared>, who: Caller, uri: Uri, params: Params) -> StatusPage {
    if !app.settings.public_timeline || app.engine.decision().settings.public_posts == 0 {
        return Err(Refusal::new(StatusCode::NOT_FOUND, "This site keeps no public timeline"));
    }
    if is_of_nobody(&params) {
        return Ok(page::no_statuses(&app, &uri));
    }
    let reads = who.viewing("read:statuses");
    let source = PostsSource::Timeline(who.viewer(&app, "read:statuses"), Timeline::Public);
    page::timeline(&app, params.page(STATUSES), (&uri, reads), source).await
}

/// Whether what is asked for nobody can have posted: on other sites, or with pictures.
fn is_of_nobody(params: &Params) -> bool {
    ["remote", "only_media"].into_iter().any(|name| params.flag(name) == Some(true))
}

/// `GET /api/v1/timelines/tag/:tag`
pub(super) async fn tag(
    State(app): State<Shared>,
    who: Caller,
    Path(tag): Path<String>,
    uri: Uri,
    params: Params,
) -> StatusPage {
    let Ok(tag) = Tag::new(&tag) else { return Ok(page::no_statuses(&app, &uri)) };
    let Some(further) = further_tags(&params).filter(|_| !is_of_nobody(&params)) else {
        return Ok(page::no_statuses(&app, &uri));
    };
    let reads = who.viewing("read:statuses");
    let source = PostsSource::Tagged(who.viewer(&app, "read:statuses"), Timeline::Tag(tag), &further);
    page::timeline(&app, params.page(STATUSES), (&uri, reads), source).await
}

/// The hashtags that `any`, `all` and `none` name, the first few of each. `None`: posts would need one that there can't
/// be.
fn further_tags(params: &Params) -> Option<FurtherTags> {
    let named = |name: &str| {
        let tags = params.texts(name).into_iter().take(FURTHER_TAGS_MAX);
        tags.map(|tag| Tag::new(&tag).ok()).collect::<Vec<_>>()
    };
    let all = named("all").into_iter().collect::<Option<_>>()?;
    let known = |name: &str| named(name).into_iter().flatten().collect();
    Some(FurtherTags { any: known("any"), all, none: known("none") })
}

/// `GET /api/v1/timelines/list/:id`
pub(super) async fn list(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
    uri: Uri,
    params: Params,
) -> StatusPage {
    let (me, id) = (who.user("read:lists")?, super::lists::id_of(&id)?);
    let viewer = *app.engine.as_reader(me);
    if ranked::is_top_list(&app, id) {
        return ranked::shown(&app, (&uri, Some(me)), (viewer, RankedFeed::Home), &params).await;
    }
    let list = keep::lists::get(&app, me, id).await?;
    let replies = match list.replies {
        RepliesPolicy::Followed => ChosenReplies::Followed,
        RepliesPolicy::List => ChosenReplies::Chosen,
        RepliesPolicy::None => ChosenReplies::None,
    };
    let chosen = ChosenAuthors { authors: list.members, replies };
    if ranked::is_wanted(&params)? {
        return ranked::shown(&app, (&uri, Some(me)), (viewer, RankedFeed::Chosen(chosen)), &params).await;
    }
    let source = PostsSource::Chosen(app.engine.as_reader(me), &chosen);
    page::timeline(&app, params.page(STATUSES), (&uri, Some(me)), source).await
}

/// `GET /api/v1/accounts/:id/statuses`
pub(super) async fn of_account(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
    uri: Uri,
    params: Params,
) -> StatusPage {
    let account = id_of(&id)?;
    let reads = who.viewing("read:statuses");
    if params.flag("pinned") == Some(true) {
        return pinned(&app, &who, account, &uri).await;
    }
    if params.flag("only_media") == Some(true) {
        // Nobody can attach anything yet.
        super::accounts::known(&app, account).await?;
        return Ok(page::no_statuses(&app, &uri));
    }
    let has = |name: &str| params.flag(name) != Some(true);
    let timeline =
        Timeline::Profile { account, replies: has("exclude_replies"), reposts: has("exclude_reblogs") };
    let viewer = who.viewer(&app, "read:statuses");
    if ranked::is_wanted(&params)? {
        let leaves_out = !has("exclude_replies") || !has("exclude_reblogs") || params.has("tagged");
        if leaves_out {
            let text = "By importance an account's statuses come whole: exclude_replies, exclude_reblogs and \
                        tagged are for those by time";
            return Err(Refusal::validation(text));
        }
        return ranked::shown(&app, (&uri, reads), (viewer, RankedFeed::Profile(account)), &params).await;
    }
    let tagged = match params.filled("tagged").map(Tag::new) {
        Some(Ok(tag)) => FurtherTags { all: vec![tag], ..FurtherTags::default() },
        // What is no hashtag nobody has.
        Some(Err(_)) => return Ok(page::no_statuses(&app, &uri)),
        None => FurtherTags::default(),
    };
    let source = match tagged.is_empty() {
        true => PostsSource::Timeline(viewer, timeline),
        false => PostsSource::Tagged(viewer, timeline, &tagged),
    };
    page::timeline(&app, params.page(STATUSES), (&uri, reads), source).await
}

async fn pinned(app: &App, who: &Caller, account: AccountId, uri: &Uri) -> StatusPage {
    accounts::known(app, account).await?;
    let pins = keep::pins::of(app, account).await?;
    let mut found = who.viewer(app, "read:statuses").posts(&pins).await?.posts;
    found.retain(|post| post.author == account);
    page::text(app, who.viewing("read:statuses"), &found, PageLinks::new(&app.settings.public_url, uri)).await
}
