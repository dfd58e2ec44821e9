//! Schedulers in which something is wrong: each is refused, is ejected, or plays, in bounded time
//! and memory.
//!
//! `WARMQ_MUTANTS=10000 cargo test -p warmq-sched-ext --test run mutated` plays so many, of the
//! objects that scripts/objects.sh made too; `WARMQ_MUTANTS_FROM` is the number of the first.

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use warmq_kernel::*;
use warmq_sched_ext::{Facts, Loaded, Place, Profile, Source};
use warmq_units::{CpuId, CpuSet, Duration, Instant};

use crate::mutant::mutant;
use crate::stage::*;

/// An object and what its loader does.
struct Base {
    name: String,
    bytes: Vec<u8>,
    profile: Profile,
}

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Became {
    Refused,
    NotAttached,
    Ejected,
    Played,
    /// A mistake of ours.
    Panicked,
}

const CPUS: u16 = 8;

fn own() -> Vec<Base> {
    let all: [(&str, &[u8]); 3] = [
        ("order", ORDER),
        ("faults", FAULTS),
        ("groups", include_bytes!("../programs/groups.bpf.o")),
    ];
    let base = |(name, bytes): (&str, &[u8])| Base {
        name: name.to_owned(),
        bytes: bytes.to_vec(),
        profile: Profile::default(),
    };
    all.map(base).into()
}

/// The released object of a name, where it was made.
fn released(name: &str) -> Option<Base> {
    let test = std::env::current_exe().ok()?; // target/debug/deps/run-...
    let objects: PathBuf = test.ancestors().nth(3)?.join("objects");
    let bytes = std::fs::read(objects.join(format!("{name}.bpf.o"))).ok()?;
    let profiles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schedulers");
    let text = std::fs::read_to_string(profiles.join(format!("{name}.toml")));
    Some(Base {
        name: name.to_owned(),
        bytes,
        profile: Profile::read(&text.expect("a profile")).expect("a profile of ours"),
    })
}

impl Base {
    fn load(&self, bytes: &[u8]) -> Option<Loaded> {
        let source = Source::read(bytes, |_| Some(self.profile.clone()));
        let said = |why: &dyn std::fmt::Display| assert!(!why.to_string().is_empty());
        let source = source.map_err(|why| said(&why)).ok()?;
        let (_, _) = (source.variables(), source.events());
        let place = |cpu| Place {
            core: cpu,
            llc: cpu / 2,
            node: 0,
            ..Place::default()
        };
        let facts = Facts::of_places((0..CPUS).map(place).collect());
        source
            .load("7.3", &facts, &[])
            .map_err(|why| said(&why))
            .ok()
    }

    fn play(&self, seed: u64) -> Became {
        let Some(loaded) = self.load(&mutant(&self.bytes, seed)) else {
            return Became::Refused;
        };
        match Stage::costly(loaded).try_play(20, &workload) {
            Err(why) => {
                assert!(!why.to_string().is_empty());
                Became::NotAttached
            }
            Ok(played) => match played.ending {
                Ending::SchedulerBroke(_) => Became::Ejected,
                _ => Became::Played,
            },
        }
    }
}

/// Tasks that wake and compute, and changes of all kinds.
fn workload(boot: &mut Boot<'_>) -> Started {
    let mut ids = Vec::new();
    for number in 1..=12 {
        let rest = Duration::from_us(100 * number);
        ids.push(boot.task(called("t"), move |task: Task| async move {
            loop {
                task.compute_for(Duration::from_us(400)).await;
                task.sleep(rest).await;
            }
        })?);
    }
    exits(boot, called("short"))?;
    let some: CpuSet = [CpuId(1), CpuId(5)].into_iter().collect();
    let changes = [
        Change::Nice(ids[0], -5),
        Change::Affinity(ids[1], some),
        Change::Stop(ids[2]),
        Change::Continue(ids[2]),
        Change::Online(CpuId(7), false),
        Change::Online(CpuId(7), true),
    ];
    for (at, change) in (2..).step_by(2).zip(changes) {
        boot.operator(Instant::START + ms(at), |operator| async move {
            operator.change(change).await;
        });
    }
    Ok(())
}

fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn mutated_schedulers_are_refused_or_ejected_or_play() {
    let mut bases = own();
    let wanted = asked("WARMQ_MUTANTS");
    if wanted.is_some() {
        let names = ["warmq", "bpfland", "lavd", "flash", "rusty"];
        bases.extend(names.into_iter().filter_map(released));
    }
    let (from, count) = (
        asked("WARMQ_MUTANTS_FROM").unwrap_or(0),
        wanted.unwrap_or(150),
    );
    let mut became: BTreeMap<(&str, Became), u64> = BTreeMap::new();
    let mut wrong = Vec::new();
    for seed in from..from + count {
        let base = &bases[seed as usize % bases.len()];
        let what = catch_unwind(|| base.play(seed)).unwrap_or(Became::Panicked);
        *became.entry((&base.name, what)).or_default() += 1;
        if what == Became::Panicked {
            wrong.push(format!("{} {seed}", base.name));
        }
    }
    for ((name, what), count) in &became {
        println!("{name:<8} {count:>6} {what:?}");
    }
    assert!(wrong.is_empty(), "these panicked: {wrong:?}");
    let runs = |what| became.iter().any(|((_, one), _)| *one == what);
    let all = [Became::Played, Became::Ejected, Became::Refused];
    assert!(count < 100 || all.into_iter().all(runs));
}
