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

/// What `command` left out, as one reads of it.
pub(super) fn left_out(command: &str) -> impl Iterator<Item = String> {
    let (options, starts_program) = options(command);
    let is_record = command.split(' ').nth(1) == Some("record");
    let only_program = is_record && starts_program && !options.iter().any(|word| names_cpus(word));
    let filters = options.into_iter();
    let filters = filters.filter(|option| FILTERS.contains(option));
    let filters = filters.map(|option| format!("perf left events out ({option})"));
    let only_program = only_program.then(|| {
        "perf left events out: without -a it sees the program that it starts, and no other"
            .to_owned()
    });
    filters.chain(only_program)
}

/// The options of `command`, and whether it starts a program, whose options are none of perf's: its
/// name is the first word that is neither an option nor the value of one.
fn options(command: &str) -> (Vec<&str>, bool) {
    let mut words = command.split(' ');
    words.find(|word| *word == "record");
    let mut options = Vec::new();
    while let Some(word) = words.next() {
        if word == "--" {
            return (options, words.next().is_some());
        }
        if !word.starts_with('-') {
            return (options, true);
        }
        options.push(word);
        if WITH_VALUE.contains(&word) || FILTERS.contains(&word) {
            words.next();
        }
    }
    (options, false)
}

/// Whether an option, maybe of several letters, says of which CPUs all is recorded.
fn names_cpus(option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(long) => long == "all-cpus" || long.starts_with("cpu"),
        None => {
            let letters = option.chars().skip(1);
            let mut alone = letters.take_while(|letter| !"ecFkmoptuG".contains(*letter));
            alone.any(|letter| "aC".contains(letter))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_program_that_is_recorded_are_its_own() {
        for (command, found) in [
            (
                "/usr/bin/perf record -a -e sched:* -p 12 -o it",
                Some("(-p)"),
            ),
            (
                "perf record -e sched:sched_switch --filter prev_pid==0 -a",
                Some("(--filter)"),
            ),
            ("perf record -a -e sched:* hackbench -p -g 4 -t", None),
            ("perf sched record -- hackbench -p", None),
            ("perf record -aR -m 64 -o it ./load -u", None),
            ("perf record -e sched:*", None),
            ("perf record -e sched:* -C 0 -- hackbench", None),
            (
                "/usr/bin/perf record -e sched:* -- hackbench -a",
                Some("without -a"),
            ),
            ("perf record -o it -e sched:* hackbench", Some("without -a")),
            ("", None),
        ] {
            let left_out: Vec<_> = left_out(command).collect();
            let is = left_out
                .iter()
                .all(|left| left.contains(found.unwrap_or("-")));
            assert_eq!(left_out.len(), usize::from(found.is_some()), "{command}");
            assert!(is, "{command}: {left_out:?}");
        }
    }
}
