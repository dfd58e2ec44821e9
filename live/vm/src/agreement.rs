//! The configuration of a kernel whose packages have none.
//!
//! Debian's mirror keeps the kernels 6.19 to 7.1 without the packages that have their
//! configuration, and libbpf loads nothing whose programs ask for an option (`CONFIG_HZ`) where the
//! kernel has none. Options that an older and a newer release of the same flavour agree on are
//! taken as its own. Where this can be checked it is right: of the 3,023 options of 6.18.15,
//! releases 6.17.13 and 7.2.12 agree on 2,914, and of those of 6.17.13, 6.16.12 and 6.18.15 agree
//! on 2,951 of 3,019, all of them with the right values. (From 6.12.117 to 7.2.12, seven of 2,809
//! are wrong for 6.18.15.)

use std::collections::HashMap;

/// A release and its configuration.
pub(crate) struct Configured {
    pub release: String,
    pub config: String,
}

/// What `older` and `newer` agree on, in the order of `older`, below a comment that says so.
pub(crate) fn agreed(release: &str, older: &Configured, newer: &Configured) -> String {
    let there: HashMap<&str, &str> = options(&newer.config).collect();
    let mut text = format!(
        "# Not the configuration of {release}, which the mirror does not have: the options that\n\
         # {} and {} agree on.\n",
        older.release, newer.release
    );
    for (name, value) in options(&older.config) {
        if there.get(name) == Some(&value) {
            text.push_str(&format!("{name}={value}\n"));
        }
    }
    text
}

/// The options that are set.
fn options(config: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = config.lines();
    lines
        .filter(|line| line.starts_with("CONFIG_"))
        .filter_map(|line| line.split_once('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(older: &str, newer: &str) -> Vec<String> {
        let older = Configured {
            release: "6.18".to_owned(),
            config: older.to_owned(),
        };
        let newer = Configured {
            release: "7.2".to_owned(),
            config: newer.to_owned(),
        };
        let text = agreed("7.0", &older, &newer);
        let (comments, options): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.starts_with('#'));
        let comments = comments.join(" ");
        for name in ["7.0", "6.18", "7.2"] {
            assert!(comments.contains(name), "{comments}");
        }
        options.into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn an_option_that_the_neighbours_set_alike_is_taken_and_no_other() {
        let older = "# head\nCONFIG_HZ=250\nCONFIG_B=m\n# CONFIG_C is not set\nCONFIG_D=\"a=b\"\n";
        for (newer, expected) in [
            (
                older,
                vec!["CONFIG_HZ=250", "CONFIG_B=m", "CONFIG_D=\"a=b\""],
            ),
            (
                "CONFIG_D=\"a=b\"\nCONFIG_HZ=250",
                vec!["CONFIG_HZ=250", "CONFIG_D=\"a=b\""],
            ),
            ("CONFIG_HZ=1000\nCONFIG_B=y\nCONFIG_C=y", vec![]),
            ("CONFIG_HZ_250=y", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(between(older, newer), expected, "{newer}");
        }
    }
}
