//! What the loader of a scheduler does in user space before and after it attaches: a profile,
//! `schedulers/NAME.toml`.
//!
//! ```toml
//! name = "bpfland"                       # of its sched_ext_ops
//! source = "scx_bpfland 1.1.4, src/main.rs"
//! flags = ["ENQ_LAST"]                   # of its sched_ext_ops, beside those of the object
//! programs = ["on_switch"]               # those with ? in their section that it turns on
//! without = ["cpu_release"]              # callbacks that it takes out
//! runs_on = "last_cpu"                   # the CPU that its own thread is bound to
//! [set]                                  # variables: numbers, facts of the machine, or "cpus*3+1"
//! slice_max = 1000000
//! smt_enabled = "smt"
//! "cpu_capacity[cpu]" = "capacity"       # for each CPU; see path.rs for more
//! [set_if.smt]                           # those that it sets only where a fact is not 0
//! threads = 2
//! [resize]                               # how many elements a map or an array of its own has
//! cpu_queues = "cpus"
//! [[update]]                             # entries of maps, of 32-bit numbers
//! map = "topology"
//! each = "cpu"
//! key = ["cpu"]
//! value = ["sibling", "node"]
//! [arena]                                # the arena of scx_arena, with the topology in it
//! task = "task_ctx"                      # the struct that each task has
//! [[call]]                               # a program of kind syscall, with its arguments of 32 bits
//! program = "enable_sibling_cpu"
//! each = "cpu"                           # once for each
//! arguments = ["cpu", "sibling"]
//! when = "smt"
//! [hint]                                 # a prctl by which tasks name their data
//! program = "hear"
//! option = 0x57415251
//! yields_at = 2                          # the answer after which a task yields
//! [[counters]]                           # what it counts, if not all that its code only adds to
//! of = "cpus[cpu].counters"              # a variable, an array map or a part of one; []: of all
//! names = "counter"                      # the enumeration that its elements are numbered by
//! without = ["longest_wait_ns"]          # those that are no counts
//! ```
//!
//! `what` is a sentence for lists, `made_by` the command that makes its program, and
//! `idle_beside_waiting` for how long a CPU may idle beside a task in its queue: the lab's checker
//! holds it to that. `[option.NAME]` is in option.rs.
//!
//! `like = "p2dq"` takes all of that profile, and what this one says beside it. A profile with
//! `refused` says only why the lab cannot play a scheduler.

use std::collections::BTreeMap;

use serde::Deserialize;
use warmq_bpf::{Counter, Entry, Object};
use warmq_config::Setting;
use warmq_trace::{Promise, Queues};
use warmq_units::Duration;

use crate::facts::Facts;
use crate::load::Value;
use crate::option::LoaderOption;
use crate::path::{Of, Path, with_ranges};

