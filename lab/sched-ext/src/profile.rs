//! What the loader of a scheduler does in user space before and after it attaches: a profile,
//! `schedulers/NAME.toml`.
//!
//! ```toml
//! name = "bpfland"                       # of its sched_ext_ops
//! source = "scx_bpfland 1.1.4, src/main.rs"
//! flags = ["ENQ_LAST"]                   # of its sched_ext_ops, beside those of the object
//! [set]                                  # variables: numbers, or facts of the machine
//! slice_max = 1000000
//! smt_enabled = "smt"
//! "cpu_capacity[cpu]" = "capacity"       # for each CPU; also [llc], and [rank] of nearness
//! [[call]]                               # a program of kind syscall, with its arguments of 32 bits
//! program = "enable_sibling_cpu"
//! each = "cpu"                           # once for each
//! arguments = ["cpu", "sibling"]
//! when = "smt"
//! [hint]                                 # a prctl by which tasks name their data
//! program = "hear"
//! option = 0x57415251
//! yields_at = 2                          # the answer after which a task yields
//! ```

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use warmq_kernel::Attach;
use warmq_units::CpuId;

use crate::load::Value;

/// What a loader does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name in the object's `sched_ext_ops`.
    pub name: String,
    /// Where the loader says so.
    pub source: String,
    /// What the lab leaves out of what the loader does, if anything.
    #[serde(default)]
    pub lacks: String,
    /// Names of `SCX_OPS_...` that it sets.
    #[serde(default)]
    flags: Vec<String>,
    /// Those that it sets only where a fact is not 0.
    #[serde(default)]
    flags_if: BTreeMap<String, Vec<String>>,
    /// Variables that it sets before loading.
    #[serde(default)]
    set: BTreeMap<String, Term>,
    /// Programs that it runs before it attaches.
    #[serde(default)]
    call: Vec<Call>,
    /// How tasks name the data that they use.
    #[serde(default)]
    pub(crate) hint: Option<Hint>,
}

/// How tasks name their data: by a prctl that a program of the object answers (`fmod_ret`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hint {
    pub(crate) program: String,
    /// The prctl's first argument. The second is the application in the upper and the fragment in
    /// the lower 32 bits, plus one; 0 for none.
    pub(crate) option: u64,
    /// The answer after which the task yields.
    pub(crate) yields_at: u64,
}

/// A number, or the name of a fact.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Term {
    Flag(bool),
    Number(i64),
    Fact(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    program: String,
    /// `cpu`: once for each CPU. Else once.
    #[serde(default)]
    each: Option<String>,
    #[serde(default)]
    arguments: Vec<Term>,
    /// Only where this fact is not 0.
    #[serde(default)]
    when: Option<String>,
    /// After it has attached, and not before.
    #[serde(default)]
    after: bool,
}

/// A program of kind syscall, and the bytes of its argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) program: String,
    pub(crate) argument: Vec<u8>,
    pub(crate) after: bool,
}

/// Facts of a machine: those of all of it, of each CPU, and of each last-level cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    machine: BTreeMap<&'static str, i64>,
    cpus: Vec<BTreeMap<&'static str, i64>>,
    llcs: Vec<BTreeMap<&'static str, i64>>,
    /// For each cache all of them, the nearest first: itself, those of its node, others.
    near: Vec<Vec<i64>>,
}

/// Of what a fact is asked: by the placeholders of a path.
#[derive(Clone, Copy, Debug, Default)]
struct Of {
    cpu: Option<usize>,
    llc: Option<usize>,
    rank: Option<usize>,
}

/// All CPUs are equally fast here (`SCHED_CAPACITY_SCALE`).
const CAPACITY: i64 = 1024;

/// Where each CPU is: core, last-level cache, node.
type Places = [(u16, u16, u16)];

impl Facts {
    /// Those of the machine that a scheduler is attached to.
    pub fn of(attach: &Attach<'_>) -> Facts {
        let place = |cpu: CpuId| {
            let place = attach.place(cpu);
            (place.core, place.llc, attach.node(cpu))
        };
        let places: Vec<(u16, u16, u16)> = (0..attach.cpus()).map(CpuId).map(place).collect();
        Facts::of_places(&places)
    }

