//! Lines that come into caches and lines that leave them.

use super::build::Place;
use super::requests::Fill;
use super::tree_pairs::{FillPair, TreeCode};
use super::{Hierarchy, Request};
use crate::cache::{Line, LineState};
use crate::counts::Transaction;
use warmq_units::{Address, Instant};

impl Hierarchy {
    /// All levels nearer than `level` take the line in, the outermost first. Victim caches do not,
    /// unless `fill` has modified data for the root.
    #[inline]
    pub(super) fn fill(&mut self, request: Request, level: usize, fill: Fill) {
        match self.trees {
            Some(TreeCode { fill: code, .. }) if level > 0 => {
                self.fill_pair_and_behind(request, level, fill, code)
            }
            _ => self.fill_any(request, level, fill),
        }
    }

    /// The same where there is code for level 1 and 2.
    #[inline]
    fn fill_pair_and_behind(
        &mut self,
        request: Request,
        level: usize,
        mut fill: Fill,
        fill_pair: FillPair,
    ) {
        let depth = self.shape.paths[request.cpu].len();
        // The farther levels that missed leave the line to the nearer ones, if they are victim
        // caches.
        let only_nearer = level <= 2 || self.pairs[request.cpu].only_victims_behind;
        let new_data = depth > 2 && level == depth && fill.root == LineState::Modified;
        if !only_nearer || new_data {
            return self.fill_any(request, level, fill);
        }
        if fill.handed_over_modified {
            fill.between = LineState::Modified;
        }
        let far = match depth {
            2 => fill.root,
            _ => fill.between,
        };
        fill_pair(self, request, (level > 1).then_some(far), fill.nearest);
    }

    fn fill_any(&mut self, request: Request, level: usize, fill: Fill) {
        let mut present = self.group_with_line(request.cpu, level);
        let mut handed_over = fill.handed_over_modified;
        for index in (0..level).rev() {
            let path = &self.shape.paths[request.cpu];
            let (cache, is_root) = (path[index], index > 0 && index + 1 == path.len());
            let mut state = match index {
                0 => fill.nearest,
                _ if is_root => fill.root,
                _ => fill.between,
            };
            let Place { group, victim, .. } = self.shape.caches[cache];
            if victim && !(is_root && state == LineState::Modified) {
                continue;
            }
            if std::mem::take(&mut handed_over) {
                state = LineState::Modified;
            }
            if present != Some(group) {
                self.presence.set(request.line, group);
                present = Some(group);
            }
            self.take_in(cache, request.line, state, request);
        }
    }

    /// The group of the cache at `level`, if it is sure to hold the line that this level was asked
    /// for: a victim cache may just have handed it over.
    #[inline]
    fn group_with_line(&self, cpu: usize, level: usize) -> Option<usize> {
        let place = &self.shape.caches[*self.shape.paths[cpu].get(level)?];
        (!place.victim).then_some(place.group)
    }

    /// `cache`, which does not hold `line`, takes it in, and gives up another one if it must.
    fn take_in(&mut self, cache: usize, line: Line, state: LineState, request: Request) {
        let left = self.caches.insert(cache, line, state);
        if !self.shadows.is_empty() {
            self.shadows[cache].use_line(line);
        }
        if let Some((victim, state)) = left {
            self.victim_left(cache, victim, state, request);
        }
    }

    /// `line` fell out of `cache` in `state`.
    pub(super) fn victim_left(
        &mut self,
        cache: usize,
        line: Line,
        state: LineState,
        request: Request,
    ) {
        let Place {
            group,
            parent,
            inclusive,
            ..
        } = self.shape.caches[cache];
        let mut modified = state == LineState::Modified;
        if inclusive {
            modified |= self.remove_nearer(cache, line);
        }
        // Nearly always the next cache of the group has the line still, and that is all.
        let next = parent.filter(|parent| self.shape.caches[*parent].group == group);
        let kept = next.and_then(|next| self.caches.find(next, line));
        if let Some(slot) = kept {
            self.caches.modify_if(slot, modified);
            return;
        }
        let state = if modified { LineState::Modified } else { state };
        let takes_in = |parent: &usize| modified || self.shape.caches[*parent].victim;
        match parent.filter(takes_in) {
            Some(parent) => self.evict_into(parent, line, state, request),
            None if modified => self.write_back(cache, line, request.now),
            None => {}
        }
        match inclusive && next.is_none() {
            true => self.presence.clear(line, group), // nothing nearer has it, and nothing is behind
            false => self.forget_if_gone(group, line),
        }
    }

    /// A line that a nearer cache evicted in `state` comes to `cache`.
    pub(super) fn evict_into(
        &mut self,
        cache: usize,
        line: Line,
        state: LineState,
        request: Request,
    ) {
        if let Some(slot) = self.caches.find(cache, line) {
            return self.caches.modify_if(slot, state == LineState::Modified);
        }
        self.presence.set(line, self.shape.caches[cache].group);
        self.take_in(cache, line, state, request);
    }

    /// If the cache at `level` is a victim cache, it gives up the line, which the nearer levels are
    /// about to take in: the state in which it had the line.
    #[inline]
    pub(super) fn hand_over(&mut self, request: Request, level: usize) -> Option<LineState> {
        let cache = *self.shape.paths[request.cpu].get(level)?;
        let Place { victim, group, .. } = self.shape.caches[cache];
        if !victim || !self.presence.may_hold(request.line, group) {
            return None;
        }
        let state = self.caches.remove(cache, request.line);
        if !self.shadows.is_empty() {
            self.shadows[cache].remove(request.line, false);
        }
        self.forget_if_gone(group, request.line);
        state
    }

    /// `line` left a cache of `group`; perhaps the last one that held it.
    fn forget_if_gone(&mut self, group: usize, line: Line) {
        let mut chain = self.shape.chain(group).iter();
        if !chain.any(|cache| self.caches.find(*cache as usize, line).is_some()) {
            self.presence.clear(line, group);
        }
    }

    pub(super) fn write_back(&mut self, cache: usize, line: Line, now: Instant) {
        self.counts
            .note(Transaction::WriteBack, Address(line.0 << self.line_shift));
        let socket = usize::from(self.shape.caches[cache].at.socket);
        self.links.write_back(socket, now, &mut self.counts.bus);
    }

    /// All caches nearer than `cache`, which includes them, give up `line`. Whether it was
    /// modified in one of them.
    fn remove_nearer(&mut self, cache: usize, line: Line) -> bool {
        let group = self.shape.caches[cache].group;
        let mut modified = false;
        for index in 0..self.shape.chain(group).len() {
            let nearer = self.shape.chain(group)[index] as usize;
            if nearer == cache {
                break;
            }
            modified |= self.remove_for_inclusion(nearer, line);
        }
        if self.shape.caches[cache].leaf {
            return modified;
        }
        let under = self.shape.groups[group].under.clone();
        for nearer_group in under.skip(1) {
            if !self.presence.may_hold(line, nearer_group) {
                continue;
            }
            for index in 0..self.shape.chain(nearer_group).len() {
                let nearer = self.shape.chain(nearer_group)[index] as usize;
                modified |= self.remove_for_inclusion(nearer, line);
            }
            self.presence.clear(line, nearer_group);
        }
        modified
    }

    fn remove_for_inclusion(&mut self, cache: usize, line: Line) -> bool {
        let Some(state) = self.caches.remove(cache, line) else {
            return false;
        };
        if !self.shadows.is_empty() {
            self.shadows[cache].remove(line, false);
        }
        state == LineState::Modified
    }
}