/// What a loader does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name in the object's `sched_ext_ops`.
    pub name: String,
    /// Where the loader says so.
    pub source: String,
    /// What it is, in a sentence.
    #[serde(default)]
    pub what: String,
    /// The profile that it is like, but for what it says itself.
    #[serde(default)]
    pub like: Option<String>,
    /// What the lab leaves out of what the loader does, if anything.
    #[serde(default)]
    pub lacks: String,
    /// Why the lab cannot play it, if it cannot: its user space decides while it runs.
    #[serde(default)]
    pub refused: String,
    /// The command that makes its program, if it is one of ours.
    #[serde(default)]
    pub made_by: String,
    /// For how long a CPU may idle beside a task in its queue, if it promises that.
    #[serde(default)]
    idle_beside_waiting: Option<Span>,
    /// What can be set by a name of its own.
    #[serde(default)]
    option: BTreeMap<String, LoaderOption>,
    /// Optional programs (`SEC("?...")`) that it turns on.
    #[serde(default)]
    pub(crate) programs: Vec<String>,
    /// Callbacks of `sched_ext_ops` that it takes out.
    #[serde(default)]
    pub(crate) without: Vec<String>,
    /// Names of `SCX_OPS_...` that it sets.
    #[serde(default)]
    flags: Vec<String>,
    /// Those that it sets only where a fact is not 0.
    #[serde(default)]
    flags_if: BTreeMap<String, Vec<String>>,
    /// The CPU that its own thread is bound to while it loads and attaches.
    #[serde(default)]
    runs_on: Option<Term>,
    /// Variables that it sets before loading.
    #[serde(default)]
    set: BTreeMap<String, Term>,
    /// Those that it sets only where a fact is not 0.
    #[serde(default)]
    set_if: BTreeMap<String, BTreeMap<String, Term>>,
    /// How many elements maps, or arrays in sections of their own, have.
    #[serde(default)]
    resize: BTreeMap<String, Term>,
    /// Entries of maps that it writes before it attaches.
    #[serde(default)]
    update: Vec<Update>,
    /// The arena of scx_arena.
    #[serde(default)]
    pub(crate) arena: Option<Arena>,
    /// Programs that it runs before it attaches.
    #[serde(default)]
    call: Vec<Call>,
    /// How tasks name the data that they use.
    #[serde(default)]
    pub(crate) hint: Option<Hint>,
    /// What it counts; empty: what its code says.
    #[serde(default)]
    pub(crate) counters: Vec<Counters>,
}

/// Counters of an object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counters {
    /// Where they are: a path of [`warmq_bpf::Object::counters`].
    of: String,
    /// The enumeration that has their names.
    #[serde(default)]
    names: Option<String>,
    /// The names of those that are none: greatest values, states.
    #[serde(default)]
    without: Vec<String>,
}

impl Counters {
    pub(crate) fn find(&self, object: &Object) -> Vec<Counter> {
        let mut found = object.counters(&self.of, self.names.as_deref());
        found.retain(|counter| !self.without.contains(&counter.name));
        found
    }
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

/// A time, as it is written: `"50ms"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct Span(Duration);

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Span, String> {
        let read = text.parse().map(Span);
        read.map_err(|_| format!("\"{text}\" is no time: write one as in \"50ms\""))
    }
}

/// A number, or a sum of products of numbers and facts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Term {
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

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Update {
    map: String,
    /// `cpu`: once for each CPU. Else once.
    #[serde(default)]
    each: Option<String>,
    key: Vec<Term>,
    value: Vec<Term>,
}

/// The arena of scx_arena, which holds what each task has.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arena {
    /// The name of a task's struct.
    pub(crate) task: String,
}

/// A program of kind syscall, and the bytes of its argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) program: String,
    pub(crate) argument: Vec<u8>,
    pub(crate) after: bool,
    /// Words that are written before to where `arena_alloc_mask` says; the address of these is the
    /// first number of the argument.
    pub(crate) mask: Option<Vec<u64>>,
}

impl Run {
    /// The same for a kernel's loader, which knows no masks.
    pub(crate) fn plain(self) -> warmq_bpf::Run {
        let Run {
            program, argument, ..
        } = self;
        warmq_bpf::Run { program, argument }
    }
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn read(text: &str) -> Result<Profile, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// Its options, as they are set and described.
    pub fn settings(&self) -> Vec<Setting> {
        let options = self.option.iter();
        options
            .map(|(name, option)| option.setting(name, &self.source))
            .collect()
    }

    /// Whether it has this option.
    pub(crate) fn has_option(&self, name: &str) -> bool {
        self.option.contains_key(name)
    }

    /// What it promises about CPUs that idle beside tasks.
    pub fn promise(&self) -> Promise {
        match self.idle_beside_waiting {
            Some(Span(patience)) => Promise {
                patience,
                queues: Queues::PerCpu,
            },
            None => Promise {
                patience: Duration(u64::MAX),
                queues: Queues::Shared,
            },
        }
    }

