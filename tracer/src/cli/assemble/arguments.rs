//! What the arguments of GNU as say of its input and output.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
};

/// What an assembler is called for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arguments {
    /// With the contents of `@FILE`s in their places.
    pub all: Vec<OsString>,
    /// Where its text is.
    pub input: Input,
    /// Value of `-o`.
    pub output: Option<OsString>,
}

/// Where the assembly text is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// The argument with this index.
    File(usize),
    /// Standard input; the index of `-`, where it is said.
    Stdin(Option<usize>),
    /// No text is read, or it matters how it is named.
    AsItIs(Option<&'static str>),
}

/// Options whose value is the next argument, as of GNU as 2.40 for x86 and aarch64.
const VALUED: [&str; 18] = [
    "-o",
    "-I",
    "-t",
    "-G",
    "-Q",
    "--defsym",
    "-defsym",
    "--MD",
    "-MD",
    "--debug-prefix-map",
    "--hash-size",
    "--itbl",
    "--listing-lhs-width",
    "--listing-lhs-width2",
    "--listing-rhs-width",
    "--listing-cont-lines",
    "--elf-stt-common",
    "--multibyte-handling",
];
/// `@FILE`s in `@FILE`s, as libiberty limits them.
const MOST_EXPANSIONS: usize = 2000;

impl Arguments {
    /// Reads arguments; `file` gives the text of a response file.
    pub(super) fn read(given: &[OsString], file: impl Fn(&OsStr) -> Option<Vec<u8>>) -> Arguments {
        let all = expand(given, file);
        let mut arguments = Arguments {
            input: Input::Stdin(None),
            output: None,
            all: Vec::new(),
        };
        let mut inputs = Vec::new();
        let (mut index, mut only_files) = (0, false);
        let mut as_it_is = None;
        while let Some(argument) = all.get(index) {
            let bytes = argument.as_bytes();
            let word = argument.to_str().unwrap_or("");
            if only_files || !bytes.starts_with(b"-") || bytes == b"-" {
                inputs.push(index);
            } else if bytes == b"--" {
                only_files = true;
            } else if word.starts_with("--vers")
                || word == "-version"
                || word.starts_with("--help")
                || word.starts_with("--target-h")
                || word == "--dump-config"
            {
                as_it_is = Some(None);
            } else if word.starts_with("--MD") || word == "-MD" {
                as_it_is = as_it_is.or(Some(Some("--MD writes the name of its input down")));
                index += usize::from(!word.contains('='));
            } else if VALUED.contains(&word) {
                index += 1;
                if word == "-o" {
                    arguments.output = all.get(index).cloned();
                }
            } else if let Some(joined) = bytes.strip_prefix(b"-o") {
                arguments.output = Some(OsStr::from_bytes(joined).to_owned());
            }
            index += 1;
        }
        arguments.input = match (as_it_is, inputs.as_slice()) {
            (Some(why), _) => Input::AsItIs(why),
            (None, []) => Input::Stdin(None),
            (None, [one]) if all[*one] == "-" => Input::Stdin(Some(*one)),
            (None, [one]) => Input::File(*one),
            (None, _) => Input::AsItIs(Some("it is given several files at once")),
        };
        arguments.all = all;
        arguments
    }

    /// The same call with its text on standard input.
    pub(super) fn on_stdin(&self) -> Vec<OsString> {
        let named = match self.input {
            Input::File(index) | Input::Stdin(Some(index)) => Some(index),
            _ => None,
        };
        let kept = self
            .all
            .iter()
            .enumerate()
            .filter(|(index, _)| Some(*index) != named);
        kept.map(|(_, argument)| argument.clone()).collect()
    }
}

/// Puts the arguments of `@FILE` in its place; of one that cannot be read, it stays as it is.
fn expand(given: &[OsString], file: impl Fn(&OsStr) -> Option<Vec<u8>>) -> Vec<OsString> {
    let mut waiting: Vec<OsString> = given.iter().rev().cloned().collect();
    let mut all = Vec::new();
    let mut expansions = 0;
    while let Some(argument) = waiting.pop() {
        let name = argument
            .as_bytes()
            .strip_prefix(b"@")
            .map(OsStr::from_bytes);
        match name
            .filter(|_| expansions < MOST_EXPANSIONS)
            .and_then(&file)
        {
            Some(text) => {
                expansions += 1;
                waiting.extend(words(&text).into_iter().rev());
            }
            None => all.push(argument),
        }
    }
    all
}

/// The words of a response file: at white space, with quotes of both kinds and backslashes.
fn words(text: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => word.get_or_insert_default().extend(bytes.next()),
            _ if quote == Some(byte) => quote = None,
            b'"' | b'\'' if quote.is_none() => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            _ if byte.is_ascii_whitespace() && quote.is_none() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    words.into_iter().map(OsString::from_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Arguments {
        let given: Vec<OsString> = words.iter().map(OsString::from).collect();
        Arguments::read(&given, |name| {
            (name == "list").then(|| b"-o 'my out.o'\n--64 a\\ b.s".to_vec())
        })
    }

    #[test]
    fn the_input_is_the_one_argument_that_is_no_option_and_no_value() {
        let arguments = read(&[
            "--gdwarf-5",
            "--64",
            "-I",
            "inc",
            "-o",
            "t.o",
            "--defsym",
            "A=1",
            "t.s",
        ]);
        assert_eq!(arguments.input, Input::File(8));
        assert_eq!(arguments.output.as_deref(), Some(OsStr::new("t.o")));
        assert_eq!(read(&["-ot.o", "--", "-t.s"]).input, Input::File(2));
        assert_eq!(read(&["-o", "t.o"]).input, Input::Stdin(None));
        assert_eq!(read(&["-o", "t.o", "-"]).input, Input::Stdin(Some(2)));
        assert_eq!(read(&[]).input, Input::Stdin(None));
    }

    #[test]
    fn what_asks_for_no_assembly_and_what_cannot_be_renamed_is_left_as_it_is() {
        assert_eq!(read(&["--version"]).input, Input::AsItIs(None));
        assert_eq!(read(&["--help", "a.s"]).input, Input::AsItIs(None));
        assert!(matches!(
            read(&["a.s", "b.s"]).input,
            Input::AsItIs(Some(_))
        ));
        assert!(matches!(
            read(&["--MD", "a.d", "a.s"]).input,
            Input::AsItIs(Some(_))
        ));
        // Prints its version and assembles.
        assert_eq!(read(&["-v", "a.s"]).input, Input::File(1));
    }

    #[test]
    fn response_files_are_read_as_gnu_tools_read_them() {
        let arguments = read(&["-v", "@list"]);
        assert_eq!(arguments.all, ["-v", "-o", "my out.o", "--64", "a b.s"]);
        assert_eq!(arguments.input, Input::File(4));
        assert_eq!(arguments.on_stdin(), ["-v", "-o", "my out.o", "--64"]);
        assert_eq!(read(&["@absent"]).input, Input::File(0));
        let endless = Arguments::read(&["@x".into()], |_| Some(b"@x".to_vec()));
        assert_eq!(endless.all, ["@x"]);
    }
}
