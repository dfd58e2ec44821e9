use super::*;

/// A kernel made of files, whose schedulers are scripts of the shell.
struct Fake {
    root: tempfile::TempDir,
}

impl Fake {
    fn new() -> Fake {
        let root = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(root.path().join(FOLDER)).expect("made");
        let fake = Fake { root };
        fake.set_state(DISABLED);
        fake
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join(FOLDER)
    }

    fn set_state(&self, state: &str) {
        fs::write(self.folder().join("state"), format!("{state}\n")).expect("written");
    }

    /// A program that does `body`; `$S` is the file of the state.
    fn program(&self, name: &str, body: &str) -> String {
        use std::os::unix::fs::PermissionsExt;
        let file = self.root.path().join(name);
        let state = self.folder().join("state");
        let text = format!("#!/bin/sh\nS={}\n{body}\n", state.display());
        fs::write(&file, text).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("permissions");
        file.to_string_lossy().into_owned()
    }

    fn schedulers(&self) -> Schedulers {
        Schedulers::new(self.root.path(), None)
    }
}

/// Stays until it is ended; ends in order, even if it is ended as soon as it is there.
const STAYS: &str = "trap 'echo disabled > $S; exit 0' INT
    echo \"options: $*\"; echo enabled > $S
    while true; do sleep 0.01; done";

fn pause() -> Result<(), PlayError> {
    process::readable([-1], 2);
    Ok(())
}

#[test]
fn a_scheduler_is_there_when_it_is_loaded_and_gone_when_it_is_unloaded() {
    let fake = Fake::new();
    let program = fake.program("one", STAYS);
    let mut schedulers = fake.schedulers();
    schedulers
        .load(&program, " --slice-us  700 ", &mut pause)
        .expect("loaded");
    assert_eq!(schedulers.state(), ENABLED);
    assert_eq!(
        (schedulers.thrown_out(), schedulers.missing(&mut pause)),
        (None, None)
    );
    let loaded = schedulers.loaded.as_ref().expect("one is loaded");
    assert_eq!(last_lines(&loaded.output), "options: --slice-us 700");
    schedulers.unload(&mut pause).expect("unloaded");
    assert_eq!(schedulers.state(), DISABLED);
    assert!(schedulers.loaded.is_none() && schedulers.missing(&mut pause).is_none());
}

#[test]
fn the_next_scheduler_takes_the_place_of_the_one_before() {
    let fake = Fake::new();
    let (one, two) = (fake.program("one", STAYS), fake.program("two", STAYS));
    let mut schedulers = fake.schedulers();
    schedulers.load(&one, "", &mut pause).expect("loaded");
    let first = schedulers.loaded.as_ref().expect("loaded").pid;
    schedulers.load(&two, "", &mut pause).expect("loaded");
    assert!(process::kill(first, 0).is_err(), "its program has ended");
    let second = schedulers.loaded.as_ref().expect("loaded").pid;
    drop(schedulers);
    assert!(process::kill(second, 0).is_err(), "its program has ended");
    assert_eq!(fake.schedulers().state(), DISABLED);
}

#[test]
fn the_first_scheduler_can_come_back() {
    let fake = Fake::new();
    let (one, two) = (fake.program("one", STAYS), fake.program("two", STAYS));
    let first = Some((one.clone(), "--first".to_owned()));
    let mut schedulers = Schedulers::new(fake.root.path(), first);
    schedulers.load_first(&mut pause).expect("loaded");
    schedulers.load(&two, "", &mut pause).expect("loaded");
    schedulers.load_first(&mut pause).expect("loaded again");
    let loaded = schedulers.loaded.as_ref().expect("loaded");
    assert_eq!(
        (&loaded.name, last_lines(&loaded.output)),
        (&one, "options: --first".to_owned())
    );

    // Where that is the kernel's own, whoever is there goes.
    drop(schedulers);
    let mut schedulers = fake.schedulers();
    schedulers.load(&two, "", &mut pause).expect("loaded");
    schedulers.load_first(&mut pause).expect("unloaded");
    assert!(schedulers.loaded.is_none());
    assert_eq!(schedulers.state(), DISABLED);
}

