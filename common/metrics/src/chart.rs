//! A schedule as text: one line per CPU, one letter per step.

use warmq_trace::{Comm, Observer, Record, Table};
use warmq_units::{CpuId, Duration, Instant, TaskId, is_printable};

/// No line grows beyond this many letters.
const MOST_STEPS: u64 = 1 << 20;

/// The letter of an idle CPU.
const IDLE: char = '.';

/// Draws which task ran on which CPU, a letter for each step: `AAABBB..A`.
///
/// A task's letter is the first of its name, `?` for a task without one; `.` is an idle CPU. The
/// letter of a step is that of the task that ran for most of it; of equals, the one that ran first.
/// Interrupts are not drawn. Every CPU is idle from the start until its first switch.
///
/// ```
/// use warmq_metrics::Chart;
/// use warmq_trace::{Comm, Observer, Record};
/// use warmq_units::{CpuId, Duration, Instant, TaskId};
/// let ms = |ms| Instant::START + Duration::from_ms(ms);
/// let (cpu, task) = (CpuId(0), TaskId(0));
///
/// let mut chart = Chart::new(1, Duration::from_ms(1));
/// chart.see(ms(0), &Record::Fork { parent: None, child: task, comm: Comm::new("Anna") });
/// chart.see(ms(2), &Record::Switch { cpu, prev: None, prev_runnable: false, next: Some(task) });
/// chart.see(ms(5), &Record::Switch { cpu, prev: Some(task), prev_runnable: false, next: None });
/// assert_eq!(chart.lines(), ["..AAA"]);
/// assert_eq!(chart.lines_until(ms(7)), ["..AAA.."]);
/// ```
#[derive(Clone, Debug)]
pub struct Chart {
    step: Duration,
    cpus: usize,
    letters: Table<TaskId, char>,
    // Entry i: the turns of CPU i, in the order of time.
    turns: Table<CpuId, Vec<Turn>>,
    last: Instant,
}

/// From `since` until the next turn, the CPU's letter is `letter`.
#[derive(Clone, Copy, Debug)]
struct Turn {
    since: Instant,
    letter: char,
}

impl Chart {
    /// A chart of CPUs 0 to `cpus - 1` in steps of `step`; other CPUs are not drawn.
    ///
    /// # Panics
    /// When `step` is zero.
    pub fn new(cpus: usize, step: Duration) -> Chart {
        assert!(step > Duration::ZERO, "a chart in steps of nothing");
        Chart {
            step,
            cpus,
            letters: Table::default(),
            turns: Table::default(),
            last: Instant::START,
        }
    }

    /// One line per CPU, up to the last record seen; an incomplete last step is drawn, too.
    pub fn lines(&self) -> Vec<String> {
        self.lines_until(self.last)
    }

    /// One line per CPU, from the start up to `end`; the letter of a step that `end` cuts stands
    /// for the part before `end`. A line ends after 2^20 steps.
    pub fn lines_until(&self, end: Instant) -> Vec<String> {
        self.lines_of(self.cpus, end)
    }

    /// As [`Chart::lines_until`], of the first `cpus` CPUs alone.
    pub fn lines_of(&self, cpus: usize, end: Instant) -> Vec<String> {
        let cpus = u16::try_from(cpus.min(self.cpus)).unwrap_or(u16::MAX);
        (0..cpus).map(|cpu| self.line(CpuId(cpu), end)).collect()
    }

    fn line(&self, cpu: CpuId, end: Instant) -> String {
        let turns = self.turns.get(cpu).map_or(&[][..], Vec::as_slice);
        let steps = end.0.div_ceil(self.step.0).min(MOST_STEPS);
        let mut next = 0;
        let mut holder = IDLE;
        let mut line = String::new();
        for step in 0..steps {
            let from = Instant(step * self.step.0);
            let to = Instant(from.0.saturating_add(self.step.0)).min(end);
            let begun = turns[next..].partition_point(|turn| turn.since < to);
            line.push(longest(holder, from, to, &turns[next..next + begun]));
            next += begun;
            holder = next.checked_sub(1).map_or(IDLE, |last| turns[last].letter);
        }
        line
    }
}

