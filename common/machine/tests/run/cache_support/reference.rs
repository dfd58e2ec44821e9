//! A slow model of the same rules, written to be easy to read: lines in vectors, ages as time
//! stamps, coherence by searching every cache of the machine. It shares no code with the fast
//! model.

use std::collections::{BTreeMap, BTreeSet};

use warmq_machine::{
    Access, BusCounts, Coherence, Inclusion, LevelCounts, LineState, MachineDescription, MissKinds,
    Outcome, Replacement, Served,
};
use warmq_units::Duration;

/// A line in a way.
#[derive(Clone, Copy, Debug)]
struct Held {
    line: u64,
    state: LineState,
    used: u64,
}

struct SlowCache {
    level: u8,
    cpus: BTreeSet<usize>,
    inclusion: Inclusion,
    replacement: Replacement,
    latency: Duration,
    sets: Vec<Vec<Option<Held>>>,
    // For each set and each range of ways that is more than one way: whether its right half is
    // the one to give up.
    right_is_old: BTreeMap<(usize, usize, usize), bool>,
    // For each set and way an age, where it is not 3.
    young: BTreeMap<(usize, usize), u8>,
    // For the causes of misses: a fully associative cache, newest first.
    shadow: Vec<u64>,
    seen: BTreeSet<u64>,
    lost: BTreeSet<u64>,
}

pub struct Reference {
    machine: MachineDescription,
    line: u64,
    clock: u64,
    caches: Vec<SlowCache>,
    pub levels: BTreeMap<(usize, u8), LevelCounts>,
    pub bus: BusCounts,
    pub inner_supplies: u64,
    pub inner_upgrades: u64,
    pub dma_into_llc: u64,
    pub bins: BTreeMap<u64, u64>,
}

#[derive(Clone, Copy)]
enum Kind {
    Read,
    Own,
    Upgrade,
    WriteBack,
    Dma,
}

impl SlowCache {
    fn set(&self, line: u64) -> usize {
        (line % self.sets.len() as u64) as usize
    }

    fn state(&self, line: u64) -> Option<LineState> {
        let set = &self.sets[self.set(line)];
        set.iter()
            .flatten()
            .find(|held| held.line == line)
            .map(|held| held.state)
    }

    fn set_state(&mut self, line: u64, state: LineState) {
        let set = self.set(line);
        for held in self.sets[set]
            .iter_mut()
            .flatten()
            .filter(|held| held.line == line)
        {
            held.state = state;
        }
    }

    fn age(&self, set: usize, way: usize) -> u8 {
        self.young.get(&(set, way)).copied().unwrap_or(3)
    }

    /// The way is of `age`; the others of its set grow older together until one is of age 3.
    fn note_age(&mut self, set: usize, way: usize, age: u8) {
        self.young.insert((set, way), age);
        let others: Vec<usize> = (0..self.sets[set].len()).filter(|w| *w != way).collect();
        while !others.is_empty() && others.iter().all(|other| self.age(set, *other) < 3) {
            for other in &others {
                *self.young.get_mut(&(set, *other)).unwrap() += 1;
            }
        }
    }

    fn note_use(&mut self, line: u64, clock: u64, age: u8) {
        let set = self.set(line);
        let is_it = |held: &Option<Held>| held.is_some_and(|held| held.line == line);
        let way = self.sets[set].iter().position(is_it).unwrap();
        self.sets[set][way].as_mut().unwrap().used = clock;
        self.note_age(set, way, age);
        let (mut low, mut high) = (0, self.sets[set].len());
        while high - low > 1 {
            let middle = (low + high) / 2;
            self.right_is_old.insert((set, low, high), way < middle);
            if way < middle {
                high = middle
            } else {
                low = middle
            }
        }
        self.shadow.retain(|held| *held != line);
        self.shadow.insert(0, line);
        self.shadow.truncate(self.sets.len() * self.sets[0].len());
        self.seen.insert(line);
        self.lost.remove(&line);
    }

    fn oldest_way(&self, set: usize) -> usize {
        if let Some(empty) = self.sets[set].iter().position(Option::is_none) {
            return empty;
        }
        if self.replacement == Replacement::Lru {
            let age = |way: &usize| self.sets[set][*way].unwrap().used;
            return (0..self.sets[set].len()).min_by_key(age).unwrap();
        }
        if self.replacement == Replacement::QuadAge {
            let is_old = |way: &usize| self.age(set, *way) == 3;
            return (0..self.sets[set].len()).find(is_old).unwrap_or(0);
        }
        let (mut low, mut high) = (0, self.sets[set].len());
        while high - low > 1 {
            let middle = (low + high) / 2;
            let right = self
                .right_is_old
                .get(&(set, low, high))
                .copied()
                .unwrap_or(false);
            if right { low = middle } else { high = middle }
        }
        low
    }

