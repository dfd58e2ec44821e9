//! Guests that boot. They need QEMU, busybox and a kernel in the cache (`warmq vm fetch`); where
//! one of them is not there, the test says so and is over.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use std::time::Duration;

use warmq_vm::{Cache, Ending, Guest, Hardware, Outcome, ready};

/// Many times of what a guest takes on a busy machine of two cores.
const PATIENCE: Duration = Duration::from_secs(300);

fn guest() -> Option<Guest> {
    let cached = Cache::usual().map(|cache| cache.find("6.18", &mut |_| {}));
    let Ok(Some(kernel)) = cached else {
        eprintln!("skipped: no kernel in the cache; warmq vm fetch brings one");
        return None;
    };
    if let Err(missing) = ready() {
        eprintln!("skipped: {missing}");
        return None;
    }
    Some(Guest::new(kernel).timeout(PATIENCE))
}

fn exited(outcome: &Outcome, status: u8) {
    let output = (&outcome.console, String::from_utf8_lossy(&outcome.stderr));
    assert_eq!(outcome.ending, Ending::Exited(status), "{output:?}");
}

#[test]
fn arguments_and_output_are_the_same_to_the_byte() {
    let Some(guest) = guest() else { return };
    let awkward = [
        "-n",
        "",
        " ",
        "two words",
        "it's",
        "\"$HOME\" `id` $(id) \\",
        "*",
        "a\nb\n\n",
        ".",
        "--",
    ];
    let mut arguments: Vec<OsString> = awkward.iter().map(OsString::from).collect();
    arguments.push(OsString::from_vec(vec![0xff, 0x01, 0x7f]));
    let format = "[%s]\\000\\r\\n\\377";
    let mut command = ["busybox", "printf", format].map(OsString::from).to_vec();
    command.extend(arguments.iter().cloned());
    let outcome = guest.run(&command).unwrap();
    exited(&outcome, 0);
    let printed =
        |word: OsString| [b"[".to_vec(), word.into_vec(), b"]\0\r\n\xff".to_vec()].concat();
    let expected: Vec<u8> = arguments.into_iter().flat_map(printed).collect();
    assert_eq!(outcome.stdout, expected);
    assert_eq!(outcome.stderr, b"");
}

/// A line for each thing that is as it should be. What it leaves running must not keep it.
const LOOK: &str = r#"
busybox sleep 1000 &
echo $(cat /sys/devices/system/cpu/cpu*/cache/index3/shared_cpu_list)
echo "variable $TRIED"
grep -q warmq.trial=1 /proc/cmdline && echo trial
grep -q CONFIG_ "/boot/config-$1" && [ "$(uname -r)" = "$1" ] && echo config
mount | grep -q 'on /sys/fs/bpf type bpf' && echo bpf
[ -e /sys/kernel/tracing/available_tracers ] && echo tracing
[ -d /sys/kernel/debug/sched ] && echo debug
echo x >/dev/shm/x && echo x >/tmp/x && echo shm
mkdir /sys/fs/cgroup/trial && [ -e /sys/fs/cgroup/trial/cpu.weight ] && echo cpu controller
ping -c 1 -W 20 127.0.0.1 >/dev/null && echo loopback
read -r line || echo nothing to read
[ "$(su guest -c 'id -u')" = 1000 ] && echo not root
seq 200000
echo apart >/dev/stderr
exit 7
"#;

const SEEN: &str = "\
0-1 0-1 2-3 2-3
variable a 'b'
trial
config
bpf
tracing
debug
shm
cpu controller
loopback
nothing to read
not root
";

#[test]
fn a_guest_has_the_caches_the_mounts_the_files_and_the_variables_that_it_was_given() {
    let Some(guest) = guest() else { return };
    let release = guest.kernel().release.clone();
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("look.sh");
    fs::write(&script, LOOK).unwrap();
    let outcome = guest
        .hardware(Hardware {
            cpus: 4,
            llcs: 2,
            ..Hardware::default()
        })
        .file_at(&script, "/opt/look.sh")
        .env("TRIED", "a 'b'")
        .append("warmq.trial=1")
        .run(["busybox", "sh", "/opt/look.sh", &release])
        .unwrap();
    exited(&outcome, 7);
    assert_eq!(String::from_utf8(outcome.stderr).unwrap(), "apart\n");
    let stdout = String::from_utf8(outcome.stdout).unwrap();
    let (facts, numbers) = stdout.split_at(stdout.find("1\n2\n3\n").unwrap_or(stdout.len()));
    assert_eq!(facts, SEEN);
    let all: Vec<u32> = numbers.lines().map(|line| line.parse().unwrap()).collect();
    assert!(all.into_iter().eq(1..=200_000), "every line, in its order");
}

