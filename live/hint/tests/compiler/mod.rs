//! Compiles and runs the C programs in `tests/c`.

use std::io::{ErrorKind, Write, stderr};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What a strict program turns on; the header must be clean under all of it.
const WARNINGS: [&str; 6] = [
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wshadow",
    "-Werror",
    "-pedantic",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c")
}

/// Fails the test with what the command printed; passes that on otherwise.
fn must_succeed(command: &mut Command, output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{said}",
        output.status
    );
    eprint!("{said}");
}

/// A compiler and the standard that it keeps to.
#[derive(Clone, Copy)]
pub struct Compiler {
    pub command: &'static str,
    pub standard: &'static str,
}

impl Compiler {
    /// Compiles `arguments` into `name`, in `tests/c`. `None`, and says so loudly, without the
    /// compiler.
    pub fn compile(self, name: &str, arguments: &[&str]) -> Option<PathBuf> {
        let name = format!("{name}-{}-{}", self.command, self.standard);
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut command = Command::new(self.command);
        command
            .current_dir(folder())
            .arg(format!("-std={}", self.standard))
            .args(WARNINGS)
            .args(["-O2", "-pthread", "-I../../include"])
            .args(arguments)
            .arg("-o")
            .arg(&out);
        match command.output() {
            Ok(output) => must_succeed(&mut command, &output),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // Not by eprintln!, which is hidden where a test passes.
                let _ = writeln!(stderr(), "SKIPPED: {} is not installed", self.command);
                return None;
            }
            Err(error) => panic!("{command:?}: {error}"),
        }
        Some(out)
    }

    /// Compiles `arguments` and runs the program. Whether there is such a compiler.
    pub fn run(self, name: &str, arguments: &[&str]) -> bool {
        let Some(program) = self.compile(name, arguments) else {
            return false;
        };
        let mut command = Command::new(program);
        let output = command.output().expect("the program starts");
        must_succeed(&mut command, &output);
        true
    }
}