    /// Those of a machine whose CPUs have these cores, last-level caches and nodes.
    pub fn of_places(places: &Places) -> Facts {
        let count = |number: &dyn Fn(&(u16, u16, u16)) -> u16| {
            let all: BTreeSet<u16> = places.iter().map(number).collect();
            all.len() as i64
        };
        let (cores, llcs) = (count(&|place| place.0), count(&|place| place.1));
        let (cpus, nodes) = (places.len() as i64, count(&|place| place.2));
        let (smt, numa) = (i64::from(cores < cpus), i64::from(nodes > 1));
        let node_of = |llc: i64| {
            let mut there = places.iter().filter(|place| i64::from(place.1) == llc);
            there.next().map_or(0, |place| i64::from(place.2))
        };
        let near = |llc: i64| {
            let mut all: Vec<i64> = (0..llcs).collect();
            all.sort_by_key(|other| (*other != llc, node_of(*other) != node_of(llc), *other));
            all
        };
        Facts {
            machine: BTreeMap::from([
                ("cpus", cpus),
                ("last_cpu", cpus - 1),
                ("cores", cores),
                ("llcs", llcs),
                ("one_llc", i64::from(llcs == 1)),
                // Where scx_warmq has groups live.
                ("places", if llcs == 1 { cpus } else { llcs }),
                ("nodes", nodes),
                ("smt", smt),
                ("no_smt", 1 - smt),
                ("numa", numa),
                ("no_numa", 1 - numa),
            ]),
            cpus: (0..places.len()).map(|cpu| of_cpu(places, cpu)).collect(),
            llcs: (0..llcs)
                .map(|llc| BTreeMap::from([("llc", llc), ("node", node_of(llc))]))
                .collect(),
            near: (0..llcs).map(near).collect(),
        }
    }

    fn get(&self, name: &str, of: Of) -> Option<i64> {
        let in_table = |table: &[BTreeMap<&'static str, i64>], at: Option<usize>| {
            at.and_then(|at| table.get(at)?.get(name).copied())
        };
        let near = of.llc.zip(of.rank).filter(|_| name == "near_llc");
        let near = near.and_then(|(llc, rank)| self.near.get(llc)?.get(rank).copied());
        near.or_else(|| in_table(&self.cpus, of.cpu))
            .or_else(|| in_table(&self.llcs, of.llc))
            .or_else(|| self.machine.get(name).copied())
    }

    fn value(&self, term: &Term, of: Of) -> Result<i64, String> {
        match term {
            Term::Number(number) => Ok(*number),
            Term::Flag(flag) => Ok((*flag).into()),
            Term::Fact(name) => self.get(name, of).ok_or_else(|| {
                let of_cpus = self.cpus.iter().take(1).flat_map(BTreeMap::keys);
                let known: Vec<&str> = self.machine.keys().chain(of_cpus).copied().collect();
                let known = known.join(", ");
                format!("there is no fact `{name}` here: write a number or one of {known}")
            }),
        }
    }

    fn holds(&self, when: Option<&String>) -> Result<bool, String> {
        let Some(when) = when else { return Ok(true) };
        let value = self.value(&Term::Fact(when.clone()), Of::default())?;
        Ok(value != 0)
    }

    /// Variables that a path stands for, one for each number of its first placeholder.
    fn expand(
        &self,
        path: &str,
        term: &Term,
        of: Of,
        all: &mut Vec<(String, Value)>,
    ) -> Result<(), String> {
        let places = [
            ("[cpu]", self.cpus.len()),
            ("[llc]", self.llcs.len()),
            ("[rank]", self.near.len()),
        ];
        let Some((name, count)) = places.into_iter().find(|(name, _)| path.contains(name)) else {
            let number = self.value(term, of)?;
            all.push((path.to_owned(), Value::Number(number.into())));
            return Ok(());
        };
        for at in 0..count {
            let of = match name {
                "[cpu]" => Of {
                    cpu: Some(at),
                    ..of
                },
                "[llc]" => Of {
                    llc: Some(at),
                    ..of
                },
                _ => Of {
                    rank: Some(at),
                    ..of
                },
            };
            let path = path.replacen(name, &format!("[{at}]"), 1);
            self.expand(&path, term, of, all)?;
        }
        Ok(())
    }
}

