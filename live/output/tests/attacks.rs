//! What others may put where a file is to be, and what may happen while it is written.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

use warmq_output::{Access, Folder, Output, Refused, append, temporary_folder};

/// A folder of a test.
struct Scene(tempfile::TempDir);

impl Scene {
    fn new() -> Scene {
        Scene(temporary_folder("warmq-output-").unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn with(&self, name: &str, text: &str) -> PathBuf {
        let path = self.at(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

fn write(path: &Path, access: Access, text: &str) -> Result<(), Refused> {
    let (output, mut file) = Output::begin(path, access)?;
    file.write_all(text.as_bytes())?;
    output.finish(&file)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn a_file_is_there_whole_or_not_at_all() {
    let scene = Scene::new();
    let path = scene.with("rows", "earlier");
    let (output, mut file) = Output::begin(&path, Access::Usual).unwrap();
    file.write_all(b"half of").unwrap();
    assert_eq!(read(&path), "earlier");
    drop(output);
    assert_eq!(
        (read(&path).as_str(), scene.names()),
        ("earlier", vec!["rows".to_owned()])
    );
    write(&path, Access::Usual, "all of it").unwrap();
    assert_eq!(
        (read(&path).as_str(), scene.names()),
        ("all of it", vec!["rows".to_owned()])
    );
}

#[test]
fn no_name_is_known_before_and_nobody_reads_along() {
    let scene = Scene::new();
    let seen: Vec<String> = (0..2)
        .map(|_| {
            let (_output, _file) = Output::begin(&scene.at("rows"), Access::Usual).unwrap();
            let name = scene
                .names()
                .into_iter()
                .find(|name| name.ends_with(".unfinished"))
                .unwrap();
            assert_eq!(mode(&scene.at(&name)), 0o600);
            name
        })
        .collect();
    assert_ne!(seen[0], seen[1]);
}

#[test]
fn a_pipe_is_written_into_and_stays_one() {
    let scene = Scene::new();
    let path = scene.at("pipe");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let reader = std::thread::spawn({
        let path = path.clone();
        move || read(&path)
    });
    write(&path, Access::Private, "all of it").unwrap();
    assert_eq!(reader.join().unwrap(), "all of it");
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
    assert_eq!(scene.names(), ["pipe"]);
}

#[test]
fn a_device_is_written_into_and_stays_one() {
    let scene = Scene::new();
    let terminal = nix::pty::openpty(None, None).unwrap();
    let device = nix::unistd::ttyname(&terminal.slave).unwrap();
    let link = scene.at("link");
    symlink(&device, &link).unwrap();
    let mut text = [0; 3];
    for path in [&device, &link] {
        write(path, Access::Usual, "abc").unwrap();
        File::from(terminal.master.try_clone().unwrap())
            .read_exact(&mut text)
            .unwrap();
        assert_eq!(&text, b"abc");
    }
    assert!(
        fs::symlink_metadata(&device)
            .unwrap()
            .file_type()
            .is_char_device()
    );
    assert_eq!(fs::read_link(&link).unwrap(), device);
}

#[test]
fn what_a_descriptor_is_open_for_goes_on_where_it_ends() {
    let scene = Scene::new();
    let path = scene.with("log", "earlier\n");
    let open = File::options().append(true).open(&path).unwrap();
    for folder in ["/proc/self/fd", "/dev/fd"] {
        let name = Path::new(folder).join(open.as_raw_fd().to_string());
        write(&name, Access::Private, "later\n").unwrap();
    }
    assert_eq!(read(&path), "earlier\nlater\nlater\n");
    let folder = File::open(scene.0.path()).unwrap();
    let name = format!("/proc/self/fd/{}", folder.as_raw_fd());
    assert!(write(Path::new(&name), Access::Usual, "").is_err());
    assert_eq!(scene.names(), ["log"]);
}

#[test]
fn a_link_stays_and_its_target_is_written_beside_itself() {
    let scene = Scene::new();
    fs::create_dir(scene.at("far")).unwrap();
    let target = scene.at("far/rows");
    symlink("far/missing/../rows", scene.at("wrong")).unwrap();
    symlink("far/rows", scene.at("second")).unwrap();
    symlink("second", scene.at("first")).unwrap();
    symlink(scene.0.path().join("loop"), scene.at("loop")).unwrap();
    for text in ["made", "replaced"] {
        let (output, mut file) = Output::begin(&scene.at("first"), Access::Usual).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let beside = fs::read_dir(scene.at("far")).unwrap().count();
        assert_eq!(
            beside,
            2 + usize::from(text == "replaced"),
            "its lock and the unfinished file"
        );
        output.finish(&file).unwrap();
        assert_eq!(read(&target), text);
    }
    assert!(write(&scene.at("wrong"), Access::Usual, "").is_err());
    assert!(write(&scene.at("loop"), Access::Usual, "").is_err());
    assert!(write(&scene.at("far"), Access::Usual, "").is_err());
    assert_eq!(scene.names(), ["far", "first", "loop", "second", "wrong"]);
    let links = ["first", "second"].map(|name| fs::read_link(scene.at(name)).unwrap());
    assert_eq!(links, ["second", "far/rows"].map(PathBuf::from));
}

#[test]
fn what_is_planted_beside_a_file_is_never_written_through() {
    let scene = Scene::new();
    let victim = scene.with("victim", "precious");
    symlink(&victim, scene.at("rows.unfinished")).unwrap();
    write(&scene.at("rows"), Access::Usual, "new").unwrap();
    symlink(&victim, scene.at(".rows.lock")).unwrap();
    let refused = write(&scene.at("rows"), Access::Usual, "newer").unwrap_err();
    assert!(matches!(refused, Refused::Planted { .. }), "{refused}");
    fs::remove_file(scene.at(".rows.lock")).unwrap();
    // Another name of the victim: it is locked, and its name here goes.
    fs::hard_link(&victim, scene.at(".rows.lock")).unwrap();
    write(&scene.at("rows"), Access::Usual, "newest").unwrap();
    assert_eq!(
        (read(&victim).as_str(), read(&scene.at("rows")).as_str()),
        ("precious", "newest")
    );
}

/// Only root can make what belongs to somebody else; the rule itself is tested in the crate.
#[test]
fn what_others_made_where_everybody_may_is_left_alone() {
    if !is_root() {
        return;
    }
    let scene = Scene::new();
    let victim = scene.with("victim", "precious");
    fs::create_dir(scene.at("tmp")).unwrap();
    fs::set_permissions(scene.at("tmp"), Permissions::from_mode(0o1777)).unwrap();
    symlink(&victim, scene.at("tmp/link")).unwrap();
    scene.with("tmp/file", "theirs");
    nix::unistd::mkfifo(&scene.at("tmp/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::create_dir(scene.at("tmp/folder")).unwrap();
    for name in ["tmp/link", "tmp/file", "tmp/pipe", "tmp/folder"] {
        lchown(scene.at(name), Some(12345), None).unwrap();
    }
    for name in ["tmp/link", "tmp/file", "tmp/pipe", "tmp/folder/rows"] {
        let refused = write(&scene.at(name), Access::Usual, "ours").unwrap_err();
        assert!(
            matches!(refused, Refused::Planted { uid: 12345, .. }),
            "{name}: {refused}"
        );
        assert!(append(&scene.at(name)).is_err(), "{name}");
    }
    assert!(Folder::take(&scene.at("tmp/folder")).is_err());
    assert_eq!(
        (read(&victim).as_str(), read(&scene.at("tmp/file")).as_str()),
        ("precious", "theirs")
    );
    symlink(&victim, scene.at("tmp/own")).unwrap();
    write(&scene.at("tmp/own"), Access::Usual, "asked for").unwrap();
    assert_eq!(read(&victim), "asked for");
}

#[test]
fn two_writers_exclude_each_other_by_name() {
    let scene = Scene::new();
    let path = scene.at("rows");
    let (output, file) = Output::begin(&path, Access::Usual).unwrap();
    symlink("rows", scene.at("same")).unwrap();
    for name in ["rows", "same"] {
        let refused = Output::begin(&scene.at(name), Access::Usual)
            .unwrap_err()
            .to_string();
        let who = format!("process {} (", std::process::id());
        assert!(
            refused.starts_with(&who) && refused.contains("is writing it; "),
            "{refused}"
        );
    }
    write(&scene.at("other"), Access::Usual, "").unwrap();
    output.finish(&file).unwrap();
    write(&path, Access::Usual, "later").unwrap();

    let folder = Folder::take(scene.0.path()).unwrap();
    assert!(matches!(
        Folder::take(scene.0.path()),
        Err(Refused::Busy(Some(_)))
    ));
    write(&path, Access::Usual, "inside").unwrap();
    drop(folder);
    drop(Folder::take(&scene.at("made/deep")).unwrap());
    assert_eq!(scene.names(), ["made", "other", "rows", "same"]);
}

#[test]
fn of_many_writers_at_once_each_file_is_whole() {
    let scene = Scene::new();
    let path = scene.at("rows");
    let finished = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let text = writer.to_string().repeat(100_000);
                let path = &path;
                scope.spawn(move || {
                    (0..20)
                        .filter(|_| write(path, Access::Usual, &text).is_ok())
                        .count()
                })
            })
            .collect();
        writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .sum::<usize>()
    });
    assert!(finished > 0);
    let text = read(&path);
    let first = text.chars().next().unwrap();
    assert!(text.len() == 100_000 && text.chars().all(|letter| letter == first));
    assert_eq!(scene.names(), ["rows"]);
}

#[test]
fn what_a_killed_writer_left_is_removed_by_the_next() {
    let scene = Scene::new();
    scene.with(".rows.0123456789abcdef.unfinished", "half");
    scene.with(".rows.lock", "");
    scene.with(".rows.mine.unfinished", "not ours");
    scene.with(".rows2.0123456789abcdef.unfinished", "of another file");
    write(&scene.at("rows"), Access::Usual, "whole").unwrap();
    assert_eq!(
        scene.names(),
        [
            ".rows.mine.unfinished",
            ".rows2.0123456789abcdef.unfinished",
            "rows"
        ]
    );
}

#[test]
fn modes_are_those_of_the_file_before_or_of_the_umask_and_recordings_are_private() {
    let scene = Scene::new();
    let path = scene.at("rows");
    write(&path, Access::Usual, "").unwrap();
    let new = File::create(scene.at("usual")).unwrap().metadata().unwrap();
    assert_eq!(mode(&path), new.mode() & 0o7777);
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    if is_root() {
        lchown(&path, Some(12345), Some(54321)).unwrap();
    }
    let before = fs::metadata(&path).unwrap();
    write(&path, Access::Usual, "").unwrap();
    let after = fs::metadata(&path).unwrap();
    assert_eq!(
        (after.mode(), after.uid(), after.gid()),
        (before.mode(), before.uid(), before.gid())
    );
    write(&path, Access::Private, "").unwrap();
    let after = fs::metadata(&path).unwrap();
    assert_eq!((mode(&path), after.uid()), (0o600, new.uid()));
    let folder = temporary_folder("warmq-output-").unwrap();
    assert_eq!(mode(folder.path()), 0o700);
}

#[test]
fn the_longest_names_can_be_written() {
    let scene = Scene::new();
    let path = scene.at(&"n".repeat(255));
    write(&path, Access::Usual, "whole").unwrap();
    assert_eq!(read(&path), "whole");
}

#[test]
fn lines_are_added_at_the_end() {
    let scene = Scene::new();
    for line in ["one\n", "two\n"] {
        append(&scene.at("lines"))
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap();
    }
    assert_eq!(read(&scene.at("lines")), "one\ntwo\n");
}