#[test]
fn one_that_does_not_stay_says_why() {
    let fake = Fake::new();
    let program = fake.program(
        "bad",
        "for n in 1 2 3 4 5 6 7; do echo line $n; done; echo no such map >&2; exit 3",
    );
    let mut schedulers = fake.schedulers();
    let error = schedulers.load(&program, "", &mut pause);
    let text = error.expect_err("it does not stay").to_string();
    assert!(text.contains("does not stay"), "{text}");
    assert!(text.contains("status 3"), "{text}");
    assert!(text.contains("line 7; no such map"), "{text}");
    assert!(!text.contains("line 1"), "only the last lines: {text}");
}

#[test]
fn one_that_is_thrown_out_is_noticed_by_its_end_or_its_state() {
    let fake = Fake::new();
    let program = fake.program(
        "leaves",
        "echo enabled > $S
         until [ -e $S.out ]; do sleep 0.01; done
         echo disabled > $S; echo runnable task stall; exit 86",
    );
    let mut schedulers = fake.schedulers();
    schedulers.load(&program, "", &mut pause).expect("loaded");
    assert_eq!(schedulers.thrown_out(), None);
    fake.set_state(DISABLED);
    // It may load its scheduler again, as some do when a CPU has gone.
    let mut looks = 0;
    let comes_back = &mut || {
        looks += 1;
        if looks == 3 {
            fake.set_state(ENABLED);
        }
        pause()
    };
    assert_eq!(schedulers.missing(comes_back), None);
    fake.set_state(DISABLED);
    schedulers.patience_s = 0;
    let missing = schedulers.missing(&mut pause);
    let missing = missing.expect("its state says so").to_string();
    assert!(missing.contains("its program lives"), "{missing}");
    schedulers.patience_s = PATIENCE_S;
    fs::write(fake.folder().join("state.out"), "").expect("written");
    let error = loop {
        match schedulers.thrown_out() {
            Some(error) => break error,
            None => pause().expect("a pause"),
        }
    };
    assert_eq!(error.exit_code(), 5);
    let text = error.to_string();
    assert!(text.contains("runnable task stall"), "{text}");
    assert!(text.contains("status 86"), "{text}");
    schedulers
        .unload(&mut pause)
        .expect("nothing is left to unload");
}

#[test]
fn waiting_ends_when_the_run_does() {
    let fake = Fake::new();
    let program = fake.program("slow", "trap 'exit 0' INT; while true; do sleep 0.01; done");
    let mut schedulers = fake.schedulers();
    let interrupted = PlayError::Ended("interrupted".to_owned());
    let mut over = || Err(interrupted.clone());
    assert_eq!(
        schedulers.load(&program, "", &mut over),
        Err(interrupted.clone())
    );
    let pid = schedulers.loaded.as_ref().expect("it was started").pid;
    drop(schedulers);
    assert!(process::kill(pid, 0).is_err(), "its program has ended");
}

#[test]
fn a_scheduler_of_another_program_stays() {
    let fake = Fake::new();
    fs::create_dir(fake.folder().join("root")).expect("made");
    fs::write(fake.folder().join("root/ops"), "theirs\n").expect("written");
    fake.set_state(ENABLED);
    let program = fake.program("ours", STAYS);
    let mut schedulers = fake.schedulers();
    let error = schedulers.load(&program, "", &mut pause);
    let text = error.expect_err("there is one").to_string();
    assert!(text.contains("theirs"), "{text}");
    drop(schedulers);
    assert_eq!(fake.schedulers().state(), ENABLED);
}

#[test]
fn a_kernel_without_sched_ext_is_said() {
    let root = tempfile::tempdir().expect("a folder");
    let schedulers = Schedulers::new(root.path(), None);
    let error = schedulers.check().expect_err("there is none");
    assert_eq!(error.exit_code(), 4);
    assert!(error.to_string().contains("no sched_ext"), "{error}");
}
