//! Groups: what was posted into them, held against what their pages and their members' homes show. Their members do
//! nothing else, so that what they find at home is what stands in their groups.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::call::Call;
use super::check::Wrong;
use super::comparisons::Subject;
use super::facts::{Fact, OPEN, Time, Tri, Window};
use super::group_call::GroupCall;
use super::run::{Ended, Run};
use super::told::{Message, Reply};
use super::world::World;
use super::written::{self, Written, WrittenNo};

/// A group by its number.
pub(crate) type GroupNo = usize;

/// A public one, a private one, and one of announcements.
pub(crate) const GROUPS: GroupNo = 3;
/// Who posts at once more than it may: accounts from here on, each once.
pub(crate) const RUSHERS: u64 = 3_001_000;
/// How often it tries to, and how often it may.
pub(crate) const RUSHED: usize = 8;
pub(crate) const RUSHED_MOST: u32 = 3;
/// Who joins them, and leaves: accounts that the rest of a plan doesn't know.
pub(crate) const MEMBERS: [u64; 8] =
    [3_000_001, 3_000_002, 3_000_003, 3_000_004, 3_000_005, 3_000_006, 3_000_007, 3_000_008];
/// What posts into groups say begins so.
pub(crate) const POSTED: &str = "posted";

/// Whoever has to do with groups.
pub(crate) fn readers() -> impl Iterator<Item = u64> {
    MEMBERS.into_iter().chain((0..GROUPS).map(owner_of))
}

/// Who reads a group, and who posts there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum GroupKind {
    Public,
    Private,
    /// Everybody reads it, and the staff posts.
    Announcement,
}

pub(crate) fn kind_of(group: GroupNo) -> GroupKind {
    [GroupKind::Public, GroupKind::Private, GroupKind::Announcement][group % GROUPS]
}

/// Whether only members see what stands in a group.
pub(crate) fn is_private(group: GroupNo) -> bool {
    kind_of(group) == GroupKind::Private
}

/// The account of a group.
pub(crate) fn account_of(group: GroupNo) -> u64 {
    3_000_200 + group as u64
}

/// Who owns a group, from its beginning to its end.
pub(crate) fn owner_of(group: GroupNo) -> u64 {
    3_000_100 + group as u64
}

/// Whether the judge of a run holds a post back until somebody releases it.
pub(crate) fn is_held(no: WrittenNo) -> bool {
    no % 5 == 4
}

/// What is known of a post into a group.
#[derive(Debug, Clone)]
pub(crate) struct PostedFact {
    pub(crate) group: GroupNo,
    pub(crate) written: Written,
    /// Whether only its author sees it.
    pub(crate) is_held: Fact<bool>,
}

impl PostedFact {
    pub(crate) fn new(group: GroupNo, no: WrittenNo, written: Written) -> Self {
        Self { group, written, is_held: Fact::new(is_held(no)) }
    }
}

/// What is known of groups.
#[derive(Debug, Clone, Default)]
pub(crate) struct GroupFacts {
    /// Whether they are there, with their owners and whoever may join.
    pub(crate) are_founded: bool,
    /// Who is in which.
    pub(crate) members: BTreeMap<(GroupNo, u64), Fact<bool>>,
    /// Who moderates which.
    pub(crate) moderators: BTreeMap<(GroupNo, u64), Fact<bool>>,
    /// Who may not come (again). What is done to a member is done one after another, so that is known.
    pub(crate) banned: BTreeSet<(GroupNo, u64)>,
    /// Who has posted more at once than it may, or tried to.
    pub(crate) rushers: Vec<u64>,
    pub(crate) posted: BTreeMap<WrittenNo, PostedFact>,
    /// Who likes which of these.
    pub(crate) likes: BTreeMap<(WrittenNo, u64), Fact<bool>>,
    /// What was refused to somebody who liked a post, when it looked as if it saw that: it may have gone just then.
    pub(crate) refused: Vec<RefusedLike>,
}

/// A like of a post that was refused.
#[derive(Debug, Clone)]
pub(crate) struct RefusedLike {
    pub(crate) no: WrittenNo,
    pub(crate) by: u64,
    pub(crate) window: Window,
    pub(crate) why: String,
}

