//! Draws plans from a seed.

use warmq_units::{CpuId, Seed, Stream};

use crate::Race;
use crate::plan::{Act, Hold, PICK, Setup, Step};
use crate::stage::Stage;

/// Of steps, one in so many is interrupted.
const HELD: u64 = 2;

/// Places where others may come in, of a path of whose kind none has come yet.
const PLACES: u64 = 64;

/// What passes between two steps, in us.
const SPANS: [u32; 5] = [1, 50, 1_000, 4_000, 30_000];

/// Draws the steps of a plan.
pub(crate) struct Draw {
    setup: Setup,
    steps: usize,
    random: Stream,
    /// How often each kind of act is drawn in this plan.
    often: Vec<u64>,
}

/// What is drawn so often happens in all plans. Of the rest some do, so that plans differ.
const ALWAYS: u64 = 8;

/// Draws an act of a kind, if it can happen on a CPU.
type Kind = fn(&mut Stream, &Stage, CpuId) -> Option<Act>;

/// What can happen, and how often it does beside others.
const KINDS: &[(&str, u64, Kind)] = &[
    ("wake", 12, |random, stage, _| {
        let asleep = |task: &u16| stage.kernel.sleeps(stage.tasks[usize::from(*task)]);
        one_of(random, (0..stage.tasks.len() as u16).filter(asleep)).map(Act::Wake)
    }),
    ("sleep", 8, |_, stage, cpu| {
        runs(stage, cpu).then_some(Act::Sleep)
    }),
    ("tick", 3, |_, stage, cpu| {
        runs(stage, cpu).then_some(Act::Tick)
    }),
    ("yield", 2, |_, stage, cpu| {
        runs(stage, cpu).then_some(Act::Yield)
    }),
    ("nice", 1, |random, stage, _| {
        Some(Act::Nice(
            any_task(random, stage),
            random.below(40) as i8 - 20,
        ))
    }),
    ("affinity", 1, |random, stage, _| {
        let all = (1_u64 << stage.cpus) - 1;
        let task = any_task(random, stage);
        Some(Act::Affinity(task, random.between(1, all) as u8))
    }),
    ("move", 1, |random, stage, _| {
        let group = random.below(stage.groups.len() as u64) as u16;
        Some(Act::Move(any_task(random, stage), group))
    }),
    ("weigh", 1, |random, stage, _| {
        let group = random.below(stage.groups.len() as u64) as u16;
        let weight = random.between(1, 1_000) as u16;
        // One number for both, which are two ways to say how much a group is worth.
        let act = match weight % 8 {
            0 => Act::Idle(group, true),
            4 => Act::Idle(group, false),
            _ => Act::Weigh(group, weight),
        };
        (group > 0).then_some(act)
    }),
    ("hint", 1, |random, stage, cpu| {
        runs(stage, cpu).then(|| Act::Hint(random.below(4) as u8))
    }),
    ("pass", 2, |random, _, _| {
        let span = SPANS[random.below(SPANS.len() as u64) as usize];
        Some(Act::Pass(span))
    }),
];

fn runs(stage: &Stage, cpu: CpuId) -> bool {
    stage.kernel.runs(cpu).is_some()
}

fn any_task(random: &mut Stream, stage: &Stage) -> u16 {
    random.below(stage.tasks.len() as u64) as u16
}

fn one_of<T: Copy>(random: &mut Stream, all: impl Iterator<Item = T>) -> Option<T> {
    let all: Vec<T> = all.collect();
    all.get(random.below(all.len() as u64) as usize).copied()
}

/// Names of all that can happen.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(name, ..)| *name)
}

impl Draw {
    pub(crate) fn new(seed: Seed, race: &Race<'_>) -> Draw {
        let mut random = seed.stream("race");
        let groups = random.below(3) as u16;
        let of = |_| random.below(u64::from(groups) + 1) as u16;
        let groups_of = (0..race.tasks.max(1)).map(of).collect();
        let often = |(name, often, _): &(&str, u64, Kind)| {
            let factors = if *often < ALWAYS {
                [0, 1, 4, 16]
            } else {
                [1, 1, 2, 4]
            };
            let wanted = race.only.is_empty() || race.only.iter().any(|only| only == name);
            u64::from(wanted) * often * factors[random.below(4) as usize]
        };
        Draw {
            setup: Setup {
                groups_of,
                groups,
                seed: seed.0,
            },
            steps: race.steps,
            often: KINDS.iter().map(often).collect(),
            random,
        }
    }

    pub(crate) fn setup(&self) -> Setup {
        self.setup.clone()
    }

    /// The next step; `None` if there are enough.
    pub(crate) fn next(&mut self, stage: &Stage) -> Option<Step> {
        self.steps = self.steps.checked_sub(1)?;
        let free: Vec<CpuId> = stage
            .cpus()
            .filter(|cpu| stage.kernel.is_free(*cpu))
            .collect();
        let cpu = one_of(&mut self.random, free.into_iter());
        // Where all CPUs are busy, time passes.
        let drawn = cpu.and_then(|cpu| Some((cpu, self.act(stage, cpu)?)));
        let (cpu, act) = drawn.unwrap_or((CpuId(0), Act::Pass(1)));
        Some(Step {
            cpu,
            act,
            hold: self.hold(stage, act),
        })
    }

    fn act(&mut self, stage: &Stage, cpu: CpuId) -> Option<Act> {
        let all: u64 = self.often.iter().sum();
        // What is drawn may not be possible here: some other thing is, soon.
        (0..16).find_map(|_| {
            let mut at = self.random.below(all);
            let kind = self.often.iter().position(|often| {
                let found = at < *often;
                at = at.saturating_sub(*often);
                found
            });
            KINDS[kind?].2(&mut self.random, stage, cpu)
        })
    }

    /// Where a step is interrupted, if it is: anywhere in a path that is as long as the longest of
    /// its kind so far, or an eighth of that, since paths of one kind differ.
    fn hold(&mut self, stage: &Stage, act: Act) -> Option<Hold> {
        let random = &mut self.random;
        if !random.chance(1, HELD) {
            return None;
        }
        let path = random.below(3).saturating_sub(1) as u8;
        let kind = if path == 0 { act.kind() } else { PICK };
        let places = stage.places.get(kind).copied().unwrap_or(PLACES) >> random.below(4);
        Some(Hold {
            path,
            passes: random.below(places + places / 8 + 1).min(u16::MAX.into()) as u16,
            steps: random.between(1, 4) as u8,
        })
    }
}
