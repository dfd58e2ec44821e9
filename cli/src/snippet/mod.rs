//! A mistake in a file or option, shown in its own text with the fix below.

mod excerpt;

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};
use warmq_config::{Problem, Problems};

use crate::output;
use excerpt::Excerpt;

/// More mistakes of one document than this are counted only.
const MOST_SHOWN: usize = 100;

/// One mistake: where, what, and how to fix it.
#[derive(Debug, thiserror::Error)]
#[error("{title}")]
struct Mistake {
    title: String,
    /// None for a problem of the whole document, which has no place in it.
    excerpt: Option<Excerpt>,
    help: String,
}

impl Diagnostic for Mistake {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        let excerpt = self.excerpt.as_ref();
        excerpt.map(|excerpt| excerpt as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.excerpt.as_ref()?.span();
        let label = LabeledSpan::new_with_span(Some("here".to_owned()), span);
        Some(Box::new(std::iter::once(label)))
    }

    fn help(&self) -> Option<Box<dyn std::fmt::Display + '_>> {
        let help = Some(&self.help).filter(|help| !help.is_empty())?;
        Some(Box::new(help))
    }
}

/// Everything wrong in one document.
pub fn problems(problems: &Problems) -> String {
    let list = &problems.list;
    let shown = list.iter().take(MOST_SHOWN);
    let mut text: String = shown.map(|problem| drawn(&mistake(problem))).collect();
    if let Some(more @ 1..) = list.len().checked_sub(MOST_SHOWN) {
        text.push_str(&format!("  … and {more} more mistakes\n"));
    }
    text
}

fn mistake(problem: &Problem) -> Mistake {
    let (source, span) = (&problem.source, &problem.span);
    let line = problem.line.unwrap_or(1);
    let excerpt = || Excerpt::of(&source.name, &source.text, line, span);
    Mistake {
        title: problem.headline(),
        excerpt: (!span.is_empty()).then(excerpt),
        help: problem.help.clone(),
    }
}

fn drawn(mistake: &Mistake) -> String {
    let screen = output::messages();
    let theme = if screen.colors {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(usize::from(screen.width))
        .with_links(false);
    let mut text = String::new();
    match handler.render_report(&mut text, mistake) {
        Ok(()) => text,
        Err(_) => format!("{}; {}\n", mistake.title, mistake.help),
    }
}

#[cfg(test)]
mod tests {
    use warmq_config::Source;

    use super::*;

    /// The marked mistake at `span` of `text`, without colors.
    fn shown(text: &str, span: std::ops::Range<usize>) -> String {
        let problem = Source::file("wide.toml", text).problem("key", span, "it is wrong", "");
        problems(&problem.into())
    }

    #[test]
    fn a_mistake_beyond_the_widest_padding_is_shown_with_its_column() {
        let text = format!(
            "first = 1\nkey = [{}, wrong]\nlast = 1\n",
            "y".repeat(70_000)
        );
        let at = text.find("wrong").unwrap();
        let page = shown(&text, at..at + 5);
        let column = at - "first = 1\n".len() + 1;
        assert!(page.contains(&format!("wide.toml:2:{column}")), "{page}");
        assert!(
            page.contains("yyy, wrong]") && page.contains("last = 1"),
            "{page}"
        );
        assert!(
            page.lines().all(|line| line.chars().count() < 300),
            "{page}"
        );
    }

    #[test]
    fn a_wide_mistake_is_cut_on_a_border_of_characters() {
        let text = format!("{}\nkey = {}", "ä".repeat(70_000), "ß€".repeat(40_000));
        let at = text.find("key").unwrap();
        let page = shown(&text, at..text.len());
        assert!(page.contains("key = ß€"), "{page}");
        for start in (at + 6..at + 1_000).step_by(5) {
            shown(&text, start..start + 5);
        }
    }

    #[test]
    fn a_mistake_of_many_lines_shows_the_first_of_them() {
        let text = format!("a = 1\nkey = [\n{}]\n", "  1,\n".repeat(100_000));
        let page = shown(&text, 12..text.len() - 1);
        assert!(
            page.contains("wide.toml:2:7") && page.lines().count() < 40,
            "{page}"
        );
    }

    #[test]
    fn of_very_many_mistakes_the_first_are_shown_and_the_rest_is_counted() {
        let source = Source::file("keys.toml", "key = 1\n");
        let problem = source.problem("key", 0..3, "unknown key", "");
        let list = vec![problem; MOST_SHOWN + 7];
        let page = problems(&Problems { list });
        assert_eq!(page.matches("unknown key").count(), MOST_SHOWN);
        assert!(page.ends_with("… and 7 more mistakes\n"), "{page}");
    }
}
