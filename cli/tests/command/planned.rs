//! Plans, runs of a plan made one by one, and their lines put together again.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use super::support::{Folder, Ran, TRIAL};

fn lines(text: &str) -> Vec<Value> {
    let object = |line| serde_json::from_str(line).unwrap();
    text.lines().map(object).collect()
}

fn trial(name: &str) -> Folder {
    Folder::new(&format!("planned-{name}")).with("trial.toml", TRIAL)
}

/// The runs of `trial.toml` that standard input names.
fn answered(folder: &Folder, input: &str) -> Ran {
    let mut command = folder.command("run trial.toml --only -");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    Ran::of(child.wait_with_output().unwrap())
}

fn digests(folder: &Folder) -> Vec<String> {
    let plan = lines(&folder.run("plan trial.toml --json").fine());
    plan.iter()
        .map(|line| line["run"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_plan_lists_every_run_once_point_by_point() {
    let folder = trial("list");
    let plan = lines(&folder.run("plan trial.toml --json").fine());
    let places = plan
        .iter()
        .map(|line| (line["point"]["tasks"].as_i64(), line["seed"].as_i64()));
    let expected = [(2, 1), (2, 2), (4, 1), (4, 2)].map(|(tasks, seed)| (Some(tasks), Some(seed)));
    assert_eq!(places.collect::<Vec<_>>(), expected);
    assert_eq!(
        digests(&folder).into_iter().collect::<BTreeSet<_>>().len(),
        4
    );
    let quick = lines(&folder.run("plan trial.toml --json --quick").fine());
    assert_eq!(quick, plan[..1]);
}

#[test]
fn a_digest_changes_with_whatever_the_run_depends_on() {
    let scenario = "[task.hog]\nbody = [{ run = \"10ms\" }]\n";
    let text = TRIAL
        .split("[sweep]")
        .next()
        .unwrap()
        .replace("\"spin\"", "\"mine.toml\"")
        + "[[measure]]\nmetric = \"cpu_busy_share\"\n";
    let folder = trial("digest")
        .with("of-file.toml", &text)
        .with("mine.toml", scenario);
    let first = |arguments: &str| {
        let plan = lines(&folder.run(&format!("plan {arguments} --json")).fine());
        plan[0]["run"].as_str().unwrap().to_owned()
    };
    let usual = first("trial.toml");
    assert_eq!(usual, first("trial.toml"));
    for other in [
        "--seeds 7,",
        "--set scheduler.colors=4",
        "--set ticks=drawn",
        "--machine tiny-2cpu",
    ] {
        assert_ne!(usual, first(&format!("trial.toml {other}")), "{other}");
    }
    let before = first("of-file.toml");
    std::fs::write(folder.0.join("mine.toml"), scenario.replace("10ms", "9ms")).unwrap();
    assert_ne!(
        before,
        first("of-file.toml"),
        "the scenario has changed, its name has not"
    );
}

#[test]
fn a_run_has_the_same_line_however_it_is_asked_for() {
    let folder = trial("same");
    let all = folder.run("run trial.toml --only 0-3").fine();
    let digests = digests(&folder);
    let one = folder
        .run(&format!("run trial.toml --only {}", digests[2]))
        .fine();
    assert_eq!(Some(one.as_str().trim_end()), all.lines().nth(2));
    let asked: String = digests
        .iter()
        .enumerate()
        .map(|(at, digest)| format!("{at}:{digest}\n"))
        .collect();
    assert_eq!(answered(&folder, &asked).fine(), all);
    let jobs = folder.run("run trial.toml --only 2-3,0-1 --jobs 1").fine();
    assert_eq!(jobs, all);
}

#[test]
fn runs_made_one_by_one_make_the_rows_and_claims_of_a_whole_run() {
    let folder = trial("collect");
    for part in ["0", "1-2", "3"] {
        let lines = folder.run(&format!("run trial.toml --only {part}")).fine();
        std::fs::write(folder.0.join(format!("part-{part}.jsonl")), lines).unwrap();
    }
    let collected = "run trial.toml --collect part-3.jsonl part-0.jsonl part-1-2.jsonl";
    let whole = folder.run("run trial.toml --json").fine();
    assert_eq!(folder.run(&format!("{collected} --json")).fine(), whole);
    assert!(
        folder
            .run(collected)
            .fine()
            .contains("claims: 1 hold, 1 fail")
    );
    let part = folder.run("run trial.toml --json --collect part-0.jsonl part-1-2.jsonl");
    assert!(
        part.err.contains("1 of 4 runs are not among the lines"),
        "{}",
        part.err
    );
    assert_eq!(
        lines(&part.fine()),
        lines(&whole).into_iter().step_by(2).collect::<Vec<_>>()
    );
}

#[test]
fn a_run_without_a_measurement_has_a_line_that_says_why() {
    // The machine has no memory for so many tasks.
    let text = TRIAL.replace("tasks = [2, 4]", "tasks = [2, 90000]");
    let folder = Folder::new("planned-failed").with("trial.toml", &text);
    let ran = folder.run("run trial.toml --only 0,2");
    assert_eq!(ran.code, 4, "{}", ran.err);
    let [fine, failed] = &lines(&ran.out)[..] else {
        panic!("{}", ran.out)
    };
    assert!(fine["figures"]["walk_length"].is_f64());
    assert_eq!(failed["error"]["cause"], "memory-full");
    std::fs::write(folder.0.join("all.jsonl"), &ran.out).unwrap();
    let collected = folder.run("run trial.toml --seeds 1, --collect all.jsonl --json");
    assert_eq!(collected.code, 4, "{}", collected.err);
    // Who asks run by run reads it in the line.
    let answers = answered(&folder, "0\n2\n");
    assert_eq!((answers.code, answers.out), (0, ran.out));
}

#[test]
fn lines_of_another_build_are_refused() {
    let folder = trial("build");
    let all = folder.run("run trial.toml --only 0-3").fine();
    let build = &lines(&all)[0]["build"];
    let summary = folder.run("plan trial.toml --summary").fine();
    assert_eq!(*build, lines(&summary)[0]["build"]);
    let other = all.replace(build.as_str().unwrap(), &"0".repeat(32));
    let none = all.replace("\"build\"", "\"builder\"");
    for text in [other, none] {
        std::fs::write(folder.0.join("all.jsonl"), text).unwrap();
        let ran = folder.run("run trial.toml --collect all.jsonl");
        assert_eq!(ran.code, 2, "{}", ran.err);
        let word = "all.jsonl:1: another build of warmq made this run";
        assert!(ran.err.contains(word), "{}", ran.err);
    }
}

#[test]
fn a_sweep_too_large_to_be_judged_is_planned_and_run_in_parts() {
    let numbers: Vec<String> = (1..=100).map(|number| number.to_string()).collect();
    let sweep = format!("tasks = [{0}]\nburst = [{0}]", numbers.join(", "));
    let head = TRIAL
        .split("[quick.sweep]")
        .next()
        .unwrap()
        .replace("tasks = [2, 4]", &sweep);
    let text = format!("{head}[[measure]]\nmetric = \"walk_length\"\n");
    let folder = Folder::new("planned-large").with("large.toml", &text);
    let refused = folder.run("run large.toml");
    assert_eq!(refused.code, 2);
    assert!(
        refused.err.contains("more than 4000 points"),
        "{}",
        refused.err
    );
    let plan = folder.run("plan large.toml --json").fine();
    assert_eq!(plan.lines().count(), 100 * 100 * 2);
    let last = lines(plan.lines().last().unwrap());
    assert_eq!(
        (&last[0]["point"]["tasks"], &last[0]["point"]["burst"]),
        (&100.into(), &100.into())
    );
    let of = |number: usize| lines(plan.lines().nth(number).unwrap()).remove(0);
    let run = &lines(&folder.run("run large.toml --only 1234").fine())[0];
    assert_eq!(
        (&run["run"], &run["point"]),
        (&of(1234)["run"], &of(1234)["point"])
    );

    let claim = "[[claim]]\nsays = \"so\"\nmetric = \"walk_length\"\nat_least = 0\n";
    let folder = folder.with("judged.toml", &(text + claim));
    let refused = folder.run("plan judged.toml");
    assert!(
        refused
            .err
            .contains("`claim`: the sweep is too large for it"),
        "{}",
        refused.err
    );
}

#[test]
fn what_is_not_in_the_plan_is_refused_with_the_way_out() {
    let folder = trial("refused")
        .with("planned.jsonl", "{\"run\": \"0\"}\n")
        .with("bad.jsonl", "x\n");
    let digest = "0123456789abcdef0123456789abcdef";
    for (arguments, word) in [
        (
            "--only 4",
            "there is no run 4: the plan has 4; count from 0",
        ),
        ("--only 0-9", "there is no run 9"),
        ("--only -,1", "standard input names all runs"),
        (
            &format!("--only {digest}"),
            "the plan has no run 0123456789abcdef0123456789abcdef",
        ),
        (
            &format!("--only 1:{digest}"),
            "plan it again with `warmq plan`",
        ),
        ("--only 3 --trace it.perfetto", "cannot be used with"),
        ("--only some", "`some` names no run; write a number (17)"),
        (
            "--collect planned.jsonl",
            "planned.jsonl:1: the plan has no run 0",
        ),
        (
            "--collect bad.jsonl",
            "bad.jsonl:1: this is no line of a run",
        ),
        ("--collect none.jsonl", "none.jsonl: cannot read it"),
    ] {
        let ran = folder.run(&format!("run trial.toml {arguments}"));
        assert_eq!(ran.code, 2, "{arguments}: {}", ran.err);
        assert!(ran.err.contains(word), "{arguments}: {}", ran.err);
    }
    let ran = answered(&folder, "1\n9\n");
    assert_eq!(
        (ran.code, ran.out.lines().count()),
        (2, 1),
        "the first was answered"
    );
}

#[test]
fn a_program_reads_file_line_key_and_fix_of_an_error() {
    let folder = trial("errors").with(
        "wrong.toml",
        &TRIAL.replace("[sweep]\ntasks", "[sweep]\ntaskz"),
    );
    let error = |arguments: &str| -> Value {
        let output = folder
            .command(arguments)
            .env("WARMQ_ERRORS", "json")
            .output()
            .unwrap();
        let ran = Ran::of(output);
        serde_json::from_str(ran.err.lines().last().unwrap()).unwrap()
    };
    let wrong = error("plan wrong.toml");
    assert_eq!(wrong["code"], 2);
    let problem = &wrong["problems"][0];
    assert_eq!(problem["file"], "wrong.toml");
    assert_eq!(
        (&problem["line"], &problem["key"]),
        (&12.into(), &"sweep.taskz".into())
    );
    assert_eq!(problem["fix"], "did you mean `tasks`?");
    let missing = &error("plan none.toml")["problems"][0];
    assert_eq!(missing["file"], "none.toml");
    assert!(missing["fix"].as_str().unwrap().starts_with("give a file"));
    assert_eq!(
        error("plan --nothing")["problems"][0]["what"],
        "unexpected argument '--nothing' found"
    );
}
