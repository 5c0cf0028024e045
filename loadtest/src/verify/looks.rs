//! What a reader is told besides pages of timelines, when nothing changes any more: conversations, who likes and reposts
//! what, posts by their ids, lists of people, and how it stands to others.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::call::{Call, People, Reply};
use super::check::{Wrong, is_untrue, told_rightly};
use super::facts::{Tri, Window};
use super::rules::View;
use super::run::{Ended, Run};
use super::world::{PostFact, PostNo};

/// A conversation of fewer posts shows all that answers its post.
const CONVERSATION_SMALL: usize = 40;

pub(crate) struct Look<'a> {
    pub(crate) run: &'a Arc<Run>,
    pub(crate) reader: u64,
}

impl Look<'_> {
    async fn ask(&self, call: Call) -> Ended {
        self.run.call(usize::try_from(self.reader).unwrap_or(0), call).await
    }

    /// Nobody is told of a like that isn't there, or of a repost that is not for the reader.
    pub(crate) async fn around(&self, post: u64, reposts: bool, limit: usize) {
        let (run, reader) = (self.run, self.reader);
        let from = run.now();
        let call = Call::Around { reader, post, reposts, limit };
        let Ended::Done(Reply::Ids(shown)) = self.ask(call).await else { return };
        let mut found = Vec::new();
        {
            let world = run.world();
            let Some(no) = world.by_id.get(&post).copied() else { return };
            let now = Window { from, to: run.now() };
            let view = View::new(&world, reader, now);
            for account in shown {
                let reposted = |fact: &PostFact| {
                    let is_it = fact.author == account && fact.original == Some(no) && fact.is_plain_repost();
                    is_it && fact.start > 0 && view.on_list(fact) != Tri::No
                };
                let may_show = match reposts {
                    true => world.posts.iter().flatten().any(reposted),
                    false => view.likes(account, no).and(view.meets(account)) != Tri::No,
                };
                if !may_show {
                    let what = if reposts { "reposts" } else { "likes" };
                    found.push((no, format!("that {account} {what} {post} must not show")));
                }
            }
        }
        for (no, text) in found {
            run.wrong(Wrong::Leaked, reader, Some(no), text);
        }
    }

    /// Whatever shows in a conversation may show.
    pub(crate) async fn conversation(&self, post: u64) {
        let (run, reader) = (self.run, self.reader);
        let from = run.now();
        let call = Call::Conversation { reader, post };
        let Ended::Done(Reply::Ids(shown)) = self.ask(call).await else { return };
        let mut found = Vec::new();
        {
            let world = run.world();
            let view = View::new(&world, reader, Window { from, to: run.now() });
            let fact = |id: &u64| world.by_id.get(id).and_then(|no| Some((*no, world.post(*no)?)));
            for id in &shown {
                if let Some((no, _)) = fact(id).filter(|(_, post)| view.may_meet(post) == Tri::No) {
                    found.push((
                        Wrong::Leaked,
                        no,
                        format!("{id} must not show in the conversation of {post}"),
                    ));
                }
            }
            let answers = |answer: &PostFact| answer.parent.and_then(|no| world.post(no)?.id) == Some(post);
            let all: Vec<PostNo> =
                world.by_id.values().copied().filter(|no| world.post(*no).is_some_and(answers)).collect();
            for no in all.iter().filter(|_| shown.len() < CONVERSATION_SMALL) {
                let Some(answer) = world.post(*no) else { continue };
                let is_shown = answer.id.is_some_and(|id| shown.contains(&id));
                if view.on_list(answer) == Tri::Yes && !is_shown {
                    let text = format!("{:?} must show in the conversation of {post}", answer.id);
                    found.push((Wrong::Missing, *no, text));
                }
            }
        }
        for (wrong, no, text) in found {
            run.wrong(wrong, reader, Some(no), text);
        }
    }

    /// Posts by their ids: those that may show, each once, and nothing else.
    pub(crate) async fn by_ids(&self, posts: Vec<u64>) {
        let (run, reader) = (self.run, self.reader);
        let from = run.now();
        let call = Call::ByIds { reader, posts: posts.clone() };
        let Ended::Done(Reply::Page(page)) = self.ask(call).await else { return };
        let mut found = Vec::new();
        {
            let world = run.world();
            let view = View::new(&world, reader, Window { from, to: run.now() });
            let asked: BTreeSet<u64> = posts.into_iter().collect();
            for id in asked {
                let Some((no, post)) = world.by_id.get(&id).and_then(|no| Some((*no, world.post(*no)?)))
                else {
                    continue;
                };
                let shown: Vec<_> = page.posts.iter().filter(|shown| shown.id == id).collect();
                let wrong = match (view.may_meet(post), shown.as_slice()) {
                    (Tri::Yes, []) => Some((Wrong::Missing, format!("{id} must show by its id"))),
                    (Tri::No, [_, ..]) => Some((Wrong::Leaked, format!("{id} must not show by its id"))),
                    (_, [_, _, ..]) => Some((Wrong::Doubled, format!("{id} shows twice by its id"))),
                    (_, [shown]) => told_rightly(&view, shown, no, post),
                    _ => None,
                };
                found.extend(wrong.map(|(wrong, text)| (wrong, no, text)));
            }
        }
        for (wrong, no, text) in found {
            run.wrong(wrong, reader, Some(no), text);
        }
    }

    /// A list of people: who belongs on it, each once, and nobody else.
    pub(crate) async fn people(&self, of: People, limit: usize) {
        let (run, reader) = (self.run, self.reader);
        let from = run.now();
        let ended = self.ask(Call::People { reader, of, limit }).await;
        let mut found = Vec::new();
        {
            let world = run.world();
            let view = View::new(&world, reader, Window { from, to: run.now() });
            let listed = match ended {
                Ended::Done(Reply::Ids(listed)) => listed,
                Ended::Refused { kind, .. } if kind == "NotFound" => {
                    let (People::Followers(of) | People::Following(of)) = of else { return };
                    if view.is_there(of) == Tri::Yes {
                        found.push((Wrong::Missing, of, "refused although it is there"));
                    }
                    Vec::new()
                }
                _ => return,
            };
            let set: BTreeSet<u64> = listed.iter().copied().collect();
            if set.len() != listed.len() {
                found.push((Wrong::Doubled, reader, "listed twice"));
            }
            let is_refused = !found.is_empty();
            for account in world.states.keys().filter(|_| !is_refused) {
                match (view.is_on_list(*account, of), set.contains(account)) {
                    (Tri::Yes, false) => found.push((Wrong::Missing, *account, "not listed")),
                    (Tri::No, true) => found.push((Wrong::Leaked, *account, "listed")),
                    _ => {}
                }
            }
        }
        for (wrong, account, text) in found {
            run.wrong_between(wrong, (reader, account), format!("{of:?} for {reader}: {account} is {text}"));
        }
    }

    /// How the reader stands to others.
    pub(crate) async fn relations(&self, others: Vec<u64>) {
        let (run, reader) = (self.run, self.reader);
        let others: Vec<u64> = others.into_iter().filter(|other| *other != reader).collect();
        let from = run.now();
        let call = Call::Relations { account: reader, others: others.clone() };
        let Ended::Done(Reply::Relations(said)) = self.ask(call).await else { return };
        let mut found = Vec::new();
        {
            let world = run.world();
            let view = View::new(&world, reader, Window { from, to: run.now() });
            for (other, said) in others.into_iter().zip(said) {
                let Some(said) = said else {
                    if view.is_there(other) == Tri::Yes {
                        found.push((other, "is there".to_owned()));
                    }
                    continue;
                };
                for (what, said, is) in view.relation(other, said) {
                    if is_untrue(said, is) {
                        found.push((other, format!("{what} {other}: {said}, it is {is:?}")));
                    }
                }
            }
        }
        for (other, text) in found {
            run.wrong_between(Wrong::Miscounted, (reader, other), format!("{reader} {text}"));
        }
    }
}
