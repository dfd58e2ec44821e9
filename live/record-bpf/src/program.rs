//! The BPF program: opened, fitted to this kernel, loaded and attached.

use std::fs::{self, File};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use libbpf_rs::btf::{Btf, types::Typedef};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject};

use crate::bpf_skel::{BpfSkel, BpfSkelBuilder};
use crate::refusal::Refusal;
use crate::table::{self, EVENTS};

/// Where a kernel describes its types.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// The loaded program.
pub struct Program<'obj> {
    pub skel: BpfSkel<'obj>,
    // While one lives, its tracepoint calls its program.
    links: Vec<Link>,
}

impl<'obj> Program<'obj> {
    /// Loads the programs of those of `wanted` that this kernel has, and says of the others why
    /// they are missing. A ring has eight times two to the power of `step_shift` bytes.
    ///
    /// # Errors
    /// A kernel without BTF, or a process that may not use BPF.
    pub fn load(
        object: &'obj mut MaybeUninit<OpenObject>,
        wanted: &[&str],
        step_shift: u32,
    ) -> Result<(Program<'obj>, Vec<String>), Refusal> {
        File::open(BTF).map_err(|source| Refusal::NoBtf {
            path: BTF.into(),
            source,
        })?;
        let kernel = Btf::from_vmlinux().map_err(Refusal::of_bpf("read the kernel's BTF"))?;
        let opened = BpfSkelBuilder::default().open(object);
        let mut opened = opened.map_err(Refusal::of_bpf("open the programs"))?;
        let mut missing = Vec::new();
        for mut program in opened.open_object_mut().progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            let event = EVENTS.iter().find(|event| event.name == name);
            let path = event.map(table::Event::path);
            let there = kernel.type_by_name::<Typedef<'_>>(&format!("btf_trace_{name}"));
            // Those that write nothing count interrupts.
            let wants = path.as_deref().is_none_or(|path| wanted.contains(&path));
            program.set_autoload(wants && there.is_some());
            if let Some(path) = path.filter(|_| wants && there.is_none()) {
                missing.push(format!("{path}: this kernel has no such event"));
            }
        }
        if let Some(settings) = opened.maps.rodata_data.as_mut() {
            settings.step_shift = step_shift;
        }
        let skel = opened
            .load()
            .map_err(Refusal::of_bpf("load the programs"))?;
        let links = Vec::new();
        Ok((Program { skel, links }, missing))
    }

    /// Attaches what was loaded.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn attach(&mut self) -> Result<(), Refusal> {
        let programs = self.skel.object_mut().progs_mut();
        for program in programs.filter(|program| program.autoload()) {
            let link = program.attach();
            self.links
                .push(link.map_err(Refusal::of_bpf("attach to an event"))?);
        }
        Ok(())
    }

    /// Begins or ends recording, for all events at once.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn record(&self, on: bool) -> Result<(), Refusal> {
        let state = &self.skel.maps.bss;
        let mut value = vec![0; state.value_size() as usize];
        // There is nothing else in it.
        value[0] = u8::from(on);
        let done = state.update(&0_u32.to_ne_bytes(), &value, MapFlags::ANY);
        done.map_err(Refusal::of_bpf("begin or end recording"))
    }

    /// The names and formats of the events that are attached.
    pub fn formats(&self) -> Vec<(String, String)> {
        let programs = self.skel.object().progs();
        let programs = programs.filter(|program| program.autoload());
        let names: Vec<_> = programs.map(|program| program.name().to_owned()).collect();
        let events = EVENTS.iter().enumerate();
        events
            .filter(|(_, event)| names.iter().any(|name| *name == event.name))
            .map(|(index, event)| (event.path(), event.format(table::id(index))))
            .collect()
    }

    /// What each CPU lost since its last event, and what was lost of events that came while the
    /// same kind was being written.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn lost(&self) -> Result<(Vec<u64>, Vec<String>), Refusal> {
        let counts = self
            .skel
            .maps
            .cpus
            .lookup_percpu(&0_u32.to_ne_bytes(), MapFlags::ANY);
        let counts = counts.map_err(Refusal::of_bpf("read how many events were lost"))?;
        // The first of what is known of a CPU.
        let count = |cpu: Vec<u8>| cpu.first_chunk().copied().map_or(0, u64::from_ne_bytes);
        let counts = counts.unwrap_or_default().into_iter().map(count).collect();
        let mut nested = Vec::new();
        let programs = self.skel.object().progs();
        for program in programs.filter(|program| program.autoload()) {
            let missed = missed(program.as_fd().as_raw_fd());
            if missed > 0 {
                let path = path_of(&program.name().to_string_lossy());
                let why = "of them came while another was being written";
                nested.push(format!("{path}: {missed} {why}"));
            }
        }
        Ok((counts, nested))
    }
}

/// `SYSTEM/NAME` of an event.
fn path_of(name: &str) -> String {
    let event = EVENTS.iter().find(|event| event.name == name);
    event.map_or_else(|| name.to_owned(), table::Event::path)
}

/// How often a program was not run because it ran already on that CPU.
fn missed(program: i32) -> u64 {
    let path = format!("/proc/self/fdinfo/{program}");
    let text = fs::read_to_string(Path::new(&path)).unwrap_or_default();
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("recursion_misses:"));
    line.and_then(|line| line.trim().parse().ok()).unwrap_or(0)
}
