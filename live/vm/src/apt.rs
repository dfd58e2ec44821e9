//! Packages from a Debian mirror, without root, and without changes to the machine's own apt.
//!
//! The mirror is the one that the machine's own apt uses; lists, caches and the list of sources
//! are in a folder of ours. apt verifies what it downloads with the archive's keyring, as always.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::VmError;
use crate::listing::{INDEX_FORMAT, Mirrors, mirrors, mirrors_by_name};

/// Keys of Debian's archive, under the names of older and newer releases.
const KEYRINGS: &[&str] = &[
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-keyring.pgp",
];

/// What a machine may allow for a mirror of its own, we never do: a kernel from there is run.
const SIGNED_ONLY: &str = "\
Acquire::AllowInsecureRepositories \"false\";
Acquire::AllowDowngradeToInsecureRepositories \"false\";
Acquire::AllowWeakRepositories \"false\";
APT::Get::AllowUnauthenticated \"false\";
";
/// The same as options of a source, where they override settings.
const SIGNED_SOURCES: &str = "allow-insecure=no allow-downgrade-to-insecure=no allow-weak=no";

/// A suite of packages at a mirror.
#[derive(Clone, Debug)]
pub(crate) struct Suite {
    pub mirror: String,
    pub name: &'static str,
}

/// Where the machine's own apt gets Debian's packages from.
///
/// # Errors
/// When there is no apt, or it says nothing.
pub(crate) fn machine_mirrors() -> Result<Mirrors, VmError> {
    let ask = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        answer(command.args(arguments), "ask apt for its mirror")
    };
    let known = mirrors(&ask(&["indextargets", "--format", INDEX_FORMAT])?);
    if known.archive.is_some() {
        return Ok(known);
    }
    Ok(mirrors_by_name(&ask(&["update", "--print-uris"])?))
}

/// An apt in a folder of its own.
pub(crate) struct Apt {
    folder: PathBuf,
}

impl Apt {
    /// # Errors
    /// When the folder refuses, or there is no keyring.
    pub(crate) fn new(folder: &Path) -> Result<Apt, VmError> {
        for part in ["lists/partial", "cache/archives/partial", "state"] {
            let part = folder.join(part);
            fs::create_dir_all(&part).map_err(VmError::file("make", &part))?;
        }
        let apt = Apt {
            folder: folder.to_owned(),
        };
        apt.write("status", "")?;
        apt.write("apt.conf", &apt.settings())?;
        Ok(apt)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), VmError> {
        let path = self.folder.join(name);
        fs::write(&path, text).map_err(VmError::file("write", &path))
    }

    /// The machine's settings stay (a proxy, say), but for its places, its hooks, which are for
    /// root, and whatever lets packages in that nobody signed. Who owns the folder downloads: there
    /// is no other user to change to.
    fn settings(&self) -> String {
        let folder = self.folder.display();
        format!(
            "#clear APT::Update::Pre-Invoke;\n\
             #clear APT::Update::Post-Invoke;\n\
             #clear APT::Update::Post-Invoke-Success;\n\
             #clear Acquire::IndexTargets::deb::DEP-11;\n\
             #clear Acquire::IndexTargets::deb::CNF;\n\
             APT::Architecture \"amd64\";\n\
             APT::Sandbox::User \"root\";\n\
             APT::Update::Error-Mode \"any\";\n\
             {SIGNED_ONLY}\
             Acquire::Languages \"none\";\n\
             Acquire::Retries \"2\";\n\
             Acquire::http::Timeout \"30\";\n\
             Acquire::https::Timeout \"30\";\n\
             Dir::Etc::sourcelist \"{folder}/sources.list\";\n\
             Dir::Etc::sourceparts \"-\";\n\
             Dir::Etc::preferences \"-\";\n\
             Dir::Etc::preferencesparts \"-\";\n\
             Dir::State \"{folder}/state\";\n\
             Dir::State::Lists \"{folder}/lists\";\n\
             Dir::State::status \"{folder}/status\";\n\
             Dir::Cache \"{folder}/cache\";\n"
        )
    }

    /// The packages' names of `suites`, one a line, fresh from the mirror as far as it has them;
    /// and what went wrong with the rest.
    ///
    /// # Errors
    /// When the lists cannot be read.
    pub(crate) fn packages(&self, suites: &[Suite]) -> Result<(String, Option<VmError>), VmError> {
        let keyring = KEYRINGS.iter().find(|path| Path::new(path).is_file());
        let keyring = keyring.ok_or_else(|| {
            let what = "this machine has no keys of Debian's archive";
            VmError::missing(what, "apt-get install debian-archive-keyring")
        })?;
        let line = |suite: &Suite| {
            let options = format!("arch=amd64 signed-by={keyring} {SIGNED_SOURCES}");
            format!("deb [{options}] {} {} main\n", suite.mirror, suite.name)
        };
        self.write("sources.list", &suites.iter().map(line).collect::<String>())?;
        let updated = answer(
            self.command("apt-get").args(["-q", "update"]),
            "apt-get update",
        );
        Ok((self.search()?, updated.err()))
    }

