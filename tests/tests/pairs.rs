//! Read-then-write pairs: those that a workload's key lists are found, and no other load gets a hint. A run without
//! windows lists none, which proves nothing: it does not count.

use cohtrace_tests::{
    answer::Variant::{Padded, Plain, Split, Unpaired},
    live::check_watched as check,
};

#[test]
fn a_value_read_by_one_function_and_stored_by_another_is_a_pair() {
    check("get_set", Plain);
}

#[test]
fn a_value_read_by_one_thread_and_stored_by_another_is_none() {
    check("get_set", Unpaired);
}

#[test]
fn a_value_read_and_stored_on_a_line_of_its_own_is_none() {
    check("get_set", Padded);
}

#[test]
fn a_load_and_a_store_of_another_field_of_the_line_are_a_pair() {
    check("rank_keys", Plain);
}

#[test]
fn a_load_whose_store_goes_to_another_line_is_none() {
    check("rank_keys", Unpaired);
}

#[test]
fn a_load_and_a_store_of_a_line_that_nobody_else_touches_are_none() {
    check("rank_keys", Padded);
}

#[test]
fn a_load_that_a_store_seldom_follows_gets_no_hint() {
    check("seldom_set", Plain);
}

#[test]
fn a_load_that_a_store_seldom_follows_on_a_line_of_its_own_is_no_pair() {
    check("seldom_set", Padded);
}

#[test]
fn a_load_that_only_others_stores_follow_is_no_pair() {
    check("polled_flag", Plain);
}

#[test]
fn a_load_of_a_line_that_is_never_stored_is_no_pair() {
    check("polled_flag", Padded);
}

#[test]
fn an_increment_in_one_instruction_is_a_pair_without_a_hint() {
    check("queue_ends", Plain);
}

#[test]
fn an_increment_in_three_instructions_is_a_pair_with_a_hint() {
    check("queue_ends", Split);
}

#[test]
fn increments_on_lines_of_their_own_are_no_pairs() {
    check("queue_ends", Padded);
}

#[test]
fn a_load_and_its_compare_and_swap_are_a_pair() {
    check("swapped_total", Plain);
}

#[test]
fn an_atomic_addition_gets_no_hint() {
    check("swapped_total", Unpaired);
}

#[test]
fn totals_on_lines_of_their_own_have_no_pairs() {
    check("swapped_total", Padded);
}

#[test]
fn a_load_that_many_readers_share_gets_no_hint() {
    check("read_mostly", Plain);
}

#[test]
fn a_load_that_many_readers_share_of_a_line_nobody_stores_is_no_pair() {
    check("read_mostly", Padded);
}
