//! Facts that an account is told of itself, and changing them.

use axum::extract::State;
use tideline::post::Visibility;
use tideline::profile::ProfileUpdate;
use tideline::{Account, AccountId, AccountUpdate, ListQuery};

use super::accounts::known;
use super::services::as_validation;
use super::written;
use crate::app::{App, Shared};
use crate::auth::caller::Caller;
use crate::entity::{CredentialAccount, Preferences};
use crate::http::{Json, ParamTree, Params, Refusal};
use crate::keep::role::{AccountRole, role};
use crate::keep::usual::{self, UsualForm};
use crate::show;
use crate::show::account::UsualPost;
use crate::show::status::{visibility_name, visibility_named};

/// Rows of an account's table.
pub(super) const FIELDS_MAX: usize = 4;
/// Requests that are counted for whoever has to answer them.
const COUNTED_MAX: usize = 100;

/// The usual form of an account's posts, as clients name it.
fn named(account: &Account, usual: &UsualForm) -> UsualPost {
    let or = if account.is_locked { Visibility::Followers } else { Visibility::Public };
    UsualPost {
        privacy: visibility_name(usual.visibility.unwrap_or(or)).into(),
        sensitive: usual.sensitive,
        language: usual.language.clone(),
    }
}

/// An account as it is told of itself.
pub(super) async fn of(app: &App, me: AccountId) -> Result<CredentialAccount, Refusal> {
    let account = known(app, me).await?;
    let usual = usual::of(app, me).await?;
    let waiting = if account.is_locked { waiting(app, me).await? } else { 0 };
    let mut told = show::account::credentials(app.site(), &account, named(&account, &usual), waiting);
    let role = role(&app.registration, me).await?;
    if role != AccountRole::User {
        told.role.name = role.to_string();
    }
    Ok(told)
}

async fn waiting(app: &App, me: AccountId) -> Result<u64, Refusal> {
    let query = ListQuery::default().limit(COUNTED_MAX);
    let waiting = app.engine.as_reader(me).follow_requests(&query).await?.accounts.len();
    Ok(u64::try_from(waiting).unwrap_or(u64::MAX))
}

/// `GET /api/v1/accounts/verify_credentials`
pub(super) async fn verify(
    State(app): State<Shared>,
    who: Caller,
) -> Result<Json<CredentialAccount>, Refusal> {
    let me = who.user("profile").or_else(|_| who.user("read:accounts"))?;
    Ok(Json(of(&app, me).await?))
}

/// `PATCH /api/v1/accounts/update_credentials`
pub(super) async fn update(
    State(app): State<Shared>,
    who: Caller,
    params: Params,
) -> Result<Json<CredentialAccount>, Refusal> {
    let me = who.user("write:accounts")?;
    // All of it is looked at before any of it is written.
    let said = SaidAccount::of(&params)?;
    let usually = params.tree("source").map(said_usual).transpose()?;
    let after =
        |has_written, refusal: Refusal| if has_written { refusal.of_what_was_done() } else { refusal };
    let mut has_written = said.write_profile(&app, me).await?;
    if let Some(is_locked) = said.is_locked {
        let update = AccountUpdate { is_locked: Some(is_locked), ..AccountUpdate::default() };
        let written = app.settled(app.engine.update_account(me, &update)).await;
        written.map_err(|e| after(has_written, e.into()))?;
        has_written = true;
    }
    if let Some(usually) = usually {
        let written = usual::change(&app, me, |usual| usually.over(usual)).await;
        written.map_err(|refusal| after(has_written, refusal))?;
        has_written = true;
    }
    of(&app, me).await.map(Json).map_err(|refusal| after(has_written, refusal))
}

/// A request's words on an account: how it shows to others, and whether it is locked.
pub(super) struct SaidAccount {
    profile: ProfileUpdate,
    pub(super) is_locked: Option<bool>,
}

impl SaidAccount {
    pub(super) fn of(params: &Params) -> Result<Self, Refusal> {
        let profile = profile(params)?;
        profile.check().map_err(Refusal::validation)?;
        Ok(Self { profile, is_locked: params.flag("locked") })
    }

    /// Writes how the account shows; whether anything was said of that.
    pub(super) async fn write_profile(&self, app: &App, account: AccountId) -> Result<bool, Refusal> {
        let is_said = self.profile != ProfileUpdate::default();
        if is_said {
            app.settled(app.registration.update_profile(account, &self.profile))
                .await
                .map_err(as_validation)?;
        }
        Ok(is_said)
    }
}

/// A request's words on how an account usually posts.
struct SaidUsual {
    visibility: Option<Visibility>,
    sensitive: Option<bool>,
    /// `Some(None)`: in no language.
    language: Option<Option<String>>,
}

fn said_usual(source: &ParamTree) -> Result<SaidUsual, Refusal> {
    let visibility = match source.filled("privacy") {
        Some(name) => {
            let named = visibility_named(name);
            Some(named.ok_or_else(|| Refusal::validation("Privacy is not included in the list"))?)
        }
        None => None,
    };
    let language = source.text("language").map(written::language);
    Ok(SaidUsual { visibility, sensitive: source.flag("sensitive"), language })
}

impl SaidUsual {
    fn over(&self, usual: UsualForm) -> UsualForm {
        UsualForm {
            visibility: self.visibility.or(usual.visibility),
            sensitive: self.sensitive.unwrap_or(usual.sensitive),
            language: self.language.clone().unwrap_or(usual.language),
        }
    }
}

/// Reads what a request says of a profile.
pub(super) fn profile(params: &Params) -> Result<ProfileUpdate, Refusal> {
    // As text, too, in which a picture may be written.
    if ["avatar", "header"].iter().any(|name| params.filled(name).is_some()) {
        return Err(Refusal::no_files());
    }
    let fields = if params.has("fields_attributes") {
        let rows = params.trees("fields_attributes");
        if rows.len() > FIELDS_MAX {
            return Err(Refusal::validation(format!("Fields: at most {FIELDS_MAX} are allowed")));
        }
        let text = |row: &ParamTree, name| row.text(name).unwrap_or_default().to_owned();
        let rows = rows.into_iter().map(|row| (text(row, "name"), text(row, "value")));
        Some(rows.filter(|(name, value)| !name.is_empty() || !value.is_empty()).collect())
    } else {
        None
    };
    let said = |name: &str| {
        let flag = params.flag(name)?;
        Some((name.to_owned(), if flag { "1" } else { "0" }.to_owned()))
    };
    Ok(ProfileUpdate {
        shown_fields: show::account::FLAGS.into_iter().filter_map(said).collect(),
        display_name: params.text("display_name").map(str::to_owned),
        bio: params.text("note").map(str::to_owned),
        fields,
        ..ProfileUpdate::default()
    })
}

/// `GET /api/v1/preferences`
pub(super) async fn preferences(
    State(app): State<Shared>,
    who: Caller,
) -> Result<Json<Preferences>, Refusal> {
    let me = who.user("read:accounts")?;
    let usual = named(&known(&app, me).await?, &usual::of(&app, me).await?);
    Ok(Json(Preferences {
        posting_visibility: usual.privacy,
        posting_sensitive: usual.sensitive,
        posting_language: usual.language,
        posting_quote_policy: "public".into(),
        expand_media: "default".into(),
        expand_spoilers: false,
        autoplay_gifs: false,
    }))
}
