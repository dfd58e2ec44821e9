//! Command lines of ours as people type them: printed beside a result, so that it can be had again.

use std::borrow::Cow;

/// The line that runs `warmq COMMAND` on `names` with `options`, each a word as the program
/// receives it. A shell of POSIX takes the line apart into the same words.
pub fn line(command: &str, names: &[&str], options: &[String]) -> String {
    let options = options.iter().map(String::as_str);
    let names = names.iter().copied();
    // What begins with a dash would be taken for an option.
    let words: Vec<&str> = match names.clone().any(|name| name.starts_with('-')) {
        true => options.chain(["--"]).chain(names).collect(),
        false => names.chain(options).collect(),
    };
    let words = words.into_iter().map(|word| Cow::from(" ") + quoted(word));
    format!("warmq {command}{}", words.collect::<String>())
}

/// An option with the list of its values; nothing where no value was given.
pub fn list(name: &str, values: &[String]) -> Vec<String> {
    match values {
        [] => Vec::new(),
        values => option(name, &values.join(",")),
    }
}

/// An option with its value, as two words; as one where the value would be taken for an option.
pub fn option(name: &str, value: &str) -> Vec<String> {
    match value.starts_with('-') {
        true => vec![format!("--{name}={value}")],
        false => vec![format!("--{name}"), value.to_owned()],
    }
}

fn quoted(word: &str) -> Cow<'_, str> {
    // Besides what shlex leaves as it is: what is special only within braces, or in the first word
    // of a line.
    let plain = |letter: char| letter.is_alphanumeric() || "+-./:@_,=%".contains(letter);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.into(),
        // No word that a program receives has a NUL.
        false => shlex::try_quote(word).unwrap_or(word.into()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_a_shell_would_take_apart_is_quoted() {
        let options = [
            option("world", "lab,guest"),
            option("scheduler", "broken:fault=lifo;x=1ms"),
        ];
        let typed = line("laws", &["my law's.toml"], &options.concat());
        let expected =
            "warmq laws \"my law's.toml\" --world lab,guest --scheduler 'broken:fault=lifo;x=1ms'";
        assert_eq!(typed, expected);
        let typed = line("run", &["-x.toml"], &list("set", &["a=1".to_owned()]));
        assert_eq!(typed, "warmq run --set a=1 -- -x.toml");
        assert!(list("world", &[]).is_empty());
        let typed = line("run", &["chat"], &option("machine", "-my machine.toml"));
        assert_eq!(typed, "warmq run chat '--machine=-my machine.toml'");
    }

    proptest! {
        #[test]
        fn a_shell_takes_the_line_apart_into_the_same_words(
            names in prop::collection::vec("[^\0]{0,12}", 0..4),
            values in prop::collection::vec("[ -~äß\n\t]{0,12}", 0..4),
        ) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let options = list("set", &values);
            let words = shlex::split(&line("run", &names, &options)).unwrap();
            let (start, rest) = words.split_at(2);
            prop_assert_eq!(start, ["warmq", "run"]);
            let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            let expected = match names.iter().any(|name| name.starts_with('-')) {
                true => [&options[..], &["--"], &names].concat(),
                false => [&names[..], &options].concat(),
            };
            prop_assert_eq!(rest, expected);
        }
    }
}
