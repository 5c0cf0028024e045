//! Questions to many local sets in one batch: the scores of some members, the newest members, or all of few. For pages,
//! which ask dozens of small sets at once.

use std::collections::BTreeMap;

use super::Sets;
use super::local::{LocalKey, Probe, ROUNDS_MAX, Spot, Trees, overtaken};
use super::page::{MergeOutcome, Order, PieceRead, ScoreRange, ScoredMember, merge};
use super::set::{range_command, read_ordered, read_source};
use super::tree::hash;
use super::{Member, PIECE_LIMIT_MAX, SortedSet};
use crate::cluster::{Command, Reply};
use crate::error::{Error, Result};

/// A question to a set.
#[derive(Debug)]
enum Question {
    Scores(Vec<Vec<u8>>),
    Newest(usize),
    /// All members, if they lie in so many pieces at most.
    Whole(usize),
}

/// Questions to local sets, put together and asked in one go.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    sets: Vec<LocalKey>,
    asked: Vec<Question>,
}

/// The answer of one set.
#[derive(Debug)]
pub(crate) enum SetAnswer {
    /// In the order of the members.
    Scores(Vec<Option<f64>>),
    /// From the highest score down.
    Newest(Vec<ScoredMember>),
    /// In no order; `None`: too many.
    Whole(Option<Vec<ScoredMember>>),
}

impl SetAnswer {
    /// The scores, of a question for scores.
    pub(crate) fn scores(self) -> Vec<Option<f64>> {
        if let Self::Scores(scores) = self { scores } else { Vec::new() }
    }

    /// The members as they are stored, of a question for the newest.
    pub(crate) fn members(self) -> Vec<Vec<u8>> {
        let Self::Newest(newest) = self else { return Vec::new() };
        newest.into_iter().map(|entry| entry.member).collect()
    }

    /// All members, of a question for them; `None`: too many.
    pub(crate) fn whole(self) -> Option<Vec<ScoredMember>> {
        if let Self::Whole(all) = self { all } else { None }
    }

    /// The members, of a question for the newest.
    pub(crate) fn newest<M: Member>(self) -> Result<Vec<M>> {
        self.members().iter().map(|member| M::from_bytes(member)).collect()
    }
}

/// The progress of one question.
enum QuestionProgress {
    /// Members whose scores are open, and all scores.
    Scores(Vec<usize>, Vec<Option<f64>>),
    /// What each spot gave, how deep it was read, and whether it must be read (again).
    Newest(BTreeMap<Spot, (PieceRead, usize, bool)>),
}

/// One command of a batch: at a spot, of question number `of`.
struct QuestionCommand {
    members: Vec<usize>,
    depth: usize,
    /// The newest of one piece alone are in order as they come: without scores, whose digits cost a server more than
    /// the rest.
    is_alone: bool,
}

impl Questions {
    /// Asks for the scores of members.
    pub(crate) fn scores<M: Member>(&mut self, set: &SortedSet<M>, members: impl IntoIterator<Item = M>) {
        self.sets.push(set.home.clone());
        let bytes = members.into_iter().map(|member| member.to_bytes().as_ref().to_vec());
        self.asked.push(Question::Scores(bytes.collect()));
    }

    /// Asks for the members with the highest scores.
    pub(crate) fn newest<M: Member>(&mut self, set: &SortedSet<M>, most: usize) {
        self.sets.push(set.home.clone());
        self.asked.push(Question::Newest(most));
    }

    /// Asks for all members of a set that lies in `pieces` pieces at most.
    pub(crate) fn whole<M: Member>(&mut self, set: &SortedSet<M>, pieces: usize) {
        self.sets.push(set.home.clone());
        self.asked.push(Question::Whole(pieces));
    }

    /// Asks, and gives the answers in the order of the questions. One batch; another one only where a set has been
    /// split since this process has last looked, or has more of the newest in one piece than its share.
    pub(crate) async fn ask(&self, sets: &Sets) -> Result<Vec<SetAnswer>> {
        let mut trees = sets.trees_of(&self.sets);
        let begin = |(number, what): (usize, &Question)| match what {
            Question::Scores(members) => {
                QuestionProgress::Scores((0..members.len()).collect(), vec![None; members.len()])
            }
            Question::Newest(most) => QuestionProgress::newest(&trees, number, *most),
            Question::Whole(pieces) => QuestionProgress::whole(&trees, number, *pieces),
        };
        let mut progress: Vec<QuestionProgress> = self.asked.iter().enumerate().map(begin).collect();
        for _ in 0..ROUNDS_MAX {
            let (probes, asks) = self.round(&trees, &progress);
            if probes.is_empty() {
                return Ok(self.told(progress));
            }
            let command = |key: &[u8], of: usize| self.command(key, &probes[of], &asks[of]);
            let replies = sets.probe(&self.sets, &mut trees, &probes, command, None).await?;
            if trees.iter().flatten().any(|tree| tree.is_spread()) {
                return Err(Error::internal("a set that must stay local was spread"));
            }
            for ((probe, ask), reply) in probes.iter().zip(asks).zip(replies) {
                progress[probe.set].take(&trees, probe, ask, reply, &self.asked[probe.set])?;
            }
        }
        Err(overtaken())
    }

