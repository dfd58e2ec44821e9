//! What is to be measured, and whether that makes sense.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;
use warmq_units::CpuId;

use super::datagram::{LARGEST, SMALLEST};
use super::plan::cells;
use super::policy::Policy;
use crate::error::BenchError;

const RATES: std::ops::RangeInclusive<u32> = 1..=1000;
const RECEIVERS: std::ops::RangeInclusive<u32> = 1..=64;
const REPETITIONS: std::ops::RangeInclusive<u32> = 1..=1000;
const SHORTEST_WORK: Duration = Duration::from_millis(1);
const LONGEST_WORK: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// What lies between sender and receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkKind {
    /// The loopback device.
    Loopback,
    /// A pair of virtual Ethernet devices between two network namespaces of their own.
    Veth,
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LinkKind::Loopback => "loopback",
            LinkKind::Veth => "veth",
        })
    }
}

impl FromStr for LinkKind {
    type Err = String;

    fn from_str(text: &str) -> Result<LinkKind, String> {
        match text {
            "loopback" => Ok(LinkKind::Loopback),
            "veth" => Ok(LinkKind::Veth),
            _ => Err("write loopback or veth".to_owned()),
        }
    }
}

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimplexSettings {
    /// Receivers beside Simplex; the datagrams go to them in turn.
    pub receivers: u32,
    /// Rates in thousand datagrams a second, all receivers together.
    pub kpps: Vec<u32>,
    /// How long Simplex takes when it has the CPU for itself.
    pub work: Duration,
    /// Bytes in a datagram; the thesis sent 64.
    pub payload: u32,
    /// The receivers' policies, compared in turn.
    pub policies: Vec<Policy>,
    /// What lies between sender and receivers.
    pub link: LinkKind,
    /// How often everything is measured.
    pub repetitions: u32,
    /// A command that loads a `sched_ext` scheduler; everything is measured without and with it.
    pub scheduler: Option<String>,
    /// After so long no further measurement begins, and a running one is cut short.
    pub time_limit: Duration,
    /// The CPU of Simplex and the receivers; the last one allowed if `None`.
    pub cpu: Option<CpuId>,
    /// The CPU of the sender; another one, best on another core, if `None`.
    pub sender_cpu: Option<CpuId>,
}

impl Default for SimplexSettings {
    fn default() -> SimplexSettings {
        SimplexSettings {
            receivers: 1,
            kpps: vec![5, 20, 40, 80],
            work: Duration::from_millis(700),
            payload: 64,
            policies: vec![Policy::Other, Policy::Batch],
            link: LinkKind::Loopback,
            repetitions: 3,
            scheduler: None,
            time_limit: Duration::from_secs(300),
            cpu: None,
            sender_cpu: None,
        }
    }
}

impl SimplexSettings {
    /// How many measurements there are, if the time limit leaves out none.
    pub fn measurements(&self) -> usize {
        cells(self, 0).len() * self.repetitions as usize
    }

    /// Checks what can be checked without asking the machine.
    ///
    /// # Errors
    /// [`BenchError::Setting`], naming the first field that makes no sense.
    pub fn check(&self) -> Result<(), BenchError> {
        within("receivers", self.receivers, &RECEIVERS)?;
        some("kpps", &self.kpps)?;
        for kpps in &self.kpps {
            within("kpps", *kpps, &RATES)?;
        }
        some("policies", &self.policies)?;
        let payloads = SMALLEST as u32..=LARGEST as u32;
        within("payload", self.payload, &payloads)?;
        within("repetitions", self.repetitions, &REPETITIONS)?;
        lasting("work", self.work, SHORTEST_WORK, LONGEST_WORK)?;
        lasting("time_limit", self.time_limit, self.work, LONGEST)?;
        match &self.scheduler {
            Some(command) if command.trim().is_empty() => Err(BenchError::setting(
                "scheduler",
                "''",
                "no command",
                "write the command that loads the scheduler, as in --scheduler 'scx_warmq'",
            )),
            _ => Ok(()),
        }
    }
}

fn within(
    field: &'static str,
    value: u32,
    allowed: &std::ops::RangeInclusive<u32>,
) -> Result<(), BenchError> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let (least, most) = (allowed.start(), allowed.end());
    let fix = format!("write {least} to {most}");
    Err(BenchError::setting(field, value, "out of bounds", fix))
}

/// `list` has entries, none of them twice.
fn some<T: PartialEq + fmt::Display>(field: &'static str, list: &[T]) -> Result<(), BenchError> {
    if list.is_empty() {
        return Err(BenchError::setting(
            field,
            "''",
            "nothing to measure",
            "write at least one",
        ));
    }
    for (index, entry) in list.iter().enumerate() {
        if list[..index].contains(entry) {
            return Err(BenchError::setting(
                field,
                entry,
                "there twice",
                "write each once",
            ));
        }
    }
    Ok(())
}

fn lasting(
    field: &'static str,
    value: Duration,
    least: Duration,
    most: Duration,
) -> Result<(), BenchError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let seconds = |time: Duration| time.as_secs_f64().to_string();
    let fix = format!("write {} to {} seconds", seconds(least), seconds(most));
    Err(BenchError::setting(
        field,
        seconds(value),
        "out of bounds",
        fix,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_make_sense() {
        SimplexSettings::default().check().unwrap();
    }

    /// A name, and settings of which that field makes no sense.
    type Wrong = (&'static str, fn(&mut SimplexSettings));

    #[test]
    fn what_makes_no_sense_is_named() {
        let wrong: [Wrong; 11] = [
            ("receivers", |it| it.receivers = 0),
            ("kpps", |it| it.kpps = vec![40, 1001]),
            ("kpps", |it| it.kpps = vec![0]),
            ("kpps", |it| it.kpps = vec![40, 40]),
            ("kpps", |it| it.kpps = Vec::new()),
            ("policies", |it| {
                it.policies = vec![Policy::Batch, Policy::Batch]
            }),
            ("payload", |it| it.payload = SMALLEST as u32 - 1),
            ("repetitions", |it| it.repetitions = 0),
            ("work", |it| it.work = Duration::ZERO),
            ("time_limit", |it| it.time_limit = it.work / 2),
            ("scheduler", |it| it.scheduler = Some(" ".to_owned())),
        ];
        for (name, spoil) in wrong {
            let mut settings = SimplexSettings::default();
            spoil(&mut settings);
            match settings.check() {
                Err(BenchError::Setting { field, .. }) => assert_eq!(field, name),
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}
