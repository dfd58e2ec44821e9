//! Which CPUs are used, and how busy other programs keep them.

use std::thread;
use std::time::{Duration, Instant};

use warmq_units::CpuId;

use crate::compare::busy_s;
use crate::error::BenchError;
use crate::thread::{allowed_cpus, check_allowed};

/// How long the CPUs are watched before the measurement.
const WATCHED: Duration = Duration::from_millis(300);

/// The two CPUs of a measurement.
///
/// Invariant: they differ, and this program may run on both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// The CPU of Simplex and the receivers.
    pub receiver: CpuId,
    /// The CPU of the sender.
    pub sender: CpuId,
}

impl Cpus {
    /// The CPUs that were asked for; by default the last one allowed, and one that shares no core
    /// with it.
    ///
    /// # Errors
    /// [`BenchError::Setting`] for a CPU that is not allowed; [`BenchError::System`] if there is
    /// only one.
    pub fn choose(receiver: Option<CpuId>, sender: Option<CpuId>) -> Result<Cpus, BenchError> {
        let allowed = allowed_cpus()?;
        check_allowed("cpu", receiver, &allowed)?;
        check_allowed("sender_cpu", sender, &allowed)?;
        let others =
            |not: Option<CpuId>| allowed.iter().copied().filter(move |it| Some(*it) != not);
        let receiver = receiver.or_else(|| others(sender).next_back());
        let distant = |it: &CpuId| !receiver.is_some_and(|cpu| siblings(cpu).contains(it));
        let sender = sender.or_else(|| {
            others(receiver)
                .find(distant)
                .or_else(|| others(receiver).next())
        });
        match (receiver, sender) {
            (Some(receiver), Some(sender)) if receiver == sender => {
                let fix = "write another one: the sender needs its own CPU";
                Err(BenchError::setting(
                    "sender_cpu",
                    sender.0,
                    "it is also the receivers' CPU",
                    fix,
                ))
            }
            (Some(receiver), Some(sender)) => Ok(Cpus { receiver, sender }),
            _ => Err(BenchError::System {
                action: "give the sender its own CPU".to_owned(),
                source: std::io::Error::other("this program may use only one CPU"),
                fix: "allow it two (see taskset -c, the CPU set of the container, or -smp 2 of QEMU)",
            }),
        }
    }

    /// Whether both are threads of one core, which slow each other down.
    pub fn share_a_core(self) -> bool {
        siblings(self.receiver).contains(&self.sender)
    }
}

/// The threads of `cpu`'s core, including itself; none if the kernel does not tell.
fn siblings(cpu: CpuId) -> Vec<CpuId> {
    warmq_host::siblings("/".as_ref(), cpu).unwrap_or_default()
}

/// How busy other programs keep the busier of `cpus`, as a share of a moment of watching. `None` if
/// the kernel does not tell.
pub fn busy(cpus: Cpus) -> Option<f64> {
    let both = [cpus.receiver, cpus.sender];
    let (start, before) = (Instant::now(), both.map(busy_s));
    thread::sleep(WATCHED);
    let (watched_s, after) = (start.elapsed().as_secs_f64(), both.map(busy_s));
    let shares = before.into_iter().zip(after);
    let shares = shares.map(|(before, after)| Some((after? - before?) / watched_s));
    let shares: Option<Vec<f64>> = shares.collect();
    shares?.into_iter().reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_is_not_there_is_named_with_those_that_are() {
        let error = Cpus::choose(Some(CpuId(9999)), None)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("cpu = 9999") && error.contains("write one of"),
            "{error}"
        );
    }
}
