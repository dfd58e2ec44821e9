//! What is refused, with the words that a person reads: place, key, what is wrong, and a fix.

use warmq_scenario::Scenario;

const HOG: &str = "[task.hog]\nbody = [{ run = \"1ms\" }]\n";

fn refusal(text: &str) -> String {
    match Scenario::read("s.toml", text) {
        Ok(_) => panic!("this is accepted:\n{text}"),
        Err(problems) => problems.to_string(),
    }
}

/// All messages of `table`: texts beside what is wrong with them.
fn all(table: &[&str]) -> String {
    let refusals: Vec<String> = table
        .iter()
        .map(|text| format!("{text}\n=> {}", refusal(text)))
        .collect();
    refusals.join("\n\n")
}

fn beside_a_hog(tables: &[&str]) -> String {
    let tables: Vec<String> = tables
        .iter()
        .map(|table| format!("{table}\n{HOG}"))
        .collect();
    let refusals: Vec<String> = tables.iter().map(|text| refusal(text)).collect();
    refusals.join("\n")
}

fn step(steps: &[&str]) -> String {
    let objects = "[settings]\nn = 3\nlong = \"2ms\"\nmode = { default = \"a\", choices = [\"a\", \"b\"] }\n\
                   [curve.bent]\npoints = [[0, 0], [1, 3]]\n\
                   [region.data]\nbytes = \"64KB\"\n[mutex.lock]\n[condition.ready]\n[pipe.line]\n\
                   [stream.link]\nfor = { i = \"n\" }\n[datagram.socket]\n[semaphore.free]\n\
                   [timer.tick]\n[futex.word]\n[file.null]\npath = \"/dev/null\"\n[queue.work]\nholds = 3\n";
    let scenario = |step: &&str| {
        format!("{objects}[task.t]\nbody = [{{ run = 1 }}, {step}]\n")
            .replace("run = 1 ", "run = \"1ms\" ")
    };
    let refusals: Vec<String> = steps
        .iter()
        .map(|text| format!("{text}\n=> {}", refusal(&scenario(text))))
        .collect();
    refusals.join("\n")
}

#[test]
fn unknown_keys_and_names_come_with_a_suggestion() {
    insta::assert_snapshot!(step(&[
        "{ rum = \"1ms\" }",
        "{ bytes = \"1B\", send = \"line\" }",
        "{ run = \"1ms\", times = 3 }",
        "{ lock = \"lok\" }",
        "{ lock = \"data\" }",
        "{ spawn = \"u\" }",
        "{ run = \"lon\" }",
        "{ run = \"2mss\" }",
        "{ repeat = \"cpu\", body = [{ yield = true }] }",
        "{ repeat = \"0.9 per cpus\", body = [{ yield = true }] }",
        "{ repeat = \"0.0001 per cpu\", body = [{ yield = true }] }",
        "{ repeat = \"0 per cpu\", body = [{ yield = true }] }",
        "{ sleep = \"1.5\" }",
        "{ sleep = \"1.5KB\" }",
        "{ sleep = \"1.0005ns\" }",
        "{ sleep = \"1.5.5ms\" }",
        "{ sleep = \"1.ms\" }",
        "{ sleep = \"99999999.5s\" }",
        "{ sleep = \"2 per llc\" }",
        "{ repeat = 2, as = \"cpus\", body = [{ yield = true }] }",
        "{ touch = \"data\", pattern = \"backwards\" }",
        "{ run = \"1ms\", when = \"mode = c\" }",
        "{ run = \"1ms\", when = \"modus = a\" }",
        "{}",
    ]));
}

