//! `warmq oracle`: shipped and drawn instances, as text and as JSON, and what it refuses.

use serde_json::Value;

use super::support::Folder;

const MINE: &str = r#"title = "Mine"
cpus = 2
cache = { lines = 2, fill = 1, write_back = 1 }
fragment = { A = 1, B = 2 }

[task]
v0 = { fragment = "A", run = 5 }
v1 = { fragment = "B", run = 3 }
v2 = { fragment = "A", run = 4, writes = false }
"#;

#[test]
fn what_comes_with_warmq_is_drawn() {
    let folder = Folder::new("oracle-shipped");
    let shown = ["example", "bins", "changes"]
        .map(|name| folder.run(&format!("oracle {name}")).fine())
        .join("\n");
    insta::assert_snapshot!("oracle_shipped", shown);
}

#[test]
fn the_worked_example_is_an_object_with_the_figures_of_the_paper() {
    let line = Folder::new("oracle-json")
        .run("oracle example --json")
        .fine();
    let read: Value = serde_json::from_str(&line).unwrap();
    let orders = read["orders"].as_array().unwrap();
    let last = |order: &Value| order["schedule"]["last_busy_unit"].as_u64();
    assert_eq!(last(&orders[0]), Some(22));
    assert_eq!(last(&orders[1]), Some(14));
    assert_eq!(last(&read["online"]), Some(14));
    assert_eq!(last(&read["optimum"]), Some(14));
    assert_eq!(read["optimum"]["exact"], true);
}

#[test]
fn instances_are_drawn_alike_from_one_seed_and_the_worst_can_be_shown() {
    let folder = Folder::new("oracle-random");
    let text = folder.run("oracle --random 200 --seed 5").fine();
    insta::assert_snapshot!("oracle_random", text);
    let gap = folder.run("run oracle-gap --quick").fine();
    assert!(gap.contains("claims: 2 hold, 0 fail; 0 runs"), "{gap}");
    let line = folder.run("oracle --random 200 --seed 5 --json").fine();
    let read: Value = serde_json::from_str(&line).unwrap();
    let gaps = read["gaps"].as_array().unwrap();
    assert_eq!(gaps.len(), 200);
    for gap in gaps {
        assert!(gap["online"].as_u64() >= gap["optimum"].as_u64(), "{gap}");
    }
    let command = read["worst_command"].as_str().unwrap();
    assert!(text.contains(command), "{command}");
    let command = command.strip_prefix("warmq ").unwrap();
    let worst = folder.run(&format!("{command} --json")).fine();
    let worst: Value = serde_json::from_str(&worst).unwrap();
    assert_eq!(worst["online"]["schedule"]["end"], read["worst"]["online"]);
    assert_eq!(worst["optimum"]["end"], read["worst"]["optimum"]);
}

#[test]
fn what_makes_no_sense_is_refused_with_its_place_and_a_fix() {
    let large: String = (0..40)
        .map(|number| {
            format!(
                "t{number} = {{ fragment = \"A\", run = {} }}\n",
                1 + 6 * number * number
            )
        })
        .collect();
    let folder = Folder::new("oracle-refused")
        .with("mine.toml", MINE)
        .with("fragment.toml", &MINE.replace("\"B\"", "\"C\""))
        .with("size.toml", &MINE.replace("B = 2", "B = 3"))
        .with("run.toml", &MINE.replace("run = 3", "run = 0"))
        .with("key.toml", &MINE.replace("cpus", "cpu"))
        .with("text.toml", "title = \n");
    let commands = [
        "oracle",
        "oracle nothing",
        "oracle fragment.toml",
        "oracle size.toml",
        "oracle run.toml",
        "oracle key.toml",
        "oracle text.toml",
        "oracle mine.toml --random 3",
        "oracle mine.toml --seed 3",
        "oracle --random 0",
        "oracle --random 3 --cpus 9",
    ];
    let mut refusals = String::new();
    for command in commands {
        let ran = folder.run(command);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (2, ""),
            "{command}: {}",
            ran.err
        );
        refusals.push_str(&format!("$ warmq {command}\n{}\n", ran.err));
    }
    insta::assert_snapshot!("oracle_refused", refusals);

    // What is too large for the optimum is shown without it.
    let text = MINE
        .replace("cpus = 2", "cpus = 5")
        .replace("[task]\n", &format!("[task]\n{large}"));
    let text = folder
        .with("large.toml", &text)
        .run("oracle large.toml")
        .fine();
    assert!(
        text.contains("optimum: not known; it is too large"),
        "{text}"
    );
    assert!(text.contains("online algorithm: "), "{text}");
}
