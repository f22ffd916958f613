//! The programs, one file per attach point.