#[test]
fn what_a_number_counts_is_checked() {
    insta::assert_snapshot!(step(&[
        "{ run = 5 }",
        "{ run = \"4KB\" }",
        "{ sleep = \"2000 cycles\" }",
        "{ sleep = \"long + n\" }",
        "{ sleep = \"long * long\" }",
        "{ sleep = \"1s / 4KB\" }",
        "{ sleep = \"long %\" }",
        "{ sleep = \"(long\" }",
        "{ sleep = \"mode\" }",
        "{ repeat = \"bent(long)\", body = [{ yield = true }] }",
        "{ repeat = \"bend(n)\", body = [{ yield = true }] }",
        "{ repeat = \"bent n\", body = [{ yield = true }] }",
        "{ repeat = \"bent(n\", body = [{ yield = true }] }",
        "{ sleep = \"bent(n)\" }",
        "{ sleep = \"99999999999s\" }",
        "{ send = \"line\", bytes = 100 }",
        "{ touch = \"data\", write = 25 }",
        "{ run = { uniform = [\"1ms\"] } }",
        "{ run = { pareto = \"1ms\", shape = \"1.0\" } }",
        "{ run = { exponential = \"1ms\", among = [\"2ms\"] } }",
        "{ run = { exponential = \"1ms\", shape = \"1.5\" } }",
        "{ run = { among = [] } }",
    ]));
}

#[test]
fn spin_locks_are_checked() {
    insta::assert_snapshot!(beside_a_hog(&[
        "[spinlock.l]\nthen = \"park\"",
        "[spinlock.l]\nspins = 10",
        "[spinlock.l]\nthen = \"yield\"\ndelay = \"1ms\"",
        "[spinlock.l]\nthen = \"futex\"\ndelay_most = \"1ms\"",
        "[spinlock.l]\nthen = \"sleep\"\ndelay = \"2s\"",
        "[spinlock.l]\nthen = \"sleep\"\ndelay = \"0ms\"",
        "[spinlock.l]\nthen = \"sleep\"\nspins = \"10us\"",
        "[spinlock.l]\npause = \"0ns\"",
        "[spinlock.l]\npause = 40",
        "[spinlock.l]\nspin = 10",
    ]));
    insta::assert_snapshot!(all(&[
        "[spinlock.l]\n[task.t]\nbody = [{ unlock = \"l\" }, { run = \"1ms\" }]",
        "[spinlock.l]\n[condition.c]\n[task.t]\nbody = [{ lock = \"l\" }, { wait = \"c\", mutex = \"l\" }, { unlock = \"l\" }]",
        "[spinlock.l]\n[task.t]\nbody = [{ lock = \"l[0]\" }, { run = \"1ms\" }, { unlock = \"l\" }]",
        "[spinlock.l]\n[task.t]\nbody = [{ run = \"1ms\" }, { count = \"l_taken\" }]",
        "[spinlock.l]\n[task.t]\nbody = [{ lock = \"l\" }, { unlock = \"l\" }]",
    ]));
}

#[test]
fn references_name_one_object() {
    insta::assert_snapshot!(step(&[
        "{ send = \"link\", bytes = \"1B\" }",
        "{ send = \"link[0]\", bytes = \"1B\" }",
        "{ send = \"link[0].middle\", bytes = \"1B\" }",
        "{ send = \"link[0, 1].near\", bytes = \"1B\" }",
        "{ send = \"link[3].near\", bytes = \"1B\" }",
        "{ send = \"link[0\", bytes = \"1B\" }",
        "{ send = \"line.near\", bytes = \"1B\" }",
        "{ send = \"line[0]\", bytes = \"1B\" }",
        "{ send = \"line\" }",
        "{ receive = \"line\" }",
        "{ receive = \"socket\", bytes = \"1B\" }",
        "{ repeat = \"n + 1\", as = \"k\", body = [{ send = \"link[k].near\", bytes = \"1B\" }] }",
        "{ repeat = 2, as = \"n\", body = [{ run = \"1ms\" }] }",
    ]));
}