    fn take_in(&mut self, line: u64, state: LineState, clock: u64) -> Option<Held> {
        assert!(self.state(line).is_none());
        let set = self.set(line);
        let way = self.oldest_way(set);
        let left = self.sets[set][way].replace(Held {
            line,
            state,
            used: clock,
        });
        self.note_use(line, clock, 1);
        left
    }

    fn drop_line(&mut self, line: u64) -> Option<LineState> {
        let state = self.state(line)?;
        let set = self.set(line);
        for (index, way) in self.sets[set].iter_mut().enumerate() {
            if way.is_some_and(|held| held.line == line) {
                *way = None;
                self.young.remove(&(set, index));
            }
        }
        self.shadow.retain(|held| *held != line);
        Some(state)
    }

    fn count_cause(&self, line: u64, kinds: &mut MissKinds) {
        if !self.seen.contains(&line) {
            kinds.cold += 1;
        } else if self.lost.contains(&line) {
            kinds.coherence += 1;
        } else if self.shadow.contains(&line) {
            kinds.conflict += 1;
        } else {
            kinds.capacity += 1;
        }
    }
}

impl Reference {
    pub fn new(machine: &MachineDescription) -> Reference {
        let caches = machine.caches.iter().map(|cache| {
            let ways = cache.ways as usize;
            let sets = (cache.size.0 / cache.line.0) as usize / ways;
            SlowCache {
                level: cache.level,
                cpus: cache.cpus.iter().map(|cpu| cpu.index()).collect(),
                inclusion: cache.inclusion,
                replacement: cache.replacement,
                young: BTreeMap::new(),
                latency: machine.clock.time_of(cache.latency),
                sets: vec![vec![None; ways]; sets],
                right_is_old: BTreeMap::new(),
                shadow: Vec::new(),
                seen: BTreeSet::new(),
                lost: BTreeSet::new(),
            }
        });
        Reference {
            machine: machine.clone(),
            line: machine.caches[0].line.0,
            clock: 0,
            caches: caches.collect(),
            levels: BTreeMap::new(),
            bus: BusCounts::default(),
            inner_supplies: 0,
            inner_upgrades: 0,
            dma_into_llc: 0,
            bins: BTreeMap::new(),
        }
    }

    pub fn state(&self, cpu: usize, level: u8, address: u64) -> Option<LineState> {
        let mut caches = self.caches.iter();
        let cache = caches.find(|cache| cache.level == level && cache.cpus.contains(&cpu))?;
        cache.state(address / self.line)
    }

    /// The caches of `cpu`, nearest first.
    fn path(&self, cpu: usize) -> Vec<usize> {
        let of_cpu = |cache: &usize| self.caches[*cache].cpus.contains(&cpu);
        let mut path: Vec<usize> = (0..self.caches.len()).filter(of_cpu).collect();
        path.sort_by_key(|cache| self.caches[*cache].level);
        path
    }

    /// The caches that hold `line` and are not on the path of `cpu`.
    fn others(&self, cpu: usize, line: u64) -> Vec<usize> {
        let other = |cache: &usize| {
            !self.caches[*cache].cpus.contains(&cpu) && self.caches[*cache].state(line).is_some()
        };
        (0..self.caches.len()).filter(other).collect()
    }

    fn count(&mut self, kind: Kind, address: u64) {
        match kind {
            Kind::Read => self.bus.read_lines += 1,
            Kind::Own => self.bus.reads_for_ownership += 1,
            Kind::Upgrade => self.bus.upgrades += 1,
            Kind::WriteBack => self.bus.write_backs += 1,
            Kind::Dma => self.bus.dma_writes += 1,
        }
        *self.bins.entry(address % 4096 / 16).or_default() += 1;
        self.bus.busy += match (self.machine.coherence, kind) {
            (Coherence::Bus { address_only, .. }, Kind::Upgrade) => address_only,
            (Coherence::Bus { line_transfer, .. }, _) => line_transfer,
            (Coherence::Directory { line_transfer, .. }, Kind::WriteBack | Kind::Dma) => {
                line_transfer
            }
            _ => Duration::ZERO, // a directory's channel is charged where memory answers
        };
    }

