//! Virtual time: a tree of entities, in which groups are the inner nodes and tasks the leaves.
//!
//! An entity's vruntime is what it ran, in ns, times 1024 over its weight. There is one tree for
//! the whole machine. Entities that cannot use their share (a thread of a heavy group, tasks that
//! are bound to one CPU) fall behind the others without end, so a gap between neighbors is closed
//! when it is larger than what slices make.

/// An entity by its place in the tree; 0 is the root.
pub(super) type EntityId = usize;

pub(super) const ROOT: EntityId = 0;

/// The weight of nice 0.
pub(super) const NICE_0: i64 = 1_024;

/// The longest slice, in ns.
pub(super) const SLICE: i64 = 3_000_000;

#[derive(Default)]
struct Entity {
    parent: Option<EntityId>,
    depth: u32,
    weight: i64,
    vruntime: i64,
    /// Runnable tasks in it; of a task, 1 or 0.
    runnable: u32,
    /// Of its runnable children: their weights, and the weights times the vruntimes.
    weights: i64,
    moment: i128,
    /// The vruntime of the child that was runnable last, where none is.
    last: i64,
    children: Vec<EntityId>,
}

/// The tree.
pub(super) struct Tree {
    entities: Vec<Entity>,
    cpus: i64,
}

impl Tree {
    pub(super) fn new(cpus: u16) -> Tree {
        let mut tree = Tree {
            entities: Vec::new(),
            cpus: cpus.into(),
        };
        tree.add(None, NICE_0);
        tree
    }

    /// A new entity in `parent`, which is not runnable yet.
    pub(super) fn add(&mut self, parent: Option<EntityId>, weight: i64) -> EntityId {
        let depth = parent.map_or(0, |parent| self.entities[parent].depth + 1);
        self.entities.push(Entity {
            parent,
            depth,
            weight,
            vruntime: parent.map_or(0, |parent| self.mean(parent)),
            ..Entity::default()
        });
        self.entities.len() - 1
    }

    /// The group of a task.
    pub(super) fn group(&self, task: EntityId) -> EntityId {
        self.entities[task].parent.unwrap_or(ROOT)
    }

    fn weight(&self, entity: EntityId) -> i64 {
        self.entities[entity].weight
    }

    /// The weighted mean of the vruntimes of what is runnable in `parent` (V of EEVDF).
    fn mean(&self, parent: EntityId) -> i64 {
        let state = &self.entities[parent];
        match state.weights {
            0 => state.last,
            weights => (state.moment / i128::from(weights)) as i64,
        }
    }

    /// The entities from a task up to, but not with, the root.
    fn path(&self, task: EntityId) -> Vec<EntityId> {
        let up = |entity: &EntityId| self.entities[*entity].parent;
        let path = std::iter::successors(Some(task), up);
        path.take_while(|entity| *entity != ROOT).collect()
    }

    /// A task becomes runnable. Entities that become so with it keep their lag within bounds; with
    /// `forgiven` they begin with all that the bounds allow.
    pub(super) fn enter(&mut self, task: EntityId, forgiven: bool) {
        for entity in self.path(task).into_iter().rev() {
            self.entities[entity].runnable += 1;
            if self.entities[entity].runnable == 1 {
                self.place(entity, forgiven);
                self.link(entity);
            }
        }
    }

    /// A task is no longer runnable.
    pub(super) fn leave(&mut self, task: EntityId) {
        for entity in self.path(task) {
            self.entities[entity].runnable -= 1;
            if self.entities[entity].runnable == 0 {
                self.unlink(entity);
            }
        }
    }

    /// The lag of an entity that was not runnable is at most a slice, and at least minus a slice of
    /// its own for each CPU: what is runnable moved on meanwhile, and may consist of others.
    fn place(&mut self, entity: EntityId, forgiven: bool) {
        let Some(parent) = self.entities[entity].parent else {
            return;
        };
        let (mean, debt) = (self.mean(parent), self.largest_gap(entity));
        let state = &mut self.entities[entity];
        let least = mean - SLICE;
        state.vruntime = match forgiven {
            true => least,
            false => state.vruntime.clamp(least, mean + debt),
        };
    }

    fn link(&mut self, entity: EntityId) {
        let state = &self.entities[entity];
        let (parent, weight, vruntime) = (state.parent, state.weight, state.vruntime);
        let Some(parent) = parent else { return };
        let parent = &mut self.entities[parent];
        parent.weights += weight;
        parent.moment += i128::from(weight) * i128::from(vruntime);
        parent.children.push(entity);
    }

