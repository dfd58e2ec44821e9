//! The style sheet, with the colors of the plots for a dark page.

use crate::chart::{ON_DARK, hex};

/// The whole style sheet of the page.
pub(crate) fn sheet() -> String {
    let mut rules = String::new();
    for (color, dark) in ON_DARK {
        let light = hex(color);
        rules.push_str(&format!("[fill=\"{light}\"]{{fill:{dark}}}"));
        rules.push_str(&format!("[stroke=\"{light}\"]{{stroke:{dark}}}"));
    }
    let sheet = include_str!("style.css");
    let zoom = super::zoom::STYLE.concat();
    format!("{sheet}\n{zoom}\n@media screen and (prefers-color-scheme: dark) {{{rules}}}\n")
}
