//! Values of events as they are printed: `key=value`, where names of tasks may have spaces.

/// Values of one event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values<'a>(pub &'a str);

impl<'a> Values<'a> {
    /// What stands behind `key=`, up to the next space. Names of tasks may have anything: the last
    /// place with this key counts.
    pub fn word(self, key: &str) -> Option<&'a str> {
        let from = self.place(key)?;
        let text = &self.0[from..];
        let end = text.find([' ', '\t', ']', ')']).unwrap_or(text.len());
        Some(&text[..end])
    }

    /// The same as a number.
    pub fn number<T: TryFrom<i64>>(self, key: &str) -> Option<T> {
        let word = self.word(key)?;
        let number = match word.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).ok()?,
            None => word.trim_end_matches(',').parse().ok()?,
        };
        T::try_from(number).ok()
    }

    /// What stands between `key=` and ` next=`: a name.
    pub fn between(self, key: &str, next: &str) -> Option<&'a str> {
        let end = self.before(next)?;
        let text = &self.0[..end];
        let from = match text.starts_with(key) && text[key.len()..].starts_with('=') {
            true => key.len() + 1,
            false => Values(text).place(key)?,
        };
        text.get(from..)
    }

    /// Where the value of a key begins: the last place, as names may have anything.
    fn place(self, key: &str) -> Option<usize> {
        let text = self.0.as_bytes();
        // From one `=` to the one before.
        let mut equals = memchr::memrchr_iter(b'=', text);
        let found = equals.find(|at| {
            let Some(begins) = at.checked_sub(key.len()) else {
                return false;
            };
            let before = begins.checked_sub(1).map(|place| text[place]);
            &text[begins..*at] == key.as_bytes()
                && before.is_none_or(|byte| b" \t[(".contains(&byte))
        });
        found.map(|at| at + 1)
    }

    /// Where the space before a key is.
    fn before(self, key: &str) -> Option<usize> {
        let from = self.place(key)? - key.len() - 1;
        from.checked_sub(1)
    }
}
