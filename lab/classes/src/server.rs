//! The deadline server of fair tasks on one CPU (`dl_server_start()`, `update_curr_dl_se()`,
//! `dl_server_timer()`; from 6.12 on).
//!
//! Real-time tasks run before fair ones, and would starve them. So fair tasks have a reservation:
//! some CPU time in each period. What they run beside the real-time tasks counts, and so does idle
//! time. Only where that is too little does the server start: at the latest time at which the rest
//! of its runtime still fits before its deadline (zero laxity). From then on fair tasks run before
//! real-time ones until the runtime is used up, which is refilled at the deadline, a period after
//! the server began.
//!
//! ```text
//!     starting:  deadline = now + period    left = runtime    the timer expires at deadline - left
//!     serving:   deadline = now + period    left = runtime - what was overrun
//! ```
//!
//! Beside a real-time task that never sleeps, a fair one waits for `period - runtime`, runs for
//! `runtime` and until the next tick, and so on.
//!
//! This is arithmetic only: times are those of the CPU's clock, in ns, and who calls it arms the
//! timer for [`Server::due`] and lets fair tasks go first while [`Server::serves`].
//!
//! Different from the kernel: arming the timer takes no time, and frequencies do not scale
//! runtimes.

use crate::Rank;
use crate::entity::{Entity, Times};

/// Below this, in ns, a deferred start is not put off again (`dl_server_min_res`).
const LEAST_DELAY: i64 = 1_000_000;

/// How idle time counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdleTime {
    /// It uses up the runtime, down to zero (`dl_server_update_idle_time()`, 6.12).
    #[default]
    Spends,
    /// When it has used up the runtime, a new period begins; if the CPU idles all of that, the
    /// server stops (`dl_defer_idle`).
    Stops,
}

/// What the server has been given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reservation {
    /// CPU time in each period, in ns; 0 switches the server off.
    pub runtime: i64,
    /// In ns.
    pub period: i64,
    /// How idle time counts.
    pub idle: IdleTime,
}

/// Where the server is in its period. The letters are those of the kernel's chart of states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// A: no fair task has asked for it since it stopped. `served`: it stopped while it served, and
    /// may go on at once with what is left (`dl_defer_running`).
    Stopped { served: bool },
    /// B: it waits for zero laxity.
    Deferred,
    /// C: the same, and the CPU has idled for a whole runtime.
    Idle,
    /// D: fair tasks run before real-time ones.
    Serves,
    /// E: it has used up its runtime, and waits for its deadline.
    Spent,
}

/// A server of one CPU; see above.
pub struct Server {
    entity: Entity,
    idle: IdleTime,
    phase: Phase,
    due: Option<i64>,
    /// Until when idle time has been counted, while the CPU idles.
    idle_since: Option<i64>,
}

/// A server that is switched off.
impl Default for Server {
    fn default() -> Server {
        Server::new(Reservation::default())
    }
}

impl Server {
    /// The server of a CPU that idles since time 0.
    pub fn new(reservation: Reservation) -> Server {
        let Reservation {
            runtime,
            period,
            idle,
        } = reservation;
        Server {
            entity: Entity::new(Times {
                runtime: runtime.min(period),
                deadline: period,
                period,
            }),
            idle,
            phase: Phase::Stopped { served: false },
            due: None,
            idle_since: Some(0),
        }
    }

    /// When its timer is to expire, if one is to be armed.
    pub fn due(&self) -> Option<i64> {
        self.due
    }

    /// Whether fair tasks run before real-time ones now.
    pub fn serves(&self) -> bool {
        self.phase == Phase::Serves
    }

    /// What deadline tasks are compared with while it serves.
    pub fn rank(&self) -> Rank {
        match self.serves() {
            true => Rank::Deadline(self.entity.deadline),
            false => Rank::Other,
        }
    }

    /// The first fair task was queued (`dl_server_start()`).
    pub fn start(&mut self, now: i64) {
        let Phase::Stopped { served } = self.phase else {
            if self.phase == Phase::Idle {
                self.phase = Phase::Deferred;
            }
            return;
        };
        if self.entity.times.runtime == 0 {
            return;
        }
        // An idle CPU's time until now was not the server's, unless it counts while it is stopped.
        self.count_idle(now);
        // update_dl_entity()
        let entity = &mut self.entity;
        let (passed, overflows) = (entity.has_passed(now), entity.overflows(now));
        if served && !passed {
            if overflows {
                entity.revise(now);
            }
            self.phase = Phase::Serves;
        } else if passed || overflows {
            self.defer(now, Phase::Deferred);
        } else {
            self.wait_for_zero_laxity(Phase::Deferred);
        }
    }