    fn directory_transfer(&mut self) {
        if let Coherence::Directory { line_transfer, .. } = self.machine.coherence {
            self.bus.busy += line_transfer;
        }
    }

    /// One access on a bus that is quiet.
    pub fn access(&mut self, cpu: usize, address: u64, access: Access) -> Outcome {
        self.clock += 1;
        let line = address / self.line;
        let path = self.path(cpu);
        let mut level = 0;
        while level < path.len() {
            let counts = self.levels.entry((cpu, level as u8 + 1)).or_default();
            let hit = self.caches[path[level]].state(line).is_some();
            match access {
                Access::Read => counts.reads += 1,
                Access::Write => counts.writes += 1,
            }
            if hit {
                self.caches[path[level]].note_use(line, self.clock, 0);
                break;
            }
            match access {
                Access::Read => counts.read_misses += 1,
                Access::Write => counts.write_misses += 1,
            }
            self.caches[path[level]].count_cause(line, &mut counts.kinds);
            level += 1;
        }
        match access {
            Access::Read => self.read(cpu, address, &path, level),
            Access::Write => self.write(cpu, address, &path, level),
        }
    }

    fn read(&mut self, cpu: usize, address: u64, path: &[usize], level: usize) -> Outcome {
        let line = address / self.line;
        let others = self.others(cpu, line);
        let modified = others
            .iter()
            .copied()
            .find(|cache| self.caches[*cache].state(line) == Some(LineState::Modified));
        for other in &others {
            if level > 0 {
                self.caches[*other].set_state(line, LineState::Shared);
            }
        }
        let mut state = if others.is_empty() {
            LineState::Exclusive
        } else {
            LineState::Shared
        };
        let mut root = state;
        let mut moved = None;
        let outcome = if let Some(hit) = path.get(level) {
            if self.caches[*hit].state(line) == Some(LineState::Shared) {
                state = LineState::Shared;
            }
            let sharers = others.iter().any(|other| {
                self.caches[*hit]
                    .cpus
                    .is_superset(&self.caches[*other].cpus)
            });
            if modified.is_some() && level > 0 {
                self.caches[*hit].set_state(line, LineState::Modified);
                self.inner_supplies += 1;
                Outcome {
                    takes: self.inner(*hit),
                    served: Served::Cache,
                }
            } else {
                if !sharers {
                    moved = self.move_out(*hit, line);
                }
                self.level_answers(path, level)
            }
        } else {
            let inner = modified.is_some_and(|cache| self.same_root(path, cache));
            if inner {
                root = LineState::Modified;
            } else if modified.is_some() {
                self.bus.implicit_write_backs += 1;
                self.directory_transfer();
            }
            let supplier = modified.or_else(|| self.neighbor(path, &others));
            self.fetch(cpu, address, path, supplier, Kind::Read)
        };
        for index in (0..level).rev() {
            let to = if index + 1 == path.len() && index > 0 {
                root
            } else {
                state
            };
            let new_data = index + 1 == path.len() && to == LineState::Modified;
            if self.caches[path[index]].inclusion == Inclusion::Victim && !new_data {
                continue;
            }
            let dirty = moved.take() == Some(LineState::Modified);
            let to = if dirty { LineState::Modified } else { to };
            self.take_in(path[index], line, to);
        }
        outcome
    }

