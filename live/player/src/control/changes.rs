//! `[[change]]`: what the controller does to tasks, groups and CPUs while they are under way.

use std::fs;
use std::io;
use std::sync::atomic::Ordering;

use warmq_scenario::ObjectId;
use warmq_scenario::program::{Planned, To, Whom};
use warmq_trace::Record;
use warmq_units::{CpuId, CpuSet, Duration, TaskId};

use crate::error::PlayError;
use crate::notes::Notes;
use crate::source::SenderThread;
use crate::specs::{UCLAMP, attributes_of, group_number};
use crate::stage::Stage;
use crate::stage::slots::{Slot, TaskState};
use crate::sys::clock::now_ns;
use crate::sys::process;
use crate::sys::sched::{self, Attributes};
use crate::trace::affinity;

const AS_ROOT: &str = "play it as root";
const RESERVED: &str = "deadline tasks have reserved these CPUs: let them ask for less, or leave them \
                        the CPUs that they run on";

/// What may help where the system refuses a change with `error`; `usual` if nothing is known.
fn fix(error: &io::Error, usual: &'static str) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => UCLAMP,
        Some(libc::EBUSY) => RESERVED,
        _ => usual,
    }
}

/// What was changed so far.
pub struct Changes<'n> {
    stage: &'static Stage,
    notes: &'n Notes,
    /// CPUs that were taken offline.
    offline: CpuSet,
    /// What was done, with its time on the monotonic clock.
    pub records: Vec<(u64, Record)>,
}

