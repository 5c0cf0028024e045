//! What an engine is asked when a history is checked: what it lists, counts and shows besides timelines.

use tideline::document::LEFT_OUT;
use tideline::sharded::{Checkpoint, Order};
use tideline::{
    AccountId, AccountList, IdList, ListCursor, ListQuery, Notification, NotificationId, NotificationQuery,
    PostId, PostList, RankedQuery, Reader, Relationship,
};

use super::call::{Call, List, People, Switch, Tie};
use super::content::text_shown;
use super::perform::{Performer, account, id_of, note_on, reach_of, shown};
use super::told::{Counts, Notice, Page, Relation, Reply, Shown, Stored, Told};

/// Pages of a list: beyond it a walk doesn't end.
pub(super) const PAGES_MAX: usize = 10_000;

fn people_of(page: AccountList) -> tideline::Result<(Vec<u64>, Option<ListCursor>)> {
    whole(page.lacks_archive)?;
    Ok((page.accounts.iter().map(|account| account.id.get()).collect(), page.older))
}

fn posts_of(page: PostList) -> tideline::Result<(Vec<Shown>, Option<ListCursor>)> {
    whole(page.lacks_archive)?;
    Ok((page.posts.iter().map(shown).collect(), page.older))
}

/// Refuses an answer that lacks what only the archive could tell: it is compared with all that there is.
fn whole(lacks_archive: bool) -> tideline::Result<()> {
    if lacks_archive {
        return Err(tideline::Error::new(tideline::ErrorCode::ArchiveAway, "the answer lacks the archive"));
    }
    Ok(())
}

fn from_the_oldest() -> tideline::Result<NotificationQuery> {
    Ok(NotificationQuery { min_id: Some(NotificationId::from_u64(0)?), ..NotificationQuery::default() })
}

/// All notifications, in the direction of a query.
async fn notices_along(reader: Reader<'_>, mut query: NotificationQuery) -> tideline::Result<Vec<Notice>> {
    let (mut all, is_upward) = (Vec::new(), query.min_id.is_some());
    for _ in 0..PAGES_MAX {
        let mut page = reader.notifications(&query).await?;
        whole(page.lacks_archive)?;
        if is_upward {
            page.notifications.reverse();
        }
        all.extend(page.notifications.iter().map(notice));
        let next = if is_upward { &mut query.min_id } else { &mut query.max_id };
        *next = if is_upward { page.newer } else { page.older };
        if page.notifications.is_empty() || next.is_none() {
            break;
        }
    }
    Ok(all)
}

fn notice(shown: &Notification) -> Notice {
    let post = shown.post.as_ref().map(|post| post.id.get());
    Notice { id: shown.id.get(), told: Told { kind: shown.kind, by: shown.account.id.get(), post } }
}

/// Posts that are no page of a timeline.
fn page_of(posts: Vec<Shown>) -> Reply {
    Reply::Page(Page { posts, ..Page::default() })
}

fn relation(found: Relationship, left_out: &IdList) -> Relation {
    // A remark of a follow or a request.
    let remarks = found.is_following || found.has_requested;
    Relation {
        follows: found.is_following,
        is_followed: found.is_followed,
        is_requested: found.is_requested,
        mutes: found.is_muting,
        blocks: found.is_blocking,
        is_blocked: found.is_blocked,
        hides: found.is_hiding,
        // Another text is no note that anybody has made.
        notes: found.note.map(|note| note == note_on(found.account)),
        hides_reposts: remarks.then_some(!found.shows_reposts),
        leaves_out: Some(left_out.ids().contains(&found.account.get())),
    }
}

