//! Names and reports: what an engine is asked and told of them.

use tideline::registration::{Name, SignUp};
use tideline::{
    Account, AccountId, ErrorKind, Mode, NewAccount, NewReport, Report, ReportCategory, ReportId, ReportQuery,
};

use super::answers::PAGES_MAX;
use super::call::{Call, ReportSpec, SignUpSpec};
use super::perform::{Performer, account, id_of};
use super::told::{Card, Listed, Reply};

fn card(account: &Account) -> Card {
    Card { id: account.id.get(), login: account.login.clone(), email: None }
}

impl Performer {
    /// Carries out what is about names and reports.
    pub(super) async fn register(&self, call: Call) -> tideline::Result<Reply> {
        let registration = &self.registration;
        match call {
            Call::SignUp(spec) => return self.sign_up(spec).await,
            Call::SetLogin { account: id, login } => {
                registration.set_login(account(id)?, &login).await?;
            }
            Call::SetEmail { account: id, email } => {
                registration.set_email(account(id)?, email.as_deref()).await?;
            }
            Call::SetPassword { account: id, password } => {
                registration.set_password(account(id)?, &password).await?;
            }
            Call::Report(spec) => return self.report(spec).await,
            Call::Resolve { report, by } => {
                let report = ReportId::from_u64(report)?;
                let _ = match by {
                    Some(by) => self.engine.resolve_report(report, account(by)?).await?,
                    None => self.engine.reopen_report(report).await?,
                };
            }
            other => return self.look_up(other).await,
        }
        Ok(Reply::Done)
    }

    async fn look_up(&self, call: Call) -> tideline::Result<Reply> {
        Ok(match call {
            Call::Find { names } => {
                let name = |name: String| match name.contains('@') {
                    true => Name::Email(name),
                    false => Name::Login(name),
                };
                let names: Vec<Name> = names.into_iter().map(name).collect();
                let found = self.registration.find(&names).await?.into_iter();
                Reply::Cards(found.map(|account| account.as_ref().map(card)).collect())
            }
            Call::Names { account: id } => Reply::Cards(vec![self.names(account(id)?).await?]),
            Call::LogIn { name, password } => {
                let found = self.registration.check(&name, &password).await?;
                Reply::Cards(vec![found.as_ref().map(card)])
            }
            Call::Reports { resolved, target, limit } => {
                Reply::Reports(self.reports(resolved, target, limit).await?)
            }
            other => unreachable!("{other:?} is carried out elsewhere"),
        })
    }

    async fn sign_up(&self, spec: SignUpSpec) -> tideline::Result<Reply> {
        let id = spec.account.map(account).transpose()?;
        let mode = if spec.is_pulled { Mode::Pull } else { Mode::Push };
        let mut sign_up = SignUp::new(spec.login, spec.password).token(spec.token);
        sign_up.account = NewAccount { id, is_locked: spec.is_locked, mode, ..NewAccount::default() };
        sign_up.email = spec.email;
        let registered = self.registration.sign_up(&sign_up).await?;
        Ok(Reply::Registered { id: registered.id.get(), is_repeat: registered.is_repeat })
    }

    async fn report(&self, spec: ReportSpec) -> tideline::Result<Reply> {
        let report = NewReport {
            reporter: account(spec.reporter)?,
            target: account(spec.target)?,
            posts: spec.posts.into_iter().map(id_of).collect::<tideline::Result<_>>()?,
            category: ReportCategory::Spam,
            // Each one's is another one.
            token: Some(spec.comment.clone()),
            comment: spec.comment,
        };
        Ok(Reply::Reported(self.engine.report(&report).await?.get()))
    }

    /// An account with its names, if it is there.
    async fn names(&self, id: AccountId) -> tideline::Result<Option<Card>> {
        let found = self.registration.find(&[Name::Id(id)]).await?.pop().flatten();
        let Some(account) = found else { return Ok(None) };
        match self.registration.email(id).await {
            Ok(email) => Ok(Some(Card { email, ..card(&account) })),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// All reports of a kind, page by page.
    async fn reports(
        &self,
        resolved: bool,
        target: Option<u64>,
        limit: usize,
    ) -> tideline::Result<Vec<Listed>> {
        let (mut all, target) = (Vec::new(), target.map(account).transpose()?);
        let mut query = ReportQuery { resolved, target, before: None, limit: Some(limit) };
        for _ in 0..PAGES_MAX {
            let page = self.engine.reports(&query).await?;
            if page.lacks_some {
                return Err(tideline::Error::unavailable("a server was away: some reports are missing"));
            }
            // Nobody has reported what was held back: releasing it shows whether it stands there. Nor who has reached
            // a limit.
            let is_note = |listed: &&Report| {
                matches!(listed.report.category, ReportCategory::Held | ReportCategory::Limit)
            };
            let made = page.reports.iter().filter(|listed| !is_note(listed));
            all.extend(made.map(|listed| {
                let report = &listed.report;
                let posts = report.posts.iter().map(|post| post.get()).collect();
                let (reporter, target) = (report.reporter.get(), report.target.get());
                let report = ReportSpec { reporter, target, posts, comment: report.comment.clone() };
                Listed { id: listed.id.get(), report }
            }));
            query.before = page.older;
            if query.before.is_none() {
                break;
            }
        }
        Ok(all)
    }
}