impl GroupFacts {
    pub(crate) fn is_member(&self, group: GroupNo, account: u64, window: Window) -> Tri {
        if account == owner_of(group) {
            return Tri::Yes;
        }
        self.members.get(&(group, account)).map_or(Tri::No, |fact| fact.is(window, |is| is))
    }

    /// Whoever is banned is blocked by the group, and sees nothing there.
    pub(crate) fn is_banned(&self, group: GroupNo, account: u64) -> bool {
        self.banned.contains(&(group, account))
    }

    pub(crate) fn is_on_staff(&self, group: GroupNo, account: u64, window: Window) -> Tri {
        if account == owner_of(group) {
            return Tri::Yes;
        }
        self.moderators.get(&(group, account)).map_or(Tri::No, |fact| fact.is(window, |is| is))
    }

    pub(crate) fn may_post(&self, group: GroupNo, account: u64, window: Window) -> Tri {
        let is_staffs = kind_of(group) == GroupKind::Announcement;
        let may = if is_staffs { self.is_on_staff(group, account, window) } else { Tri::Yes };
        self.is_member(group, account, window).and(may)
    }

    pub(crate) fn moderation(&mut self, group: GroupNo, account: u64) -> &mut Fact<bool> {
        self.moderators.entry((group, account)).or_insert_with(|| Fact::new(false))
    }

    pub(crate) fn membership(&mut self, group: GroupNo, account: u64) -> &mut Fact<bool> {
        self.members.entry((group, account)).or_insert_with(|| Fact::new(false))
    }

    pub(crate) fn like(&mut self, no: WrittenNo, account: u64) -> &mut Fact<bool> {
        self.likes.entry((no, account)).or_insert_with(|| Fact::new(false))
    }

    /// Whether an account likes a post, or doesn't, nobody knows from now on.
    pub(crate) fn doubt_like(&mut self, post: u64, account: u64, on: bool, from: Time) {
        let no = self.posted.iter().find(|(_, of)| of.written.id == Some(post)).map(|(no, _)| *no);
        if let Some(no) = no {
            self.like(no, account).influence(on, from, OPEN);
        }
    }

    /// Whether an account sees a post.
    pub(crate) fn sees(&self, no: WrittenNo, account: u64, window: Window) -> Tri {
        let Some(PostedFact { group, written, is_held }) = self.posted.get(&no) else { return Tri::No };
        let is_in = self.is_member(*group, account, window);
        let is_in = if is_private(*group) { is_in } else { Tri::from(!self.is_banned(*group, account)) };
        let is_out = Tri::from(written.by == account).or(is_held.is(window, |is| is).not());
        written.stands(window).and(is_out).and(is_in)
    }

    /// Whether a post may show to somebody who reads what everybody posts. `by`: its group, or, over HTTP, who wrote
    /// it. `None`: it has nothing to do with groups.
    pub(crate) fn shows_in_public(&self, id: u64, by: u64, reader: u64, window: Window) -> Option<Tri> {
        if let Some((no, of)) = self.posted.iter().find(|(_, of)| of.written.id == Some(id)) {
            return Some(self.sees(*no, reader, window).and(Tri::from(!is_private(of.group))));
        }
        let is_theirs =
            by >= RUSHERS || readers().chain((0..GROUPS).map(account_of)).any(|other| other == by);
        // Of one that is on its way nobody knows the id yet.
        is_theirs.then_some(Tri::Maybe)
    }

    /// How many posts of an account are held back, or may be: nobody knows which of these were decided.
    pub(crate) fn may_wait(&self, account: u64) -> u32 {
        self.posted.iter().map(|(no, of)| u32::from(of.written.by == account && is_held(*no))).sum()
    }

    /// What may stand where somebody reads, with whether it does: on the page of a group, or at home.
    fn read_by(&self, reader: u64, on: Option<GroupNo>, now: Window) -> Vec<(WrittenNo, &Written, Tri)> {
        let all = self.posted.iter().filter(|(_, of)| on.is_none_or(|group| group == of.group));
        all.map(|(no, PostedFact { group, written, is_held })| {
            let is_member = self.is_member(*group, reader, now);
            let is_out = Tri::from(written.by == reader).or(is_held.is(now, |is| is).not());
            let shows = match on {
                // What it has written itself it may see, wherever it looks for that.
                Some(group)
                    if written.by == reader && (is_private(group) || self.is_banned(group, reader)) =>
                {
                    is_member.or(Tri::Maybe)
                }
                Some(group) if !is_private(group) => Tri::from(!self.is_banned(group, reader)),
                _ => is_member,
            };
            (*no, written, written.stands(now).and(is_out).and(shows))
        })
        .collect()
    }
}

