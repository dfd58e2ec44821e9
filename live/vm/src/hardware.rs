//! The guest's machine, as options of QEMU.

use crate::VmError;

/// CPUs, caches and memory of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hardware {
    /// CPUs. Where instructions are counted they take turns, and all count.
    pub cpus: u32,
    /// Last-level caches, each for the same number of CPUs.
    pub llcs: u32,
    /// CPUs of a core, the same everywhere; those of a core have successive numbers.
    pub threads_per_core: u32,
    /// Memory. The guest's files are in it.
    pub memory_mib: u32,
    /// Time in the guest is a count of its instructions, each of so many nanoseconds (a power of
    /// two, 1 to 1024), repeatable to 0.1 %. It depends on the work alone and not on this machine.
    pub instructions: Option<u32>,
}

impl Default for Hardware {
    /// Two CPUs with one last-level cache, 1 GiB of memory.
    fn default() -> Hardware {
        Hardware {
            cpus: 2,
            llcs: 1,
            threads_per_core: 1,
            memory_mib: 1024,
            instructions: None,
        }
    }
}

/// QEMU's usual machine has no more CPUs, and more are of no use under software emulation.
const MOST_CPUS: u32 = 255;
/// Debian's kernel and busybox do not start with less.
const LEAST_MEMORY_MIB: u32 = 256;

/// QEMU's icount shift goes to 10.
const LONGEST_INSTRUCTION_NS: u32 = 1024;

impl Hardware {
    /// Whether such a machine can be made.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), VmError> {
        let wrong = |option, value: u32, problem: &str, help: &str| {
            Err(VmError::setting(option, value, problem, help))
        };
        if !(1..=MOST_CPUS).contains(&self.cpus) {
            let help = format!("give 1 to {MOST_CPUS}");
            return wrong(
                "cpus",
                self.cpus,
                "no machine can have that many CPUs",
                &help,
            );
        }
        if self.llcs == 0 || !self.cpus.is_multiple_of(self.llcs) {
            let problem = format!("{} CPUs cannot be divided evenly", self.cpus);
            return wrong("llcs", self.llcs, &problem, &self.fitting_llcs());
        }
        let (of_llc, threads) = (self.cpus / self.llcs, self.threads_per_core);
        if threads == 0 || !of_llc.is_multiple_of(threads) {
            let problem = format!("the {of_llc} CPUs of a cache cannot be divided into such cores");
            return wrong("threads", threads, &problem, "give 1, or a divisor of them");
        }
        if self.memory_mib < LEAST_MEMORY_MIB {
            let help = format!("give {LEAST_MEMORY_MIB} or more");
            return wrong(
                "memory",
                self.memory_mib,
                "this is too little to boot",
                &help,
            );
        }
        match self.instructions {
            Some(ns) if !ns.is_power_of_two() || ns > LONGEST_INSTRUCTION_NS => {
                let help = format!("give a power of two from 1 to {LONGEST_INSTRUCTION_NS}");
                wrong(
                    "instructions",
                    ns,
                    "QEMU only counts in powers of two",
                    &help,
                )
            }
            _ => Ok(()),
        }
    }

    fn fitting_llcs(&self) -> String {
        let fits = (1..=self.cpus).filter(|llcs| self.cpus.is_multiple_of(*llcs));
        let list: Vec<String> = fits.map(|llcs| llcs.to_string()).collect();
        format!("give one of {}", list.join(", "))
    }

    /// One socket per last-level cache, because QEMU gives each socket one.
    pub(crate) fn options(&self) -> Vec<String> {
        let Hardware {
            cpus,
            llcs,
            threads_per_core: threads,
            memory_mib,
            ..
        } = self;
        let cores = cpus / llcs / threads;
        let smp = format!("{cpus},sockets={llcs},cores={cores},threads={threads}");
        let memory = memory_mib.to_string();
        // Without topoext a CPU of AMD's family has no threads.
        let cpu = match threads {
            1 => "max,l3-cache=on",
            _ => "max,l3-cache=on,topoext=on",
        };
        let mut options = vec!["-cpu", cpu, "-smp", &smp, "-m", &memory];
        let count = self
            .instructions
            .map(|ns| format!("shift={},sleep=off", ns.trailing_zeros()));
        options.extend(match &count {
            Some(count) => vec!["-accel", "tcg,thread=single", "-icount", count],
            None => vec!["-accel", "tcg,thread=multi"],
        });
        options.into_iter().map(str::to_owned).collect()
    }

    /// Options of the kernel's command line that such a machine needs.
    ///
    /// Multi-threaded emulation cannot change code that another CPU is executing. `tsc=unstable`
    /// excludes the clock source that would make the kernel do that.
    pub(crate) fn kernel_arguments(&self) -> &'static str {
        if self.instructions.is_some() {
            ""
        } else {
            "tsc=unstable "
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hardware(cpus: u32, llcs: u32) -> Hardware {
        Hardware {
            cpus,
            llcs,
            ..Hardware::default()
        }
    }

    fn threads(cpus: u32, threads_per_core: u32) -> Hardware {
        Hardware {
            threads_per_core,
            ..hardware(cpus, 1)
        }
    }

    #[test]
    fn a_core_may_have_threads() {
        let options = threads(4, 2).options().join(" ");
        assert!(
            options.contains("4,sockets=1,cores=2,threads=2"),
            "{options}"
        );
        assert!(options.contains("topoext=on"), "{options}");
    }

    #[test]
    fn each_last_level_cache_is_a_socket_with_its_share_of_the_cpus() {
        for (cpus, llcs, smp) in [
            (1, 1, "1,sockets=1,cores=1,threads=1"),
            (8, 4, "8,sockets=4,cores=2,threads=1"),
            (6, 1, "6,sockets=1,cores=6,threads=1"),
            (3, 3, "3,sockets=3,cores=1,threads=1"),
        ] {
            let hardware = hardware(cpus, llcs);
            hardware.check().unwrap();
            assert!(
                hardware.options().contains(&smp.to_owned()),
                "{:?}",
                hardware.options()
            );
        }
    }

    #[test]
    fn instructions_are_counted_on_one_thread_with_the_clock_that_they_make() {
        let counting = Hardware {
            instructions: Some(1),
            ..hardware(1, 1)
        };
        counting.check().unwrap();
        let options = counting.options().join(" ");
        assert!(options.contains("thread=single") && options.contains("-icount shift=0,sleep=off"));
        assert_eq!(counting.kernel_arguments(), "");
        assert_eq!(hardware(2, 1).kernel_arguments(), "tsc=unstable ");
    }

    #[test]
    fn what_cannot_be_made_is_refused_with_what_can() {
        let refused = |hardware: Hardware| hardware.check().unwrap_err().to_string();
        assert_eq!(
            refused(hardware(8, 3)),
            "--llcs 3: 8 CPUs cannot be divided evenly; give one of 1, 2, 4, 8"
        );
        for (hardware, option) in [
            (hardware(0, 1), "--cpus 0"),
            (hardware(256, 1), "--cpus 256"),
            (hardware(4, 0), "--llcs 0"),
            (hardware(2, 4), "--llcs 4"),
            (threads(4, 3), "--threads 3"),
            (threads(4, 0), "--threads 0"),
            (
                Hardware {
                    memory_mib: 64,
                    ..hardware(1, 1)
                },
                "--memory 64",
            ),
            (
                Hardware {
                    instructions: Some(3),
                    ..hardware(2, 1)
                },
                "--instructions 3",
            ),
        ] {
            let said = refused(hardware);
            assert!(said.starts_with(option) && said.contains("; "), "{said}");
        }
    }
}
