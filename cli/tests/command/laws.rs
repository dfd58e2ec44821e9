//! `warmq laws` in the lab: the matrix, its exit codes, what is kept of it, a law of one's own.

use serde_json::Value;

use super::support::Folder;

const MINE: &str = r#"
title = "A hog has its CPU"

[law]
family = "shares"
because = "nobody else wants it"
cpus = 1
time = "100ms"

[[law.bound]]
figure = "hog_share"
at_least = 90

[task.hog]
body = [{ run = "1ms" }]
"#;

#[test]
fn the_matrix_says_who_keeps_what_and_its_exit_code_too() {
    let folder = Folder::new("laws-matrix").with("mine.toml", MINE);
    let kept = folder.run("laws nice mine.toml");
    assert_eq!(kept.code, 0, "{}", kept.err);
    let broken = folder.run("laws nice weights --scheduler linux24,broken");
    assert_eq!(broken.code, 1);
    insta::assert_snapshot!("laws_matrix", broken.out);
}

#[test]
fn every_cell_is_a_line_of_json_with_the_command_that_judges_it_again() {
    let folder = Folder::new("laws-json");
    let ran = folder.run("laws nice replaced --scheduler linux24 --json");
    let lines: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let said = |key: &str| {
        lines
            .iter()
            .map(|line| line[key].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(said("law"), ["nice", "replaced"]);
    assert_eq!(said("verdict"), ["broken", "skipped"]);
    let again = "warmq laws nice --world lab --scheduler linux24";
    assert_eq!(lines[0]["again"], again);
    assert_eq!(lines[0]["longest_wait"]["task"], "hog 0");
    let once_more = folder.run(&format!("{} --json", &again["warmq ".len()..]));
    assert_eq!(ran.out.lines().next(), once_more.out.lines().next());
}

#[test]
fn a_folder_keeps_the_matrix_and_the_evidence_and_nothing_is_played_twice() {
    let folder = Folder::new("laws-folder").with("mine.toml", MINE);
    let first = folder.run("laws nice mine.toml --scheduler linux24 --out there");
    assert_eq!(first.code, 1);
    let names = Folder(folder.0.join("there")).names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "laws.html",
            "laws.jsonl",
            "laws.md",
            "nice-lab-linux24-1.perfetto"
        ]
    );
    let page = folder.text("there/laws.html");
    assert!(page.contains("Hogs of unlike nice") && page.contains("nice-lab-linux24-1.perfetto"));
    assert!(!page.contains("http://"), "the page needs no other");
    insta::assert_snapshot!("laws_markdown", folder.text("there/laws.md"));

    let resumed = folder.run("laws nice mine.toml --scheduler linux24 --out there --resume");
    assert!(resumed.err.contains("runs to do: 0"), "{}", resumed.err);
    assert_eq!((resumed.code, &resumed.out), (1, &first.out));
    let shown = folder.run("laws nice mine.toml --out there --show");
    assert_eq!((shown.code, &shown.out), (1, &first.out));

    // What was cut off is played again, as is a law that was changed since.
    let lines = folder.text("there/laws.jsonl");
    let changed = MINE.replace("at_least = 90", "at_least = 80");
    let cut = Folder(folder.0.clone())
        .with("there/laws.jsonl", &lines[..lines.len() - 40])
        .with("mine.toml", &changed);
    let again = cut.run("laws nice mine.toml --scheduler linux24 --out there --resume");
    assert!(again.err.contains("runs to do: 1"), "{}", again.err);

    let same = folder.run("laws nice --scheduler linux24 --against there/laws.jsonl");
    assert!(
        same.err.contains("nothing changed; cells compared: 1"),
        "{}",
        same.err
    );
}

#[test]
fn what_cannot_be_judged_is_refused_with_its_place_and_a_fix() {
    let of = |from: &str, to: &str| MINE.replace(from, to);
    let folder = Folder::new("laws-refused")
        .with("always.toml", &of("at_least = 90", "at_least = 0"))
        .with(
            "never.toml",
            &of("at_least = 90", "at_least = 90\nat_most = 50"),
        )
        .with("figure.toml", &of("hog_share", "hog_shares"))
        .with("family.toml", &of("\"shares\"", "\"sharing\""))
        .with(
            "none.toml",
            "title = \"t\"\n[task.hog]\nbody = [{ run = \"1ms\" }]\n",
        )
        .with("lines.jsonl", "{}\n");
    let commands = [
        "laws nise",
        "laws nothing.toml",
        "laws always.toml",
        "laws never.toml",
        "laws figure.toml",
        "laws family.toml",
        "laws none.toml",
        "laws nice --world moon",
        "laws nice --scheduler lottery",
        "laws nice --against lines.jsonl",
        "laws nice --resume",
        "laws nice --show --out nowhere",
    ];
    let refusals = commands.map(|command| {
        let ran = folder.run(command);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (2, ""),
            "{command}: {}",
            ran.err
        );
        format!("$ warmq {command}\n{}\n", ran.err)
    });
    insta::assert_snapshot!("laws_refused", refusals.concat());
}

#[test]
fn the_list_of_laws_has_a_form_for_programs() {
    let ran = Folder::new("laws-list-json").run("laws nice quota --list --json");
    let lines: Vec<Value> = ran
        .fine()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<_> = lines.iter().map(|line| &line["law"]).collect();
    assert_eq!(names, ["nice", "quota"]);
    assert!(lines.iter().all(|line| line["asks_for"][0].is_string()));
}
