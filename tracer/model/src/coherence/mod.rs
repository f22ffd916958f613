//! The directory protocol that turns an order of accesses into requests and messages: the MESI model of
//! SWIFT (Collard, Jouppi, Yehia, "System-Wide Performance Monitors and their Application to the
//! Optimization of Coherent Memory Accesses", PPoPP 2005, section 2), for one line and for a machine with caches.
//!
//! [`Directory`] is the line's home; [`Transactions`] counts the messages; [`RequestRow`] is a row of the
//! request log of section 3.2, and [`followed_by_ownership`] the filter of section 4.1; [`OwnershipFilter`] is the same
//! filter on requests as they come. [`Multiprocessor`] puts caches of a size around the homes of all lines.
//!
//! # What the paper says
//!
//! - A processor has a line Modified, Exclusive, Shared or Invalid; the home has it Idle, Shared or Private.
//! - A load that misses sends READ_SHAR. From Idle or Shared the home answers DATA_SHAR: 2 messages, and
//!   the reader has a Shared copy, never an Exclusive one.
//! - From Private the home first sends RECALL_PRIV to the owner, which answers RESP_SHAR when its copy is
//!   clean and RESP_DATA when it is dirty: 4 messages. Either way it is no longer the owner.
//! - A store that has no ownership sends READ_PRIV, whether it misses or upgrades. A load with bias that
//!   misses sends it too; one that hits is a plain load.
//! - Before READ_PRIV is served, all other copies are invalidated.
//!
//! # What is ours
//!
//! - RECALL_SHAR and ACK: the paper names no messages for the invalidation of a shared copy. The home sends
//!   one to each sharer *other than the requester*, and each answers.
//! - RESP_INVAL: what a clean owner answers when its copy is recalled for another owner. The paper announces
//!   three kinds of response and names two; RESP_SHAR ("it will share") cannot be this one.
//! - DATA_PRIV ends every READ_PRIV, also an upgrade that needs no data: the home cannot tell them apart.
//! - A dirty owner that a read recalls keeps a Shared copy, as MESI caches do. "Relinquish ownership" allows
//!   it; the caption of the paper's figure 1 ("invalidating an exclusive copy") speaks for the other reading, which is the
//!   variant `relinquish`.
//! - A [`Directory`] alone evicts nothing, so Idle is only where an order begins. [`Multiprocessor`] does, from the
//!   last level: WRITE_BACK takes a dirty copy's content home, DROP says that a clean copy is gone, so that the home
//!   never recalls what is not there. The paper has neither; it counts what services requests, and these serve none, so
//!   they are counted apart from all other messages.
//! - Variants ([`Protocol`]): with `exclusive_on_first_read` a read of an Idle line is answered by DATA_PRIV, not
//!   DATA_SHAR, and makes the reader the owner of a clean copy. With `migratory` a read of a line that is dirty
//!   elsewhere is answered by DATA_PRIV too: the old owner drops its copy behind its RESP_DATA, and the reader owns a
//!   copy that is clean, since the home has the content. A line that its new owner does not write is therefore shared
//!   by the next reader. With `relinquish` the old owner drops its copy as well, and the reader has a Shared one.
//!   None changes how many messages a request takes, but for the copies that a later one has to recall.
//!
//! # The paper's setting
//!
//! What `--model swift2005` takes from the paper, and what it had to assume:
//!
//! - Requests, states and answers: section 2, with [`Protocol::SWIFT_2005`] for its words on a recalled owner.
//! - A load with bias is a plain load where it hits, in whatever state, and asks as a store does where it misses, also
//!   where the line is Shared elsewhere: "shared copies are invalidated to honor the bias" (section 2). In front of
//!   floating-point loads it is an additional load (section 4.2), which sends the same.
//! - The filter is that of section 4.1: two requests one after the other, once, by any two instructions. It has no
//!   threshold. The log may be a sample (section 3.2, [`LogBuffer`]); how large one was is not said, so all is logged.
//! - 256 KiB of second and 3 MiB of third level (section 5.1). Not said: ways, inclusion and what leaves first; taken are
//!   Itanium 2's 8 and 12 ways, and as for [`Multiprocessor`].
//! - Lines of 128 bytes. Not said; those of table 1 begin at multiples of it, messages have "16 to 144 bytes" (section 3.3), and
//!   Itanium 2 has such lines.
//! - Four processors (section 5.2): as many as the session has threads.
//! - "Application transactions" (section 5.2): what services the application's requests. Sessions have no others.
//!
//! Not modelled: that loads with acquire semantics, speculative and advanced ones are left alone (section 4.2), since
//! x86-64 code does not tell which of its loads would be one; and which code was recompiled ("the application", section 4).
//! Some request of the paper's takes an odd number of messages, since tables 4 and 5 have odd counts, and none of section 2 does.
//!
//! # Where the paper's figures hold
//!
//! "At least 6" messages for a load and then a store of a line that the processor does not have, "two to
//! service the load and at least four to service the store", and "two fewer" with bias:
//!
//! ```text
//!   the line is              load + store      load with bias    saved
//!   Idle                      2 + 2       = 4       2              2
//!   Shared by n others        2 + (2+2n)            2 + 2n         2
//!   Modified elsewhere        4 + 4       = 8       4              4
//!   Exclusive elsewhere       4 + 4       = 8       4              4
//! ```
//!
//! All three figures agree where one other processor shares the line: 2 + 4 against 4. For an Idle line the
//! paper contradicts itself: its own rule that an Idle line is served at once makes the biased load 2
//! messages, so the plain pair cannot be both 6 and two more than that. The row "Modified elsewhere" is 4 + 2 = 6
//! and 4 under `relinquish`.

mod cache;
mod directory;
mod lines;
mod multiprocessor;
mod outcome;
mod ownership_filter;
mod processors;
mod request_log;
mod transactions;

#[cfg(test)]
pub mod laws;

pub use cache::CacheGeometry;
pub use directory::Directory;
pub use lines::{Line, Lines};
pub use multiprocessor::{ModelError, Multiprocessor, Served, SystemModel};
pub use outcome::{Found, Intent, Outcome, Protocol, Request, State};
pub use ownership_filter::{LastRead, LogBuffer, OwnershipFilter};
pub use request_log::{RequestRow, followed_by_ownership, sort_by_line};
pub use transactions::{Transaction, Transactions};