/// Prints what must be the same in guests that go on from one boot, and what must not be.
const WHO: &str = "printf %s \"$NAMED \"; cat /own; \
                   (cat /proc/sys/kernel/random/uuid; head -c 8 /dev/urandom | md5sum; \
                   stat -c %z /dev/shm) >/dev/stderr";

#[test]
fn guests_go_on_from_one_boot_with_files_arguments_and_random_numbers_of_their_own() {
    let Some(guest) = guest() else { return };
    let boots = Arc::default();
    let hardware = Hardware {
        cpus: 1,
        instructions: Some(1),
        ..Hardware::default()
    };
    let guest = guest.hardware(hardware).boots(&boots).env("NAMED", "both");
    let folder = tempfile::tempdir().unwrap();
    let said = ["one\n", "\0two\n.\n\n"].map(|text| {
        let own = folder.path().join("own");
        fs::write(&own, text).unwrap();
        let guest = guest.clone().file_at(&own, "/own");
        let outcome = guest.run(["busybox", "sh", "-c", WHO]);
        let outcome = outcome.unwrap();
        exited(&outcome, 0);
        assert_eq!(outcome.stdout, format!("both {text}").as_bytes());
        String::from_utf8(outcome.stderr).unwrap()
    });
    let lines = said.each_ref().map(|said| said.lines().collect::<Vec<_>>());
    let [[id, random, mounted], [other_id, other_random, same]] = [&lines[0][..], &lines[1][..]]
    else {
        panic!("three lines of each: {said:?}");
    };
    assert_eq!(mounted, same, "/init mounted it once, for both");
    assert_ne!(random, other_random);
    assert_ne!(id, other_id);
}

#[test]
fn a_panic_is_no_status_of_the_command_and_brings_the_kernels_last_words() {
    let Some(guest) = guest() else { return };
    let crash = "echo c >/proc/sysrq-trigger; sleep 1000";
    let outcome = guest.run(["busybox", "sh", "-c", crash]).unwrap();
    let console = &outcome.console;
    assert_eq!(outcome.ending, Ending::Panicked, "{console}");
    assert_eq!(outcome.status(), Outcome::GUEST_FAILED);
    assert!(console.contains("sysrq triggered crash"), "{console}");
}

#[test]
fn where_no_boot_can_be_kept_the_guest_boots_itself_and_says_what_is_wrong() {
    let Some(guest) = guest() else { return };
    let guest = guest.boots(&Arc::default()).append("rdinit=/nothing");
    let outcome = guest.run(["busybox", "true"]).unwrap();
    assert_eq!(outcome.ending, Ending::Panicked, "{}", outcome.console);
}

#[test]
fn a_guest_is_killed_when_its_time_is_up() {
    let Some(guest) = guest() else { return };
    let guest = guest.timeout(Duration::from_secs(1));
    let outcome = guest.run(["busybox", "sleep", "1000"]).unwrap();
    assert_eq!(
        (outcome.ending, outcome.status()),
        (Ending::TimeUp, Outcome::TIME_UP)
    );
}

#[test]
fn a_guest_too_small_for_its_files_is_refused_with_the_size_that_would_do() {
    let Some(guest) = guest() else { return };
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large");
    fs::File::create(&large)
        .unwrap()
        .set_len(200 << 20)
        .unwrap();
    let refused = guest
        .hardware(Hardware {
            memory_mib: 256,
            ..Hardware::default()
        })
        .file_at(&large, "/large")
        .run(["busybox", "true"]);
    let said = refused.unwrap_err().to_string();
    assert!(
        said.starts_with("--memory 256: ") && said.contains("or more"),
        "{said}"
    );
}
