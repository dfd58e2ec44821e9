//! What is set of a guest's kernel before a run through files of `/proc` and `/sys`: its tunables.

/// Where tunables are.
const BELOW: [&str; 2] = ["/proc/", "/sys/"];

/// Writes the value of each pair up to `--` into its file, and becomes the command after it.
const SCRIPT: &str = r#"while [ "$1" != -- ]; do
    echo "$2" >"$1" || { echo "error: the kernel does not take $2 in $1" >&2; exit 2; }
    shift 2
done
shift
exec "$@""#;

/// `command` after the tunables of `text`, each as `FILE=VALUE`, are set.
///
/// # Errors
/// A word of `text` that is not such a pair.
pub(super) fn set_before(command: Vec<String>, text: &str) -> Result<Vec<String>, String> {
    let mut all = ["/bin/sh", "-c", SCRIPT, "tunables"]
        .map(str::to_owned)
        .to_vec();
    for word in text.split_whitespace() {
        let pair = word.split_once('=');
        let Some((file, value)) = pair.filter(|(file, _)| is_below(file)) else {
            return Err(format!(
                "`tunables`: {word:?} is not FILE=VALUE with a file below /proc or /sys; write for example \
                 /sys/kernel/debug/sched/features=NO_PLACE_LAG"
            ));
        };
        all.extend([file.to_owned(), value.to_owned()]);
    }
    if all.len() == 4 {
        return Ok(command);
    }
    all.push("--".to_owned());
    all.extend(command);
    Ok(all)
}

fn is_below(file: &str) -> bool {
    BELOW.iter().any(|folder| file.starts_with(folder)) && !file.contains("/../")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Vec<String> {
        vec!["/bin/echo".to_owned(), "it runs".to_owned()]
    }

    #[test]
    fn a_command_without_tunables_stays_as_it_is() {
        assert_eq!(set_before(command(), " ").unwrap(), command());
    }

    #[test]
    fn tunables_are_written_before_the_command_and_one_that_is_refused_ends_it() {
        // No kernel has this file; the shell says so, and the command is not run.
        let all = set_before(command(), "/proc/self/comm=renamed /proc/nobody=1").unwrap();
        let run = |all: &[String]| {
            let run = std::process::Command::new(&all[0]).args(&all[1..]).output();
            run.expect("a shell")
        };
        let refused = run(&all);
        assert_eq!(refused.status.code(), Some(2));
        assert!(refused.stdout.is_empty());
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(
            said.contains("the kernel does not take 1 in /proc/nobody"),
            "{said}"
        );
        let all = set_before(command(), "/proc/self/comm=renamed").unwrap();
        assert_eq!(run(&all).stdout, b"it runs\n");
    }

    #[test]
    fn what_is_no_tunable_is_refused_by_name() {
        for word in [
            "NO_PLACE_LAG",
            "/etc/passwd=1",
            "/proc/../etc/passwd=1",
            "proc/x=1",
        ] {
            let why = set_before(command(), &format!("/proc/a=1 {word}")).unwrap_err();
            assert!(why.contains(&format!("{word:?}")), "{why}");
        }
    }
}