    fn unlink(&mut self, entity: EntityId) {
        let state = &self.entities[entity];
        let (parent, weight, vruntime) = (state.parent, state.weight, state.vruntime);
        let Some(parent) = parent else { return };
        let parent = &mut self.entities[parent];
        parent.weights -= weight;
        parent.moment -= i128::from(weight) * i128::from(vruntime);
        parent.last = parent.last.max(vruntime);
        parent.children.retain(|child| *child != entity);
    }

    /// Moves an entity, which may be runnable, on by `by`.
    fn advance(&mut self, entity: EntityId, by: i64) {
        let state = &mut self.entities[entity];
        state.vruntime += by;
        let (parent, weight) = (state.parent, state.weight);
        if let Some(parent) = parent.filter(|_| state.runnable > 0) {
            self.entities[parent].moment += i128::from(weight) * i128::from(by);
        }
    }

    /// A task ran for so many ns.
    pub(super) fn charge(&mut self, task: EntityId, ran: i64) {
        for entity in self.path(task) {
            let by = ran * NICE_0 / self.entities[entity].weight;
            self.advance(entity, by);
        }
    }

    /// Gives an entity another weight.
    pub(super) fn reweigh(&mut self, entity: EntityId, weight: i64) {
        let runnable = self.entities[entity].runnable > 0;
        if runnable {
            self.unlink(entity);
        }
        self.entities[entity].weight = weight;
        if runnable {
            self.link(entity);
        }
    }

    /// Puts a task, which is not runnable, into another group, where it begins anew.
    pub(super) fn move_to(&mut self, task: EntityId, parent: EntityId) {
        if self.entities[task].parent == Some(parent) {
            return;
        }
        let (depth, vruntime) = (self.entities[parent].depth + 1, self.mean(parent));
        let state = &mut self.entities[task];
        state.parent = Some(parent);
        state.depth = depth;
        state.vruntime = vruntime;
    }

    /// The ancestors of two tasks (or they themselves) that are siblings.
    fn siblings(&self, mut one: EntityId, mut other: EntityId) -> (EntityId, EntityId) {
        let up = |entity: EntityId| self.entities[entity].parent.unwrap_or(ROOT);
        while self.entities[one].depth > self.entities[other].depth {
            one = up(one);
        }
        while self.entities[other].depth > self.entities[one].depth {
            other = up(other);
        }
        while self.entities[one].parent != self.entities[other].parent {
            (one, other) = (up(one), up(other));
        }
        (one, other)
    }

    /// By how much the vruntime of `one` is less than that of `other`, where their groups differ.
    pub(super) fn ahead(&self, one: EntityId, other: EntityId) -> i64 {
        let (one, other) = self.siblings(one, other);
        self.entities[other].vruntime - self.entities[one].vruntime
    }

    /// The weights of two tasks, or those of their groups that are siblings.
    pub(super) fn weights(&self, one: EntityId, other: EntityId) -> (i64, i64) {
        let (one, other) = self.siblings(one, other);
        (self.weight(one), self.weight(other))
    }

    /// How far `entity` may get ahead of another one by slices: one on each CPU, and one more.
    fn largest_gap(&self, entity: EntityId) -> i64 {
        (self.cpus + 1) * SLICE * NICE_0 / self.weight(entity)
    }

    /// Closes gaps between runnable siblings that no slices make, in the whole tree.
    pub(super) fn close_gaps(&mut self) {
        for parent in 0..self.entities.len() {
            if self.entities[parent].children.len() > 1 {
                self.close_gaps_in(parent);
            }
        }
    }

    /// What is behind a gap moves by what is closed, all of it: who shares a CPU stays as it is to
    /// each other.
    fn close_gaps_in(&mut self, parent: EntityId) {
        let vruntime = |child: &EntityId| self.entities[*child].vruntime;
        let mut children: Vec<(EntityId, i64)> = self.entities[parent]
            .children
            .iter()
            .map(|child| (*child, vruntime(child)))
            .collect();
        children.sort_by_key(|(_, vruntime)| std::cmp::Reverse(*vruntime));
        let mut closed = 0;
        for pair in children.windows(2) {
            let [(ahead, most), (behind, least)] = [pair[0], pair[1]];
            closed += (most - least - self.largest_gap(ahead)).max(0);
            self.advance(behind, closed);
        }
    }
}

/// The weight of a group, whose default is 100.
pub(super) fn of_group(weight: u32) -> i64 {
    i64::from(weight) * NICE_0 / 100
}