    /// The variables that the loader sets on a machine, with these options chosen.
    ///
    /// # Errors
    /// A fact that is not known; an option that cannot be so.
    pub(crate) fn variables(
        &self,
        facts: &Facts,
        chosen: &[(String, Value)],
    ) -> Result<Vec<(String, Value)>, String> {
        let mut all = Vec::new();
        let mut sets = vec![&self.set];
        for (when, more) in &self.set_if {
            if facts.holds(Some(when))? {
                sets.push(more);
            }
        }
        for (path, term) in sets.into_iter().flatten() {
            set(facts, path, term, &Of::new(), &mut all)?;
        }
        for (name, option) in &self.option {
            self.choose(facts, (name, option), chosen, &mut all)?;
        }
        Ok(all)
    }

    /// The variables that an option sets, with its value among `chosen`.
    fn choose(
        &self,
        facts: &Facts,
        (name, option): (&str, &LoaderOption),
        chosen: &[(String, Value)],
        all: &mut Vec<(String, Value)>,
    ) -> Result<(), String> {
        let value = value_of(name, option, chosen);
        if let Some((most, bound)) = self.bound(option, chosen)
            && LoaderOption::exceeds(&value, &bound)
        {
            let (value, bound) = (option.shown(&value), option.shown(&bound));
            return Err(format!(
                "{name} = {value} is more than {most} = {bound}: lower {name}, or raise {most}"
            ));
        }
        let (sets, of) = option
            .sets(&value)
            .map_err(|why| format!("{name}: {why}"))?;
        sets.iter()
            .try_for_each(|(path, term)| set(facts, path, term, &of, all))
    }

    /// The option that another does not exceed, and its value among `chosen`.
    fn bound<'o>(
        &self,
        option: &'o LoaderOption,
        chosen: &[(String, Value)],
    ) -> Option<(&'o str, Value)> {
        let most = option.no_more_than.as_deref()?;
        Some((most, value_of(most, self.option.get(most)?, chosen)))
    }

    /// How many elements the loader gives to maps and arrays of their own.
    ///
    /// # Errors
    /// A fact that is not known, or a number that does not fit.
    pub(crate) fn sizes(&self, facts: &Facts) -> Result<Vec<(String, u32)>, String> {
        let sizes = self.resize.iter().map(|(name, term)| {
            let size = term.value(facts, &Of::new())?;
            let fits = u32::try_from(size);
            let size = fits.map_err(|_| format!("{name} cannot have {size} elements"))?;
            Ok((name.clone(), size))
        });
        sizes.collect()
    }

    /// The names of the flags that the loader sets, as `SCX_OPS_ENQ_LAST`.
    ///
    /// # Errors
    /// A fact that is not known.
    pub(crate) fn flags(&self, facts: &Facts) -> Result<Vec<String>, String> {
        let mut names = self.flags.clone();
        for (when, more) in &self.flags_if {
            if facts.holds(Some(when.as_str()))? {
                names.extend(more.iter().cloned());
            }
        }
        Ok(names.iter().map(|name| format!("SCX_OPS_{name}")).collect())
    }

    /// The CPU that its own thread is bound to.
    ///
    /// # Errors
    /// A fact that is not known, or no CPU.
    pub(crate) fn cpu(&self, facts: &Facts) -> Result<Option<u16>, String> {
        let Some(term) = &self.runs_on else {
            return Ok(None);
        };
        let cpu = term.value(facts, &Of::new())?;
        let cpu = u16::try_from(cpu)
            .ok()
            .filter(|cpu| usize::from(*cpu) < facts.cpus());
        cpu.map(Some)
            .ok_or_else(|| "it runs on a CPU that is not there".to_owned())
    }

    /// The entries of maps that the loader writes.
    ///
    /// # Errors
    /// A fact that is not known.
    pub(crate) fn entries(&self, facts: &Facts) -> Result<Vec<Entry>, String> {
        let mut entries = Vec::new();
        for update in &self.update {
            for of in times(update.each.as_deref(), facts)? {
                entries.push(Entry {
                    map: update.map.clone(),
                    key: bytes(&update.key, facts, &of)?,
                    value: bytes(&update.value, facts, &of)?,
                });
            }
        }
        Ok(entries)
    }

    /// What `base` does, and what this profile says beside it.
    #[must_use]
    pub fn over(self, base: Profile) -> Profile {
        Profile {
            flags: [base.flags, self.flags].concat(),
            programs: [base.programs, self.programs].concat(),
            without: [base.without, self.without].concat(),
            set: base.set.into_iter().chain(self.set).collect(),
            set_if: base.set_if.into_iter().chain(self.set_if).collect(),
            resize: base.resize.into_iter().chain(self.resize).collect(),
            flags_if: base.flags_if.into_iter().chain(self.flags_if).collect(),
            update: [base.update, self.update].concat(),
            call: [base.call, self.call].concat(),
            counters: [base.counters, self.counters].concat(),
            arena: self.arena.or(base.arena),
            hint: self.hint.or(base.hint),
            runs_on: self.runs_on.or(base.runs_on),
            option: base.option.into_iter().chain(self.option).collect(),
            ..self
        }
    }

    /// The programs that the loader runs.
    ///
    /// # Errors
    /// A fact that is not known.
    pub(crate) fn runs(&self, facts: &Facts) -> Result<Vec<Run>, String> {
        let mut runs = Vec::new();
        for call in &self.call {
            if facts.holds(call.when.as_deref())? {
                call.expand(facts, &mut runs)?;
            }
        }
        Ok(runs)
    }
}