#[test]
fn nobody_waits_for_what_nobody_does() {
    insta::assert_snapshot!(step(&[
        "{ receive = \"line\", bytes = \"1B\" }",
        "{ receive = \"link[0].near\", bytes = \"1B\" }, { send = \"link[0].near\", bytes = \"1B\" }",
        "{ receive = \"socket\" }",
        "{ take = \"work\" }",
        "{ lower = \"free\" }",
        "{ lock = \"lock\" }, { wait = \"ready\", mutex = \"lock\" }",
        "{ signal = \"ready\" }, { wait = \"ready\", mutex = \"lock\" }",
        "{ wait = \"ready\" }",
        "{ wait = \"word\" }",
        "{ signal = \"word\" }, { wait = \"word\" }",
        "{ wait = \"word\", mutex = \"lock\", timeout = \"1ms\" }",
        "{ wait = \"word\", timeout = 5 }",
        "{ wait = \"line\" }",
        "{ unlock = \"lock\" }",
        "{ end = \"trip\" }",
        "{ begin = \"trip[0]\" }, { end = \"trip\" }",
    ]));
}

#[test]
fn values_have_bounds() {
    insta::assert_snapshot!(step(&[
        "{ fragment = \"4294967296\" }",
        "{ nice = 20 }",
        "{ nice = \"-21\" }",
        "{ sleep = \"long / (n - 3)\" }",
        "{ sleep = \"long - 3ms\" }",
        "{ sleep = \"9000000s * 9000000\" }",
        "{ touch = \"data\", write = \"101%\" }",
        "{ touch = \"data\", pattern = \"stride 0\" }",
        "{ run = { uniform = [\"3ms\", \"1ms\"] } }",
        "{ exit = false }",
        "{ timer = \"tick\" }",
        "{ timer = \"tick\", period = 5 }",
        "{ timer = \"lock\", period = \"5ms\" }",
        "{ write = \"null\" }",
        "{ write = \"null\", bytes = 5 }",
        "{ spin = \"5 cycles\" }",
        "{ cpus = \"cpu\" }",
        "{ policy = \"fifo 0\" }",
        "{ slice = 5 }",
        "{ uclamp_min = 1025 }",
        "{ uclamp_max = \"20%\" }",
        "{ group = \"lock\" }",
    ]));
}

