//! The frame of every page: one file that needs no network.

use maud::{DOCTYPE, Markup, PreEscaped, html};

const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// Sorts and filters tables.
pub(super) const TABLES: &str = include_str!("tables.js");
/// What that looks like.
const TABLES_STYLE: &str = include_str!("tables.css");

/// A page with a body of its own; `style` is added to that of such pages.
pub fn page_of(title: &str, style: &str, body: &Markup) -> String {
    let style = format!("{}{style}", include_str!("plain.css"));
    let more = html! {
        meta name="color-scheme" content="light dark";
        link rel="icon" href="data:,";
    };
    let body = html! { main { (body) } script { (PreEscaped(TABLES)) } };
    frame(title, &more, &style, &body).into_string()
}

/// A page; `more` is of its head.
pub(super) fn frame(title: &str, more: &Markup, style: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                (more)
                title { (title) }
                style { (PreEscaped(style)) (PreEscaped(TABLES_STYLE)) }
            }
            body { (body) }
        }
    }
}
