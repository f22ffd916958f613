//! What each integration test took, for those who want to know where the time goes: `cargo xtask ci` does. A line a test in
//! the file that [`FILE`] names.

use std::{env, fmt, fs::File, io::Write as _, str::FromStr, time::Duration};

use anyhow::Context as _;

/// The environment variable that names the file.
pub const FILE: &str = "COHTRACE_TEST_TIMES";

/// One test's time, without its waits for others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Time {
    /// Module and function.
    pub test: String,
    /// From its first line to its last.
    pub took: Duration,
    /// The part of it in which no other test ran.
    pub alone: Duration,
}

impl Time {
    /// Adds it to the file, if there is one: a time that is lost is no fault of the test.
    pub fn tell(&self) {
        if let Some(path) = env::var_os(FILE)
            && let Ok(mut file) = File::options().create(true).append(true).open(path)
        {
            // One write: others append to it as well.
            file.write_all(format!("{self}\n").as_bytes()).ok();
        }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (took, alone) = (self.took.as_millis(), self.alone.as_millis());
        write!(f, "{took} {alone} {}", self.test)
    }
}

impl FromStr for Time {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> anyhow::Result<Time> {
        let mut words = line.splitn(3, ' ');
        let mut ms = || -> anyhow::Result<Duration> {
            let number = words.next().context("milliseconds")?;
            Ok(Duration::from_millis(number.parse()?))
        };
        let (took, alone) = (ms()?, ms()?);
        let test = words.next().context("a test")?.to_owned();
        Ok(Time { test, took, alone })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_it_was_written_and_other_text_is_none() {
        let time = Time {
            test: "live::two_counters::plain".to_owned(),
            took: Duration::from_millis(2541),
            alone: Duration::from_millis(2500),
        };
        assert_eq!(time.to_string().parse::<Time>().unwrap(), time);
        for line in ["", "12", "12 3", "12 x live::two_counters::plain"] {
            assert!(line.parse::<Time>().is_err(), "{line:?}");
        }
    }
}
