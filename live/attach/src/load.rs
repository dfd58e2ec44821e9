//! A scheduler that is attached.

use libbpf_rs::{
    Link, MapCore as _, MapFlags, MapType, Object, ObjectBuilder, ProgramInput, ProgramType,
};
use rustix::thread::{CpuSet, sched_setaffinity};
use warmq_bpf::{Entry, Package, Run};

use crate::AttachError;
use crate::shape::shape;

/// A scheduler for as long as this is kept.
pub struct Attached {
    _links: Vec<Link>,
    _object: Object,
}

impl Attached {
    /// Does all that a loader does.
    ///
    /// # Errors
    /// What is refused, and by whom.
    pub fn new(package: &Package<'_>) -> Result<Attached, AttachError> {
        let loading = &package.loading;
        if let Some(cpu) = loading.cpu {
            bind(cpu)?;
        }
        let opened = ObjectBuilder::default()
            .name("scheduler")
            .and_then(|builder| builder.open_memory(package.object));
        let mut opened = opened.map_err(AttachError::refused("the object is refused"))?;
        shape(&mut opened, loading)?;
        let loaded = opened.load();
        let mut object = loaded.map_err(AttachError::refused("the object is refused"))?;
        for entry in &loading.entries {
            update(&object, entry)?;
        }
        for run in &loading.before {
            play(&object, run)?;
        }
        let mut links = at_events(&object)?;
        links.extend(callbacks(&mut object)?);
        for run in &loading.after {
            play(&object, run)?;
        }
        Ok(Attached {
            _links: links,
            _object: object,
        })
    }
}

fn bind(cpu: u16) -> Result<(), AttachError> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu.into());
    let bound = sched_setaffinity(None, &cpus);
    bound.map_err(AttachError::system(format!("run on CPU {cpu}")))
}

fn update(object: &Object, entry: &Entry) -> Result<(), AttachError> {
    let name = &entry.map;
    let map = object.maps().find(|map| map.name() == name.as_str());
    let map = map.ok_or_else(|| AttachError::File(format!("the object has no map {name}")))?;
    let updated = map.update(&entry.key, &entry.value, MapFlags::ANY);
    updated.map_err(AttachError::refused(format!("an entry of {name}")))
}

/// Runs a program of kind syscall.
fn play(object: &Object, run: &Run) -> Result<(), AttachError> {
    let name = &run.program;
    let found = object.progs_mut().find(|one| one.name() == name.as_str());
    let program = found.ok_or_else(|| AttachError::File(format!("there is no program {name}")))?;
    let mut argument = run.argument.clone();
    let input = ProgramInput {
        context_in: (!argument.is_empty()).then_some(&mut argument[..]),
        ..ProgramInput::default()
    };
    let ended = program.test_run(input);
    let ended = ended.map_err(AttachError::refused(format!("the program {name}")))?;
    match ended.return_value as i32 {
        0 => Ok(()),
        status => Err(AttachError::Run {
            program: name.clone(),
            status,
        }),
    }
}

/// Attaches programs at events of the kernel.
fn at_events(object: &Object) -> Result<Vec<Link>, AttachError> {
    let programs = object.progs_mut().filter(|program| {
        let called = [ProgramType::StructOps, ProgramType::Syscall];
        program.autoload() && !called.contains(&program.prog_type())
    });
    let links = programs.map(|program| {
        let what = format!("the program {}", program.name().to_string_lossy());
        program.attach().map_err(AttachError::refused(what))
    });
    links.collect()
}

/// Attaches the callbacks, by which the scheduler takes over.
fn callbacks(object: &mut Object) -> Result<Vec<Link>, AttachError> {
    let maps = object.maps_mut();
    let callbacks = maps.filter(|map| map.map_type() == MapType::StructOps);
    let links = callbacks.map(|mut map| {
        let link = map.attach_struct_ops();
        link.map_err(AttachError::refused("the scheduler is not attached"))
    });
    links.collect()
}
