//! A failure for programs: one line of JSON, where the environment sets `WARMQ_ERRORS=json`.

use serde_json::{Value, json};
use warmq_config::Problem;
use warmq_units::{JSON_SCHEMA, printable};

use super::Failure;

/// Whether whoever started the command reads errors by program.
pub fn is_wanted() -> bool {
    std::env::var_os("WARMQ_ERRORS").is_some_and(|value| value == "json")
}

/// Mistakes on the command line, as clap reports them.
pub fn usage(error: &clap::Error) -> Value {
    let text = error.to_string();
    let what = text.lines().next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(what);
    failure(
        error.exit_code(),
        vec![sentence(what, "see `warmq --help`")],
    )
}

/// All that `failure` says, with its exit code.
pub(super) fn of(failed: &Failure) -> Value {
    failure(failed.number(), problems(failed))
}

fn problems(failed: &Failure) -> Vec<Value> {
    match failed {
        Failure::Usage(what, help) | Failure::Lacking(what, help) => vec![sentence(what, help)],
        Failure::File { file, what, help } => vec![problem(Some(file), None, "", what, help)],
        Failure::Problems(files) => {
            let problems = files.iter().flat_map(|problems| &problems.list);
            problems.map(in_document).collect()
        }
        Failure::Runs(_, sentences) => sentences.iter().map(|text| sentence(text, "")).collect(),
        Failure::Several(all) => all.iter().flat_map(problems).collect(),
        other => vec![sentence(other.text().trim_start_matches("warmq: "), "")],
    }
}

fn failure(code: i32, problems: Vec<Value>) -> Value {
    json!({"schema": JSON_SCHEMA, "code": code, "problems": problems})
}

fn sentence(what: &str, fix: &str) -> Value {
    problem(None, None, "", what, fix)
}

fn in_document(found: &Problem) -> Value {
    let Problem {
        line,
        key,
        what,
        help,
        ..
    } = found;
    problem(Some(&found.source.name), *line, key, what, help)
}

fn problem(file: Option<&str>, line: Option<usize>, key: &str, what: &str, fix: &str) -> Value {
    json!({
        "file": file.map(|name| printable(name).to_string()),
        "line": line,
        "key": filled(key),
        "what": what,
        "fix": filled(fix),
    })
}

fn filled(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}
