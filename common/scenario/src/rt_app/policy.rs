//! Policies, priorities and slices, of a thread and of its phases.

use warmq_config::{Entry, Fields, Item, Node};
use warmq_units::Duration;

use super::numbers::{LARGEST, whole};
use super::remarks::Remarks;
use super::tree::{entry, microseconds, step, text, whole as number};
use crate::task::Deadline;

/// What a policy's priority means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A nice value; the word of our policy.
    Fair(&'static str),
    /// A priority of real time; the word of our policy.
    RealTime(&'static str),
    Deadline,
}

const POLICIES: &[(&str, Class)] = &[
    ("SCHED_OTHER", Class::Fair("normal")),
    ("SCHED_BATCH", Class::Fair("batch")),
    ("SCHED_IDLE", Class::Fair("idle")),
    ("SCHED_FIFO", Class::RealTime("fifo")),
    ("SCHED_RR", Class::RealTime("rr")),
    ("SCHED_DEADLINE", Class::Deadline),
];

/// What utilization may be clamped to (`SCHED_CAPACITY_SCALE`).
const UTILIZATIONS: std::ops::RangeInclusive<i64> = 0..=1_024;
/// The priority of real time where none is given.
const REAL_TIME_PRIORITY: i64 = 10;

/// The policy that `item` names.
pub(super) fn class(item: &Item<'_>) -> Option<Class> {
    item.choice(POLICIES)
}

/// What an object says about scheduling.
pub(super) struct Scheduling<'a> {
    policy: Option<(Item<'a>, Class)>,
    priority: Option<(Item<'a>, i64)>,
    slice: Option<(Item<'a>, i64)>,
    /// As what utilization it counts at least, and at most.
    clamps: [Option<(Item<'a>, i64)>; 2],
    /// Of SCHED_DEADLINE; none or 0: as the one before.
    period: Option<(Item<'a>, i64)>,
    deadline: Option<(Item<'a>, i64)>,
}

/// Keys of memory, and why they are not used.
const UNUSED: &[(&str, &str)] = &[("nodes_membind", "memory is not bound to nodes")];

/// Keys of utilization clamping, and ours.
const CLAMPS: [(&str, &str); 2] = [("util_min", "uclamp_min"), ("util_max", "uclamp_max")];

/// Keys of SCHED_DEADLINE, the older names behind.
const PERIOD: [&str; 2] = ["dl-period", "period"];
const DEADLINE: [&str; 2] = ["dl-deadline", "deadline"];

/// Keys that are read here or not at all.
pub(super) fn knows(key: &str) -> bool {
    let mut read = ["policy", "priority", "dl-runtime"]
        .into_iter()
        .chain(PERIOD)
        .chain(DEADLINE)
        .chain(CLAMPS.map(|(theirs, _)| theirs));
    read.any(|read| read == key) || UNUSED.iter().any(|(unused, _)| *unused == key)
}

impl<'a> Scheduling<'a> {
    pub(super) fn read(fields: &Fields<'a>, remarks: &Remarks) -> Option<Scheduling<'a>> {
        for (key, why) in UNUSED {
            if let Some(item) = fields.item(key) {
                remarks.say(&item, format!("`{key}` is not used"), *why);
            }
        }
        let numbered = |key: &'static str, range| {
            fields.if_given(key, |item| Some((item.clone(), whole(item, range)?)))
        };
        let policy = fields.if_given("policy", |item| Some((item.clone(), class(item)?)));
        let priority = numbered("priority", -20..=99);
        let slice = numbered("dl-runtime", 0..=LARGEST);
        let first = |[key, older]: [&'static str; 2]| match numbered(key, 0..=LARGEST)? {
            None => numbered(older, 0..=LARGEST),
            found => Some(found),
        };
        let (period, deadline) = (first(PERIOD), first(DEADLINE));
        let clamps = CLAMPS.map(|(theirs, _)| numbered(theirs, UTILIZATIONS));
        let [least, most] = clamps;
        let read = Scheduling {
            policy: policy?,
            priority: priority?,
            slice: slice?,
            clamps: [least?, most?],
            period: period?,
            deadline: deadline?,
        };
        Some(read)
    }

    /// The policy of a task of SCHED_DEADLINE: the period is the runtime where there is none, and
    /// the deadline the period.
    fn deadline(&self, at: &Item<'_>, remarks: &Remarks) -> Option<String> {
        let of = |key: &Option<(Item<'a>, i64)>, otherwise: i64| match key {
            Some((_, number)) if *number > 0 => *number,
            _ => otherwise,
        };
        let runtime = of(&self.slice, 0);
        let period = of(&self.period, runtime);
        let deadline = of(&self.deadline, period);
        let us = |number: i64| Duration::from_us(number as u64);
        if Deadline::new(us(runtime), us(deadline), us(period)).is_some() {
            return Some(format!("deadline {runtime}us {deadline}us {period}us"));
        }
        let what = "SCHED_DEADLINE is played as SCHED_OTHER, with nice value 0";
        let why = "kernels refuse its times: they want runtime <= deadline <= period, a runtime of 2 us or more, and a \
                   period from 100 us to 4194304 us";
        remarks.say(at, what, why);
        None
    }

    /// Says which times mean nothing under `class`.
    fn say_unused(&self, class: Class, remarks: &Remarks) {
        if class == Class::Deadline {
            return;
        }
        for (item, _) in self.period.iter().chain(&self.deadline) {
            let what = format!("`{}` is not used", item.key);
            remarks.say(item, what, "it is one of SCHED_DEADLINE");
        }
    }

    /// The class after this, if it was `before`.
    pub(super) fn class(&self, before: Class) -> Class {
        self.policy.as_ref().map_or(before, |(_, class)| *class)
    }

    /// The policy of `class` as the language has it; none: it cannot be had.
    fn policy(&self, class: Class, at: &Item<'_>, remarks: &Remarks) -> Option<String> {
        match class {
            Class::Fair(word) => Some(word.to_owned()),
            Class::RealTime(word) => {
                let priority = self.priority.as_ref().map(|(_, priority)| *priority);
                Some(format!("{word} {}", priority.unwrap_or(REAL_TIME_PRIORITY)))
            }
            Class::Deadline => self.deadline(at, remarks),
        }
    }

    /// The keys of a thread's table.
    pub(super) fn keys(&self, table: &Item<'a>, default: Class, remarks: &Remarks) -> Vec<Entry> {
        let class = self.class(default);
        let at = self.policy.as_ref().map_or(table, |(item, _)| item);
        let policy = self.policy(class, at, remarks);
        let policy = policy.filter(|policy| policy != "normal");
        let policy = policy.map(|policy| entry("policy", text(&at.node.place, policy)));
        let nice = self.priority.as_ref();
        let nice = nice.filter(|_| matches!(class, Class::Fair(_)));
        let nice = nice.map(|(item, nice)| entry("nice", number(&item.node.place, *nice)));
        self.say_unused(class, remarks);
        let slice = self.slice(class, remarks);
        let slice = slice.map(|slice| entry("slice", slice));
        let clamps = self.clamps().map(|(key, clamp)| entry(key, clamp));
        let keys = [policy, nice, slice].into_iter().flatten();
        keys.chain(clamps).collect()
    }

    /// The steps at the beginning of a phase, in which the class is `class`.
    pub(super) fn steps(&self, class: Class, remarks: &Remarks) -> Vec<Node> {
        let mut steps = Vec::new();
        let (policy, priority) = (self.policy.as_ref(), self.priority.as_ref());
        let at = policy.map(|(item, _)| item);
        if let Some(at) = at.or(priority.map(|(item, _)| item)) {
            let (place, fair) = (&at.node.place, matches!(class, Class::Fair(_)));
            if policy.is_some() || !fair {
                let policy = self.policy(class, at, remarks);
                let policy = policy.unwrap_or_else(|| "normal".to_owned());
                steps.push(step("policy", text(place, policy)));
            }
            let nice = priority.map_or(0, |(_, nice)| *nice);
            steps.extend(fair.then(|| step("nice", number(place, nice))));
        }
        self.say_unused(class, remarks);
        let slice = self.slice(class, remarks);
        steps.extend(slice.map(|slice| step("slice", slice)));
        steps.extend(self.clamps().map(|(key, clamp)| step(key, clamp)));
        steps
    }

    /// What utilization is clamped to, by our keys.
    fn clamps(&self) -> impl Iterator<Item = (&'static str, Node)> + '_ {
        let keys = CLAMPS.iter().zip(&self.clamps);
        keys.filter_map(|((_, ours), clamp)| {
            let (item, util) = clamp.as_ref()?;
            Some((*ours, number(&item.node.place, *util)))
        })
    }

    fn slice(&self, class: Class, remarks: &Remarks) -> Option<Node> {
        let (item, slice) = self.slice.as_ref()?;
        match class {
            Class::Fair(_) if *slice > 0 => Some(microseconds(&item.node.place, *slice)),
            Class::Fair(_) | Class::Deadline => None,
            Class::RealTime(_) => {
                let why = "policies of real time have no slice";
                remarks.say(item, "`dl-runtime` is not used", why);
                None
            }
        }
    }
}
