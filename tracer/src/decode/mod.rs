//! Machine code to memory operands; pure.
