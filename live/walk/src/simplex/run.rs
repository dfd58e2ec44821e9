//! The whole comparison, repetition by repetition.

use std::time::{Duration, Instant};

use super::cpus::{Cpus, busy};
use super::link::Link;
use super::measure::Bench;
use super::pace::Pace;
use super::plan::{Cell, cells};
use super::result::{Repetition, SimplexFacts, SimplexReport, SimplexRow};
use super::scheduler::{Loaded, Loader};
use super::settings::SimplexSettings;
use super::work::Work;
use crate::compare::Spread;
use crate::error::BenchError;

/// A measurement is given up when it takes so many times what Simplex takes alone.
const MOST_TIMES: u32 = 20;

/// How far a comparison is.
#[derive(Clone, Debug)]
pub struct SimplexProgress {
    /// Measurements done; 0 as soon as nothing more can be refused.
    pub done: usize,
    /// All measurements.
    pub total: usize,
    /// The last one, in words.
    pub last: String,
}

/// Measures everything that `settings` ask for, and tells `progress` of each measurement.
///
/// # Errors
/// Settings that make no sense; a machine with one CPU; a link or a scheduler that cannot be had.
pub fn compare(
    settings: &SimplexSettings,
    progress: &mut dyn FnMut(&SimplexProgress),
) -> Result<SimplexReport, BenchError> {
    settings.check()?;
    let cpus = Cpus::choose(settings.cpu, settings.sender_cpu)?;
    let loader = settings.scheduler.as_deref().map(Loader::new).transpose()?;
    let link = Link::lay(settings.link)?;
    progress(&SimplexProgress {
        done: 0,
        total: settings.measurements(),
        last: String::new(),
    });
    let begun = Instant::now();
    let busy_share = busy(cpus);
    let bench = Bench {
        cpus,
        link: &link,
        work: Work::calibrated(cpus.receiver, settings.work)?,
        receivers: settings.receivers,
        payload: settings.payload as usize,
    };
    let mut run = Run {
        settings,
        bench,
        loader,
        begun,
        solo_ns: [None; 2],
        solos: Vec::new(),
        rows: Vec::new(),
        cut_short: false,
        progress,
        done: 0,
    };
    for repetition in 0..settings.repetitions {
        run.repeat(repetition)?;
    }
    Ok(run.report(busy_share))
}

/// A comparison under way.
struct Run<'a> {
    // Set when it begins.
    settings: &'a SimplexSettings,
    bench: Bench<'a>,
    loader: Option<Loader>,
    begun: Instant,
    // How long Simplex last took alone, without and with the scheduler; and all times without.
    solo_ns: [Option<f64>; 2],
    solos: Vec<f64>,
    rows: Vec<SimplexRow>,
    cut_short: bool,
    progress: &'a mut dyn FnMut(&SimplexProgress),
    done: usize,
}

impl Run<'_> {
    fn repeat(&mut self, repetition: u32) -> Result<(), BenchError> {
        let cells = cells(self.settings, repetition);
        for same in cells.chunk_by(|one, next| one.loaded == next.loaded) {
            if self.left().is_zero() {
                self.cut_short = true;
                return Ok(());
            }
            let wanted = same.first().is_some_and(|cell| cell.loaded);
            let loader = self.loader.as_ref().filter(|_| wanted);
            let loaded = loader.map(Loader::load).transpose()?;
            for cell in same {
                self.measure(*cell, loaded.as_ref())?;
            }
            loaded.map_or(Ok(()), Loaded::unload)?;
        }
        Ok(())
    }

    /// Time until the limit.
    fn left(&self) -> Duration {
        self.settings
            .time_limit
            .saturating_sub(self.begun.elapsed())
    }

    fn measure(&mut self, cell: Cell, loaded: Option<&Loaded>) -> Result<(), BenchError> {
        let limit = self.left().min(self.settings.work * MOST_TIMES);
        if limit.is_zero() {
            self.cut_short = true;
            return Ok(());
        }
        let seen = self
            .bench
            .measure(cell.policy, cell.kpps.map(Pace::new), limit)?;
        let scheduler = loaded.map(|it| it.name().unwrap_or_else(|| "unnamed".to_owned()));
        let solo = &mut self.solo_ns[usize::from(cell.loaded)];
        match (cell.kpps, *solo) {
            (None, _) => {
                let whole = seen.done.elapsed_ns as f64 / seen.done.share.max(f64::MIN_POSITIVE);
                *solo = Some(whole);
                self.solos.extend((!cell.loaded).then_some(whole));
            }
            (Some(kpps), Some(solo_ns)) => {
                let repetition = Repetition::of(&seen, solo_ns);
                self.row(kpps, cell, scheduler).repetitions.push(repetition);
            }
            // The plan has Simplex alone first.
            (Some(_), None) => {}
        }
        self.tell(cell);
        Ok(())
    }

    fn row(&mut self, kpps: u32, cell: Cell, scheduler: Option<String>) -> &mut SimplexRow {
        let same = |row: &SimplexRow| {
            row.kpps == kpps && row.policy == cell.policy && row.scheduler.is_some() == cell.loaded
        };
        let index = self.rows.iter().position(same).unwrap_or_else(|| {
            self.rows.push(SimplexRow {
                kpps,
                policy: cell.policy,
                scheduler,
                repetitions: Vec::new(),
            });
            self.rows.len() - 1
        });
        &mut self.rows[index]
    }

    fn tell(&mut self, cell: Cell) {
        self.done += 1;
        let total = self.settings.measurements();
        let last = match cell.kpps {
            None => "Simplex alone".to_owned(),
            Some(kpps) => format!("{kpps} Kpps, {}", cell.policy),
        };
        let done = self.done;
        (self.progress)(&SimplexProgress { done, total, last });
    }

    fn report(mut self, busy_share: Option<f64>) -> SimplexReport {
        let place = |row: &SimplexRow| {
            let rate = self.settings.kpps.iter().position(|it| *it == row.kpps);
            let policy = self
                .settings
                .policies
                .iter()
                .position(|it| *it == row.policy);
            (rate, row.scheduler.is_some(), policy)
        };
        self.rows.sort_by_key(place);
        let cpus = self.bench.cpus;
        SimplexReport {
            facts: SimplexFacts {
                kernel: release(),
                cpu: cpus.receiver.0,
                sender_cpu: cpus.sender.0,
                share_a_core: cpus.share_a_core(),
                autogroup: autogroup(),
                busy_share,
                receivers: self.settings.receivers,
                payload: self.settings.payload,
                link: self.settings.link,
                work_ns: self.settings.work.as_nanos() as u64,
                solo_elapsed_ns: Spread::of(&self.solos),
            },
            rows: self.rows,
            cut_short: self.cut_short,
        }
    }
}

/// The kernel's release, as `uname -r` tells it.
fn release() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    read.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// Whether tasks of different sessions are in different groups; sched(7).
fn autogroup() -> Option<bool> {
    let read = std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
    Some(read.ok()?.trim() == "1")
}
