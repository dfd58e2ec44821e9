//! A cell of the matrix as a line of JSON, written and read back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warmq_metrics::evidence::{Chart, Evidence};
use warmq_units::{CpuId, Duration, Instant, JSON_SCHEMA, printable};

use crate::beside::Spread;
use crate::cell::{Cell, Found, Kept};
use crate::column::Column;
use crate::law::Law;
use crate::shown;
use crate::verdict::{Finding, Judged, skipped};

/// A cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// The version of what the keys mean ([`warmq_units::JSON_SCHEMA`]); 0 in lines that were
    /// written before there was one.
    #[serde(default)]
    pub schema: u32,
    /// The law's name.
    pub law: String,
    /// What it is about.
    pub family: String,
    /// World, kernel, preemption model, scheduler.
    #[serde(flatten)]
    pub column: Column,
    /// The verdict.
    #[serde(flatten)]
    pub judged: Judged,
    /// Who waited longest in a run that does not hold.
    pub longest_wait: Option<LineWait>,
    /// The file of that run's trace.
    pub trace: Option<String>,
    /// The command that judges it again.
    pub again: String,
    /// Changes with the text of the law.
    pub digest: String,
}

/// A wait, in us from the start of the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LineWait {
    /// Who waited.
    pub task: String,
    /// From when.
    pub from_us: f64,
    /// For how long.
    pub us: f64,
    /// Who ran meanwhile on its CPUs, and how long.
    pub ran: Vec<(String, f64)>,
    /// Who ran when.
    pub chart: LineChart,
}

/// Who ran when: parts of equal length from the beginning to the end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LineChart {
    /// When it begins.
    pub from_us: f64,
    /// When it ends.
    pub to_us: f64,
    /// Who ran.
    pub who: Vec<String>,
    /// Each CPU and its parts, by place in `who`; null where it idled.
    pub cpus: Vec<(u16, Vec<Option<usize>>)>,
}

fn us(at: Instant) -> f64 {
    at.0 as f64 / 1e6
}

fn at(us: f64) -> Instant {
    Instant((us * 1e6).round() as u64)
}

impl Line {
    /// The line of a cell of a law whose text has `digest`.
    pub fn of(cell: &Cell<'_>) -> Line {
        let kept = cell.kept.as_ref();
        Line {
            schema: JSON_SCHEMA,
            law: cell.law.name.clone(),
            family: cell.law.family.name().to_owned(),
            column: cell.column.clone(),
            judged: cell.judged.clone(),
            longest_wait: kept.and_then(|kept| kept.evidence.as_ref()).map(wait),
            trace: kept
                .and_then(|kept| kept.trace.as_ref())
                .map(|path| printable(path).to_string()),
            again: cell.again.clone(),
            digest: cell.digest.clone(),
        }
    }

    /// Whether it is of this law, as it is now, in this column.
    pub fn is_of(&self, law: &Law, digest: &str, column: &Column) -> bool {
        self.law == law.name && self.digest == digest && self.column == *column
    }

    /// Whether both are of the same law in the same column, whatever the law's text.
    pub fn is_beside(&self, other: &Line) -> bool {
        self.law == other.law && self.column == other.column
    }

    /// The cell again; nothing if the line does not fit the law.
    pub fn cell<'l>(&self, law: &'l Law, column: &'l Column) -> Option<Cell<'l>> {
        let figures = law.bounds.iter().map(|bound| bound.figure.as_str());
        let figures: Vec<&str> = figures.collect();
        let mut bounds = self.judged.bounds.iter().enumerate();
        if !bounds.all(|(place, bound)| figures.get(place) == Some(&&*bound.figure)) {
            return None;
        }
        let evidence = self.longest_wait.as_ref().map(evidence);
        let kept = (evidence.is_some() || self.trace.is_some()).then(|| Kept {
            evidence,
            trace: self.trace.as_ref().map(Into::into),
        });
        Some(Cell {
            law,
            column,
            judged: Judged {
                compared: self.compared(),
                ..self.judged.clone()
            },
            kept,
            again: self.again.clone(),
            digest: self.digest.clone(),
        })
    }

