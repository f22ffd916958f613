//! A contender: a process that is asked and answers, watched from outside.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};

use crate::agreement::{Answer, Place};

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Asked in-process by `--serve`.
    Library(&'static str),
    /// Asked over its standard input.
    Tool(&'static str),
}

/// What one step took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    pub wall: Duration,
    pub cpu: Duration,
}

/// A running contender.
pub struct Contender {
    kind: Kind,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// When the time of the first step began.
    began: Option<Instant>,
    cpu: Duration,
}

impl Contender {
    pub fn start(kind: Kind, file: &Path, list: &Path) -> Result<Contender> {
        let mut command = match kind {
            Kind::Library(name) => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["--serve", name]).arg(file).arg(list);
                command
            }
            Kind::Tool(name) => {
                let mut command = Command::new(name);
                if name.contains("symbolizer") {
                    command.arg("--output-style=GNU");
                }
                command.args(["-a", "-f", "-i", "-C", "-e"]).arg(file);
                command
            }
        };
        let began = Instant::now();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {command:?}"))?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().context("its output is a pipe")?);
        let mut contender = Contender {
            kind,
            child,
            input,
            output,
            began: Some(began),
            cpu: Duration::ZERO,
        };
        if matches!(kind, Kind::Library(_)) {
            ensure!(contender.line()? == "ready", "the library is not ready");
            // Reading the list of addresses is not the library's work.
            contender.cpu = contender.processor_time()?;
            contender.began = None;
        }
        Ok(contender)
    }

    /// Asks for the addresses at these positions of the list and waits for the answers.
    pub fn ask(&mut self, addresses: &[u64], from: usize, to: usize) -> Result<Cost> {
        let began = self.began.take().unwrap_or_else(Instant::now);
        match self.kind {
            Kind::Library(_) => self.request("ask", from, to)?,
            Kind::Tool(_) => drop(self.exchange(&addresses[from..to], false)?),
        }
        let wall = began.elapsed();
        // It waits for the next question by now, or very soon.
        thread::sleep(Duration::from_millis(2));
        let (before, now) = (self.cpu, self.processor_time()?);
        self.cpu = now;
        Ok(Cost {
            wall,
            cpu: now.saturating_sub(before),
        })
    }

    /// As [`Contender::ask`], with the answers.
    pub fn answers(&mut self, addresses: &[u64], from: usize, to: usize) -> Result<Vec<Answer>> {
        match self.kind {
            Kind::Tool(_) => self.exchange(&addresses[from..to], true),
            Kind::Library(_) => {
                let input = self.input.as_mut().context("its input is open")?;
                writeln!(input, "answer {from} {to}")?;
                let mut lines = Vec::new();
                loop {
                    let line = self.line()?;
                    if line == "done" {
                        break;
                    }
                    lines.push(line);
                }
                Ok(parse(&lines))
            }
        }
    }

    /// The largest resident set so far, and how much of it is not of files, KiB.
    pub fn memory(&self) -> Result<(u64, u64)> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let field = |name: &str| -> Result<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let line = line.with_context(|| format!("no {name}"))?;
            Ok(line.split_whitespace().next().unwrap_or_default().parse()?)
        };
        Ok((field("VmHWM:")?, field("RssAnon:")?))
    }

    fn request(&mut self, verb: &str, from: usize, to: usize) -> Result<()> {
        let input = self.input.as_mut().context("its input is open")?;
        writeln!(input, "{verb} {from} {to}")?;
        ensure!(self.line()? == "done", "the library failed");
        Ok(())
    }

    /// Writes the addresses and reads until the last one is answered. `-a` puts each address before its answer;
    /// a last address that nothing covers, asked for besides, ends the answer before it.
    fn exchange(&mut self, addresses: &[u64], keep: bool) -> Result<Vec<Answer>> {
        let mut input = self.input.take().context("its input is open")?;
        let text: String = addresses
            .iter()
            .chain([&0])
            .map(|a| format!("{a:#x}\n"))
            .collect();
        let writer = thread::spawn(move || {
            input.write_all(text.as_bytes())?;
            input.flush().map(|()| input)
        });
        let mut lines = Vec::new();
        let mut line = String::new();
        let mut seen = 0;
        // The address, the function and the place of the address that nothing covers.
        let mut left = 3;
        while left > 0 {
            line.clear();
            ensure!(self.output.read_line(&mut line)? > 0, "it ended early");
            let text = line.trim_end();
            seen += usize::from(text.starts_with("0x"));
            if seen > addresses.len() {
                left -= 1;
            } else if keep {
                lines.push(text.to_owned());
            }
        }
        let written = writer.join().ok().context("the writer panicked")?;
        self.input = Some(written?);
        Ok(parse(&lines))
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(
            self.output.read_line(&mut line)? > 0,
            "the contender ended early"
        );
        Ok(line.trim_end().to_owned())
    }

    /// Of all its threads: proc(5), schedstat.
    fn processor_time(&self) -> Result<Duration> {
        let mut nanoseconds = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            let first = text.split_whitespace().next().unwrap_or_default();
            nanoseconds += first.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanoseconds))
    }
}

impl Drop for Contender {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// `0xADDRESS`, then pairs of lines: function, `file:line`, with `(discriminator N)` at times.
fn parse(lines: &[String]) -> Vec<Answer> {
    let mut answers: Vec<Answer> = Vec::new();
    let mut lines = lines.iter();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            answers.push(Vec::new());
            continue;
        }
        let place = lines.next().map_or("", String::as_str);
        let place = place.split(" (").next().unwrap_or_default();
        let (file, number) = place.rsplit_once(':').unwrap_or((place, "0"));
        let known = |text: &str| {
            if text.starts_with("??") {
                String::new()
            } else {
                text.to_owned()
            }
        };
        if let Some(answer) = answers.last_mut() {
            answer.push(Place {
                function: known(line),
                file: known(file),
                line: number.parse().unwrap_or(0),
            });
        }
    }
    answers
}
