//! Cgroups, as programs see them. The kernel learns of a group when its first task comes.

use warmq_bpf_run::{Ending, Guest};
use warmq_kernel::GroupId;

use crate::state::{Cgroup, Here};

/// Levels of cgroups below the root for which there is room.
const MOST_LEVELS: u64 = 64;

/// `cpu_cgrp_id`: whose css begins a `struct task_group`.
const CPU_CONTROLLER: u64 = 1;

/// `cgroup_id()`: kernfs numbers the root 1.
pub(crate) fn id_of(group: GroupId) -> u64 {
    group.index() as u64 + 1
}

impl Here<'_, '_> {
    /// The cgroup that schedulers see: autogroups are none.
    pub(crate) fn visible(&self, group: GroupId) -> GroupId {
        match self.context.group(group).autogroup {
            true => GroupId::ROOT,
            false => group,
        }
    }

    /// Makes the objects of a group and of those that it is in; those that are new, the outermost
    /// first.
    pub(crate) fn know_group(&mut self, group: GroupId) -> Result<Vec<GroupId>, Ending> {
        if self.state.groups.contains_key(&group) {
            return Ok(Vec::new());
        }
        let known = *self.context.group(group);
        let mut new = match known.parent {
            Some(parent) => self.know_group(parent)?,
            None => Vec::new(),
        };
        let parent = known
            .parent
            .and_then(|parent| self.state.groups.get(&parent));
        let parent = parent.map_or(0, |parent| parent.address);
        let made = self.make_group(group, parent, known.weight, known.idle)?;
        self.state.groups.insert(group, made);
        new.push(group);
        Ok(new)
    }

    fn make_group(
        &mut self,
        group: GroupId,
        parent: u64,
        weight: u32,
        idle: bool,
    ) -> Result<Cgroup, Ending> {
        let layouts = self.state.layouts;
        let name = match parent {
            0 => String::new(),
            _ => self.context.group(group).name.to_string(),
        };
        // A flexible array of pointers ends it; so deep is no group.
        let size = layouts.cgroup.size + 8 * MOST_LEVELS;
        let address = self.guest.allocate(size)?;
        let node = self.guest.allocate(layouts.node.size)?;
        let css_set = self.guest.allocate(layouts.css_set.size)?;
        let task_group = self.guest.allocate(layouts.task_group.size)?;
        let (guest, fields) = (&mut *self.guest, layouts.cgroup);
        let level = match parent {
            0 => 0,
            parent => fields.level.get(guest, parent) + 1,
        };
        fields.own_cgroup.set(guest, address, address);
        fields.parent.set(guest, address, parent);
        fields.kn.set(guest, address, node);
        fields.level.set(guest, address, level);
        let ancestors = |of: u64, at: u64| fields.ancestors.within(of) + 8 * at;
        for at in 0..level {
            let ancestor = guest.peek(ancestors(parent, at), 8).unwrap_or(0);
            let _ = guest.store(ancestors(address, at), 8, ancestor);
        }
        let _ = guest.store(ancestors(address, level), 8, address);
        layouts.node.id.set(guest, node, id_of(group));
        let name = write_name(guest, &name)?;
        layouts.node.name.set(guest, node, name);
        layouts.css_set.cgroup.set(guest, css_set, address);
        layouts.task_group.cgroup.set(guest, task_group, address);
        layouts.task_group.idle.set(guest, task_group, idle.into());
        let controller = fields.subsys.within(address) + 8 * CPU_CONTROLLER;
        let _ = guest.store(controller, 8, task_group);
        Ok(Cgroup {
            address,
            css_set,
            task_group,
            weight,
            idle,
            limits: [100_000, u64::MAX, 0],
        })
    }
}

/// A new text.
fn write_name(guest: &mut Guest, name: &str) -> Result<u64, Ending> {
    let size = name.len() as u64;
    let address = guest.allocate(size + 1)?;
    if let Some(bytes) = guest.bytes_mut(address, size) {
        bytes.copy_from_slice(name.as_bytes());
    }
    Ok(address)
}
