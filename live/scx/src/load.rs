//! Runs the scheduler: opens, configures, loads, attaches and watches it, and loads it again when
//! the kernel asks for that.

use std::mem::MaybeUninit;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use libbpf_rs::{MapCore, MapFlags, OpenObject};
use scx_utils::libbpf_clap_opts::LibbpfOpts;
use scx_utils::{SCX_ECODE_ACT_RESTART, scx_ops_attach, scx_ops_load, scx_ops_open};
use sd_notify::NotifyState;

use crate::bpf_skel::{BpfSkel, BpfSkelBuilder, OpenBpfSkel};
use crate::exit::{self, Exit};
use crate::options::Schedule;
use crate::refuse::{self, KernelConfig, kernel_config};
use crate::stop::Stop;
use crate::topology::{self, Layout};
use crate::{hooks, hotplug, libbpf, monitor, pins, policy, power, say, stats, words};

/// How often to look whether the kernel has ended it.
const GLANCE: Duration = Duration::from_millis(100);

/// How it came to an end.
pub enum Ended {
    /// It was time to stop.
    Stopped,
    /// The kernel ended it.
    Ejected(Exit),
}

/// Schedules until it is time to stop, or until the kernel ends it.
pub fn run(schedule: &Schedule, stop: &Stop) -> anyhow::Result<Ended> {
    libbpf::say(schedule.verbose);
    let _server = stats::served::serve();
    if let Some(seconds) = schedule.stats {
        monitor::beside(seconds);
    }
    loop {
        if hotplug::wait(Path::new("/"), stop) {
            return Ok(Ended::Stopped);
        }
        match run_once(schedule, stop).inspect_err(|_| libbpf::said())? {
            Ended::Ejected(exit) if exit.asks_for_restart(*SCX_ECODE_ACT_RESTART) => {
                say::line(&format!(
                    "scx_warmq: restarting, as the kernel asks: {}",
                    exit.why()
                ));
            }
            ended => return Ok(ended),
        }
    }
}

fn run_once(schedule: &Schedule, stop: &Stop) -> anyhow::Result<Ended> {
    let layout = topology::read()?;
    let mut objects = [MaybeUninit::uninit(), MaybeUninit::uninit()];
    let (mut loaded, with_hooks) = load_what_can_be(&mut objects, schedule, &layout)?;
    pins::open_inherited(
        schedule.access_group,
        schedule.groups.task_hint_map.as_deref(),
    )?;
    let link = scx_ops_attach!(loaded, warmq_ops)?;
    let hooks = with_hooks.then(|| hooks::attach(&loaded));
    let published = pins::publish(&mut loaded, schedule.access_group)?;
    say::line(&words::started(schedule, &layout));
    // To a service manager, if one started it; it may be no more.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    let ended = watch(&loaded, stop);
    drop((published, hooks, link));
    ended
}

/// Loads the program into the first object, or without the hooks into the second, if they are what
/// fails. Returns whether it has them.
fn load_what_can_be<'obj>(
    [with, without]: &'obj mut [MaybeUninit<OpenObject>; 2],
    schedule: &Schedule,
    layout: &Layout,
) -> anyhow::Result<(BpfSkel<'obj>, bool)> {
    let error = match load_into(with, schedule, layout, true) {
        Ok(loaded) => return Ok((loaded, true)),
        Err(error) => error,
    };
    let Ok(loaded) = load_into(without, schedule, layout, false) else {
        return Err(refuse::explained(error));
    };
    hooks::Missing::Both(hooks::root_cause(&error)).warn();
    Ok((loaded, false))
}

fn load_into<'obj>(
    object: &'obj mut MaybeUninit<OpenObject>,
    schedule: &Schedule,
    layout: &Layout,
    with_hooks: bool,
) -> anyhow::Result<BpfSkel<'obj>> {
    let mut opened = open(object)?;
    configure(&mut opened, schedule, layout)?;
    pins::inherit(&mut opened, schedule.groups.task_hint_map.as_deref())?;
    hooks::prepare(&mut opened, with_hooks);
    load(opened)
}

/// Opens the program; nothing is loaded into the kernel yet.
fn open(object: &mut MaybeUninit<OpenObject>) -> anyhow::Result<OpenBpfSkel<'_>> {
    let builder = BpfSkelBuilder::default();
    let options = match kernel_config(Path::new("/")) {
        KernelConfig::At(path) => LibbpfOpts {
            kconfig: Some(path.display().to_string()),
            ..LibbpfOpts::default()
        },
        KernelConfig::Usual | KernelConfig::Missing => LibbpfOpts::default(),
    };
    scx_ops_open!(
        builder,
        object,
        warmq_ops,
        options.clone().into_bpf_open_opts()
    )
}

fn load(mut opened: OpenBpfSkel<'_>) -> anyhow::Result<BpfSkel<'_>> {
    scx_ops_load!(opened, warmq_ops, uei)
}

fn configure(
    opened: &mut OpenBpfSkel<'_>,
    schedule: &Schedule,
    layout: &Layout,
) -> anyhow::Result<()> {
    let settings = opened
        .maps
        .rodata_data
        .as_mut()
        .context("the BPF program has no settings")?;
    let state = opened
        .maps
        .bss_data
        .as_mut()
        .context("the BPF program has no state")?;
    policy::configure(settings, state, schedule, layout);
    settings.sets_speed = power::asks_schedulers("/".as_ref());
    Ok(())
}

fn watch(loaded: &BpfSkel<'_>, stop: &Stop) -> anyhow::Result<Ended> {
    let mut said = false;
    loop {
        let data = section(&loaded.maps.data)?;
        if let Some(exit) = Exit::read(&data, || {
            section(&loaded.maps.data_uei_dump).unwrap_or_default()
        }) {
            return Ok(Ended::Ejected(exit));
        }
        if !said && exit::quotas_refused(&data) > 0 {
            say::error(&format!("scx_warmq: warning: {}", refuse::Warning::Quotas));
            said = true;
        }
        if stop.within(GLANCE) {
            return Ok(Ended::Stopped);
        }
    }
}

/// A copy of a section of the BPF program. A copy, because the kernel writes to it.
fn section(map: &impl MapCore) -> anyhow::Result<Vec<u8>> {
    let value = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?;
    value.context("a section of the BPF program has no value")
}
