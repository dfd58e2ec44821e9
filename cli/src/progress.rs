//! How far the work is: a bar on a terminal, a line every few seconds elsewhere.

use std::io::{self, IsTerminal};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use warmq_experiment::Progress;

use crate::output::say;

/// Time between two lines where there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(5);
/// What takes less time shows no progress.
const UNSHOWN: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(200);
const BAR: &str = "{bar:30} {pos}/{len} {what} {elapsed}, {eta} left  {wide_msg}";
const SPINNER: &str = "{spinner} {msg} {elapsed}";

/// Shows progress on standard error until it is dropped.
pub enum Watch {
    /// On a terminal.
    Bar(ProgressBar),
    /// Into a file or a pipe: when it began, and when the last line was written.
    Lines {
        what: String,
        began: Instant,
        last: Mutex<Instant>,
    },
}

impl Watch {
    /// Progress in `what` (`runs`), of which there are `total`.
    pub fn over(what: &str, total: usize) -> Watch {
        let template = BAR.replace("{what}", what);
        let bar = || ProgressBar::new(total as u64);
        Watch::new(bar, &template, what, &format!("{what} to do: {total}"))
    }

    /// Work whose parts cannot be counted.
    pub fn until_done(what: &str) -> Watch {
        let bar = || ProgressBar::new_spinner().with_message(what.to_owned());
        Watch::new(bar, SPINNER, what, what)
    }

    fn new(bar: impl FnOnce() -> ProgressBar, template: &str, what: &str, first: &str) -> Watch {
        if io::stderr().is_terminal() {
            let style = ProgressStyle::with_template(template);
            let bar = bar().with_style(style.expect("the templates are our own"));
            tick(&bar);
            return Watch::Bar(bar);
        }
        say(&format!("warmq: {first}"));
        let began = Instant::now();
        Watch::Lines {
            what: what.to_owned(),
            began,
            last: Mutex::new(began),
        }
    }

    /// `done` of `total` parts are done, the last of them called `name`.
    pub fn see(&self, done: usize, total: usize, name: &str) {
        match self {
            Watch::Bar(bar) => {
                bar.set_length(total as u64);
                // Parts end on several threads, and one may overtake another on its way here.
                bar.set_position(bar.position().max(done as u64));
                bar.set_message(name.to_owned());
            }
            Watch::Lines { what, began, last } => {
                let Ok(mut last) = last.lock() else { return };
                if last.elapsed() < BETWEEN_LINES {
                    return;
                }
                *last = Instant::now();
                let left = began.elapsed().as_secs_f64() / done.max(1) as f64
                    * total.saturating_sub(done) as f64;
                let left = HumanDuration(Duration::from_secs_f64(left));
                say(&format!(
                    "warmq: {done} of {total} {what} done, {left} left: {name}"
                ));
            }
        }
    }
}

/// Progress in runs, of which there are as many as the first call says.
#[derive(Default)]
pub struct OfRuns(OnceLock<Watch>);

impl OfRuns {
    /// Shows how many are done.
    pub fn see(&self, progress: Progress<'_>) {
        let Progress { done, total, name } = progress;
        let watch = self.0.get_or_init(|| Watch::over("runs", total));
        if done > 0 {
            watch.see(done, total, name);
        }
    }
}

/// Moves `bar` until it is finished. Without a thread for that it moves when parts are done.
fn tick(bar: &ProgressBar) {
    let bar = bar.clone();
    let tick = move || {
        while !bar.is_finished() {
            bar.tick();
            thread::sleep(TICK);
        }
    };
    let _ = thread::Builder::new().spawn(tick);
}

/// Progress that shows only once the work has taken two seconds: most such work is done before.
pub struct Late {
    what: &'static str,
    began: Instant,
    watch: Option<Watch>,
}

impl Late {
    /// Progress in `what` (`rows`).
    pub fn over(what: &'static str) -> Late {
        Late {
            what,
            began: Instant::now(),
            watch: None,
        }
    }

    /// `done` of `total` parts are done, the last of them called `name`.
    pub fn see(&mut self, done: usize, total: usize, name: &str) {
        if self.watch.is_none() && self.began.elapsed() >= UNSHOWN {
            self.watch = Some(Watch::over(self.what, total));
        }
        if let Some(watch) = &self.watch {
            watch.see(done, total, name);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Watch::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
