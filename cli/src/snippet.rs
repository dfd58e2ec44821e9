//! A mistake in a file, shown in the file's own text with the mend below.

use std::ops::Range;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode,
};
use warmq_experiment::Problems;
use warmq_machine::MachineError;

use crate::output;

/// One mistake: where, what, and the mend.
#[derive(Debug, thiserror::Error)]
#[error("{title}")]
struct Mistake {
    title: String,
    text: NamedSource<String>,
    span: Option<Range<usize>>,
    label: String,
    mend: String,
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
        let mend = Some(&self.mend).filter(|mend| !mend.is_empty())?;
        Some(Box::new(mend))
    }
}

/// Everything wrong in an experiment's file.
pub fn problems(problems: &Problems) -> String {
    let mistakes = problems.list.iter().map(|problem| Mistake {
        title: titled(
            &problem.file,
            Some(problem.line),
            &problem.key,
            &problem.what,
        ),
        text: NamedSource::new(&problem.file, problems.text.clone()),
        // A problem of the whole file has no place in it.
        span: Some(problem.span.clone()).filter(|span| !span.is_empty()),
        label: "here".to_owned(),
        mend: problem.mend.clone(),
    });
    mistakes.map(|mistake| drawn(&mistake)).collect()
}

/// What is wrong in a machine's file.
pub fn machine(error: &MachineError, text: &str) -> String {
    drawn(&Mistake {
        title: titled(&error.file, error.line, &error.key, &error.problem),
        text: NamedSource::new(&error.file, text.to_owned()),
        span: error.span.clone().filter(|span| span.end <= text.len()),
        label: "here".to_owned(),
        mend: error.mend.to_string(),
    })
}

/// `fig8.toml:14: sweep.colours: what is wrong`.
fn titled(file: &str, line: Option<usize>, key: &str, what: &str) -> String {
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    let key = match key {
        "" => String::new(),
        key => format!("`{key}`: "),
    };
    format!("{file}{line}: {key}{what}")
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
        Err(_) => format!("{}; {}\n", mistake.title, mistake.mend),
    }
}
