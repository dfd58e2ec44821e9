//! Hooks in the kernel that scheduling does not need: without them programs cannot hint, and all
//! else goes on.

use anyhow::Error;
use libbpf_rs::{Link, OpenProgramMut};

use crate::bpf_skel::{BpfSkel, OpenBpfSkel};
use crate::say;

/// A hook that cannot be had, and what is lost with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// Neither can be loaded.
    #[error(
        "programs cannot hint here, by system call or by slot: the kernel takes no program that hears prctl \
         and execve ({0}); labels, --task-hint-map, --group-by and --infer work. What helps is a kernel with \
         CONFIG_FUNCTION_TRACER, CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS and CONFIG_SECURITY"
    )]
    Both(String),
    /// The one in prctl cannot be attached, or is not called.
    #[error(
        "programs cannot hint here, by system call or by slot: the hook in prctl (fmod_ret of \
         security_task_prctl) does not work ({0}); labels, --task-hint-map, --group-by and --infer do. What helps is: \
         sysctl kernel.ftrace_enabled=1"
    )]
    Prctl(String),
    /// The one in execve cannot be attached.
    #[error(
        "a thread that starts another program keeps the hint of the one before until it hints again: the hook \
         in execve (tp_btf of sched_process_exec) cannot be attached ({0})"
    )]
    Exec(String),
}

impl Missing {
    /// Tells whoever started it.
    pub fn warn(&self) {
        say::error(&format!("scx_warmq: warning: {self}"));
    }
}

/// Has them attached by [`attach`] and not with the scheduler; or not `wanted`, not even loaded.
pub fn prepare(opened: &mut OpenBpfSkel<'_>, wanted: bool) {
    let prepare = |program: &mut OpenProgramMut<'_>| {
        program.set_autoload(wanted);
        program.set_autoattach(false);
    };
    prepare(&mut opened.progs.hear);
    prepare(&mut opened.progs.forget);
}

/// Attaches those that can be, until what it returns is dropped, and warns of the others.
pub fn attach(loaded: &BpfSkel<'_>) -> Vec<Link> {
    let hooks = [
        (&loaded.progs.hear, Missing::Prctl as fn(String) -> Missing),
        (&loaded.progs.forget, Missing::Exec),
    ];
    let mut links = Vec::new();
    let mut are_all = true;
    for (program, missing) in hooks {
        match program.attach() {
            Ok(link) => links.push(link),
            Err(error) => {
                missing(root_cause(&error.into())).warn();
                are_all = false;
            }
        }
    }
    // A hook may be attached and never called, where ftrace is switched off.
    if are_all && !warmq_hint::listening() {
        Missing::Prctl("it is attached, but not called".to_owned()).warn();
    }
    links
}

/// What is behind an error, in its last words.
pub fn root_cause(error: &Error) -> String {
    error.root_cause().to_string()
}
