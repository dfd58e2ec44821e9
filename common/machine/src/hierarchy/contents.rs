//! Lines that come into caches and lines that leave them.

use super::build::Place;
use super::requests::Fill;
use super::{Hierarchy, Request};
use crate::cache::{Line, LineState};
use crate::counts::Transaction;
use warmq_units::{Address, Instant};

impl Hierarchy {
    /// All levels nearer than `level` take the line in, the outermost first.
    #[inline]
    pub(super) fn fill(&mut self, request: Request, level: usize, fill: Fill) {
        let path = &self.shape.paths[request.cpu];
        let mut present = path.get(level).map(|cache| self.shape.caches[*cache].group);
        for index in (0..level).rev() {
            let path = &self.shape.paths[request.cpu];
            let cache = path[index];
            let state = match index {
                0 => fill.nearest,
                index if index + 1 == path.len() => fill.root,
                _ => fill.between,
            };
            let group = self.shape.caches[cache].group;
            if present != Some(group) {
                self.presence.set(request.line, group);
                present = Some(group);
            }
            self.take_in(cache, request.line, state, request);
        }
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
        match parent {
            Some(parent) if modified => self.write_into(parent, line, request),
            None if modified => self.write_back(cache, line, request.now),
            _ => {}
        }
        self.forget_if_gone(group, line);
    }

    /// A modified line comes to `cache` from a nearer one.
    fn write_into(&mut self, cache: usize, line: Line, request: Request) {
        if let Some(slot) = self.caches.find(cache, line) {
            return self.caches.set_state_at(slot, LineState::Modified);
        }
        self.presence.set(line, self.shape.caches[cache].group);
        self.take_in(cache, line, LineState::Modified, request);
    }

    /// `line` left a cache of `group`; perhaps the last one that held it.
    fn forget_if_gone(&mut self, group: usize, line: Line) {
        let mut chain = self.shape.groups[group].caches.iter();
        if !chain.any(|cache| self.caches.find(*cache, line).is_some()) {
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
        for index in 0..self.shape.groups[group].caches.len() {
            let nearer = self.shape.groups[group].caches[index];
            if nearer == cache {
                break;
            }
            modified |= self.remove_for_inclusion(nearer, line);
        }
        let under = self.shape.groups[group].under.clone();
        let mut holders = std::mem::take(&mut self.holders);
        self.presence
            .holders(line, under.start + 1..under.end, &[], &mut holders);
        for holder in &holders {
            for index in 0..self.shape.groups[usize::from(*holder)].caches.len() {
                let nearer = self.shape.groups[usize::from(*holder)].caches[index];
                modified |= self.remove_for_inclusion(nearer, line);
            }
            self.presence.clear(line, usize::from(*holder));
        }
        self.holders = holders;
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