/// The letter that had the CPU for most of the time between `from` and `to`. `holder` has it at
/// first, and `turns` begin in between.
fn longest(holder: char, from: Instant, to: Instant, turns: &[Turn]) -> char {
    let mut shares: Vec<(char, Duration)> = Vec::new();
    let first = [Turn {
        since: from,
        letter: holder,
    }];
    let ends = turns.iter().map(|turn| turn.since).chain([to]);
    for (turn, end) in first.iter().chain(turns).zip(ends) {
        let span = end.since(turn.since);
        match shares.iter_mut().find(|(letter, _)| *letter == turn.letter) {
            Some((_, share)) => *share += span,
            None => shares.push((turn.letter, span)),
        }
    }
    // `max_by_key` prefers the last of equals.
    shares
        .into_iter()
        .rev()
        .max_by_key(|(_, share)| *share)
        .map_or(IDLE, |(letter, _)| letter)
}

/// The first letter of a name, if it has one that can be drawn.
fn letter_of(comm: Comm) -> char {
    let first = comm.raw().chars().next();
    first.filter(|letter| is_printable(*letter)).unwrap_or('?')
}

impl Observer for Chart {
    const DETAIL: bool = false;

    fn see(&mut self, at: Instant, record: &Record) {
        // A record with an earlier time than the one before is drawn at the last time seen.
        self.last = self.last.max(at);
        match *record {
            Record::Fork { child, comm, .. } => {
                *self.letters.touch(child) = letter_of(comm);
            }
            Record::Switch { cpu, next, .. } if cpu.index() < self.cpus => {
                let letter = match next {
                    Some(task) => self.letters.get(task).copied().unwrap_or('?'),
                    None => IDLE,
                };
                self.turns.touch(cpu).push(Turn {
                    since: self.last,
                    letter,
                });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use warmq_trace::Comm;

    use super::*;

    fn us(us: u64) -> Instant {
        Instant::START + Duration::from_us(us)
    }

    /// A chart, in steps of 1 ms, of switches (time in us, CPU, next task).
    fn drawn(cpus: usize, switches: &[(u64, u16, Option<u32>)]) -> Chart {
        let mut chart = Chart::new(cpus, Duration::from_ms(1));
        for (task, name) in (0..).zip(["Anna", "Bert", "", "özil"]) {
            let comm = Comm::new(name);
            chart.see(
                us(0),
                &Record::Fork {
                    parent: None,
                    child: TaskId(task),
                    comm,
                },
            );
        }
        for (at, cpu, next) in switches {
            let (cpu, next) = (CpuId(*cpu), next.map(TaskId));
            chart.see(
                us(*at),
                &Record::Switch {
                    cpu,
                    prev: None,
                    prev_runnable: true,
                    next,
                },
            );
        }
        chart
    }

    #[test]
    fn each_step_has_the_letter_of_who_had_most_of_it() {
        type Row<'a> = (&'a [(u64, u16, Option<u32>)], u64, &'a str);
        let table: [Row; 8] = [
            (&[], 3_000, "..."),
            (&[(0, 0, Some(0)), (3_000, 0, Some(1))], 6_000, "AAABBB"),
            (&[(400, 0, Some(0))], 1_000, "A"),
            (&[(500, 0, Some(0))], 1_000, "."),
            (&[(501, 0, Some(0))], 1_000, "."),
            (
                &[(0, 0, Some(0)), (300, 0, Some(1)), (700, 0, Some(0))],
                2_000,
                "AA",
            ),
            (
                &[(0, 0, Some(2)), (1_000, 0, Some(3)), (2_000, 0, Some(9))],
                3_000,
                "?ö?",
            ),
            (&[(0, 0, Some(0)), (2_000, 0, None)], 2_100, "AA."),
        ];
        for (switches, end, line) in table {
            assert_eq!(
                drawn(1, switches).lines_until(us(end)),
                [line],
                "{switches:?}"
            );
        }
    }

    #[test]
    fn each_cpu_has_its_line_and_strangers_have_none() {
        let chart = drawn(
            2,
            &[(0, 1, Some(1)), (1_000, 0, Some(0)), (2_000, 7, Some(0))],
        );
        assert_eq!(chart.lines(), [".A", "BB"]);
    }

    #[test]
    fn a_line_ends_even_where_time_does_not() {
        let chart = drawn(1, &[(0, 0, Some(0))]);
        let lines = chart.lines_until(Instant(u64::MAX));
        assert_eq!(lines[0].len() as u64, MOST_STEPS);
        assert!(lines[0].bytes().all(|letter| letter == b'A'));
    }
}
