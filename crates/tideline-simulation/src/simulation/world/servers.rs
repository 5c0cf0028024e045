//! Servers: their clocks, fences, lives; one that is replaced, and answers on.

use super::*;

impl World {
    /// Somebody asks for the fence of a server: who serves and has no replica that answers is known for that from now
    /// on.
    pub(in crate::simulation) fn note_vouching(&mut self, epoch: &Epoch) {
        let number = usize::from(epoch.node().port);
        let node = &self.nodes[number];
        if node.epoch == *epoch && node.cannot_vouch {
            self.vouched_for_nothing.insert(number, epoch.clone());
        }
    }

    /// Whether a server's fence fails, as far as anybody knows: its replica is silent now; or was, when the server was
    /// last asked before it was deposed.
    pub(in crate::simulation) fn cannot_vouch(&self, epoch: &Epoch) -> bool {
        let number = usize::from(epoch.node().port);
        let (node, failed) = (&self.nodes[number], self.vouched_for_nothing.get(&number));
        let was_deposed = node.epoch != *epoch;
        if was_deposed { failed.is_some_and(|failed| *failed != node.epoch) } else { node.cannot_vouch }
    }

    /// Sets a server's clock, by hours or back to the time. Those of the others are right then: they outvote it.
    pub(in crate::simulation) fn step_clock(&mut self, number: usize) {
        let off = self.pick(&[-2 * HOUR_MS, -HOUR_MS, 0, HOUR_MS, 2 * HOUR_MS]);
        for node in self.nodes.iter_mut().filter(|node| node.clock_ahead_ms.abs() >= HOUR_MS) {
            node.clock_ahead_ms = 0;
        }
        self.nodes[number].clock_ahead_ms = off;
        self.note(|| format!("CLOCK of {number} is {off} ms ahead"));
    }

    /// The replica has everything now.
    pub(in crate::simulation) fn sync(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        node.behind = std::mem::replace(&mut node.synced, node.data.clone());
    }

    /// The replica takes over, with what it has.
    pub(in crate::simulation) fn fail_over(&mut self, number: usize, clock_ahead_ms: i64) {
        self.failovers.push((number, self.commands));
        self.commands += 1;
        let now = Instant::now();
        let is_deposed = self.faults.deposed > 0 && self.chance(self.faults.deposed);
        let until = now + Duration::from_millis(if is_deposed { 40 + self.below(300) } else { 0 });
        let instances = self.instances.len() as u64;
        let asked_by =
            (0..self.instances.len()).filter(|_| is_deposed && self.below(instances) > 0).collect();
        let accepts_writes = is_deposed && self.chance(500);
        let is_behind = self.faults.hollow > 0 && self.chance(300);
        let node = &mut self.nodes[number];
        if is_behind {
            node.synced = node.behind.clone();
        }
        let has_lost = node.data != node.synced;
        let before = if has_lost { self.posts_at(number) } else { BTreeMap::new() };
        let node = &mut self.nodes[number];
        let data = std::mem::replace(&mut node.data, node.synced.clone());
        node.deposed = Some(Deposed { data, epoch: node.epoch.clone(), until, asked_by, accepts_writes });
        node.life += 1;
        node.epoch = Epoch::of_life(node.epoch.node().clone(), node.life);
        node.clock_ahead_ms = clock_ahead_ms;
        if has_lost {
            let after = self.posts_at(number);
            self.lost_posts.extend(before.into_iter().filter(|(post, _)| !after.contains_key(post)));
        }
        self.note(|| format!("FAILOVER of {number}{}", if has_lost { ", with losses" } else { "" }));
        self.note_states(number, None);
        self.note_locks(number);
        self.note_ties(number);
        self.check_owners();
    }

    /// The accounts of a bucket.
    pub(in crate::simulation) fn accounts_at(&self, number: usize) -> impl Iterator<Item = AccountId> {
        let is_there =
            move |account: &AccountId| usize::from(self.keys.bucket_of(*account).index()) == number;
        self.accounts.iter().copied().filter(is_there)
    }