/// Holds the pages of groups, and the homes of all who have to do with them, against what was posted. Nothing may be
/// under way.
pub(crate) async fn compare(run: &Arc<Run>) {
    if !run.world().groups.are_founded {
        return;
    }
    // Not in the loop's head: the world would be held as long as that runs.
    let refused = std::mem::take(&mut run.world().groups.refused);
    for RefusedLike { no, by, window, why } in refused {
        let sees = run.world().groups.sees(no, by, window);
        if sees == Tri::Yes {
            run.wrong(Wrong::Stuck, by, None, format!("a like of number {no} was refused: {why}"));
        }
    }
    for (n, reader) in readers().enumerate() {
        for on in (0..GROUPS).map(Some).chain([None]) {
            let call = Call::Group(GroupCall::Posted { reader, group: on.map(account_of) });
            match run.call(n, call).await {
                Ended::Done(Reply::Messages(read)) => {
                    let now = run.now();
                    look(run, (reader, on), &read, Window { from: now, to: now });
                }
                other => run.skipped(Subject::Groups, &other),
            }
        }
    }
    for group in 0..GROUPS {
        match run.call(group, Call::Group(GroupCall::Staff { group: account_of(group) })).await {
            Ended::Done(Reply::Ids(staff)) => {
                let now = run.now();
                let found = wrongs_of_a_staff(&run.world(), group, &staff, Window { from: now, to: now });
                for text in found {
                    run.wrong(Wrong::Miscounted, account_of(group), None, text);
                }
            }
            other => run.skipped(Subject::Groups, &other),
        }
    }
}

/// What is wrong about who is said to be on a group's staff.
fn wrongs_of_a_staff(world: &World, group: GroupNo, staff: &[u64], now: Window) -> Vec<String> {
    let is_wrong = |of: &u64| match world.groups.is_on_staff(group, *of, now) {
        Tri::Yes => !staff.contains(of),
        Tri::No => staff.contains(of),
        Tri::Maybe => false,
    };
    let known = MEMBERS.into_iter().chain([owner_of(group)]);
    let all: BTreeSet<u64> = known.chain(staff.iter().copied()).collect();
    let told = |of: u64| format!("{of} is, or isn't, on the staff of group {group}, of which are {staff:?}");
    all.into_iter().filter(is_wrong).map(told).collect()
}

/// Tells what is wrong about what somebody reads on a page or at home.
fn look(run: &Run, (reader, on): (u64, Option<GroupNo>), read: &[Message], now: Window) {
    for (wrong, text) in wrongs(&run.world(), (reader, on), read, now) {
        run.wrong(wrong, reader, None, text);
    }
}

fn wrongs(
    world: &World,
    (reader, on): (u64, Option<GroupNo>),
    read: &[Message],
    now: Window,
) -> Vec<(Wrong, String)> {
    let found =
        written::wrongs(&world.groups.read_by(reader, on, now), |text| written::no_of(POSTED, text), read);
    let place = on.map_or("at home".to_owned(), |group| format!("on the page of group {group}"));
    found.into_iter().map(|(wrong, text)| (wrong, format!("{place}: {text}"))).collect()
}