fn of_cpu(places: &Places, cpu: usize) -> BTreeMap<&'static str, i64> {
    let (core, llc, node) = places[cpu];
    let same = |other: &usize| places[*other].0 == core;
    let sibling = (0..places.len()).filter(same).find(|other| *other != cpu);
    // In a ring.
    let next = (cpu + 1..places.len()).chain(0..=cpu).find(same);
    BTreeMap::from([
        ("cpu", cpu as i64),
        ("core", core.into()),
        ("llc", llc.into()),
        ("node", node.into()),
        ("sibling", sibling.map_or(-1, |other| other as i64)),
        ("next_sibling", next.unwrap_or(cpu) as i64),
        ("capacity", CAPACITY),
    ])
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn read(text: &str) -> Result<Profile, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// The variables that the loader sets on a machine.
    ///
    /// # Errors
    /// A fact that is not known.
    pub(crate) fn variables(&self, facts: &Facts) -> Result<Vec<(String, Value)>, String> {
        let mut all = Vec::new();
        for (path, term) in &self.set {
            facts.expand(path, term, Of::default(), &mut all)?;
        }
        Ok(all)
    }

    /// The names of the flags that the loader sets, as `SCX_OPS_ENQ_LAST`.
    ///
    /// # Errors
    /// A fact that is not known.
    pub(crate) fn flags(&self, facts: &Facts) -> Result<Vec<String>, String> {
        let mut names = self.flags.clone();
        for (when, more) in &self.flags_if {
            if facts.holds(Some(when))? {
                names.extend(more.iter().cloned());
            }
        }
        Ok(names.iter().map(|name| format!("SCX_OPS_{name}")).collect())
    }

    /// The programs that the loader runs.
    ///
    /// # Errors
    /// A fact that is not known.
    pub(crate) fn runs(&self, facts: &Facts) -> Result<Vec<Run>, String> {
        let mut runs = Vec::new();
        for call in &self.call {
            if !facts.holds(call.when.as_ref())? {
                continue;
            }
            let times: Vec<Option<usize>> = match call.each.as_deref() {
                None => vec![None],
                Some("cpu") => (0..facts.cpus.len()).map(Some).collect(),
                Some(each) => return Err(format!("`each` is \"cpu\", not {each:?}")),
            };
            for cpu in times {
                let (mut argument, of) = (
                    Vec::new(),
                    Of {
                        cpu,
                        ..Of::default()
                    },
                );
                for term in &call.arguments {
                    let number = facts.value(term, of)? as i32;
                    argument.extend(number.to_le_bytes());
                }
                let (program, after) = (call.program.clone(), call.after);
                runs.push(Run {
                    program,
                    argument,
                    after,
                });
            }
        }
        Ok(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two cores of two threads under each of two caches, of two nodes.
    fn machine() -> Facts {
        let places: Vec<_> = (0..8).map(|cpu| (cpu / 2, cpu / 4, cpu / 4)).collect();
        Facts::of_places(&places)
    }

    fn set(text: &str) -> Result<Vec<(String, i128)>, String> {
        let profile = Profile::read(&format!("name = \"a\"\nsource = \"b\"\n[set]\n{text}"))?;
        let number = |(path, value)| match value {
            Value::Number(number) => (path, number),
            Value::Bytes(_) => unreachable!("profiles have numbers"),
        };
        Ok(profile
            .variables(&machine())?
            .into_iter()
            .map(number)
            .collect())
    }

    #[test]
    fn facts_are_those_of_the_machine() {
        let table = [
            ("cpus", 8),
            ("last_cpu", 7),
            ("cores", 4),
            ("llcs", 2),
            ("nodes", 2),
            ("smt", 1),
            ("no_smt", 0),
            ("numa", 1),
            ("no_numa", 0),
            ("one_llc", 0),
            ("places", 2),
        ];
        for (fact, value) in table {
            let expected = vec![("x".to_owned(), value)];
            assert_eq!(set(&format!("x = \"{fact}\"")), Ok(expected), "{fact}");
        }
    }

    #[test]
    fn placeholders_stand_for_all_cpus_and_caches() {
        let numbers = |text: &str| -> Vec<i128> {
            let all = set(text).expect("a profile");
            all.into_iter().map(|(_, number)| number).collect()
        };
        assert_eq!(numbers("\"a[cpu]\" = \"llc\""), [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(
            numbers("\"a[cpu]\" = \"sibling\""),
            [1, 0, 3, 2, 5, 4, 7, 6]
        );
        assert_eq!(numbers("\"a[llc]\" = \"node\""), [0, 1]);
        assert_eq!(numbers("\"a[llc][rank]\" = \"near_llc\""), [0, 1, 1, 0]);
        let paths = set("\"a[llc].b[rank]\" = 3").expect("a profile");
        let paths: Vec<String> = paths.into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["a[0].b[0]", "a[0].b[1]", "a[1].b[0]", "a[1].b[1]"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let unknown = set("x = \"colour\"").unwrap_err();
        assert!(unknown.contains("no fact `colour`"), "{unknown}");
        assert!(unknown.contains("last_cpu"), "{unknown}");
        let key = Profile::read("name = \"a\"\nsource = \"b\"\nnumbers = 1").unwrap_err();
        assert!(key.contains("numbers"), "{key}");
    }

    #[test]
    fn a_fact_says_whether_a_program_runs_and_a_flag_is_set() {
        let text = "name = \"a\"\nsource = \"b\"\nflags = [\"ENQ_LAST\"]\n\
                    flags_if = { numa = [\"X\"], no_numa = [\"Y\"] }\n\
                    [[call]]\nprogram = \"p\"\neach = \"cpu\"\narguments = [\"cpu\", -1]\nwhen = \"smt\"\n\
                    [[call]]\nprogram = \"q\"\nwhen = \"no_smt\"\n";
        let profile = Profile::read(text).expect("a profile");
        let flags = profile.flags(&machine());
        assert_eq!(
            flags,
            Ok(vec!["SCX_OPS_ENQ_LAST".into(), "SCX_OPS_X".into()])
        );
        let runs = profile.runs(&machine()).expect("facts");
        assert_eq!(runs.len(), 8);
        assert_eq!(runs[7].argument, [7, 0, 0, 0, 255, 255, 255, 255]);
    }
}
