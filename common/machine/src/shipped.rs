//! The machines that come with WarmQ, inside the program.

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../machines/", $name, ".toml")))),*]
    };
}

const SHIPPED: &[(&str, &str)] = shipped![
    "core2duo",
    "epyc-12llc",
    "guest-1cpu",
    "guest-8cpu",
    "p3xeon-8way",
    "p4",
    "ppro-4way",
    "server-24llc",
    "small-4llc",
    "small-smt",
    "tiny-1cpu",
    "tiny-2cpu",
    "xeon-2way",
];

/// The TOML of a machine that comes with WarmQ, for [`read_toml`](crate::read_toml).
pub fn builtin(name: &str) -> Option<&'static str> {
    SHIPPED
        .iter()
        .find(|(shipped, _)| *shipped == name)
        .map(|(_, text)| *text)
}

/// The names of the machines that come with WarmQ, ascending.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}
