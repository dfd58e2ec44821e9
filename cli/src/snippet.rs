//! A mistake in a file or option, shown in its own text with the fix below.

use std::ops::Range;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode,
};
use warmq_config::Problems;
use warmq_units::printable;

use crate::output;

/// One mistake: where, what, and how to fix it.
#[derive(Debug, thiserror::Error)]
#[error("{title}")]
struct Mistake {
    title: String,
    text: NamedSource<String>,
    span: Option<Range<usize>>,
    label: String,
    help: String,
}

impl Diagnostic for Mistake {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.span.as_ref().map(|_| &self.text as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.span.clone()?;
        let label = LabeledSpan::new_with_span(Some(self.label.clone()), span);
        Some(Box::new(std::iter::once(label)))
    }

    fn help(&self) -> Option<Box<dyn std::fmt::Display + '_>> {
        let help = Some(&self.help).filter(|help| !help.is_empty())?;
        Some(Box::new(help))
    }
}

/// Everything wrong in one document.
pub fn problems(problems: &Problems) -> String {
    let mistakes = problems.list.iter().map(|problem| {
        let (text, span) = shown(&problem.source.text, problem.span.clone());
        let name = printable(&*problem.source.name).to_string();
        Mistake {
            title: problem.headline(),
            text: NamedSource::new(name, text),
            // A problem of the whole document has no place in it.
            span: Some(span).filter(|span| !span.is_empty()),
            label: "here".to_owned(),
            help: problem.help.clone(),
        }
    });
    mistakes.map(|mistake| drawn(&mistake)).collect()
}

/// A document's text as it can be shown, and where in it `span` is.
fn shown(text: &str, span: Range<usize>) -> (String, Range<usize>) {
    let parts = [&text[..span.start], &text[span.clone()], &text[span.end..]];
    let [before, within, after] = parts.map(|part| {
        let lines = part.split('\n').map(|line| {
            let line = line.strip_suffix('\r').unwrap_or(line);
            let cells = line.split('\t').map(|cell| printable(cell).to_string());
            cells.collect::<Vec<_>>().join("\t")
        });
        lines.collect::<Vec<_>>().join("\n")
    });
    let begin = before.len();
    let span = begin..begin + within.len();
    (before + &within + &after, span)
}

fn drawn(mistake: &Mistake) -> String {
    let screen = output::Screen::of_messages();
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
