//! Fragments: home, succession, balance.

use std::thread;
use std::time::Duration;

use crate::group::Group;
use crate::must;
use crate::report::{Drill, Failure, Outcome};
use crate::scheduler::{Scheduler, figures};
use crate::sys;
use crate::workers::{Crew, hog, wait_until};

pub const DRILLS: &[Drill] = &[
    Drill {
        name: "affinity/fragments-stay-home",
        law: "after a while, tasks of a fragment run at its home for 99 % of their time",
        run: stay_home,
    },
    Drill {
        name: "affinity/fragments-in-succession",
        law: "tasks of a fragment run one after another, and groups take turns",
        run: succession,
    },
    Drill {
        name: "affinity/groups-move-whole",
        law: "an imbalance of 25 % moves whole groups, and splits none",
        run: move_whole,
    },
    Drill {
        name: "affinity/groups-split-last",
        law: "a group is split only if it cannot move and the imbalance lasts",
        run: split_last,
    },
    Drill {
        name: "affinity/change-moves-at-once",
        law: "a task that changes its fragment runs at the new home before it runs on",
        run: change_moves,
    },
];

const SETTLE: Duration = Duration::from_secs(2);

/// Hogs of one fragment.
fn hogs(crew: &mut Crew, fragment: u32, number: usize) {
    for _ in 0..number {
        crew.add(&format!("fragment-{fragment}"), move |shift| {
            sys::hint(Some((1, fragment)));
            hog(shift);
        });
    }
}

fn ours() -> Result<Vec<Group>, Failure> {
    Ok(figures()?.groups(std::process::id()))
}

/// What the groups got and did in `time`.
fn during(time: Duration) -> Result<Vec<Group>, Failure> {
    let before = ours()?;
    thread::sleep(time);
    let mut after = ours()?;
    for group in &mut after {
        if let Some(earlier) = before.iter().find(|earlier| earlier.slot == group.slot) {
            group.ran_home_ns -= earlier.ran_home_ns;
            group.ran_away_ns -= earlier.ran_away_ns;
            group.batches -= earlier.batches;
            group.runs -= earlier.runs;
            group.moves -= earlier.moves;
            group.splits -= earlier.splits;
        }
    }
    Ok(after)
}

/// Holds if `groups` ran at least 3 s, and 99 % of their time at home.
fn at_home(groups: &[Group]) -> Result<Outcome, Failure> {
    let home: u64 = groups.iter().map(|group| group.ran_home_ns).sum();
    let away: u64 = groups.iter().map(|group| group.ran_away_ns).sum();
    must!(home > 3_000_000_000, "they ran for {home} ns only");
    must!(
        home * 100 >= (home + away) * 99,
        "{away} of {} ns away from home: {groups:?}",
        home + away
    );
    Ok(Outcome::Holds(format!(
        "{:.2} % at home",
        home as f64 * 100.0 / (home + away) as f64
    )))
}

fn stay_home() -> Result<Outcome, Failure> {
    let _scheduler = Scheduler::start(&["--place", "cpu"])?;
    let mut crew = Crew::default();
    (0..4).for_each(|fragment| hogs(&mut crew, fragment, 4));
    thread::sleep(SETTLE);
    let groups = during(Duration::from_secs(3))?;
    must!(groups.len() == 4, "{} groups instead of 4", groups.len());
    at_home(&groups)
}

fn succession() -> Result<Outcome, Failure> {
    let _scheduler = Scheduler::start(&["--place", "cpu", "--batch-budget", "40ms"])?;
    let mut crew = Crew::default();
    (0..4).for_each(|fragment| hogs(&mut crew, fragment, 4));
    thread::sleep(SETTLE);
    let groups = during(Duration::from_secs(3))?;
    let (runs, batches): (u64, u64) = (
        groups.iter().map(|group| group.runs).sum(),
        groups.iter().map(|group| group.batches).sum(),
    );
    must!(
        groups.iter().all(|group| group.batches > 0),
        "a group had no turn: {groups:?}"
    );
    // 40 ms are ten slices that end at a tick of 4 ms. Without batches it would be 2, with two
    // groups per CPU.
    must!(runs >= 6 * batches, "{runs} runs in {batches} batches");
    for home in 0..2 {
        let had: Vec<_> = groups
            .iter()
            .filter(|group| group.home == home)
            .map(|group| group.ran_home_ns)
            .collect();
        let (least, most) = (had.iter().min(), had.iter().max());
        // A batch more or less, and a tenth.
        must!(
            least.unwrap_or(&0) + 80_000_000 >= most.unwrap_or(&0) * 9 / 10,
            "groups of equal weight on CPU {home} had {had:?} ns"
        );
    }
    Ok(Outcome::Holds(format!(
        "{:.1} in succession",
        runs as f64 / batches as f64
    )))
}

