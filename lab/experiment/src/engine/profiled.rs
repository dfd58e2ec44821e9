//! The profile of a run.

use warmq_kernel::AccessCounts;
use warmq_report::{Profile, Work};
use warmq_sched_ext::{Profiler, Spent};
use warmq_units::Duration;

/// What was counted in a run with so many switches, in which the CPUs had so much time together.
pub(super) fn profile(
    profiler: &Profiler,
    scheduler: &str,
    switches: u64,
    cpu_time: Duration,
) -> Profile {
    let mut profile = Profile {
        scheduler: scheduler.to_owned(),
        switches,
        cpu_time,
        ..Profile::default()
    };
    profiler.callbacks(|callback, times| profile.began(&[callback], times));
    profiler.functions(|entered| {
        profile.began(&[entered.callback, entered.function], entered.times);
    });
    profiler.instructions(|spent| {
        let place = spent.line.map(|line| line.place());
        let place = place.unwrap_or_else(|| "no line".to_owned());
        let text = spent.line.map_or("", |line| &*line.text);
        let path = [spent.callback, spent.function, &place];
        profile.add(&path, text, &work(&spent));
    });
    profile.sort();
    profile
}

fn work(spent: &Spent<'_>) -> Work {
    let AccessCounts {
        by_level: [_, level2, level3, level4],
        by_cache,
        by_memory,
    } = spent.accesses;
    let locked = spent.locked.then_some(spent.time);
    Work {
        instructions: spent.ran,
        calls: spent
            .calls
            .iter()
            .map(|name| (name.clone(), spent.ran))
            .collect(),
        lines: spent.accesses.total(),
        found_in_level: [level2, level3, level4],
        from_other_cpus: by_cache,
        from_memory: by_memory,
        time: spent.time,
        locked: locked.unwrap_or_default(),
    }
}
