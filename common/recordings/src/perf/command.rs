//! What perf left out, by the command that a file has.

/// Options that leave events out.
const FILTERS: [&str; 8] = [
    "--filter", "-p", "--pid", "-t", "--tid", "-u", "--uid", "-G",
];
/// Other options whose value is a word of its own.
const WITH_VALUE: [&str; 14] = [
    "-e",
    "--event",
    "-o",
    "--output",
    "-m",
    "--mmap-pages",
    "-c",
    "--count",
    "-F",
    "--freq",
    "-C",
    "--cpu",
    "-k",
    "--clockid",
];

/// The options of `command` that leave events out. Those of the program that it starts are none of
/// perf's: its name is the first word that is neither an option nor the value of one.
pub(super) fn filters(command: &str) -> impl Iterator<Item = &str> {
    let mut words = command
        .split(' ')
        .skip_while(|word| *word != "record")
        .skip(1);
    let options = std::iter::from_fn(move || {
        let option = words
            .next()
            .filter(|word| word.starts_with('-') && *word != "--")?;
        if WITH_VALUE.contains(&option) || FILTERS.contains(&option) {
            words.next();
        }
        Some(option)
    });
    options.filter(|option| FILTERS.contains(option))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_program_that_is_recorded_are_its_own() {
        for (command, found) in [
            ("/usr/bin/perf record -a -e sched:* -p 12 -o it", vec!["-p"]),
            (
                "perf record -e sched:sched_switch --filter prev_pid==0 -a",
                vec!["--filter"],
            ),
            ("perf record -a -e sched:* hackbench -p -g 4 -t", vec![]),
            ("perf sched record -- hackbench -p", vec![]),
            ("perf record -a -m 64 -o it ./load -u", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(filters(command).collect::<Vec<_>>(), found, "{command}");
        }
    }
}
