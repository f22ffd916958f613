//! The terminal that a stream is.

use std::os::fd::AsFd;

/// Columns of the terminal now; `None` where the stream is none, or the terminal does not say.
pub fn columns(stream: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}
