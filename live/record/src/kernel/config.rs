//! How a kernel was built.

use std::fs;
use std::io::Read;
use std::path::Path;

/// No configuration is longer; those of Debian have 300 KB.
const MOST: u64 = 16 << 20;

/// The configuration of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Config(String);

impl Config {
    /// That of the kernel `release` of the system below `root`, wherever it is.
    pub fn below(root: &Path, release: &str) -> Option<Config> {
        let places = [
            format!("boot/config-{release}"),
            format!("lib/modules/{release}/config"),
            format!("usr/lib/modules/{release}/config"),
        ];
        let unpacked = || {
            let mut texts = places
                .iter()
                .map(|path| fs::read_to_string(root.join(path)));
            texts.find_map(Result::ok)
        };
        packed(&root.join("proc/config.gz"))
            .or_else(unpacked)
            .map(Config)
    }

    /// That in a text.
    pub fn of(text: &str) -> Config {
        Config(text.to_owned())
    }

    /// The value of an option; none where it is not set.
    pub fn option(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    }
}

fn packed(file: &Path) -> Option<String> {
    let mut text = String::new();
    let unpacked = flate2::read::GzDecoder::new(fs::File::open(file).ok()?);
    unpacked.take(MOST).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_not_mistaken_for_one_with_a_longer_name() {
        let config = Config::of("CONFIG_HZ_250=y\nCONFIG_HZ=250\n# CONFIG_HZ_100 is not set\n");
        assert_eq!(config.option("CONFIG_HZ"), Some("250"));
        assert_eq!(config.option("CONFIG_HZ_100"), None);
    }
}