    /// The next round: what is still to be asked.
    fn round(&self, trees: &Trees, progress: &[QuestionProgress]) -> (Vec<Probe>, Vec<QuestionCommand>) {
        let (mut probes, mut asks) = (Vec::new(), Vec::new());
        let mut push = |set, spot, ask| {
            probes.push(Probe { set, spot, of: asks.len() });
            asks.push(ask);
        };
        for (set, (progress, what)) in progress.iter().zip(&self.asked).enumerate() {
            match (progress, what) {
                (QuestionProgress::Scores(open, _), Question::Scores(members)) => {
                    let mut by_spot: BTreeMap<Spot, Vec<usize>> = BTreeMap::new();
                    for member in open {
                        let spot = Spot::of(trees[set].as_deref(), hash(&members[*member]));
                        by_spot.entry(spot).or_default().push(*member);
                    }
                    by_spot.into_iter().for_each(|(spot, members)| {
                        push(set, spot, QuestionCommand { members, depth: 0, is_alone: false })
                    });
                }
                (QuestionProgress::Newest(spots), _) => {
                    let open = spots.iter().filter(|(_, (.., is_open))| *is_open);
                    let is_alone = spots.len() == 1 && matches!(what, Question::Newest(_));
                    let ask = |(spot, (_, depth, _)): (&Spot, &(PieceRead, usize, bool))| {
                        (*spot, QuestionCommand { members: Vec::new(), depth: *depth, is_alone })
                    };
                    open.map(ask).for_each(|(spot, ask)| push(set, spot, ask));
                }
                _ => {}
            }
        }
        (probes, asks)
    }

    fn command(&self, key: &[u8], probe: &Probe, ask: &QuestionCommand) -> Command {
        match &self.asked[probe.set] {
            Question::Scores(members) => {
                let command = Command::new("ZMSCORE").arg(key);
                ask.members.iter().fold(command, |command, member| command.arg(&members[*member]))
            }
            Question::Newest(_) if ask.is_alone => {
                Command::new("ZRANGE").arg(key).arg("0").arg(ask.depth.saturating_sub(1)).arg("REV")
            }
            Question::Newest(_) | Question::Whole(_) => {
                range_command(key, ScoreRange::default(), ask.depth, Order::Descending)
            }
        }
    }

    fn told(&self, progress: Vec<QuestionProgress>) -> Vec<SetAnswer> {
        let told = |(progress, what): (QuestionProgress, &Question)| match (progress, what) {
            (QuestionProgress::Scores(_, scores), _) => SetAnswer::Scores(scores),
            (QuestionProgress::Newest(spots), Question::Newest(most)) => {
                SetAnswer::Newest(QuestionProgress::merged(&spots, *most))
            }
            (QuestionProgress::Newest(spots), _) => SetAnswer::Whole(QuestionProgress::all(spots)),
        };
        progress.into_iter().zip(&self.asked).map(told).collect()
    }
}

impl QuestionProgress {
    /// Every spot of a set, to be read to its share of the newest.
    fn newest(trees: &Trees, set: usize, most: usize) -> Self {
        let spots = Spot::all_from(trees[set].as_deref(), 0);
        let share = (2 * most / spots.len().max(1) + 2).min(most);
        Self::Newest(spots.into_iter().map(|spot| (spot, (PieceRead::default(), share, true))).collect())
    }

    /// Every spot of a set, to be read to its end; none, if there are too many.
    fn whole(trees: &Trees, set: usize, pieces: usize) -> Self {
        let mut whole = Self::newest(trees, set, pieces * PIECE_LIMIT_MAX as usize);
        if let Self::Newest(spots) = &mut whole
            && spots.len() > pieces
        {
            spots.clear();
        }
        whole
    }

