//! The frame of every page: one file that needs no network.

use maud::{DOCTYPE, Markup, PreEscaped, html};

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// A page with a body of its own; `style` is added to that of such pages.
pub fn page_of(title: &str, style: &str, body: &Markup) -> String {
    let style = format!("{}{style}", include_str!("plain.css"));
    frame(title, POLICY, &html! {}, &style, body).into_string()
}

/// A page; `policy` says what it may load, `more` is of its head.
pub(super) fn frame(
    title: &str,
    policy: &str,
    more: &Markup,
    style: &str,
    body: &Markup,
) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy);
                (more)
                title { (title) }
                style { (PreEscaped(style)) }
            }
            body { (body) }
        }
    }
}