#[test]
fn objects_and_changes_are_checked() {
    insta::assert_snapshot!(beside_a_hog(&[
        "[region.r]\nbytes = \"65GB\"",
        "[region.r]\n[regoin.s]",
        "[mutex.m]\n[condition.m]",
        "[mutex.\"a b\"]",
        "[pipe.p]\ncount = 2000000",
        "[pipe.p]\ncount = 2\nfor = { i = 3 }",
        "[queue.q]\nholds = 0",
        "[datagram.d]\n[source.s]\nto = \"d\"\nbytes = \"1B\"\nrate = \"0 per s\"",
        "[datagram.d]\n[source.s]\nto = \"d\"\nbytes = \"1B\"\nrate = \"5000\"",
        "[datagram.d]\n[source.s]\nto = \"d\"\nbytes = \"1B\"\nrate = \"5 per 0ms\"",
        "[datagram.d]\n[source.s]\nto = \"d\"\nbytes = \"1B\"\nevery = \"0ms\"",
        "[datagram.d]\n[source.s]\nto = \"d\"\nbytes = \"1B\"\nevery = \"1ms\"\non = \"1s\"",
        "[datagram.d]\n[source.s]\nto = \"d\"\nbytes = \"1B\"",
        "[stream.s]\nnagle = 1",
        "[stream.s]\nnagle = \"2ms\"",
        "[stream.s]\nnagle = \"delayed\"",
        "[stream.s]\nfamily = \"ipx\"",
        "[stream.s]\nfamily = \"unix\"\nnagle = true",
        "[stream.s]\nfamily = \"unix\"\nbuffer = \"0B\"",
        "[futex.f]\ninitial = 3",
        "[timer.t]\nmode = \"late\"",
        "[file.f]",
        "[file.f]\npath = \"\"",
        "[group.g]\nweight = 10001",
        "[group.g]\nquota = \"1ms\"",
        "[group.g]\nburst = \"1ms\"",
        "[group.g]\nquota = \"1ms\"\nperiod = \"10ms\"\nburst = \"2ms\"",
        "[group.g]\nquota = \"900us\"\nperiod = \"10ms\"",
        "[group.g]\nquota = \"1ms\"\nperiod = \"900us\"",
        "[group.g]\nquota = \"1ms\"\nperiod = \"2s\"",
        "[group.g]\nidle = true\nweight = 50",
        "[group.g]\ncpus = \"cpux\"",
        "[[change]]\nat = \"1s\"\ntask = \"hug\"\nset = { nice = 5 }",
        "[[change]]\nat = \"1s\"\ntask = \"hog\"\nset = { weight = 5 }",
        "[[change]]\ntask = \"hog\"\nset = { nice = 5 }",
        "[[change]]\nat = \"1s\"\nset = { nice = 5 }",
        "[[change]]\nat = \"1s\"\ncpu = \"cpu 1\"\nset = {}",
        "[[change]]\nat = \"1s\"\ntask = \"hog\"\nset = { cpus = \"cpus 3-1\" }",
        "[[change]]\nat = \"1s\"\ntask = \"hog\"\nset = { cpus = \"cpus 0-(cpus - 9)\" }",
        "[group.g]\ncpus = \"cpus 0-1-2\"",
        "[curve.c]",
        "[curve.c]\npoints = [[0, 0]]",
        "[curve.c]\npoints = [[1, 0], [1, 2]]",
        "[curve.c]\npoints = [[0, -1], [1, 2]]",
        "[curve.c]\npoints = [[0], [1, 2]]",
        "[curve.\"a b\"]\npoints = [[0, 0], [1, 2]]",
        "[[change]]\nat = \"1s\"\ntask = \"hog\"\nset = { cpus = \"part 2 of 2\" }",
        "[[change]]\nat = \"1s\"\ntask = \"hog\"\nset = { cpus = \"lcc 2\" }",
        "[[phase]]\nname = \"loaded\"",
        "[task.low]\nuclamp_min = 500\nuclamp_max = 400\nbody = [{ run = \"1ms\" }]",
        "[settings]\ncores = 4",
        "[[change]]\nat = \"1s\"\nscheduler = \"a b\"",
        "[[change]]\nat = \"1s\"\nscheduler = \"kernel\"\noptions = \"-v\"",
        "[[change]]\nat = \"1s\"\nscheduler = \"warmq\"\nset = { slice = \"1ms\" }",
        "[[change]]\nat = \"1s\"\nscheduler = \"warmq\"\ntask = \"hog\"",
        "[[change]]\nat = \"1s\"\nsource = \"s\"\nset = { stop = true }",
        "[[change]]\nat = \"1s\"\nsource = \"hog\"\nset = { stop = true }",
        "[settings]\nn = -1",
        "[settings]\nn = { default = 5, most = 4 }",
        "[settings]\nn = { default = \"5ms\", most = 4 }",
        "[settings]\nn = { most = 4 }",
        "[settings]\nn = { default = \"c\", choices = [\"a\", \"b\"] }",
        "[settings]\n\"n m\" = 3",
        "[settings]\nword = \"none\"",
        "[settings]\nflag = { default = true, most = 1 }",
    ]));
}