    fn posts_at(&self, number: usize) -> BTreeMap<(u64, AccountId), Post> {
        let accounts = self.accounts_at(number);
        let ids = accounts.flat_map(|by| truth::posts(self, by).all().map(|id| (id, by)).collect::<Vec<_>>());
        ids.filter_map(|(id, by)| Some(((id, by), truth::post(self, id, by)?))).collect()
    }

    /// For a while the primary that was replaced last answers on, to these instances.
    pub(in crate::simulation) fn answers_on(&mut self, number: usize, asked_by: &[usize]) {
        if let Some(deposed) = &mut self.nodes[number].deposed {
            deposed.asked_by = asked_by.iter().copied().collect();
            deposed.until = Instant::now() + Duration::from_secs(3_600);
        }
    }

    /// It has noticed, or everybody else has.
    pub(in crate::simulation) fn answers_no_more(&mut self, number: usize) {
        self.nodes[number].deposed = None;
    }

    /// Whether an account's server has failed over since that command.
    pub(in crate::simulation) fn has_failed_over(&self, account: AccountId, since: u64) -> bool {
        let bucket = usize::from(self.keys.bucket_of(account).index());
        self.failovers.iter().any(|(number, command)| *number == bucket && *command >= since)
    }

    /// Whether a primary of that account's bucket that was replaced has accepted something since that command.
    pub(in crate::simulation) fn has_strayed(&self, account: AccountId, since: u64) -> bool {
        let bucket = usize::from(self.keys.bucket_of(account).index());
        self.stray_writes.iter().any(|(number, command)| *number == bucket && *command >= since)
    }

    /// The epoch of a server, as an instance knows it.
    pub(in crate::simulation) fn epoch_of(&self, by: usize, number: usize) -> Epoch {
        let node = &self.nodes[number];
        let deposed = node.deposed.as_ref().filter(|d| d.accepts_writes && d.is_asked_by(by));
        deposed.map_or(&node.epoch, |deposed| &deposed.epoch).clone()
    }

    /// Whether an instance takes a server that was replaced for the primary, which takes writes still: a fence finds no
    /// replica there.
    pub(in crate::simulation) fn is_cut_off_with(&self, by: usize, epoch: &Epoch) -> bool {
        let deposed = self.nodes[usize::from(epoch.node().port)].deposed.as_ref();
        deposed.is_some_and(|d| d.accepts_writes && d.epoch == *epoch && d.is_asked_by(by))
    }

    /// Has a deposed primary answer, if that instance still asks one.
    pub(super) fn ask_deposed(
        &mut self,
        by: usize,
        number: usize,
        request: &Request,
        arguments: &[&[u8]],
    ) -> Option<Answer> {
        let deposed = self.nodes[number].deposed.as_ref().filter(|deposed| deposed.is_asked_by(by))?;
        if !request.traits.read && !deposed.accepts_writes {
            return None;
        }
        let (data, epoch) = (deposed.data.clone(), deposed.epoch.clone());
        let moving = self.nodes[number].moving.take();
        let present = std::mem::replace(&mut self.nodes[number].data, data);
        let before = self.states_of(number);
        let done = self.on_node(number, request, arguments);
        if !request.traits.read {
            // Whatever it did is lost, and a copy of the request may do it at the new one.
            for ((account, after), (_, before)) in self.states_of(number).into_iter().zip(before) {
                self.lost.extend(toggles(account, &before, &after));
            }
            self.stray_writes.push((number, self.commands));
        }
        let node = &mut self.nodes[number];
        let left = std::mem::replace(&mut node.data, present);
        node.moving = moving;
        node.deposed.as_mut().expect("looked at").data = left;
        self.stale_reads += 1;
        self.note(|| format!("{by}>{number} DEPOSED {:?} -> {done:?}", request.command));
        let reply = done.map_or_else(|line| Reply::server_error(&line), reply);
        Some(Answer { reply, epoch })
    }
}