    fn take(
        &mut self,
        trees: &Trees,
        probe: &Probe,
        ask: QuestionCommand,
        reply: Option<Reply>,
        what: &Question,
    ) -> Result<()> {
        match (self, what) {
            (Self::Scores(open, scores), _) => {
                // Split meanwhile: asked again, by the new tree.
                let Some(reply) = reply else { return Ok(()) };
                open.retain(|member| !ask.members.contains(member));
                for (member, score) in ask.members.into_iter().zip(reply.into_array()?) {
                    scores[member] = if score.is_nil() { None } else { Some(score.double()?) };
                }
            }
            (progress, Question::Whole(pieces)) if reply.is_none() => {
                // Rare, and few pieces: all of them again.
                *progress = Self::whole(trees, probe.set, *pieces);
            }
            (Self::Newest(spots), what) => match reply {
                // It turned out to be too large in this very round: what its other pieces say is not all of it (H123).
                Some(_) if matches!(what, Question::Whole(_)) && !spots.contains_key(&probe.spot) => {}
                Some(reply) => {
                    let source = match ask.is_alone {
                        true => read_ordered(probe.spot, reply, ask.depth)?,
                        false => read_source(probe.spot, reply, ask.depth)?,
                    };
                    spots.insert(probe.spot, (source, ask.depth, false));
                    if let Question::Newest(most) = what {
                        Self::deepen(spots, *most);
                    }
                }
                None => {
                    let Question::Newest(most) = what else { return Ok(()) };
                    let heirs = probe.spot.heirs(trees[probe.set].as_deref());
                    // It has shrunk (a failover), or was small: what was read elsewhere counts no more.
                    if heirs.is_empty() || heirs == [probe.spot] {
                        *spots = match Self::newest(trees, probe.set, *most) {
                            Self::Newest(spots) => spots,
                            Self::Scores(..) => BTreeMap::new(),
                        };
                    } else {
                        spots.remove(&probe.spot);
                        spots.extend(
                            heirs.into_iter().map(|heir| (heir, (PieceRead::default(), ask.depth, true))),
                        );
                    }
                }
            },
        }
        Ok(())
    }

    /// Once every spot was read: has those read deeper that might hold more of the newest.
    fn deepen(spots: &mut BTreeMap<Spot, (PieceRead, usize, bool)>, most: usize) {
        if spots.values().any(|(.., is_open)| *is_open) {
            return;
        }
        let sources: Vec<PieceRead> = spots.values().map(|(source, ..)| source.clone()).collect();
        if let MergeOutcome::Deepen(deeper) = merge(&sources, None, most, Order::Descending) {
            for (number, (_, depth, is_open)) in spots.values_mut().enumerate() {
                if deeper.contains(&number) {
                    (*depth, *is_open) = (*depth * 4, true);
                }
            }
        }
    }

    /// All that was read, if that is all there is.
    fn all(spots: BTreeMap<Spot, (PieceRead, usize, bool)>) -> Option<Vec<ScoredMember>> {
        let is_whole = !spots.is_empty() && spots.values().all(|(source, ..)| source.is_complete);
        is_whole.then(|| spots.into_values().flat_map(|(source, ..)| source.entries).collect())
    }

    fn merged(spots: &BTreeMap<Spot, (PieceRead, usize, bool)>, most: usize) -> Vec<ScoredMember> {
        let sources: Vec<PieceRead> = spots.values().map(|(source, ..)| source.clone()).collect();
        match merge(&sources, None, most, Order::Descending) {
            MergeOutcome::Page(page) => page,
            MergeOutcome::Deepen(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::tree::Tree;
    use super::*;

    /// A tree by its first splits: from the highest bit down those of nodes 0 (which there is not), 1, 2 and so on.
    fn trees(splits: u8) -> Trees {
        let stored = [b"L".as_slice(), &[0; 15], &[splits]].concat();
        vec![Some(Arc::new(Tree::parse(&stored).unwrap()))]
    }

    /// H123: a set of two pieces grows to three while they are read, and that is too many. One has been split, the
    /// other is as it was, and empty.
    #[test]
    fn a_set_that_grows_too_large_while_it_is_read_is_not_whole() {
        let (small, grown, what) = (trees(0b0100_0000), trees(0b0110_0000), Question::Whole(2));
        let mut progress = QuestionProgress::whole(&small, 0, 2);
        let QuestionProgress::Newest(spots) = &progress else { panic!("it is read whole") };
        let asked: Vec<(Spot, usize)> = spots.iter().map(|(spot, (_, depth, _))| (*spot, *depth)).collect();
        assert_eq!(asked.len(), 2);
        for ((spot, depth), reply) in asked.into_iter().zip([None, Some(Reply::of_items(Vec::new()))]) {
            let (probe, ask) = (
                Probe { set: 0, spot, of: 0 },
                QuestionCommand { members: Vec::new(), depth, is_alone: false },
            );
            progress.take(&grown, &probe, ask, reply, &what).unwrap();
        }
        let QuestionProgress::Newest(spots) = progress else { panic!("it is read whole") };
        assert!(QuestionProgress::all(spots).is_none(), "a piece of a set was taken for all of it");
    }
}