impl<'n> Changes<'n> {
    /// None yet.
    pub fn new(stage: &'static Stage, notes: &'n Notes) -> Changes<'n> {
        Changes {
            stage,
            notes,
            offline: CpuSet::default(),
            records: Vec::new(),
        }
    }

    /// Makes one change.
    ///
    /// # Errors
    /// A number that cannot be computed; what the system refuses.
    pub fn make(&mut self, change: &Planned) -> Result<(), PlayError> {
        let set = &change.set;
        match &change.whom {
            Whom::Tasks(table, numbers) => self.tasks(set, |kind, number| {
                kind == *table && numbers.contains(&number)
            }),
            Whom::Groups(places) => {
                let mut places = places.clone();
                places.try_for_each(|place| self.group(set, group_number(place)))
            }
            Whom::Cpus(cpus) => set.iter().try_for_each(|to| match to {
                To::Online(online) => self.online(cpus, *online),
                _ => Ok(()),
            }),
            Whom::Sources(table, numbers) => {
                let mut numbers = numbers.clone();
                numbers.try_for_each(|number| self.source(set, *table, number))
            }
            // The controller does it itself.
            Whom::Scheduler => Ok(()),
        }
    }

    /// Tells a source what it is to do.
    fn source(&self, sets: &[To], table: ObjectId, number: u64) -> Result<(), PlayError> {
        let (stage, bound) = (self.stage, &self.stage.bound);
        let Some(place) = stage.sources.iter().position(|source| source.id == table) else {
            return Ok(());
        };
        let orders = &stage.orders[bound.object_of_class(table, number) as usize];
        let sends = |thread: &SenderThread| thread.sources.contains(&(place, number));
        let Some(thread) = stage.senders.iter().position(sends) else {
            return Ok(());
        };
        for set in sets {
            match set {
                To::Stopped(stopped) => orders.stopped.store((*stopped).into(), Ordering::Release),
                To::Rate(rate) => {
                    let gap = bound.gap_of_source(table, number, rate)?;
                    orders.gap.store(gap, Ordering::Relaxed);
                    orders.since_ns.store(now_ns(), Ordering::Relaxed);
                    orders.turn.fetch_add(1, Ordering::Release);
                    process::notify(stage.senders[thread].news_fd);
                }
                To::Arrival(cpus) => self.move_source(thread, cpus)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Moves a thread of sources.
    fn move_source(&self, thread: usize, cpus: &CpuSet) -> Result<(), PlayError> {
        let slot = self.stage.sender_slots.of(thread as u32);
        sched::set_affinity(slot.tid.load(Ordering::Relaxed), cpus).map_err(|error| {
            let what = format!("the sender of a source cannot be moved to CPUs {cpus}");
            PlayError::refused(what, &error, "name CPUs that this machine has")
        })
    }

    /// Changes those of the tasks that are alive for which `is_meant` says so.
    fn tasks(
        &mut self,
        sets: &[To],
        is_meant: impl Fn(warmq_scenario::TaskKindId, u64) -> bool,
    ) -> Result<(), PlayError> {
        for (index, slot) in self.stage.tasks() {
            let (kind, number) = self.stage.role(slot);
            if slot.state() != TaskState::Started || !is_meant(kind, number) {
                continue;
            }
            for set in sets {
                self.task(index, slot, set)?;
            }
        }
        Ok(())
    }

    fn task(&mut self, index: u32, slot: &'static Slot, set: &To) -> Result<(), PlayError> {
        let task = TaskId(index);
        let tid = slot.tid.load(Ordering::Relaxed);
        let done = match set {
            To::Cpus(cpus) => {
                let all = self.stage.cpus.all();
                sched::set_affinity(tid, cpus).map(|()| affinity(task, cpus, &all))
            }
            To::Nice(nice) => {
                sched::set_nice(tid, *nice).map(|()| vec![Record::Nice { task, nice: *nice }])
            }
            To::Policy(policy) => {
                let wanted = attributes_of(policy);
                let set = |now: &mut Attributes| now.take_policy_of(&wanted);
                let record = Record::Policy {
                    task,
                    policy: wanted.policy,
                    priority: wanted.priority,
                };
                slot.change_attributes(tid, set).map(|()| vec![record])
            }
            To::Slice(slice) => {
                let slice_ns = slice.as_ns();
                slot.slice_ns.store(slice_ns, Ordering::Relaxed);
                let slice = Duration::from_ns(slice_ns);
                slot.change_attributes(tid, |_| ())
                    .map(|()| vec![Record::Slice { task, slice }])
            }
            To::UclampMin(min) => sched::set_uclamp(tid, Some(*min), None).map(|()| Vec::new()),
            To::UclampMax(max) => sched::set_uclamp(tid, None, Some(*max)).map(|()| Vec::new()),
            To::Group(place) => {
                let group = group_number(*place);
                let moved = self.stage.groups.move_thread(tid, group);
                moved.map(|()| vec![Record::Group { task, group }])
            }
            To::Fragment(fragment) => {
                // The task names it at its next step, and logs it.
                let wanted = fragment.map_or(0, |number| 1 + u64::from(number));
                slot.fragment.store(wanted, Ordering::Relaxed);
                slot.fragment_turn.fetch_add(1, Ordering::Release);
                Ok(Vec::new())
            }
            To::Stopped(true) => self.signal(slot, libc::SIGSTOP),
            To::Stopped(false) => self.signal(slot, libc::SIGCONT),
            _ => Ok(Vec::new()),
        };
        self.told(done, || self.stage.name_of(slot))
    }

    /// Keeps the records of what was done. A task that has just ended is no error.
    fn told(
        &mut self,
        done: io::Result<Vec<Record>>,
        who: impl Fn() -> String,
    ) -> Result<(), PlayError> {
        match done {
            Ok(records) => {
                let now = now_ns();
                self.records
                    .extend(records.into_iter().map(|record| (now, record)));
                Ok(())
            }
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            Err(error) => {
                let what = format!("a change of {} is refused", who());
                Err(PlayError::refused(what, &error, fix(&error, AS_ROOT)))
            }
        }
    }

    /// Stops or continues a task, and with it all tasks of its process.
    fn signal(&self, slot: &Slot, signal: i32) -> io::Result<Vec<Record>> {
        let pid = slot.pid.load(Ordering::Relaxed);
        let mut others = self.stage.tasks();
        let shared = others.any(|(_, other)| {
            !std::ptr::eq(other, slot) && other.pid.load(Ordering::Relaxed) == pid
        });
        if shared {
            let what = format!("stop of {}", self.stage.name_of(slot));
            self.notes
                .say(&what, "a signal stops all tasks of its process");
        }
        process::kill(pid, signal).map(|()| Vec::new())
    }

    fn group(&mut self, sets: &[To], number: u32) -> Result<(), PlayError> {
        if let Some(place) = self.stage.sessions.place_of(number) {
            return self.session(sets, place);
        }
        let groups = &self.stage.groups;
        for set in sets {
            let done = match set {
                To::Cpus(cpus) => groups.set_cpus(number, cpus.clone()),
                To::Frozen(frozen) => groups.freeze(number, *frozen),
                to => groups.set(number, to),
            };
            done.map_err(|error| {
                let what = format!("a change of group {number} is refused");
                PlayError::refused(what, &error, fix(&error, AS_ROOT))
            })?;
        }
        Ok(())
    }

    fn session(&self, sets: &[To], place: usize) -> Result<(), PlayError> {
        for set in sets {
            if let To::Nice(nice) = set
                && self.stage.sessions.set_nice(place, *nice)?
            {
                let why = "it came late: without CAP_SYS_ADMIN the kernel takes one in 100 ms";
                self.notes.say("a change of an autogroup's nice value", why);
            }
        }
        Ok(())
    }

    fn online(&mut self, cpus: &CpuSet, online: bool) -> Result<(), PlayError> {
        for cpu in cpus.iter() {
            // What comes online runs tasks before the file says so; what goes offline, until then.
            let before = now_ns();
            set_online(cpu, online).map_err(|error| {
                let way = if online { "online" } else { "offline" };
                let what = format!("{cpu} cannot be taken {way}");
                let usual = "play it as root, on a CPU that can";
                PlayError::refused(what, &error, fix(&error, usual))
            })?;
            match online {
                true => self.offline.remove(cpu),
                false => self.offline.insert(cpu),
            }
            let at = if online { before } else { now_ns() };
            self.records.push((at, Record::Hotplug { cpu, online }));
        }
        Ok(())
    }
}

impl Drop for Changes<'_> {
    fn drop(&mut self) {
        self.offline.iter().for_each(|cpu| {
            let _ = set_online(cpu, true);
        });
    }
}

fn set_online(cpu: CpuId, online: bool) -> io::Result<()> {
    let file = format!("/sys/devices/system/cpu/cpu{}/online", cpu.0);
    fs::write(file, if online { "1" } else { "0" })
}