#[test]
fn sources_and_their_answers_are_checked() {
    let source = |keys: &str, body: &str| {
        format!(
            "[datagram.d]\n[pipe.p]\n[source.s]\nto = \"d\"\nbytes = \"64B\"\nrate = \"9 per s\"\n{keys}\n\
             [task.t]\nbody = [{body}]\n"
        )
    };
    let echoed = "{ receive = \"d\" }, { reply = \"d\", bytes = \"64B\" }";
    let echo = "echo = true\nspan = \"answer\"";
    let change = |set: &str| {
        let change = format!("[[change]]\nat = \"1s\"\nsource = \"s\"\nset = {set}");
        format!("{}{change}\n", source("", "{ receive = \"d\" }"))
    };
    let texts = [
        source("echo = true", echoed),
        source("span = \"answer\"", echoed),
        source("echo = true\nspan = \"answer[0]\"", echoed),
        source(echo, "{ receive = \"d\" }"),
        source(
            echo,
            "{ receive = \"d\" }, { reply = \"d\", bytes = \"8B\" }",
        ),
        source(echo, &format!("{echoed}, {{ end = \"answer\" }}")),
        source(echo, "{ reply = \"d\", bytes = \"64B\" }"),
        source(
            echo,
            "{ receive = \"d\" }, { reply = \"p\", bytes = \"64B\" }",
        ),
        source(echo, "{ receive = \"d\" }, { reply = \"d\" }"),
        source("cpu = \"core\"", echoed),
        source("cpu = \"part 2 of 2\"", echoed),
        source(echo, echoed).replace("64B\"\nrate", "15B\"\nrate"),
        change("{ cpus = \"cpu 1\" }"),
        change("{ rate = \"0 per s\" }"),
        change("{ cpu = \"cpu (cpus - 5)\" }"),
    ];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    insta::assert_snapshot!(all(&texts));
}

#[test]
fn tasks_are_checked() {
    let spawner = |times: &str, spawn: &str| {
        format!("[task.a]\n{times}body = [{{ run = \"1ms\" }}, {{ spawn = \"{spawn}\" }}]\n")
    };
    let spawned = |key: &str, times: &str, body: &str| {
        format!("[task.{key}]\nspawned = true\n{times}body = [{{ run = \"1ms\" }}{body}]\n")
    };
    let texts = [
        "title = \"nothing\"".to_owned(),
        "[task.t]".to_owned(),
        "[task.t]\nbody = []".to_owned(),
        "[task.a-task-of-a-long-name]\nbody = [{ run = \"1ms\" }]".to_owned(),
        format!("work = \"bursts\"\n{HOG}"),
        format!("order = \"sorted\"\n{HOG}"),
        format!("{HOG}count = 100001"),
        format!("{HOG}for = {{ i = 400, j = 400 }}"),
        format!("{HOG}policy = \"fifo\""),
        format!("{HOG}every = 10"),
        "[task.t]\nbody = [{ yield = true }, { count = \"rounds\" }]".to_owned(),
        "[settings]\nburst = \"0 cycles\"\n[task.t]\nbody = [{ run = \"burst\" }]".to_owned(),
        "[barrier.all]\ntasks = 3\n[task.t]\ncount = 2\nbody = [{ barrier = \"all\" }]".to_owned(),
        format!("{HOG}spawned = true"),
        "[task.a]\nbody = [{ run = \"1ms\" }, { begin = \"trip\" }]\n\
         [task.b]\nbody = [{ run = \"1ms\" }, { end = \"trip\" }]"
            .to_owned(),
        "[task.a]\nbody = [{ begin = \"key\", due = true }, { run = \"1ms\" }, { end = \"key\" }]"
            .to_owned(),
        spawner("", "a"),
        format!("{}{HOG}", spawner("", "hog")),
        format!(
            "{}{}{}",
            spawner("times = 1\n", "b"),
            spawned("b", "", ", { spawn = \"c\" }"),
            spawned("c", "times = 1\n", ", { fork = \"b\" }")
        ),
        format!(
            "{}{}",
            spawner("times = 1\n", "b"),
            spawned("b", "times = 2\n", ", { spawn = \"b\" }")
        ),
    ];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    insta::assert_snapshot!(all(&texts));
}

