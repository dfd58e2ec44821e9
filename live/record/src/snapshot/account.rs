//! What the kernel itself counts: of threads (schedstat) and of the machine (pressure).

use std::collections::BTreeMap;
use std::fs;

use warmq_trace::Account;
use warmq_units::Duration;

/// What was counted of threads when somebody looked first: how long each had run and waited, in ns.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    /// By thread: its process, and what had been counted.
    began: BTreeMap<u32, (u32, (u64, u64))>,
    /// For how long some task had waited for a CPU, in us.
    pressure_us: Option<u64>,
}

impl Accounts {
    /// A thread is met. One that was `born` since the first look had nothing counted then.
    pub fn meet(&mut self, tgid: u32, tid: u32, born: bool) {
        let counted = (!born).then(|| counted(tgid, tid)).flatten();
        self.began.insert(tid, (tgid, counted.unwrap_or_default()));
    }

    /// The recording is about to begin.
    pub fn begin(&mut self) {
        self.pressure_us = pressure();
    }

    /// For how long some task has waited since the beginning.
    pub fn pressure(&self) -> Option<Duration> {
        let since = pressure()?.saturating_sub(self.pressure_us?);
        Some(Duration::from_us(since))
    }

    /// What was counted since the beginning of each thread that is still there.
    pub fn since(&self) -> Vec<Account> {
        let all = self.began.iter();
        let since = |(tid, (tgid, began)): (&u32, &(u32, (u64, u64)))| {
            // First, since it may go to sleep: then what it waited was counted by the time of the
            // second.
            let runnable = is_runnable(*tgid, *tid)?;
            let now = counted(*tgid, *tid)?;
            Some(Account {
                tid: *tid,
                ran: Duration::from_ns(now.0.saturating_sub(began.0)),
                waited: Duration::from_ns(now.1.saturating_sub(began.1)),
                runnable,
            })
        };
        all.filter_map(since).collect()
    }
}

fn file(tgid: u32, tid: u32, name: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/{tgid}/task/{tid}/{name}")).ok()
}

fn counted(tgid: u32, tid: u32) -> Option<(u64, u64)> {
    schedstat_in(&file(tgid, tid, "schedstat")?)
}

/// `RAN WAITED TIMES` (Documentation/scheduler/sched-stats.rst), in ns.
fn schedstat_in(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text.split_whitespace().map(|word| word.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn is_runnable(tgid: u32, tid: u32) -> Option<bool> {
    let stat = file(tgid, tid, "stat")?;
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.trim_start().starts_with('R'))
}

fn pressure() -> Option<u64> {
    pressure_in(&fs::read_to_string("/proc/pressure/cpu").ok()?)
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=US`.
fn pressure_in(text: &str) -> Option<u64> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    let total = some.split(' ').find_map(|word| word.strip_prefix("total="));
    total?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_accounts_are_read() {
        assert_eq!(
            schedstat_in("178360309 37112847 460\n"),
            Some((178_360_309, 37_112_847))
        );
        assert_eq!(schedstat_in(""), None);
        let text =
            "some avg10=91.50 avg60=74.20 avg300=48.59 total=427196575\nfull avg10=0.00 total=1\n";
        assert_eq!(pressure_in(text), Some(427_196_575));
        assert_eq!(pressure_in("full total=1"), None);
    }

    #[test]
    fn this_thread_runs_more_and_more() {
        let pid = std::process::id();
        let mut accounts = Accounts::default();
        accounts.meet(pid, pid, false);
        assert_eq!(accounts.since().len(), 1);
        accounts.meet(u32::MAX, u32::MAX, false);
        assert_eq!(accounts.since().len(), 1, "who is gone has none");
    }
}