impl Performer {
    /// What is only looked at when a history is checked.
    pub(super) async fn look(&self, call: Call) -> tideline::Result<Reply> {
        let engine = &self.engine;
        Ok(match call {
            Call::Post { post } => {
                let found = engine.stored().post(id_of(post)?).await?;
                Reply::Post(found.map(|post| {
                    let header = post.header();
                    Stored {
                        author: header.author.get(),
                        reach: reach_of(header.visibility),
                        text: text_shown(post.content(), header.language()),
                        original: header.original.map(|original| original.id.get()),
                        likes: header.likes.into(),
                        replies: header.replies.into(),
                        reposts: header.reposts.into(),
                        quotes: header.quotes.into(),
                    }
                }))
            }
            Call::IsFollowing { reader, author } => {
                Reply::Flag(engine.stored().is_following(account(reader)?, account(author)?).await?)
            }
            Call::IsMutual { one, other } => {
                Reply::Flag(engine.stored().is_mutual(account(one)?, account(other)?).await?)
            }
            Call::Common { one, other, followers } => {
                let common = self.common(account(one)?, account(other)?, followers).await?;
                Reply::Ids(common.into_iter().map(AccountId::get).collect())
            }
            Call::Following { .. } | Call::Followers { .. } => Reply::Ids(self.list(call).await?),
            Call::Counts { account: id } => {
                let id = account(id)?;
                let (following, followers) = engine.stored().counts(id).await?;
                let record = engine.stored().account(id).await?;
                if record.following != following {
                    let text =
                        format!("account {id} follows {following}, its record says {}", record.following);
                    return Err(tideline::Error::new(tideline::ErrorKind::Internal, text));
                }
                let (posts, blocks, hides) = (record.posts, record.blocks, record.hides);
                let followers_told = record.followers;
                Reply::Counts(Counts { posts, following, followers, followers_told, blocks, hides })
            }
            Call::Requests { account: id } => {
                let waiting = engine.stored().follow_requests(account(id)?).await?;
                Reply::Ids(waiting.into_iter().map(AccountId::get).collect())
            }
            Call::Notices { reader, limit } => self.notices(account(reader)?, limit).await?,
            Call::List { reader, of, limit } => self.listed(account(reader)?, of, limit).await?,
            Call::Ranked { reader, after, limit } => {
                let (page, next) = self.ranked_page(account(reader)?, after, limit).await?;
                Reply::Ranked(page, next)
            }
            Call::Conversation { reader, post } => {
                let found = self.engine.as_reader(account(reader)?).conversation(id_of(post)?).await?;
                whole(found.lacks_archive)?;
                let posts = found.ancestors.iter().chain([&found.post]).chain(&found.descendants);
                page_of(posts.map(shown).collect())
            }
            Call::ByIds { reader, posts } => {
                let posts: tideline::Result<Vec<PostId>> = posts.into_iter().map(PostId::from_u64).collect();
                let found = self.engine.as_reader(account(reader)?).posts(&posts?).await?;
                whole(!found.untold.is_empty())?;
                page_of(found.posts.iter().map(shown).collect())
            }
            Call::Relations { account: id, others } => self.relations(account(id)?, others).await?,
            other => return self.register(other).await,
        })
    }

    async fn relations(&self, of: AccountId, others: Vec<u64>) -> tideline::Result<Reply> {
        let others: tideline::Result<Vec<AccountId>> = others.into_iter().map(account).collect();
        let found = self.engine.as_reader(of).relationships(&others?).await?;
        let left_out = self.registration.document(of, LEFT_OUT).await?;
        let left_out = left_out.and_then(|of| IdList::from_bytes(&of.bytes)).unwrap_or_default();
        let relation = |found: Option<Relationship>| found.map(|found| relation(found, &left_out));
        Ok(Reply::Relations(found.into_iter().map(relation).collect()))
    }

    async fn common(
        &self,
        one: AccountId,
        other: AccountId,
        followers: bool,
    ) -> tideline::Result<Vec<AccountId>> {
        if !followers {
            return self.engine.stored().common_following(one, other).await;
        }
        let (mut all, mut from) = (Vec::new(), Some(Checkpoint::START));
        for _ in 0..PAGES_MAX {
            let Some(checkpoint) = from else { break };
            let common = self.engine.stored().common_followers(one, other, checkpoint).await?;
            all.extend(common.members);
            from = common.next;
        }
        Ok(all)
    }

    /// A list as a reader gets it, page by page.
    async fn listed(&self, reader: AccountId, of: List, limit: usize) -> tideline::Result<Reply> {
        if of == List::Ranked {
            return self.ranked(reader, limit).await;
        }
        let (mut people, mut posts) = (Vec::new(), Vec::new());
        let mut query = ListQuery::default().limit(limit);
        for _ in 0..PAGES_MAX {
            let older = if of.is_of_posts() {
                let (more, older) = posts_of(self.posts(reader, of, &query).await?)?;
                posts.extend(more);
                older
            } else {
                let (more, older) = people_of(self.accounts(reader, of, &query).await?)?;
                people.extend(more);
                older
            };
            let Some(older) = older else { break };
            query = query.older_than(older);
        }
        Ok(if of.is_of_posts() { page_of(posts) } else { Reply::Ids(people) })
    }

