//! A machine that is written as TOML is the same when it is read again.

use warmq_machine::{MachineDescription, builtin, builtin_names, read_hwloc, read_toml};

fn again(machine: &MachineDescription) -> MachineDescription {
    let text = machine.to_toml().expect("it is regular");
    read_toml("again.toml", &text).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

fn shipped(name: &str) -> MachineDescription {
    read_toml(name, builtin(name).unwrap()).unwrap()
}

#[test]
fn every_machine_that_is_shipped_is_read_back_as_it_was() {
    for name in builtin_names() {
        let machine = shipped(name);
        assert_eq!(again(&machine), machine, "{name}");
    }
}

/// Names and sources are other people's, too.
#[test]
fn whatever_letters_a_text_has_it_comes_back() {
    let mut machine = shipped("tiny-2cpu");
    machine.title = "a \"machine\"\\ with 'quotes' and \u{e9}".to_owned();
    assert_eq!(again(&machine), machine);
}

#[test]
fn machines_of_hwloc_come_back_or_are_refused() {
    let (mut written, mut refused) = (0, Vec::new());
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hwloc")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let Ok(machine) = read_hwloc(&name, &text) else {
            continue;
        };
        if let Err(why) = machine.to_toml() {
            refused.push(format!("{name}: {why}"));
            continue;
        }
        let back = again(&machine);
        written += 1;
        assert_eq!(
            (&back.cpus, &back.caches),
            (&machine.cpus, &machine.caches),
            "{name}"
        );
        assert_eq!(
            (back.memory, back.coherence),
            (machine.memory, machine.coherence),
            "{name}"
        );
    }
    assert_eq!((written, refused), (5, Vec::new()));
}