/// A number, or a fact.
fn word_value(word: &str, facts: &Facts, of: &Of) -> Result<i128, String> {
    match word.parse::<i64>() {
        Ok(number) => Ok(number.into()),
        Err(_) => facts.get(word, of),
    }
}

impl Term {
    fn value(&self, facts: &Facts, of: &Of) -> Result<i128, String> {
        match self {
            Term::Number(number) => Ok((*number).into()),
            Term::Flag(flag) => Ok((*flag).into()),
            Term::Fact(sum) => sum.split('+').try_fold(0, |all, product| {
                let words = product
                    .split('*')
                    .map(|word| word_value(word.trim(), facts, of));
                let product = words.reduce(|all, one| Ok(all?.saturating_mul(one?)));
                Ok(all + product.unwrap_or(Ok(0))?)
            }),
        }
    }
}

/// Of what something is done once each: `cpu`, or nothing.
fn times(each: Option<&str>, facts: &Facts) -> Result<Vec<Of>, String> {
    match each {
        None => Ok(vec![Of::new()]),
        Some("cpu") => {
            let cpus = 0..facts.cpus();
            Ok(cpus.map(|cpu| Of::from([("cpu", cpu)])).collect())
        }
        Some(each) => Err(format!("`each` is \"cpu\", not {each:?}")),
    }
}

/// Numbers of 32 bits, one after another.
fn bytes(terms: &[Term], facts: &Facts, of: &Of) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for term in terms {
        bytes.extend((term.value(facts, of)? as i32).to_le_bytes());
    }
    Ok(bytes)
}

impl Call {
    fn expand(&self, facts: &Facts, runs: &mut Vec<Run>) -> Result<(), String> {
        for of in times(self.each.as_deref(), facts)? {
            runs.push(Run {
                program: self.program.clone(),
                argument: bytes(&self.arguments, facts, &of)?,
                after: self.after,
                mask: None,
            });
        }
        Ok(())
    }
}

/// The value that was chosen last for an option; else its default.
fn value_of(name: &str, option: &LoaderOption, chosen: &[(String, Value)]) -> Value {
    let found = chosen.iter().rfind(|(other, _)| other == name);
    found.map_or_else(|| option.default(), |(_, value)| value.clone())
}

/// Variables that a path with ranges stands for.
fn set(
    facts: &Facts,
    path: &str,
    term: &Term,
    of: &Of,
    all: &mut Vec<(String, Value)>,
) -> Result<(), String> {
    with_ranges(path)
        .iter()
        .try_for_each(|path| expand(facts, &Path::read(path), term, of, all))
}

