//! How the text form looks: colours and line-drawing characters, both only when the caller asks.

use super::printable::printable;

/// What the text form may use. The caller knows the terminal; nothing here asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextOptions {
    /// ANSI colours.
    pub colour: bool,
    /// Characters beyond ASCII. Without it, names that have some are escaped.
    pub unicode: bool,
    /// Everything there is to know, not only what must be.
    pub verbose: bool,
}

/// What a piece of text is, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// False sharing: can be fixed by moving bytes.
    False,
    /// True sharing: needs another algorithm.
    True,
    /// Both.
    Mixed,
    /// Nothing to worry about.
    Good,
    /// The eye should stop here.
    Strong,
    /// Labels and frames.
    Quiet,
}

impl Role {
    /// Select Graphic Rendition parameters (ECMA-48).
    fn code(self) -> &'static str {
        match self {
            Role::False => "1;31",
            Role::True => "1;33",
            Role::Mixed => "1;35",
            Role::Good => "1;32",
            Role::Strong => "1",
            Role::Quiet => "2",
        }
    }
}

impl TextOptions {
    /// The text in its role's colour. Measure and pad before: the codes take no columns.
    pub(super) fn paint(self, role: Role, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("\x1b[{}m{text}\x1b[0m", role.code())
        } else {
            text.to_owned()
        }
    }

    /// A name from elsewhere, safe to print.
    pub(super) fn name(self, text: &str) -> String {
        printable(text, !self.unicode).into_owned()
    }

    /// Starts an item of a list.
    pub(super) fn bullet(self) -> &'static str {
        if self.unicode { "•" } else { "-" }
    }

    /// A byte that nobody was seen to touch.
    pub(super) fn unused_byte(self) -> char {
        if self.unicode { '·' } else { '.' }
    }

    /// Both ends of the byte map.
    pub(super) fn frame(self) -> char {
        if self.unicode { '│' } else { '|' }
    }
}
