//! `as`: the assembler with hints. Called by compilers, so whatever is wrong with hints ends in the plain assembler.

mod arguments;
mod disk;
mod install;
mod program;
mod read_back;

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::{self, Read as _, Write as _},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process::{Command, ExitCode, ExitStatus, Output, Stdio},
    thread,
};

use anyhow::{Context as _, Result, bail};

use self::{
    arguments::{Arguments, Input},
    disk::Disk,
};
use super::{args::AsArgs, destination, failure, output};
use crate::{
    hint::{
        assembly::{self, Place, Rewritten, UnitRecord},
        file::HintFile,
    },
    printable,
};

/// Set for the assembler that is run, so that one that is a wrapper again runs plainly.
const INSIDE: &str = "COHTRACE_AS_INSIDE";

/// Does what was asked for.
pub(super) fn run(args: &AsArgs) -> Result<ExitCode> {
    if let Some(directory) = &args.install {
        return install::run(directory, args);
    }
    if let Some(log) = &args.summary {
        return read_back::summary(log, args);
    }
    if let Some(program) = &args.verify {
        return read_back::verify(program, args);
    }
    if args.assembler.is_empty() && args.from.is_none() {
        bail!(
            "say what to do: --install DIR, --summary LOG, --verify PROGRAM, or `-- ARGS` of the assembler"
        );
    }
    assemble(args)
}

/// Reads hints, which the file's name is put before what is wrong with.
fn read_hints(path: &Path) -> Result<HintFile> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    HintFile::parse(&text).with_context(|| path.display().to_string())
}

/// One call of the assembler.
struct Call {
    program: PathBuf,
    arguments: Arguments,
    quiet: bool,
}

fn assemble(args: &AsArgs) -> Result<ExitCode> {
    // What is asked for may lead back here, and then only the assembler of PATH does not.
    let inside = std::env::var_os(INSIDE).is_some();
    let asked = args.program.as_deref().filter(|_| !inside);
    let call = Call {
        program: program::real(asked, args.from.as_deref())?,
        arguments: Arguments::read(&args.assembler, |name| fs::read(name).ok()),
        quiet: args.quiet
            || std::env::var_os("COHTRACE_AS_QUIET")
                .is_some_and(|value| !value.is_empty() && value != "0"),
    };
    if inside {
        return call.plainly(&args.assembler);
    }
    let text = match call.arguments.input {
        Input::AsItIs(why) => {
            if let Some(why) = why {
                warn(&format!("assembled without hints: {why}"));
                log(&UnitRecord {
                    unchanged: Some(why.to_owned()),
                    ..call.record()
                });
            }
            return call.plainly(&args.assembler);
        }
        Input::File(index) => match fs::read(&call.arguments.all[index]) {
            Ok(text) => text,
            // The assembler says it in its own words.
            Err(_) => return call.plainly(&args.assembler),
        },
        Input::Stdin(_) => {
            let mut text = Vec::new();
            io::stdin()
                .lock()
                .read_to_end(&mut text)
                .context("reading standard input")?;
            text
        }
    };
    let from_stdin = matches!(call.arguments.input, Input::Stdin(_));
    let unchanged = || {
        if from_stdin {
            call.feed(&text, false).map(|output| code(output.status))
        } else {
            call.plainly(&args.assembler)
        }
    };
    let (hints, rewritten) = match rewrite(&text, args) {
        Ok(done) => done,
        Err(error) => {
            let why = failure::causes(&error);
            warn(&format!("assembled without hints: {why}"));
            log(&UnitRecord {
                unchanged: Some(why),
                ..call.record()
            });
            return unchanged();
        }
    };
    let mut record = UnitRecord {
        directory: call.record().directory,
        output: call.record().output,
        ..assembly::record(&rewritten, &hints)
    };
    let Some(new) = &rewritten.text else {
        call.tell(&rewritten, &hints);
        log(&record);
        return unchanged();
    };
    let attempt = call.feed(new, true)?;
    if attempt.status.success() {
        call.tell(&rewritten, &hints);
        log(&record);
        let _ = io::stdout().write_all(&attempt.stdout);
        let _ = io::stderr().write_all(&attempt.stderr);
        return Ok(code(attempt.status));
    }
    let result = unchanged()?;
    if result == ExitCode::SUCCESS {
        let said = String::from_utf8_lossy(&attempt.stderr);
        let first = said
            .lines()
            .find(|line| line.contains("Error"))
            .unwrap_or("no message")
            .to_owned();
        let why = format!("the assembler refused the text with prefetches: {first}");
        warn(&format!("assembled without hints: {why}"));
        record.placed.clear();
        record.unchanged = Some(why);
    }
    log(&record);
    Ok(result)
}