    /// No fair task is left to be served, or the CPU goes offline (`dl_server_stop()`).
    pub fn stop(&mut self) {
        let served = match self.phase {
            Phase::Stopped { served } => served,
            phase => matches!(phase, Phase::Serves | Phase::Spent),
        };
        self.phase = Phase::Stopped { served };
        self.due = None;
    }

    /// Fair tasks ran for `ran` until `now` (`dl_server_update()`). Returns whether the server has
    /// just used up its runtime, so that the CPU must pick again.
    pub fn charge(&mut self, now: i64, ran: i64) -> bool {
        if matches!(self.phase, Phase::Stopped { .. }) || ran <= 0 {
            return false;
        }
        if self.phase == Phase::Idle {
            self.phase = Phase::Deferred;
        }
        self.entity.left -= ran;
        if self.entity.left > 0 {
            return false;
        }
        match self.phase {
            Phase::Serves => self.wait_for_deadline(now),
            _ => self.defer(now, Phase::Deferred),
        }
        self.phase == Phase::Spent
    }

    /// The CPU idles from `now` on (`set_next_task_idle()`).
    pub fn begin_idle(&mut self, now: i64) {
        self.idle_since = Some(now);
    }

    /// The CPU has a task from `now` on (`put_prev_task_idle()`).
    pub fn end_idle(&mut self, now: i64) {
        self.count_idle(now);
        self.idle_since = None;
    }

    /// Counts the time that the CPU has idled until `now`.
    fn count_idle(&mut self, now: i64) {
        let Some(since) = self.idle_since.as_mut() else {
            return;
        };
        let idled = now - std::mem::replace(since, now);
        match self.idle {
            IdleTime::Spends => self.spend_idle(idled),
            IdleTime::Stops => self.charge_idle(now, idled),
        }
    }

    /// `dl_server_update_idle_time()` of 6.12, which counts while the server is stopped, too.
    fn spend_idle(&mut self, idled: i64) {
        if self.entity.left < 0 {
            return;
        }
        self.entity.left -= idled;
        if self.entity.left < 0 {
            self.entity.left = 0;
            if let Phase::Stopped { served } = &mut self.phase {
                *served = false;
            }
        }
    }

    /// `dl_server_update_idle()`.
    fn charge_idle(&mut self, now: i64, idled: i64) {
        if matches!(self.phase, Phase::Stopped { .. }) || idled <= 0 {
            return;
        }
        self.entity.left -= idled;
        if self.entity.left > 0 {
            return;
        }
        match self.phase {
            Phase::Serves => self.wait_for_deadline(now),
            Phase::Idle => self.entity.left = 0,
            _ => self.defer(now, Phase::Idle),
        }
    }

    /// The timer has expired (`dl_server_timer()`). The running task was charged before.
    pub fn timer(&mut self, now: i64) {
        self.due = None;
        self.count_idle(now);
        match self.phase {
            Phase::Stopped { .. } | Phase::Serves => {}
            Phase::Idle => self.stop(),
            Phase::Deferred if now < self.zero_laxity() - LEAST_DELAY => {
                self.wait_for_zero_laxity(Phase::Deferred);
            }
            Phase::Deferred => {
                if self.entity.overflows(now) {
                    self.entity.begin_period(now);
                }
                self.serve(now);
            }
            Phase::Spent => self.serve(now),
        }
    }

    fn serve(&mut self, now: i64) {
        self.entity.replenish(now);
        self.phase = Phase::Serves;
        self.due = None;
    }

    /// The runtime is used up until the deadline, or for a whole period if that has passed.
    fn wait_for_deadline(&mut self, now: i64) {
        if !self.entity.can_wait(now) {
            self.entity.begin_period(now);
        }
        self.phase = Phase::Spent;
        self.due = Some(self.entity.deadline);
    }

    /// Nobody starves: the next start is put off by a new period.
    fn defer(&mut self, now: i64, phase: Phase) {
        self.entity.begin_period(now);
        self.wait_for_zero_laxity(phase);
    }

    fn wait_for_zero_laxity(&mut self, phase: Phase) {
        self.phase = phase;
        self.due = Some(self.zero_laxity());
    }