/// Variables that a path stands for, one for each number of its first placeholder.
fn expand(
    facts: &Facts,
    path: &Path<'_>,
    term: &Term,
    of: &Of,
    all: &mut Vec<(String, Value)>,
) -> Result<(), String> {
    let Some(open) = path.open(of) else {
        let number = term.value(facts, of)?;
        all.push((path.with(of)?, Value::Number(number)));
        return Ok(());
    };
    for at in 0..facts.count(open, of) {
        let mut of = of.clone();
        of.insert(open, at);
        expand(facts, path, term, &of, all)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Place;

    /// Two cores of two threads under each of two caches, of two nodes.
    fn machine() -> Facts {
        let place = |cpu: u16| Place {
            core: cpu / 2,
            llc: cpu / 4,
            node: cpu / 4,
            ..Place::default()
        };
        Facts::of_places((0..8).map(place).collect())
    }

    fn set(text: &str) -> Result<Vec<(String, i128)>, String> {
        let profile = Profile::read(&format!("name = \"a\"\nsource = \"b\"\n[set]\n{text}"))?;
        let number = |(path, value)| match value {
            Value::Number(number) => (path, number),
            other => unreachable!("profiles have numbers, not {other:?}"),
        };
        Ok(profile
            .variables(&machine(), &[])?
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
            ("llcs_log2", 1),
            ("llc_quarters", 1),
            ("orders", 2),
            ("capacities", 8192),
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
    fn values_are_sums_of_products_and_may_depend_on_a_fact() {
        let table = [
            ("a = \"cpus*3\"", 24),
            ("a = \"cpus * llcs + 5\"", 21),
            ("a = \"7\"", 7),
            ("a = 1\n[set_if.smt]\na = 2", 2),
            ("a = 1\n[set_if.no_smt]\na = 2", 1),
        ];
        for (text, expected) in table {
            let all = set(text).expect("a profile");
            assert_eq!(
                all.last().map(|(_, value)| *value),
                Some(expected),
                "{text}"
            );
        }
        let wrong = set("a = 1\n[set_if.colour]\na = 2").unwrap_err();
        assert!(wrong.contains("no fact `colour`"), "{wrong}");
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
    fn a_profile_over_another_has_both_and_its_own_values() {
        let read =
            |text: &str| Profile::read(&format!("source = \"b\"\n{text}")).expect("a profile");
        let base =
            read("name = \"a\"\nflags = [\"X\"]\n[set]\none = 1\ntwo = 2\n[arena]\ntask = \"t\"");
        let own = read("name = \"c\"\nlike = \"a\"\nflags = [\"Y\"]\n[set]\ntwo = 3\n");
        let both = own.over(base);
        assert_eq!(both.name, "c");
        let flags = both.flags(&machine());
        assert_eq!(flags, Ok(vec!["SCX_OPS_X".into(), "SCX_OPS_Y".into()]));
        let values = both.variables(&machine(), &[]).expect("facts");
        let number = |number| Value::Number(number);
        assert_eq!(
            values,
            [("one".into(), number(1)), ("two".into(), number(3))]
        );
        assert!(both.arena.is_some());
    }

    #[test]
    fn entries_of_maps_are_numbers_of_32_bits() {
        let text = "name = \"a\"\nsource = \"b\"\n[[update]]\nmap = \"m\"\neach = \"cpu\"\n\
                    key = [\"cpu\"]\nvalue = [\"sibling\", -1]\n";
        let profile = Profile::read(text).expect("a profile");
        let entries = profile.entries(&machine()).expect("facts");
        assert_eq!(entries.len(), 8);
        assert_eq!(entries[2].key, [2, 0, 0, 0]);
        assert_eq!(entries[2].value, [3, 0, 0, 0, 255, 255, 255, 255]);
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