    fn write(&mut self, cpu: usize, address: u64, path: &[usize], level: usize) -> Outcome {
        let line = address / self.line;
        let others = self.others(cpu, line);
        let (mut modified, mut owned) = (None, false);
        for other in &others {
            let state = self.caches[*other].drop_line(line);
            owned |= state != Some(LineState::Shared);
            if state == Some(LineState::Modified) {
                modified = Some(*other);
            }
            self.caches[*other].lost.insert(line);
        }
        let owns = |index: &usize| {
            let state = self.caches[path[*index]].state(line);
            matches!(state, Some(LineState::Exclusive | LineState::Modified))
        };
        let owner = (level..path.len()).find(owns);
        let outcome = match owner {
            Some(owner) => {
                self.inner_upgrades += u64::from(owner > level);
                self.inner_supplies += u64::from(modified.is_some());
                let own_latency = self.caches[path[owner]].latency;
                let takes = if others.is_empty() {
                    own_latency
                } else {
                    self.inner(path[owner])
                };
                let from_level = Served::Level(level as u8 + 1);
                Outcome {
                    takes,
                    served: modified.map_or(from_level, |_| Served::Cache),
                }
            }
            None if level < path.len() => {
                self.count(Kind::Upgrade, address);
                self.cross(cpu, &others, self.address_only());
                let takes =
                    self.caches[path[level]].latency + self.invalidation(cpu, &others, true);
                Outcome {
                    takes,
                    served: Served::Level(level as u8 + 1),
                }
            }
            None if modified.is_none() && self.neighbor(path, &others).is_some() => {
                let supplier = self.neighbor(path, &others);
                let outcome = self.fetch(cpu, address, path, supplier, Kind::Own);
                let mut takes = outcome.takes;
                if !owned {
                    self.count(Kind::Upgrade, address);
                    self.cross(cpu, &others, self.address_only());
                    takes = takes.max(self.invalidation(cpu, &others, true));
                }
                Outcome { takes, ..outcome }
            }
            None => {
                let outcome = self.fetch(cpu, address, path, modified, Kind::Own);
                let invalidation = self.invalidation(cpu, &others, false);
                let from_memory = outcome.served == Served::Memory;
                if from_memory {
                    self.cross(cpu, &others, self.address_only());
                }
                let floor = if from_memory {
                    invalidation
                } else {
                    Duration::ZERO
                };
                Outcome {
                    takes: outcome.takes.max(floor),
                    ..outcome
                }
            }
        };
        for (index, cache) in path.iter().enumerate().skip(level) {
            match self.caches[*cache].state(line) {
                Some(_) if index == 0 => self.caches[*cache].set_state(line, LineState::Modified),
                Some(LineState::Shared) => {
                    self.caches[*cache].set_state(line, LineState::Exclusive)
                }
                _ => {}
            }
        }
        if let Some(hit) = path.get(level) {
            self.move_out(*hit, line);
        }
        for index in (0..level).rev() {
            let to = if index == 0 {
                LineState::Modified
            } else {
                LineState::Exclusive
            };
            if self.caches[path[index]].inclusion != Inclusion::Victim {
                self.take_in(path[index], line, to);
            }
        }
        outcome
    }

    /// A victim cache gives up a line that was asked for.
    fn move_out(&mut self, cache: usize, line: u64) -> Option<LineState> {
        if self.caches[cache].inclusion != Inclusion::Victim {
            return None;
        }
        self.caches[cache].drop_line(line)
    }

    /// One of `others` that shares a victim cache, the outermost one, with the CPU of `path`.
    fn neighbor(&self, path: &[usize], others: &[usize]) -> Option<usize> {
        let outermost = path[path.len() - 1];
        let mut others = others.iter().copied();
        (self.caches[outermost].inclusion == Inclusion::Victim)
            .then(|| others.find(|other| self.same_root(path, *other)))?
    }

    /// A device writes a line, on a bus that is quiet.
    pub fn dma_write(&mut self, address: u64) {
        self.clock += 1;
        let line = address / self.line;
        for cache in &mut self.caches {
            if cache.drop_line(line).is_some() {
                cache.lost.insert(line);
            }
        }
        if self.machine.memory.dma_into_llc {
            self.dma_into_llc += 1;
            let path = self.path(0);
            self.take_in(path[path.len() - 1], line, LineState::Modified);
        } else {
            self.count(Kind::Dma, address);
        }
    }

    fn level_answers(&self, path: &[usize], level: usize) -> Outcome {
        let served = Served::Level(level as u8 + 1);
        Outcome {
            takes: self.caches[path[level]].latency,
            served,
        }
    }

    fn same_root(&self, path: &[usize], cache: usize) -> bool {
        let root = &self.caches[path[path.len() - 1]];
        root.cpus.is_superset(&self.caches[cache].cpus)
    }

    fn inner(&self, shared: usize) -> Duration {
        match self.machine.coherence {
            Coherence::Bus { .. } => self.caches[shared].latency,
            Coherence::Directory { same_domain, .. } => same_domain,
        }
    }

    fn reach(&self, cpu: usize, cache: usize) -> Duration {
        let there = *self.caches[cache].cpus.iter().next().unwrap();
        let (from, to) = (self.machine.cpus[cpu], self.machine.cpus[there]);
        match self.machine.coherence {
            Coherence::Bus { crossing, .. } if from.socket != to.socket => {
                crossing.unwrap_or(Duration::ZERO)
            }
            Coherence::Bus { .. } => Duration::ZERO,
            Coherence::Directory {
                same_domain,
                other_domain,
                other_socket,
                ..
            } => match (from.socket == to.socket, from.llc == to.llc) {
                (false, _) => other_socket,
                (true, false) => other_domain,
                (true, true) => same_domain,
            },
        }
    }