/// What is wrong about a group's page while others write: of a private one whoever isn't in it reads nothing of theirs,
/// and everybody who is finds what it has posted itself.
pub(crate) fn wrongs_of_a_look(
    world: &World,
    (reader, group): (u64, GroupNo),
    read: &[Message],
    window: Window,
) -> Vec<(Wrong, String)> {
    let is_member = world.groups.is_member(group, reader, window);
    let mut found = Vec::new();
    let fact_of = |message: &Message| {
        let fact = world.groups.posted.get(&written::no_of(POSTED, &message.text)?)?;
        (fact.group == group).then_some(fact)
    };
    if is_private(group) && is_member == Tri::No {
        let of_others = read
            .iter()
            .filter(|message| fact_of(message).is_none_or(|PostedFact { written, .. }| written.by != reader));
        found.extend(of_others.map(|message| {
            (Wrong::Leaked, format!("{message:?} in private group {group}, which {reader} is not in"))
        }));
    }
    let is_held_back = |message: &&Message| {
        fact_of(message).is_some_and(|PostedFact { written, is_held, .. }| {
            written.by != reader && is_held.is(window, |is| is) == Tri::Yes
        })
    };
    found.extend(read.iter().filter(is_held_back).map(|message| {
        (Wrong::Leaked, format!("{message:?} in group {group} is held back, and shows to {reader}"))
    }));
    let is_open = !is_private(group) && !world.groups.is_banned(group, reader);
    if is_open || is_member == Tri::Yes {
        let own = world.groups.posted.values().filter(|of| of.group == group && of.written.by == reader);
        for PostedFact { written, .. } in own.filter(|of| of.written.stands(window) == Tri::Yes) {
            let is_read = |id| read.iter().any(|message| message.id == id);
            if written.id.is_some_and(|id| !is_read(id)) {
                found.push((Wrong::Missing, format!("{written:?} isn't on the page of group {group}")));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_read_what_is_private_and_nobody_else() {
        let mut world = World::default();
        let [ada, ben, cleo] = [MEMBERS[0], MEMBERS[1], MEMBERS[2]];
        for member in [ada, ben] {
            world.groups.membership(1, member).change(1, 2, true);
        }
        let post = |by, group, id| PostedFact::new(group, 0, Written::new(by, Some(id), false));
        world.groups.posted.extend([(0, post(ada, 0, 10)), (1, post(ada, 1, 20))]);
        let now = Window { from: 5, to: 5 };
        let [public, private] =
            [(0, 10), (1, 20)].map(|(no, id)| Message { id, text: written::text_of(POSTED, no) });
        let kinds = |world: &World, reader, on, read: &[&Message]| -> Vec<Wrong> {
            let read: Vec<Message> = read.iter().map(|message| (*message).clone()).collect();
            wrongs(world, (reader, on), &read, now).into_iter().map(|(wrong, _)| wrong).collect()
        };
        assert!(kinds(&world, cleo, Some(0), &[&public]).is_empty());
        assert_eq!(kinds(&world, cleo, Some(0), &[]), [Wrong::Missing]);
        assert!(kinds(&world, ben, Some(1), &[&private]).is_empty());
        assert_eq!(kinds(&world, cleo, Some(1), &[&private]), [Wrong::Leaked]);
        // At home stands what is posted into the groups that one is in, and nothing else.
        assert!(kinds(&world, ben, None, &[&private]).is_empty());
        assert_eq!(kinds(&world, ben, None, &[&private, &public]), [Wrong::Leaked]);
        assert_eq!(kinds(&world, ben, None, &[]), [Wrong::Missing]);

        let held = PostedFact::new(0, 4, Written::new(ada, Some(30), false));
        world.groups.posted.insert(4, held);
        let held = Message { id: 30, text: written::text_of(POSTED, 4) };
        assert_eq!(kinds(&world, cleo, Some(0), &[&held, &public]), [Wrong::Leaked]);
        assert_eq!(kinds(&world, ada, Some(0), &[&public]), [Wrong::Missing]);
        if let Some(of) = world.groups.posted.get_mut(&4) {
            of.is_held.change(2, 3, false);
        }
        assert_eq!(kinds(&world, cleo, Some(0), &[&public]), [Wrong::Missing]);

        let looks = |world: &World, reader, group, read: &[&Message]| -> Vec<Wrong> {
            let read: Vec<Message> = read.iter().map(|message| (*message).clone()).collect();
            wrongs_of_a_look(world, (reader, group), &read, now).into_iter().map(|(wrong, _)| wrong).collect()
        };
        assert!(looks(&world, cleo, 1, &[]).is_empty());
        assert_eq!(looks(&world, cleo, 1, &[&private]), [Wrong::Leaked]);
        // Whoever is banned sees nothing of what others can read.
        world.groups.banned.insert((0, cleo));
        assert!(kinds(&world, cleo, Some(0), &[]).is_empty());
        assert_eq!(kinds(&world, cleo, Some(0), &[&public]), [Wrong::Leaked]);
        // Others' posts may be on their way; its own are there.
        assert!(looks(&world, ben, 1, &[]).is_empty());
        assert_eq!(looks(&world, ada, 1, &[]), [Wrong::Missing]);
        world.groups.membership(1, ada).change(3, 4, false);
        assert!(looks(&world, ada, 1, &[&private]).is_empty());
    }
}
