//! What the kernel that runs here is: its release, how it was built and booted, and who schedules.

use std::fs;
use std::io::Read;

/// The kernel that runs here. Facts that the system does not have are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunningKernel {
    /// Its release: `6.18.15-cloud-amd64`.
    pub release: String,
    /// Ticks a second.
    pub hz: String,
    /// Its preemption model: `none`, `voluntary`, `full`, `lazy`.
    pub preemption: String,
    /// Where that was found, in a few words; empty where it was not.
    pub preemption_from: &'static str,
}

impl RunningKernel {
    /// Looks at /proc, debugfs and the kernel's configuration.
    pub fn look() -> RunningKernel {
        let release = text("/proc/sys/kernel/osrelease");
        let config = config(&release);
        let sources = [
            (
                text("/sys/kernel/debug/sched/preempt"),
                chosen as Reader,
                "from debugfs",
            ),
            (
                text("/proc/cmdline"),
                booted,
                "from its command line; debugfs is not there to say whether it was changed",
            ),
            (text("/proc/version"), named, "from its version"),
            (
                config.clone(),
                built,
                "as it was configured; debugfs is not there to say whether it was changed",
            ),
        ];
        let (preemption, preemption_from) = preemption(&sources).unwrap_or_default();
        RunningKernel {
            hz: option(&config, "CONFIG_HZ").unwrap_or_default().to_owned(),
            preemption: preemption.to_owned(),
            preemption_from,
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

/// Finds a preemption model in a text.
type Reader = fn(&str) -> Option<&str>;

/// The preemption model that the first of `sources` with one has, and where that is from.
fn preemption<'t>(
    sources: &'t [(String, Reader, &'static str)],
) -> Option<(&'t str, &'static str)> {
    let mut found = sources
        .iter()
        .filter_map(|(text, read, from)| Some((read(text)?, *from)));
    found.next()
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
        .find_map(|word| word.strip_prefix("preempt="))?;
    MODELS.into_iter().find(|known| *known == model)
}

/// The model that the version names: a kernel whose model can be chosen at boot says
/// PREEMPT_DYNAMIC, which names none, and one without a word may be `none` or `voluntary`
/// (UTS_VERSION in init/Makefile).
fn named(version: &str) -> Option<&str> {
    let words = [
        ("PREEMPT_RT", "full"),
        ("PREEMPT_LAZY", "lazy"),
        ("PREEMPT", "full"),
    ];
    let mut said = version.split_whitespace();
    said.find_map(|said| words.iter().find(|(word, _)| *word == said))
        .map(|(_, model)| *model)
}

fn built(config: &str) -> Option<&str> {
    let options = [
        ("CONFIG_PREEMPT_NONE", "none"),
        ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
        ("CONFIG_PREEMPT_LAZY", "lazy"),
        ("CONFIG_PREEMPT", "full"),
        ("CONFIG_PREEMPT_RT", "full"),
    ];
    let mut options = options.into_iter();
    let set = options.find(|(name, _)| option(config, name) == Some("y"));
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
        assert_eq!(named("(gcc) #1 SMP PREEMPT_DYNAMIC @0"), None);
        assert_eq!(named("(gcc) #1 SMP PREEMPT_RT Debian"), Some("full"));
        assert_eq!(named("(gcc) #1 SMP PREEMPT Mon"), Some("full"));
        assert_eq!(named("(gcc) #1 SMP Debian 6.12"), None);
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
    fn the_first_source_that_knows_counts() {
        let sources = |debugfs: &str, cmdline: &str| {
            [
                (debugfs.to_owned(), chosen as Reader, "debugfs"),
                (cmdline.to_owned(), booted, "boot"),
            ]
        };
        assert_eq!(
            preemption(&sources("(full) lazy", "preempt=lazy")),
            Some(("full", "debugfs"))
        );
        assert_eq!(
            preemption(&sources("", "preempt=lazy")),
            Some(("lazy", "boot"))
        );
        assert_eq!(preemption(&sources("", "")), None);
    }

    #[test]
    fn an_option_is_not_mistaken_for_one_with_a_longer_name() {
        let config = "CONFIG_HZ_250=y\nCONFIG_HZ=250\n";
        assert_eq!(option(config, "CONFIG_HZ"), Some("250"));
    }
}
