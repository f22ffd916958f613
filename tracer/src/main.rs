//! The `cohtrace` binary.
fn main() -> std::process::ExitCode {
    cohtrace::cli::main()
}
