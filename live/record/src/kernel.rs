//! What the kernel that runs here is: its release, what it was built and told, and who schedules.

use std::fs;
use std::io::Read;

/// The kernel that runs here. Facts that the system does not tell are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunningKernel {
    /// Its release: `6.18.15-cloud-amd64`.
    pub release: String,
    /// Ticks a second.
    pub hz: String,
    /// Its preemption model: `none`, `voluntary`, `full`, `lazy`.
    pub preemption: String,
}

impl RunningKernel {
    /// Looks at /proc, debugfs and the kernel's configuration.
    pub fn look() -> RunningKernel {
        let release = text("/proc/sys/kernel/osrelease");
        let config = config(&release);
        RunningKernel {
            hz: option(&config, "CONFIG_HZ").unwrap_or_default().to_owned(),
            preemption: preemption(&config).unwrap_or_default(),
            release,
        }
    }
}

fn text(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.trim().to_owned()
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