    /// What is compared with the same law elsewhere; in a file that does not say it, the figures of
    /// the bounds.
    fn compared(&self) -> BTreeMap<String, Spread> {
        let judged = self.judged.bounds.iter();
        let of_bounds = judged.filter(|bound| bound.value.is_finite()).map(|bound| {
            let Finding {
                value, low, high, ..
            } = *bound;
            (bound.figure.clone(), Spread { value, low, high })
        });
        let named = self.judged.compared.clone();
        of_bounds.chain(named).collect()
    }
}

fn wait(evidence: &Evidence) -> LineWait {
    let Chart {
        from,
        to,
        who,
        cpus,
    } = &evidence.chart;
    let ran = evidence.ran.iter();
    let cpus = cpus.iter().map(|(cpu, cells)| (cpu.0, cells.clone()));
    LineWait {
        task: evidence.task.clone(),
        from_us: us(evidence.from),
        us: us(evidence.to) - us(evidence.from),
        ran: ran
            .map(|(name, span)| (name.clone(), span.0 as f64 / 1e6))
            .collect(),
        chart: LineChart {
            from_us: us(*from),
            to_us: us(*to),
            who: who.clone(),
            cpus: cpus.collect(),
        },
    }
}

fn evidence(wait: &LineWait) -> Evidence {
    let ran = wait.ran.iter();
    let chart = &wait.chart;
    // A file may have been changed by hand: a part that refers to nobody is idle.
    let whose = |cell: &Option<usize>| cell.filter(|who| *who < chart.who.len());
    let cpus = chart.cpus.iter();
    let cpus = cpus.map(|(cpu, cells)| (CpuId(*cpu), cells.iter().map(whose).collect()));
    Evidence {
        task: wait.task.clone(),
        from: at(wait.from_us),
        to: at(wait.from_us + wait.us),
        ran: ran
            .map(|(name, us)| (name.clone(), Duration((us * 1e6).round() as u64)))
            .collect(),
        chart: Chart {
            from: at(chart.from_us),
            to: at(chart.to_us),
            who: chart.who.clone(),
            cpus: cpus.collect(),
        },
    }
}

/// A line of JSON for each cell.
pub fn lines_of(cells: &[Cell<'_>]) -> String {
    let lines = cells.iter().map(|cell| {
        serde_json::to_string(&Line::of(cell)).expect("texts and numbers can be written")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The lines of `text`.
///
/// # Errors
/// The number of a line that is none, and why.
pub fn read_lines(text: &str) -> Result<Vec<Line>, String> {
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, text)| {
            let refused = |why: String| format!("line {}: {why}", number + 1);
            let line: Line =
                serde_json::from_str(text).map_err(|error| refused(error.to_string()))?;
            match line.schema <= JSON_SCHEMA {
                true => Ok(line),
                false => Err(refused(format!(
                    "its schema is {}, and this WarmQ reads up to {JSON_SCHEMA}",
                    line.schema
                ))),
            }
        })
        .collect()
}

/// The columns of lines, each once.
pub fn columns_of(lines: &[Line]) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    for line in lines {
        if !columns.contains(&line.column) {
            columns.push(line.column.clone());
        }
    }
    columns
}

/// The cells that are in `lines`; the others are skipped, and `again` is the command that plays
/// one.
pub fn known<'l>(
    laws: &'l [Found],
    columns: &'l [Column],
    lines: &[Line],
    again: &dyn Fn(&Found, &Column) -> String,
) -> Vec<Cell<'l>> {
    let of_law = |found: &'l Found| {
        columns.iter().map(move |column| {
            let known = found.known(column, lines);
            known.unwrap_or_else(|| Cell {
                again: again(found, column),
                digest: found.digest(),
                ..Cell::new(&found.law, column, skipped("it was not played"))
            })
        })
    };
    laws.iter().flat_map(of_law).collect()
}

