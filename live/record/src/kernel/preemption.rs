//! Where a kernel can be preempted, as one of several places says.

use std::path::Path;

use super::config::Config;
use super::text;

/// A preemption model, and where it was found, in a few words; both empty where it was not.
pub(super) type Found = (String, &'static str);

/// That of the kernel that runs below `root`: as debugfs says, which knows whether it was changed;
/// else as it was booted, as its version says, or as it was built.
pub(super) fn below(root: &Path, config: Option<&Config>) -> Found {
    let in_debugfs = text(root, "sys/kernel/debug/sched/preempt");
    let version = text(root, "proc/version");
    let first = [
        chosen(&in_debugfs).map(|model| (model, "from debugfs")),
        booted(&text(root, "proc/cmdline")).map(|model| {
            let from = "from its command line; debugfs is not there to say whether it was changed";
            (model, from)
        }),
        named(&version).map(|model| (model, "from its version")),
        config.and_then(built).map(|model| {
            let from = "as it was configured; debugfs is not there to say whether it was changed";
            (model, from)
        }),
    ];
    first_of(first)
}

/// That of a kernel which is booted with `command_line`.
pub(super) fn of_boot(command_line: &str, config: Option<&Config>) -> Found {
    first_of([
        booted(command_line).map(|model| (model, "from its command line")),
        config
            .and_then(built)
            .map(|model| (model, "as it was configured")),
    ])
}

fn first_of<const N: usize>(found: [Option<(&'static str, &'static str)>; N]) -> Found {
    let first = found.into_iter().flatten().next().unwrap_or_default();
    (first.0.to_owned(), first.1)
}

const MODELS: [&str; 4] = ["none", "voluntary", "full", "lazy"];

fn known(model: &str) -> Option<&'static str> {
    MODELS.into_iter().find(|known| *known == model)
}

/// The model in parentheses: `none voluntary (full) lazy`.
fn chosen(models: &str) -> Option<&'static str> {
    let (_, rest) = models.split_once('(')?;
    rest.split_once(')').and_then(|(model, _)| known(model))
}

fn booted(command_line: &str) -> Option<&'static str> {
    let mut words = command_line.split_whitespace().rev();
    known(words.find_map(|word| word.strip_prefix("preempt="))?)
}

/// The model that the version names: a kernel whose model can be chosen at boot says
/// PREEMPT_DYNAMIC, which names none, and one without a word may be `none` or `voluntary`
/// (UTS_VERSION in init/Makefile).
fn named(version: &str) -> Option<&'static str> {
    let words = [
        ("PREEMPT_RT", "full"),
        ("PREEMPT_LAZY", "lazy"),
        ("PREEMPT", "full"),
    ];
    let mut said = version.split_whitespace();
    said.find_map(|said| words.iter().find(|(word, _)| *word == said))
        .map(|(_, model)| *model)
}

fn built(config: &Config) -> Option<&'static str> {
    let options = [
        ("CONFIG_PREEMPT_NONE", "none"),
        ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
        ("CONFIG_PREEMPT_LAZY", "lazy"),
        ("CONFIG_PREEMPT", "full"),
        ("CONFIG_PREEMPT_RT", "full"),
    ];
    let mut options = options.into_iter();
    let set = options.find(|(name, _)| config.option(name) == Some("y"));
    set.map(|(_, model)| model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preemption_model_is_found_in_each_place() {
        assert_eq!(chosen("none voluntary (full) lazy"), Some("full"));
        assert_eq!(chosen("none voluntary"), None);
        assert_eq!(chosen("none (other)"), None);
        assert_eq!(booted("quiet preempt=none preempt=lazy x"), Some("lazy"));
        assert_eq!(booted("preempt=maybe"), None);
        assert_eq!(named("(gcc) #1 SMP PREEMPT_DYNAMIC @0"), None);
        assert_eq!(named("(gcc) #1 SMP PREEMPT_RT Debian"), Some("full"));
        assert_eq!(named("(gcc) #1 SMP PREEMPT Mon"), Some("full"));
        assert_eq!(named("(gcc) #1 SMP Debian 6.12"), None);
        let built = |config: &str| built(&Config::of(config));
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
}
