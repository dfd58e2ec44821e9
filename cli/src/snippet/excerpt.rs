//! The lines around a place of a text, cut to what fits on a screen.
//!
//! miette pads up to the column of a place, and a padding has at most 65,535 columns; and it
//! searches a text from its start for each mistake. An excerpt is short in both directions, however
//! long the text and its lines are.

use std::ops::Range;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use warmq_units::printable;

/// Bytes that are kept of a long line, and how many of them stand before the place.
const KEPT: usize = 160;
const KEPT_BEFORE: usize = 80;
/// Lines that are kept of a place of many lines, with the one before it.
const MOST_LINES: usize = 20;
/// Stands for what was cut out of a line.
const CUT: &str = "…";

/// A place of a text, with the line before it and the line after it.
#[derive(Debug)]
pub struct Excerpt {
    name: String,
    text: String,
    span: Range<usize>,
    /// Lines of the whole text before these.
    lines_before: usize,
    /// Columns of the place's line that were cut out before it.
    columns_before: usize,
}

impl Excerpt {
    /// The place `span`, in the `line`th line of `text`, counted from 1; `name` is the text's.
    pub fn of(name: &str, text: &str, line: usize, span: &Range<usize>) -> Excerpt {
        let own = line_start(text, span.start);
        let first = line_start(text, own.saturating_sub(1));
        let mut excerpt = Excerpt {
            name: printable(name).to_string(),
            text: String::new(),
            span: 0..0,
            lines_before: (line - 1).saturating_sub(usize::from(first < own)),
            columns_before: 0,
        };
        let last = line_end(text, (line_end(text, span.end) + 1).min(text.len()));
        // Behind the end of the last line is no other.
        let lines = &text[first..last];
        let whole = lines.strip_suffix('\n').filter(|_| last == text.len());
        let lines = whole.unwrap_or(lines);
        let mut start = first;
        for line in lines.split('\n').take(MOST_LINES) {
            excerpt.add(line, start, span);
            start += line.len() + 1;
        }
        if span.end >= start {
            excerpt.span.end = excerpt.text.len();
        }
        excerpt.escape();
        excerpt
    }

    /// Shows what a terminal would obey. The place moves with it.
    fn escape(&mut self) {
        let Range { start, end } = self.span;
        let text = &self.text;
        let [before, within, after] =
            [&text[..start], &text[start..end], &text[end..]].map(escaped);
        let start = before.len();
        self.span = start..start + within.len();
        self.text = before + &within + &after;
    }

    /// Where the place is in the excerpt.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Adds `line`, which begins at `start` in the whole text.
    fn add(&mut self, line: &str, start: usize, span: &Range<usize>) {
        let within = |at: usize| at.checked_sub(start).filter(|at| *at <= line.len());
        let kept = kept(line, within(span.start).unwrap_or(0));
        let mark = |is_cut: bool| if is_cut { CUT } else { "" };
        let head = self.text.len() + mark(kept.start > 0).len();
        let place = |at: usize| head + at.clamp(kept.start, kept.end) - kept.start;
        if let Some(at) = within(span.start) {
            self.span.start = place(at);
            self.columns_before = kept.start.saturating_sub(mark(kept.start > 0).len());
        }
        if let Some(at) = within(span.end) {
            self.span.end = place(at);
        }
        for piece in [
            mark(kept.start > 0),
            &line[kept.clone()],
            mark(kept.end < line.len()),
            "\n",
        ] {
            self.text.push_str(piece);
        }
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let read = self.text.read_span(span, lines_before, lines_after)?;
        // A column is known of a place only, not of the lines around it.
        let columns_before = if lines_before == 0 {
            self.columns_before
        } else {
            0
        };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            read.data(),
            *read.span(),
            self.lines_before + read.line(),
            columns_before + read.column(),
            read.line_count(),
        )))
    }
}

/// `text` with its ends of lines and tabs as they are, and all else that is not printable escaped.
fn escaped(text: &str) -> String {
    let lines = text.split('\n').map(|line| {
        let line = line.strip_suffix('\r').unwrap_or(line);
        itertools::join(line.split('\t').map(printable), "\t")
    });
    itertools::join(lines, "\n")
}

/// The part of `line` around its byte `place`.
fn kept(line: &str, place: usize) -> Range<usize> {
    if line.len() <= KEPT {
        return 0..line.len();
    }
    let from = line.floor_char_boundary(place.saturating_sub(KEPT_BEFORE));
    from..line.floor_char_boundary(from + KEPT)
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end)
}