/// What changed from `before` to the cell: its verdict, or its figure by more than the repetitions
/// of either differ.
pub fn changed(before: &Line, cell: &Cell<'_>) -> Option<String> {
    let now = cell.judged.verdict;
    let (finding, bound) = cell.decisive()?;
    let mut bounds = before.judged.bounds.iter();
    let old = bounds.find(|old| old.figure == bound.figure);
    let differs = old.is_some_and(|old| finding.low > old.high || finding.high < old.low);
    if before.judged.verdict == now && !differs {
        return None;
    }
    let shown = |value: f64| shown::value(value, bound.unit);
    Some(format!(
        "{} in {}: {} was {} ({}), and is {} ({})",
        cell.law.name,
        cell.column,
        bound.figure,
        before.judged.verdict.name(),
        shown(old.map_or(f64::NAN, |old| old.value)),
        now.name(),
        shown(finding.value),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Columns;
    use crate::verdict::{Repetition, judge};

    const TEXT: &str = "title = \"a test\"\n[law]\nfamily = \"shares\"\nbecause = \"a test\"\n\
        [[law.bound]]\nfigure = \"hog_share\"\nat_least = 40\n[task.hog]\nbody = [{ run = \"1ms\" }]\n";

    fn law() -> Law {
        Law::read("test", "test.toml", TEXT).unwrap()
    }

    fn cell<'l>(law: &'l Law, column: &'l Column, shares: &[f64]) -> Cell<'l> {
        let repetition = |share: &f64| Repetition {
            seed: 1,
            outcome: Ok([("hog_share".to_owned(), *share)].into()),
            taken_us: 0.0,
        };
        let repetitions: Vec<_> = shares.iter().map(repetition).collect();
        let ms = |ms: u64| Instant::START + Duration::from_ms(ms);
        let evidence = Evidence {
            task: "hog 0".to_owned(),
            from: ms(3),
            to: ms(8),
            ran: vec![("other".to_owned(), Duration::from_ms(5))],
            chart: Chart {
                from: ms(2),
                to: ms(9),
                who: vec!["other".to_owned()],
                cpus: vec![(CpuId(0), vec![None, Some(0)])],
            },
        };
        Cell {
            law,
            column,
            judged: judge(law, &repetitions),
            kept: Some(Kept {
                evidence: Some(evidence),
                trace: Some("t.perfetto".into()),
            }),
            again: "warmq laws test".to_owned(),
            digest: "0".to_owned(),
        }
    }

    fn column() -> Column {
        Columns::default().all().unwrap().remove(0)
    }

    #[test]
    fn a_cell_is_read_back_as_it_was() {
        let (law, column) = (law(), column());
        let cell = cell(&law, &column, &[30.0, 50.0, 35.0]);
        let lines = read_lines(&lines_of(std::slice::from_ref(&cell))).unwrap();
        assert!(lines[0].is_of(&law, "0", &column) && !lines[0].is_of(&law, "1", &column));
        let again = lines[0].cell(&law, &column).unwrap();
        assert_eq!(again.judged, cell.judged);
        let evidence = |cell: &Cell<'_>| cell.kept.clone().unwrap().evidence;
        assert_eq!(evidence(&again), evidence(&cell));
        let error = read_lines("{}\n").unwrap_err();
        assert!(error.contains("line 1"), "{error}");
    }

    #[test]
    fn lines_of_earlier_versions_are_read_and_later_ones_are_not() {
        let (law, column) = (law(), column());
        let line = lines_of(&[cell(&law, &column, &[50.0])]);
        let now = format!("\"schema\":{JSON_SCHEMA},");
        assert!(line.contains(&now), "{line}");
        assert_eq!(read_lines(&line.replace(&now, "")).unwrap()[0].schema, 0);
        let later = line.replace(&now, &format!("\"schema\":{},", JSON_SCHEMA + 1));
        let refused = read_lines(&later).unwrap_err();
        assert!(refused.starts_with("line 1: its schema is "), "{refused}");
    }

    #[test]
    fn a_change_is_another_verdict_or_figures_that_do_not_overlap() {
        let (law, column) = (law(), column());
        let differ = |before: &[f64], now: &[f64]| {
            changed(
                &Line::of(&cell(&law, &column, before)),
                &cell(&law, &column, now),
            )
            .is_some()
        };
        assert!(
            !differ(&[50.0, 52.0, 54.0], &[53.0, 55.0, 56.0]),
            "they overlap"
        );
        assert!(
            differ(&[50.0, 52.0, 54.0], &[55.0, 56.0, 57.0]),
            "they do not"
        );
        assert!(differ(&[41.0], &[39.0]), "broken now");
    }
}
