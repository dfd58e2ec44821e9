//! The object `global`.

use warmq_config::{Fields, Item, NodeKind};

use super::numbers::{ANY, LARGEST, whole};
use super::policy::{Class, class};
use super::remarks::Remarks;

/// What holds for all threads.
pub(super) struct Global<'a> {
    /// After how many seconds all threads end; rt-app takes 0 and less as no end.
    pub(super) duration: Option<(Item<'a>, i64)>,
    pub(super) policy: Class,
    /// The file that `iorun` writes to.
    pub(super) device: String,
    /// The size of the buffer that `mem` writes to and `iorun` writes from.
    pub(super) buffer: i64,
}

impl Default for Global<'_> {
    fn default() -> Self {
        Global {
            duration: None,
            policy: Class::Fair("normal"),
            device: "/dev/null".to_owned(),
            buffer: 4 << 20,
        }
    }
}

/// Keys that change nothing of what the tasks do, what is said of them, and why.
const UNUSED: &[(&str, &str, &str)] = &[
    (
        "calibration",
        "`calibration` is not used",
        "whoever plays a scenario calibrates `run` by itself",
    ),
    (
        "lock_pages",
        "`lock_pages` is not used",
        "no page is locked in memory",
    ),
    ("gnuplot", LOGS, TRACE),
    ("ftrace", LOGS, TRACE),
    ("logdir", LOGS, TRACE),
    ("log_basename", LOGS, TRACE),
    ("log_size", LOGS, TRACE),
    ("cumulative_slack", LOGS, TRACE),
];
const LOGS: &str = "what rt-app logs and plots, and where, is not used";
const TRACE: &str = "what happened is in the trace of the run";

pub(super) fn read<'a>(fields: &Fields<'a>, remarks: &Remarks) -> Option<Global<'a>> {
    let known = [
        "duration",
        "default_policy",
        "pi_enabled",
        "io_device",
        "mem_buffer_size",
    ];
    for (entry, item) in fields.entries() {
        let unused = UNUSED.iter().find(|(key, ..)| *key == entry.key);
        match unused {
            Some((_, what, why)) if !is_off(&item) => remarks.say(&item, *what, *why),
            None if !known.contains(&entry.key.as_str()) => unknown(&entry.key, &item, remarks),
            _ => {}
        }
    }
    if let Some(item) = fields.item("pi_enabled")
        && item.flag()?
    {
        let why = "mutexes here do not pass the priority of a waiter on to their owner";
        remarks.say(&item, "priorities are not inherited", why);
    }
    of(fields)
}

fn of<'a>(fields: &Fields<'a>) -> Option<Global<'a>> {
    let mut global = Global::default();
    if let Some(item) = fields.item("duration") {
        let seconds = whole(&item, ANY)?;
        global.duration = (seconds > 0).then_some((item, seconds));
    }
    if let Some(item) = fields.item("default_policy") {
        global.policy = class(&item)?;
    }
    if let Some(item) = fields.item("io_device") {
        global.device = item.text()?;
    }
    if let Some(item) = fields.item("mem_buffer_size") {
        global.buffer = whole(&item, 1..=LARGEST)?;
    }
    Some(global)
}

/// True for a value that turns something off, which is then as it is here.
fn is_off(item: &Item<'_>) -> bool {
    match &item.node.kind {
        NodeKind::Bool(flag) => !flag,
        NodeKind::Text(text) => ["none", "disable"].contains(&text.as_str()),
        _ => false,
    }
}

/// rt-app does not look at keys that it does not know; neither does this reader, but it says so.
pub(super) fn unknown(key: &str, item: &Item<'_>, remarks: &Remarks) {
    let why = "rt-app does not know the key and ignores it";
    remarks.say(item, format!("`{key}` is not used"), why);
}