/// Each of these is about `[group.s]`, an autogroup, and `[group.c]`, a cgroup.
#[test]
fn sessions_are_checked() {
    let groups =
        "[group.s]\nautogroup = true\n[group.c]\n[group.many]\ncount = 3\nautogroup = true\n";
    let table = |keys: &str| format!("[group.g]\nautogroup = true\n{keys}\n{HOG}");
    let beside = |text: &str| format!("{groups}{text}");
    let change = |target: &str, set: &str| {
        beside(&format!(
            "{HOG}group = \"s\"\n[[change]]\nat = \"1s\"\n{target}\nset = {{ {set} }}"
        ))
    };
    let process = |first: &str, second: &str| {
        let task = |name: &str, group: &str| {
            format!("[task.{name}]\nprocess = \"p\"\n{group}\nbody = [{{ run = \"1ms\" }}]\n")
        };
        beside(&format!(
            "[process.p]\n{}{}",
            task("a", first),
            task("b", second)
        ))
    };
    let starter = |verb: &str, keys: &str| {
        beside(&format!(
            "[task.a]\ngroup = \"s\"\ntimes = 1\nbody = [{{ {verb} = \"b\" }}]\n\
             [task.b]\nspawned = true\ntimes = 1\n{keys}"
        ))
    };
    let runs = "body = [{ run = \"1ms\" }]";
    let texts = [
        table("weight = 50"),
        table("parent = \"g\""),
        table("quota = \"1ms\"\nperiod = \"10ms\""),
        table("idle = true\ncpus = \"cpu 0\""),
        table("nice = 20"),
        table("nice = \"1ms\""),
        table("").replace("true", "\"yes\""),
        format!("[group.g]\nnice = 5\n{HOG}"),
        beside(&format!("[group.inner]\nparent = \"s\"\n{HOG}")),
        beside(&format!("[task.t]\nsetup = [{{ group = \"s\" }}]\n{runs}")),
        beside(&format!("[task.t]\ngroup = \"many\"\n{runs}")),
        beside(&format!("[task.t]\ngroup = \"many[3]\"\n{runs}")),
        beside(
            "[task.t]\ngroup = \"s\"\nbody = [{ run = \"1ms\" }, { repeat = 2, body = [{ group = \"c\" }] }]",
        ),
        change("task = \"hog\"", "group = \"many[0]\""),
        change("task = \"hog\"", "group = \"c\""),
        change("group = \"s\"", "weight = 5"),
        change("group = \"many\"", "quota = \"1ms\", freeze = true"),
        change("group = \"c\"", "nice = 5"),
        change("group = \"s\"", "nice = 20"),
        process("group = \"s\"", "group = \"many[1]\""),
        process("group = \"many[0]\"", "group = \"many[1]\""),
        process("group = \"s\"", "group = \"c\""),
        process("", "group = \"s\""),
        process("group = \"s\"", ""),
        starter("spawn", &format!("group = \"s\"\n{runs}")),
        starter("spawn", &format!("group = \"c\"\n{runs}")),
        starter("fork", "body = [{ run = \"1ms\" }, { group = \"c\" }]"),
        starter(
            "fork",
            "body = [{ spawn = \"c\" }]\n[task.c]\nspawned = true\ntimes = 1\ngroup = \"c\"\nbody = [{ run = \"1ms\" }]",
        ),
    ];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    insta::assert_snapshot!(all(&texts));
    let fine = [
        process("group = \"many[1]\"", "group = \"many[1]\""),
        process("group = \"c\"", ""),
        starter("fork", &format!("group = \"c\"\n{runs}")),
        starter("spawn", runs),
        change("group = \"many\"", "nice = \"-20\""),
        table("nice = \"-20\""),
        table("").replace("true", "false"),
    ];
    for text in fine {
        Scenario::read("s.toml", &text).unwrap_or_else(|problems| panic!("{text}\n{problems}"));
    }
}

#[test]
fn a_family_of_tasks_that_ends_is_accepted() {
    let text = "[task.root]\ntimes = 1\nbody = [{ fork = \"node[5]\" }]\n\
                [task.node]\nfor = { level = 6 }\nspawned = true\ntimes = 1\n\
                body = [{ run = \"1ms\" }, { repeat = \"2 * ((level + 4) / 5)\", body = [{ fork = \"node[level - 1]\" }] }]\n";
    Scenario::read("s.toml", text).unwrap_or_else(|problems| panic!("{problems}"));
    let endless = text.replace("level - 1", "level");
    assert!(refusal(&endless).contains("more than 100000 tasks"));
}