impl Call {
    fn command(&self, arguments: &[OsString]) -> Command {
        let mut command = Command::new(&self.program);
        // Its messages start with the name that it is called by, which compilers give without a path.
        let name = self.program.file_name().unwrap_or(OsStr::new("as"));
        command.args(arguments).arg0(name);
        command.env(INSIDE, "1").env_remove("COHTRACE_AS");
        command
    }

    /// The assembler on the arguments as they were given.
    fn plainly(&self, arguments: &[OsString]) -> Result<ExitCode> {
        let status = self
            .command(arguments)
            .status()
            .with_context(|| self.running())?;
        Ok(code(status))
    }

    /// The assembler on this text; what it says is kept, or goes where it always goes.
    fn feed(&self, text: &[u8], keep: bool) -> Result<Output> {
        let stream = || {
            if keep {
                Stdio::piped()
            } else {
                Stdio::inherit()
            }
        };
        let mut child = self
            .command(&self.arguments.on_stdin())
            .stdin(Stdio::piped())
            .stdout(stream())
            .stderr(stream())
            .spawn()
            .with_context(|| self.running())?;
        let stdin = child.stdin.take();
        thread::scope(|scope| {
            scope.spawn(move || {
                // An assembler that gives up early closes its end; its exit code tells.
                let _ = stdin.map(|mut stdin| stdin.write_all(text));
            });
            child.wait_with_output()
        })
        .with_context(|| self.running())
    }

    fn running(&self) -> String {
        format!("running the assembler {}", self.program.display())
    }

    fn record(&self) -> UnitRecord {
        UnitRecord {
            directory: directory(),
            output: self
                .arguments
                .output
                .as_ref()
                .map(|path| path.to_string_lossy().into_owned()),
            ..UnitRecord::default()
        }
    }

    fn tell(&self, rewritten: &Rewritten, hints: &HintFile) {
        if self.quiet {
            return;
        }
        let lines = assembly::lines(rewritten, hints);
        let lines: Vec<String> = (lines.iter())
            .map(|line| format!("cohtrace as: {line}"))
            .collect();
        output::say_all(&lines);
    }
}

fn rewrite(text: &[u8], args: &AsArgs) -> Result<(HintFile, Rewritten)> {
    let hints = read_hints(&args.hints)?;
    // A bug in the rewriter must not end a build either.
    let done = catch_unwind(AssertUnwindSafe(|| {
        let place = Place {
            directory: &directory(),
            maps: &args.map,
            tree: &Disk::default(),
            everywhere: args.everywhere,
        };
        assembly::rewrite(text, &hints, &place)
    }));
    match done {
        Ok(rewritten) => Ok((hints, rewritten)),
        Err(_) => bail!("the rewriter failed; please report it"),
    }
}

fn warn(text: &str) {
    output::say(&format!("cohtrace as: {text}"));
}

fn directory() -> String {
    std::env::current_dir()
        .map(|path| path.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Appends a line to the log of the build, if there is one.
fn log(record: &UnitRecord) {
    let Some(path) = std::env::var_os("COHTRACE_AS_LOG").filter(|path| !path.is_empty()) else {
        return;
    };
    let line = printable::json(&serde_json::to_string(record).unwrap_or_default()) + "\n";
    let path = Path::new(&path);
    let written =
        destination::append(path).and_then(|mut file| Ok(file.write_all(line.as_bytes())?));
    if let Err(error) = written {
        let why = failure::causes(&error);
        warn(&format!("writing {}: {why}", path.display()));
    }
}

/// The assembler's own code; as a shell has it where a signal ended it.
fn code(status: ExitStatus) -> ExitCode {
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}