fn move_whole() -> Result<Outcome, Failure> {
    let _scheduler = Scheduler::start(&["--place", "cpu"])?;
    let mut crews: Vec<Crew> = (0..4).map(|_| Crew::default()).collect();
    for (fragment, crew) in crews.iter_mut().enumerate() {
        hogs(crew, fragment as u32, 3);
    }
    thread::sleep(SETTLE);
    let before = ours()?;
    let crowded = before.first().map_or(0, |group| group.home);
    let stays = |group: &&Group| group.home == crowded;
    must!(
        before.iter().filter(stays).count() == 2,
        "groups are not spread two by two: {before:?}"
    );
    for group in before.iter().filter(|group| group.home != crowded) {
        crews[group.fragment.unwrap_or(0) as usize].stop();
    }
    let spread = || {
        ours().is_ok_and(|now| {
            now.iter()
                .filter(|group| group.members > 0)
                .any(|group| group.home != crowded)
        })
    };
    must!(
        wait_until(Duration::from_secs(5), spread),
        "no group moved to the idle place: {:?}",
        ours()?
    );
    let groups = during(Duration::from_secs(2))?;
    let alive: Vec<_> = groups.iter().filter(|group| group.members > 0).collect();
    must!(
        alive.len() == 2 && alive[0].home != alive[1].home,
        "they still share a home: {groups:?}"
    );
    must!(
        alive
            .iter()
            .all(|group| group.ran_away_ns * 50 < group.ran_home_ns),
        "they run away from home: {groups:?}"
    );
    must!(
        alive.iter().all(|group| group.moves == 0),
        "groups move although the load is balanced: {groups:?}"
    );
    let moves: u64 = ours()?.iter().map(|group| group.moves).sum();
    Ok(Outcome::Holds(format!("{moves} moved, none split since")))
}

fn split_last() -> Result<Outcome, Failure> {
    let _scheduler = Scheduler::start(&["--place", "cpu", "--patience", "100ms"])?;
    let mut crew = Crew::default();
    hogs(&mut crew, 1, 4);
    let split = || ours().is_ok_and(|groups| groups.iter().any(|group| group.splits > 0));
    must!(
        wait_until(Duration::from_secs(5), split),
        "one group of four on one of two CPUs was never split: {:?}",
        ours()?
    );
    let had = crew.during(Duration::from_secs(2));
    let total: Duration = had.iter().sum();
    must!(
        total > Duration::from_millis(3000),
        "two CPUs did {total:?} in 2 s"
    );
    Ok(Outcome::Holds(format!(
        "{:.2} CPUs used by a group of one home",
        total.as_secs_f32() / 2.0
    )))
}

fn change_moves() -> Result<Outcome, Failure> {
    let _scheduler = Scheduler::start(&["--place", "cpu", "--imbalance", "400"])?;
    let mut crew = Crew::default();
    hogs(&mut crew, 1, 2);
    hogs(&mut crew, 2, 2);
    thread::sleep(SETTLE);
    let homes = ours()?;
    let home = |fragment: u64| {
        homes
            .iter()
            .find(|group| group.fragment == Some(fragment))
            .map(|group| group.home)
    };
    must!(
        home(1).is_some() && home(1) != home(2),
        "two fragments share a home: {homes:?}"
    );
    let (one, two) = (home(1).unwrap_or(0), home(2).unwrap_or(0));
    let (sender, results) = std::sync::mpsc::channel();
    crew.add("changes", move |shift| {
        let mut wrong = 0;
        for turn in 0..200 {
            let (fragment, home) = if turn % 2 == 0 { (1, one) } else { (2, two) };
            sys::hint(Some((1, fragment)));
            wrong += u32::from(sys::current_cpu() as u64 != home);
            crate::workers::work(Duration::from_micros(500));
            if !shift.goes_on() {
                break;
            }
        }
        let _ = sender.send(wrong);
    });
    let wrong = results
        .recv_timeout(Duration::from_secs(60))
        .map_err(|_| Failure("200 changes take over a minute".to_owned()))?;
    must!(
        wrong <= 10,
        "after {wrong} of 200 changes the task ran on where it was"
    );
    Ok(Outcome::Holds(format!("{} of 200 at once", 200 - wrong)))
}