    /// All that an account is told, page by page, from the newest on; from the oldest on, and counted, it is the same.
    async fn notices(&self, reader: AccountId, limit: usize) -> tideline::Result<Reply> {
        let reader = self.engine.as_reader(reader);
        let (newest_first, oldest_first) = (NotificationQuery::default(), from_the_oldest()?);
        let [down, up] = [newest_first, oldest_first].map(|query| query.limit(limit));
        let down = notices_along(reader, down).await?;
        let mut up = notices_along(reader, up).await?;
        up.reverse();
        let counted = reader.count_notifications(&NotificationQuery::default()).await?;
        if up != down || counted != down.len() {
            let text = format!("of notifications {counted} are counted; down: {down:?}, up: {up:?}");
            return Err(tideline::Error::new(tideline::ErrorKind::Internal, text));
        }
        Ok(Reply::Notices(down))
    }

    /// A home by importance, page by page.
    async fn ranked(&self, reader: AccountId, limit: usize) -> tideline::Result<Reply> {
        let (mut posts, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let (page, next) = self.ranked_page(reader, cursor, limit).await?;
            whole(page.lacks_archive)?;
            posts.extend(page.posts);
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        Ok(page_of(posts))
    }

    /// A page of a home by importance; each cursor as its text.
    async fn ranked_page(
        &self,
        reader: AccountId,
        cursor: Option<String>,
        limit: usize,
    ) -> tideline::Result<(Page, Option<String>)> {
        let mut query = RankedQuery::default().limit(limit).with_ties();
        if let Some(cursor) = cursor {
            query = query.after(cursor.parse()?);
        }
        let page = self.engine.as_reader(reader).read_ranked(&query).await?;
        let posts = page.posts.iter().map(shown).collect();
        let told = Page { posts, lacks_archive: page.lacks_archive, ..Page::default() };
        Ok((told, page.next.map(|next| next.to_string())))
    }

    async fn posts(&self, reader: AccountId, of: List, query: &ListQuery) -> tideline::Result<PostList> {
        match of {
            List::Quotes(post) => self.engine.as_reader(reader).quotes(id_of(post)?, query).await,
            List::Tied(Tie::Like) => self.engine.as_reader(reader).likes(query).await,
            List::Tied(Tie::Bookmark) => self.engine.as_reader(reader).bookmarks(query).await,
            of => unreachable!("accounts are on {of:?}"),
        }
    }

    async fn accounts(
        &self,
        reader: AccountId,
        of: List,
        query: &ListQuery,
    ) -> tideline::Result<AccountList> {
        match of {
            List::People(of) => self.people(reader, of, query).await,
            List::Likers(post) => self.engine.as_reader(reader).likers(id_of(post)?, query).await,
            List::Reposters(post) => self.engine.as_reader(reader).reposters(id_of(post)?, query).await,
            of => unreachable!("posts are on {of:?}"),
        }
    }

    async fn people(
        &self,
        reader: AccountId,
        of: People,
        query: &ListQuery,
    ) -> tideline::Result<AccountList> {
        let reader = self.engine.as_reader(reader);
        match of {
            People::Followers(of) => reader.followers(account(of)?, query).await,
            People::Following(of) => reader.following(account(of)?, query).await,
            People::Own(Switch::Mute) => reader.mutes(query).await,
            People::Own(Switch::Block) => reader.blocks(query).await,
            People::Own(Switch::Hide) => reader.hides(query).await,
            People::Own(Switch::Note | Switch::Reposts | Switch::LeftOut) => {
                unreachable!("there is no list of remarks")
            }
            People::Requests => reader.follow_requests(query).await,
            People::Requested => reader.requested(query).await,
        }
    }

    /// Whom an account follows or who follows it, page by page.
    async fn list(&self, call: Call) -> tideline::Result<Vec<u64>> {
        let (id, descending, limit, is_following) = match call {
            Call::Following { account, descending, limit } => (account, descending, limit, true),
            Call::Followers { account, descending, limit } => (account, descending, limit, false),
            _ => return Ok(Vec::new()),
        };
        let id = account(id)?;
        let order = if descending { Order::Descending } else { Order::Ascending };
        let (mut all, mut after) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let page = if is_following {
                self.engine.stored().following(id, after.as_ref(), limit, order).await?
            } else {
                self.engine.stored().followers(id, after.as_ref(), limit, order).await?
            };
            all.extend(page.entries.iter().map(|(id, _)| id.get()));
            if page.next.is_none() {
                break;
            }
            after = page.next;
        }
        Ok(all)
    }
}
