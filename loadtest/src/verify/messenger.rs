//! Carries calls about chats out on an engine.

use tideline::post::Draft;
use tideline::{AccountId, ChatQuery, ErrorKind, PagePost, Query};

use super::call::Call;
use super::chats::Members;
use super::perform::{Performer, account, shown};
use super::told::{Message, Reply};

/// Messages, and chats, on a page.
const PAGE: usize = 5;

impl Performer {
    pub(super) async fn chat(&self, call: Call) -> tideline::Result<Reply> {
        match call {
            Call::Say { by, members, text } => {
                let chat = self.opened(by, &members).await?;
                let draft = Draft::text(text.clone()).chat(chat).token(text);
                let id = self.engine.publish(account(by)?, &draft).await?.id.get();
                Ok(Reply::Said { id, chat: chat.get() })
            }
            Call::Leave { by, chat } => {
                self.engine.leave_chat(account(chat)?, account(by)?).await?;
                Ok(Reply::Done)
            }
            Call::Messages { reader, chat } => {
                Ok(Reply::Messages(self.read_whole(reader, Query::chat(account(chat)?)).await?))
            }
            Call::Chats { reader } => Ok(Reply::Chats(self.chats(reader).await?)),
            other => unreachable!("{other:?} is carried out elsewhere"),
        }
    }

    /// The chat of these members: of two whoever writes opens it, of more the first one of them has.
    async fn opened(&self, by: u64, members: &Members) -> tideline::Result<AccountId> {
        let opener = if members.len() > 2 { members.first().copied().unwrap_or(by) } else { by };
        let others = members.iter().copied().map(account).collect::<tideline::Result<Vec<AccountId>>>()?;
        let name = format!("{members:?}");
        Ok(self.engine.open_chat(account(opener)?, &others, Some(&name)).await?.value)
    }

    /// All that somebody reads of a timeline, page by page; nothing of a chat that it isn't in.
    pub(super) async fn read_whole(&self, reader: u64, query: Query) -> tideline::Result<Vec<Message>> {
        let (reader, mut all) = (self.engine.as_reader(account(reader)?), Vec::new());
        let mut query = query.limit(PAGE).hydrated();
        loop {
            let page = match reader.read(&query).await {
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(all),
                page => page?,
            };
            let text = |post: &PagePost| post.post.as_ref().map(|post| post.content().text.clone());
            let message = |post| Message { id: shown(post).id, text: text(post).unwrap_or_default() };
            all.extend(page.posts.iter().map(message));
            let Some(next) = page.next else { return Ok(all) };
            query = query.after(next);
        }
    }

    /// The chats on somebody's list with their newest messages, page by page.
    async fn chats(&self, reader: u64) -> tideline::Result<Vec<(u64, u64)>> {
        let (reader, mut all) = (self.engine.as_reader(account(reader)?), Vec::new());
        let mut query = ChatQuery { limit: Some(PAGE), ..ChatQuery::default() };
        loop {
            let page = reader.chats(&query).await?;
            all.extend(page.chats.iter().filter_map(|of| Some((of.id.get(), of.last.as_ref()?.id.get()))));
            let Some(older) = page.older else { return Ok(all) };
            query.max_id = Some(older);
        }
    }
}