    /// The latest time at which what is left fits before the deadline.
    fn zero_laxity(&self) -> i64 {
        self.entity.deadline - self.entity.left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn server(idle: IdleTime) -> Server {
        let mut server = Server::new(Reservation {
            runtime: 50 * MS,
            period: 1_000 * MS,
            idle,
        });
        server.end_idle(0);
        server
    }

    /// Lets the fair task run whenever it may, and charges it at ticks of 4 ms. Returns what it
    /// had, and its longest wait.
    fn beside_a_hog(server: &mut Server, until: i64) -> (i64, i64) {
        let (mut now, mut had, mut waited, mut longest) = (0, 0, 0, 0);
        server.start(0);
        while now < until {
            let tick = now - now % (4 * MS) + 4 * MS;
            let next = server.due().map_or(tick, |due| due.clamp(now, tick));
            let passed = next - now;
            now = next;
            if server.serves() {
                had += passed;
                waited = 0;
                server.charge(now, passed);
            } else {
                waited += passed;
                longest = longest.max(waited);
            }
            if server.due().is_some_and(|due| due <= now) {
                server.timer(now);
            }
        }
        (had, longest)
    }

    #[test]
    fn a_starved_task_has_the_runtime_in_each_period() {
        let (had, longest) = beside_a_hog(&mut server(IdleTime::Stops), 100_000 * MS);
        assert!((99 * 50 * MS..=101 * 50 * MS).contains(&had), "{had}");
        assert!((940 * MS..1_004 * MS).contains(&longest), "{longest}");
    }

    #[test]
    fn a_task_that_runs_in_the_background_puts_the_server_off() {
        let mut server = server(IdleTime::Stops);
        server.start(0);
        assert_eq!(server.due(), Some(950 * MS));
        assert!(!server.charge(30 * MS, 30 * MS));
        assert_eq!(server.due(), Some(950 * MS), "the timer stays");
        server.timer(950 * MS);
        assert_eq!(server.due(), Some(980 * MS), "20 ms are left");
        server.charge(970 * MS, 20 * MS);
        assert_eq!(server.due(), Some((970 + 950) * MS), "a new period");
        assert!(!server.serves());
    }

    #[test]
    fn what_is_overrun_is_paid_back() {
        let mut server = server(IdleTime::Stops);
        server.start(0);
        server.timer(950 * MS);
        assert!(server.serves());
        assert!(server.charge(1_002 * MS, 52 * MS));
        assert_eq!(
            server.due(),
            Some(1_950 * MS),
            "a period from when it began to serve"
        );
        server.timer(1_950 * MS);
        assert_eq!(
            (server.entity.left, server.entity.deadline),
            (48 * MS, 2_950 * MS)
        );
    }

    #[test]
    fn a_task_that_comes_back_within_the_period_is_served_at_once() {
        let mut server = server(IdleTime::Stops);
        server.start(0);
        server.timer(950 * MS);
        server.charge(960 * MS, 10 * MS);
        server.stop();
        assert_eq!((server.due(), server.serves()), (None, false));
        server.start(980 * MS);
        assert_eq!((server.serves(), server.entity.left), (true, 40 * MS));
        server.stop();
        server.start(1_930 * MS);
        assert!(server.serves());
        assert_eq!(
            server.entity.left, 999_984,
            "52428 / 2^20, which is a twentieth, of the 20 ms until the deadline"
        );
        server.stop();
        server.start(2_000 * MS);
        assert!(!server.serves(), "its period is over");
        assert_eq!(server.due(), Some((2_000 + 950) * MS));
    }

    #[test]
    fn an_idle_cpu_stops_its_server() {
        let mut server = server(IdleTime::Stops);
        server.start(0);
        server.charge(MS, MS);
        server.begin_idle(MS);
        server.timer(950 * MS);
        assert_eq!(
            (server.phase, server.due()),
            (Phase::Stopped { served: false }, None)
        );
    }

    #[test]
    fn idle_time_of_6_12_spends_the_runtime() {
        let mut server = server(IdleTime::Spends);
        server.start(0);
        server.begin_idle(MS);
        server.end_idle(200 * MS);
        server.timer(950 * MS);
        assert_eq!(server.due(), Some(1_000 * MS), "nothing is left");
        server.timer(1_000 * MS);
        assert!(server.serves());
        assert_eq!(
            (server.entity.left, server.entity.deadline),
            (50 * MS, 2_000 * MS)
        );
    }

    #[test]
    fn without_a_runtime_there_is_no_server() {
        let mut server = Server::new(Reservation {
            runtime: 0,
            period: 1_000 * MS,
            idle: IdleTime::Stops,
        });
        server.start(5);
        server.charge(10, 5);
        assert_eq!((server.due(), server.serves()), (None, false));
    }
}
