//! Where a run was played: machine, kernel, scheduler.

use std::fs;
use std::io::Read;

use warmq_trace::{Header, Names};

/// The header of a trace. Facts that the system does not tell are empty.
pub fn header(world: &str, scheduler: &str, names: Names) -> Header {
    let kernel = text("/proc/sys/kernel/osrelease");
    let config = config(&kernel);
    Header {
        world: world.to_owned(),
        machine: machine(),
        scheduler: scheduler.to_owned(),
        clock: "monotonic".to_owned(),
        hz: option(&config, "CONFIG_HZ").unwrap_or_default().to_owned(),
        preemption: preemption(&config).unwrap_or_default(),
        kernel,
        // Whoever reads the trace knows the machine.
        places: Vec::new(),
        names,
    }
}

fn text(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.trim().to_owned()
}

/// What the processor calls itself, and how many CPUs there are.
fn machine() -> String {
    let info = text("/proc/cpuinfo");
    let field = |line: &str| {
        Some(
            line.strip_prefix("model name")?
                .split_once(':')?
                .1
                .trim()
                .to_owned(),
        )
    };
    let model = info.lines().find_map(field);
    let cpus = info
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    format!("{}, {cpus} CPUs", model.as_deref().unwrap_or("a machine"))
}

/// The sched_ext scheduler that is loaded, or the kernel's own.
pub fn running_scheduler() -> String {
    match text("/sys/kernel/sched_ext/root/ops").as_str() {
        "" => "kernel".to_owned(),
        loaded => loaded.to_owned(),
    }
}

/// The kernel's configuration, wherever it is.
fn config(release: &str) -> String {
    if let Ok(packed) = fs::File::open("/proc/config.gz") {
        let mut config = String::new();
        if flate2::read::GzDecoder::new(packed)
            .read_to_string(&mut config)
            .is_ok()
        {
            return config;
        }
    }
    let places = [
        format!("/boot/config-{release}"),
        format!("/lib/modules/{release}/config"),
        format!("/usr/lib/modules/{release}/config"),
    ];
    let found = places.iter().find_map(|path| fs::read_to_string(path).ok());
    found.unwrap_or_default()
}

/// The value of an option of the configuration.
fn option<'c>(config: &'c str, name: &str) -> Option<&'c str> {
    let of = |line: &'c str| line.strip_prefix(name)?.strip_prefix('=');
    config.lines().find_map(of)
}

/// The preemption model: what debugfs says, what the kernel was told at boot, or what it was built
/// for.
fn preemption(config: &str) -> Option<String> {
    let now = text("/sys/kernel/debug/sched/preempt");
    let told = text("/proc/cmdline");
    chosen(&now)
        .or_else(|| booted(&told))
        .or_else(|| built(config))
        .map(str::to_owned)
}

const MODELS: [&str; 4] = ["none", "voluntary", "full", "lazy"];

/// The model in parentheses: `none voluntary (full) lazy`.
fn chosen(models: &str) -> Option<&str> {
    let (_, rest) = models.split_once('(')?;
    rest.split_once(')').map(|(model, _)| model)
}

fn booted(cmdline: &str) -> Option<&str> {
    let model = cmdline
        .split_whitespace()
        .rev()
        .find_map(|it| it.strip_prefix("preempt="))?;
    MODELS.into_iter().find(|known| *known == model)
}

fn built(config: &str) -> Option<&'static str> {
    let options = [
        ("CONFIG_PREEMPT_NONE", "none"),
        ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
        ("CONFIG_PREEMPT_LAZY", "lazy"),
        ("CONFIG_PREEMPT", "full"),
        ("CONFIG_PREEMPT_RT", "full"),
    ];
    let set = options
        .into_iter()
        .find(|(name, _)| option(config, name) == Some("y"));
    set.map(|(_, model)| model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preemption_model_is_found_in_each_place() {
        assert_eq!(chosen("none voluntary (full) lazy"), Some("full"));
        assert_eq!(chosen("none voluntary"), None);
        assert_eq!(booted("quiet preempt=none preempt=lazy x"), Some("lazy"));
        assert_eq!(booted("preempt=maybe"), None);
        assert_eq!(
            built("# CONFIG_PREEMPT_NONE is not set\nCONFIG_PREEMPT=y\n"),
            Some("full")
        );
        assert_eq!(
            built("CONFIG_PREEMPT_BUILD=y\nCONFIG_PREEMPT_NONE=y\n"),
            Some("none")
        );
        assert_eq!(built(""), None);
    }

    #[test]
    fn an_option_is_not_mistaken_for_one_with_a_longer_name() {
        let config = "CONFIG_HZ_250=y\nCONFIG_HZ=250\n";
        assert_eq!(option(config, "CONFIG_HZ"), Some("250"));
    }
}