    fn search(&self) -> Result<String, VmError> {
        let pattern = "^linux-(image|binary|base)-[0-9]";
        let mut command = self.command("apt-cache");
        answer(
            command.args(["search", "--names-only", pattern]),
            "apt-cache search",
        )
    }

    /// Bytes to download.
    ///
    /// # Errors
    /// What apt said.
    pub(crate) fn size(&self, packages: &[String]) -> Result<u64, VmError> {
        let mut command = self.command("apt-get");
        let list = answer(
            command.args(["download", "--print-uris"]).args(packages),
            "apt-get download",
        )?;
        // 'URI' FILE BYTES HASH
        let bytes = |line: &str| line.split_whitespace().nth(2)?.parse::<u64>().ok();
        Ok(list.lines().filter_map(bytes).sum())
    }

    /// Downloads `packages`, and unpacks them into `root`.
    ///
    /// # Errors
    /// What apt or dpkg said.
    pub(crate) fn unpack(&self, packages: &[String], root: &Path) -> Result<(), VmError> {
        let archives = self.folder.join("packages");
        fs::create_dir_all(&archives).map_err(VmError::file("make", &archives))?;
        let mut download = self.command("apt-get");
        download
            .args(["-q", "download"])
            .args(packages)
            .current_dir(&archives);
        answer(&mut download, "apt-get download")?;
        for entry in fs::read_dir(&archives).map_err(VmError::file("read", &archives))? {
            let package = entry.map_err(VmError::file("read", &archives))?.path();
            let mut unpack = Command::new("dpkg-deb");
            answer(unpack.arg("-x").arg(package).arg(root), "unpack a package")?;
        }
        // The next packages are for another root.
        fs::remove_dir_all(&archives).map_err(VmError::file("remove", &archives))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .arg("-c")
            .arg(self.folder.join("apt.conf"))
            .env("LC_ALL", "C");
        command
    }
}

/// What a command wrote, if it went well.
fn answer(command: &mut Command, task: &str) -> Result<String, VmError> {
    let program = command.get_program().display().to_string();
    let output = command.output().map_err(|error| {
        let what = format!("cannot {task}: {program}: {error}");
        VmError::missing(what, "without apt, give a kernel of your own with --kernel")
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("E: "))
        .collect();
    let said = if lines.is_empty() {
        said.trim().to_owned()
    } else {
        lines.join(" ")
    };
    Err(VmError::Tool {
        tool: task.to_owned(),
        said,
        help: "check that the mirror can be reached, or give a kernel of your own with --kernel"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mirror without any signature, in `folder`.
    fn unsigned_mirror(folder: &Path) -> String {
        let packages = folder.join("mirror/dists/stable/main/binary-amd64");
        fs::create_dir_all(&packages).unwrap();
        fs::write(packages.join("Packages"), "").unwrap();
        fs::write(
            folder.join("mirror/dists/stable/Release"),
            "Suite: stable\n",
        )
        .unwrap();
        format!("file:{}", folder.join("mirror").display())
    }

    #[test]
    fn a_mirror_without_signatures_is_refused_whatever_the_machine_allows() {
        if Command::new("apt-get").arg("--version").output().is_err() {
            return; // Not a Debian: nothing is fetched here.
        }
        let folder = tempfile::tempdir().unwrap();
        let apt = Apt::new(folder.path()).unwrap();
        let allowing = [
            "Acquire::AllowInsecureRepositories",
            "Acquire::AllowDowngradeToInsecureRepositories",
            "Acquire::AllowWeakRepositories",
            "APT::Get::AllowUnauthenticated",
        ];
        let allowing = allowing.map(|key| format!("{key} \"true\";\n")).concat();
        apt.write("machine.conf", &allowing).unwrap();
        let source = format!(
            "deb [arch=amd64] {} stable main\n",
            unsigned_mirror(folder.path())
        );
        apt.write("sources.list", &source).unwrap();
        let update = |program: &mut Command| {
            let update = program.args(["-q", "update"]);
            let update = update.env("APT_CONFIG", folder.path().join("machine.conf"));
            answer(update, "apt-get update")
        };
        let error = update(&mut apt.command("apt-get")).unwrap_err();
        assert!(error.to_string().contains("not signed"), "{error}");

        // The mirror is fit to be refused: with what the machine allows it is taken.
        let ours = apt.settings().replace(SIGNED_ONLY, "");
        apt.write("apt.conf", &ours).unwrap();
        update(&mut apt.command("apt-get")).unwrap();
    }
}
