//! The guest's machine, as QEMU is told to make it.

use crate::VmError;

/// CPUs, caches and memory of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hardware {
    pub cpus: u32,
    pub llcs: u32,
    pub memory_mib: u32,
    /// Let the guest's time be its count of instructions.
    pub instructions: bool,
}

/// More CPUs than this are no use under software emulation, and QEMU's usual machine has no more.
const MOST_CPUS: u32 = 255;
/// With less, Debian's kernel and busybox do not start.
const LEAST_MEMORY_MIB: u32 = 256;

impl Hardware {
    /// # Errors
    /// When no such machine can be made.
    pub(crate) fn check(&self) -> Result<(), VmError> {
        let wrong = |option, value: u32, problem: &str, mend: &str| {
            Err(VmError::setting(option, value, problem, mend))
        };
        if !(1..=MOST_CPUS).contains(&self.cpus) {
            let mend = format!("give 1 to {MOST_CPUS}");
            return wrong("cpus", self.cpus, "no such machine can be made", &mend);
        }
        if self.llcs == 0 || !self.cpus.is_multiple_of(self.llcs) {
            let problem = format!("{} CPUs cannot be shared out evenly", self.cpus);
            return wrong("llcs", self.llcs, &problem, &self.fitting_llcs());
        }
        if self.memory_mib < LEAST_MEMORY_MIB {
            let mend = format!("give {LEAST_MEMORY_MIB} or more");
            return wrong("memory", self.memory_mib, "too little to boot in", &mend);
        }
        if self.instructions && self.cpus != 1 {
            let problem = "instructions can be counted on a single CPU only";
            return wrong(
                "cpus",
                self.cpus,
                problem,
                "leave out --cpus or --instructions",
            );
        }
        Ok(())
    }

    fn fitting_llcs(&self) -> String {
        let fits = (1..=self.cpus).filter(|llcs| self.cpus.is_multiple_of(*llcs));
        let list: Vec<String> = fits.map(|llcs| llcs.to_string()).collect();
        format!("give one of {}", list.join(", "))
    }

    /// A socket a last-level cache: that is how QEMU shares them out.
    pub(crate) fn options(&self) -> Vec<String> {
        let Hardware {
            cpus,
            llcs,
            memory_mib,
            ..
        } = self;
        let smp = format!("{cpus},sockets={llcs},cores={},threads=1", cpus / llcs);
        let memory = memory_mib.to_string();
        let mut options = vec!["-cpu", "max,l3-cache=on", "-smp", &smp, "-m", &memory];
        options.extend(if self.instructions {
            [
                "-accel",
                "tcg,thread=single",
                "-icount",
                "shift=0,sleep=off",
            ]
            .as_slice()
        } else {
            ["-accel", "tcg,thread=multi"].as_slice()
        });
        options.into_iter().map(str::to_owned).collect()
    }

    /// What the kernel has to be told about such a machine.
    ///
    /// Multi-threaded emulation cannot change code under another CPU's feet; the clock source that
    /// would make the kernel do so is kept out by `tsc=unstable`.
    pub(crate) fn kernel_arguments(&self) -> &'static str {
        if self.instructions {
            ""
        } else {
            "tsc=unstable "
        }
    }
}