    /// The buses of other sockets are occupied for `span` each, if one of `caches` lies there.
    fn cross(&mut self, cpu: usize, caches: &[usize], span: Duration) {
        let Coherence::Bus {
            crossing: Some(_), ..
        } = self.machine.coherence
        else {
            return;
        };
        let there = |cache: &usize| *self.caches[*cache].cpus.iter().next().unwrap();
        let socket = |cpu: usize| self.machine.cpus[cpu].socket;
        if caches
            .iter()
            .any(|cache| socket(there(cache)) != socket(cpu))
        {
            let sockets = self.machine.cpus.iter().map(|place| place.socket).max();
            self.bus.busy += span * u64::from(sockets.unwrap());
        }
    }

    fn address_only(&self) -> Duration {
        match self.machine.coherence {
            Coherence::Bus { address_only, .. } => address_only,
            Coherence::Directory { .. } => Duration::ZERO,
        }
    }

    fn invalidation(&self, cpu: usize, others: &[usize], alone: bool) -> Duration {
        let farthest = others.iter().map(|other| self.reach(cpu, *other)).max();
        match self.machine.coherence {
            Coherence::Bus { address_only, .. } if alone => {
                address_only + farthest.unwrap_or(Duration::ZERO)
            }
            Coherence::Bus { .. } => farthest.unwrap_or(Duration::ZERO),
            Coherence::Directory { same_domain, .. } if alone => farthest.unwrap_or(same_domain),
            Coherence::Directory { .. } => farthest.unwrap_or(Duration::ZERO),
        }
    }

    fn fetch(
        &mut self,
        cpu: usize,
        address: u64,
        path: &[usize],
        modified: Option<usize>,
        kind: Kind,
    ) -> Outcome {
        let Some(supplier) = modified else {
            self.count(kind, address);
            self.directory_transfer();
            return Outcome {
                takes: self.machine.memory.latency,
                served: Served::Memory,
            };
        };
        if self.same_root(path, supplier) {
            self.inner_supplies += 1;
            let takes = self.inner(path[path.len() - 1]);
            return Outcome {
                takes,
                served: Served::Cache,
            };
        }
        self.count(kind, address);
        if let Coherence::Bus { line_transfer, .. } = self.machine.coherence {
            self.cross(cpu, &[supplier], line_transfer);
        }
        self.bus.supplied += 1;
        let takes = match self.machine.coherence {
            Coherence::Bus { cache_to_cache, .. } => cache_to_cache + self.reach(cpu, supplier),
            Coherence::Directory { .. } => self.reach(cpu, supplier),
        };
        Outcome {
            takes,
            served: Served::Cache,
        }
    }

    fn take_in(&mut self, cache: usize, line: u64, state: LineState) {
        // The clock advances, so that lines taken in during one access have an order.
        self.clock += 1;
        let Some(left) = self.caches[cache].take_in(line, state, self.clock) else {
            return;
        };
        let mut modified = left.state == LineState::Modified;
        if self.caches[cache].inclusion == Inclusion::Inclusive {
            for nearer in 0..self.caches.len() {
                let below = self.caches[nearer].level < self.caches[cache].level
                    && self.caches[nearer].cpus.is_subset(&self.caches[cache].cpus);
                if below && self.caches[nearer].drop_line(left.line) == Some(LineState::Modified) {
                    modified = true;
                }
            }
        }
        let behind = (0..self.caches.len()).find(|behind| {
            self.caches[*behind].level == self.caches[cache].level + 1
                && self.caches[*behind]
                    .cpus
                    .is_superset(&self.caches[cache].cpus)
        });
        let has_it = |behind: &usize| self.caches[*behind].state(left.line).is_some();
        if let Some(behind) = behind.filter(has_it) {
            if modified {
                self.caches[behind].set_state(left.line, LineState::Modified);
            }
            return;
        }
        let is_victim = |behind: usize| self.caches[behind].inclusion == Inclusion::Victim;
        match behind {
            None if modified => self.count(Kind::WriteBack, left.line * self.line),
            Some(behind) if modified => self.take_in(behind, left.line, LineState::Modified),
            Some(behind) if is_victim(behind) => self.take_in(behind, left.line, left.state),
            _ => {}
        }
    }
}
