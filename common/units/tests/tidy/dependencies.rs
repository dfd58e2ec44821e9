//! What deny.toml allows to depend on, as far as it can be checked without a network.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde::Deserialize;

use crate::tree;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
}

#[derive(Deserialize)]
struct Rules {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    skip: Vec<Skip>,
}

#[derive(Deserialize)]
struct Skip {
    #[serde(rename = "crate")]
    package: String,
}

fn packages() -> Vec<Package> {
    // Of all platforms: a build has fetched those of its own only.
    let metadata = ["metadata", "--format-version=1", "--locked"];
    let mut cargo = Command::new(env!("CARGO"));
    let printed = cargo.args(metadata).current_dir(tree::root()).output();
    let printed = printed.expect("cargo metadata");
    assert!(printed.status.success(), "{printed:?}");
    let metadata: Metadata = serde_json::from_slice(&printed.stdout).expect("metadata");
    metadata.packages
}

fn rules() -> Rules {
    let text = fs::read_to_string(tree::root().join("deny.toml")).expect("deny.toml");
    toml::from_str(&text).expect("rules")
}

impl Licenses {
    fn allow(&self, package: &Package) -> bool {
        let Some(license) = &package.license else {
            return false;
        };
        let parsed = spdx::Expression::parse_mode(license, spdx::ParseMode::LAX);
        let exceptions = self
            .exceptions
            .iter()
            .filter(|exception| exception.name == package.name);
        let allowed: Vec<&String> = self
            .allow
            .iter()
            .chain(exceptions.flat_map(|exception| &exception.allow))
            .collect();
        parsed.is_ok_and(|license| {
            license.evaluate(|need| {
                let name = need.license.to_string();
                need.addition.is_none() && allowed.contains(&&name)
            })
        })
    }
}

#[test]
fn licences_are_those_of_deny_toml() {
    let rules = rules();
    let refused: Vec<String> = packages()
        .iter()
        .filter(|package| !rules.licenses.allow(package))
        .map(|package| format!("{}: {:?}", package.name, package.license))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

/// The second version of a crate is a second crate to compile and to trust.
#[test]
fn no_crate_is_there_twice_but_those_of_deny_toml() {
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages() {
        versions
            .entry(package.name)
            .or_default()
            .push(package.version);
    }
    let skipped: Vec<String> = rules()
        .bans
        .skip
        .into_iter()
        .map(|skip| skip.package)
        .collect();
    let mut twice = Vec::new();
    for (name, versions) in versions {
        let kept = versions
            .iter()
            .filter(|version| !skipped.contains(&format!("{name}@{version}")));
        if kept.count() > 1 {
            twice.push(format!("{name}: {versions:?}"));
        }
    }
    assert!(twice.is_empty(), "{twice:#?}");
}
