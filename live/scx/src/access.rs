//! Who else may look at the scheduler and give it slots: a Unix group.

use nix::unistd::Group;

/// The number of a group that is given by name or number.
pub fn group(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    match Group::from_name(text) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        Ok(None) => Err(format!(
            "there is no group {text}: make it with `groupadd --system {text}`, or give a number"
        )),
        Err(error) => Err(format!("the groups of this system cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_known_by_name_or_number() {
        assert_eq!(group("root"), Ok(0));
        assert_eq!(group("4711"), Ok(4711));
        let error = group("no-such-group").expect_err("there is none");
        assert!(error.contains("groupadd"), "{error}");
    }
}
