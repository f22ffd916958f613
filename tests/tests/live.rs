//! Every workload under the timer source: what its key says is found, and nothing else.

use cohtrace_tests::{
    answer::Variant::{
        Busy, Common, Kept, Mfence, Operand, Padded, Plain, Private, Stored, Unpaired, Unpaused,
        Xchg,
    },
    live::{check, check_kernel_spin},
};

#[test]
fn two_counters_of_one_struct() {
    check("two_counters", Plain);
}

#[test]
fn two_counters_apart() {
    check("two_counters", Padded);
}

#[test]
fn an_array_of_slots_for_threads() {
    check("thread_slots", Plain);
}

#[test]
fn an_array_of_slots_on_lines_of_their_own() {
    check("thread_slots", Padded);
}

#[test]
fn line_sized_structs_that_start_within_a_line() {
    check("misaligned_slots", Plain);
}

#[test]
fn line_sized_structs_that_start_a_line() {
    check("misaligned_slots", Padded);
}

#[test]
fn a_struct_on_the_stack_of_main() {
    check("stack_struct", Plain);
}

#[test]
fn a_struct_on_the_stack_of_main_with_fields_apart() {
    check("stack_struct", Padded);
}

#[test]
fn a_thread_local_struct_that_was_lent() {
    check("tls_struct", Plain);
}

#[test]
fn a_thread_local_struct_that_was_lent_counted_in_one_instruction_each() {
    check("tls_struct", Unpaired);
}

#[test]
fn a_thread_local_struct_that_was_lent_with_fields_apart() {
    check("tls_struct", Padded);
}

#[test]
fn a_thread_local_struct_of_a_library_that_was_lent() {
    check("tls_library", Plain);
}

#[test]
fn a_thread_local_struct_of_a_library_that_was_lent_with_fields_apart() {
    check("tls_library", Padded);
}

#[test]
fn a_rust_thread_local_that_was_lent() {
    check("lent_cell", Plain);
}

#[test]
fn a_rust_thread_local_that_was_lent_with_fields_apart() {
    check("lent_cell", Padded);
}

#[test]
fn a_heap_array() {
    check("heap_array", Plain);
}

#[test]
fn a_heap_array_with_elements_apart() {
    check("heap_array", Padded);
}

#[test]
fn a_writer_beside_configuration_that_is_only_read() {
    check("config_reader", Plain);
}

#[test]
fn a_writer_apart_from_configuration_that_is_only_read() {
    check("config_reader", Padded);
}

#[test]
fn a_lock_its_data_and_a_statistic_on_one_line() {
    check("lock_and_data", Plain);
}

#[test]
fn a_lock_and_its_data_apart_from_the_statistic() {
    check("lock_and_data", Padded);
}

#[test]
fn two_locks_on_one_line() {
    check("two_locks", Plain);
}

#[test]
fn two_locks_apart_are_each_truly_shared() {
    check("two_locks", Padded);
}

#[test]
fn one_atomic_counted_by_all() {
    check("shared_atomic", Plain);
}

#[test]
fn an_atomic_for_each_thread_on_lines_of_their_own() {
    check("shared_atomic", Padded);
}

#[test]
fn a_table_that_all_read_is_no_finding() {
    check("read_read", Plain);
}

#[test]
fn whole_lines_for_each_thread_are_no_finding() {
    check("whole_lines", Plain);
}

#[test]
fn phases_that_never_overlap_are_no_finding() {
    check("phases", Plain);
}

#[test]
fn two_processes_that_map_one_page_at_different_addresses() {
    check("forked_mapping", Plain);
}

#[test]
fn two_processes_on_lines_of_their_own_in_one_page() {
    check("forked_mapping", Padded);
}

#[test]
fn the_global_of_a_library_opened_at_run_time() {
    check("dlopened_library", Plain);
}

#[test]
fn the_global_of_a_library_with_fields_apart() {
    check("dlopened_library", Padded);
}

#[test]
fn a_vector_of_atomics() {
    check("atomic_vector", Plain);
}

#[test]
fn a_vector_of_atomics_on_lines_of_their_own() {
    check("atomic_vector", Padded);
}

#[test]
fn a_rust_struct_of_two_atomics() {
    check("two_atomics", Plain);
}

#[test]
fn a_rust_struct_of_two_atomics_apart() {
    check("two_atomics", Padded);
}

#[test]
fn an_accessor_that_was_inlined() {
    check("inlined_accessor", Plain);
}

#[test]
fn an_accessor_that_was_inlined_with_fields_apart() {
    check("inlined_accessor", Padded);
}

#[test]
fn a_stripped_program() {
    check("stripped", Plain);
}

#[test]
fn a_stripped_program_with_fields_apart() {
    check("stripped", Padded);
}

#[test]
fn a_loop_whose_body_falls_into_its_condition() {
    check("served_loop", Plain);
}

#[test]
fn a_loop_whose_body_falls_into_its_condition_with_fields_apart() {
    check("served_loop", Padded);
}

#[test]
fn two_globals_that_happen_to_be_neighbours() {
    check("adjacent_globals", Plain);
}

#[test]
fn two_globals_counted_in_one_instruction_each() {
    check("adjacent_globals", Unpaired);
}

#[test]
fn two_globals_apart() {
    check("adjacent_globals", Padded);
}

#[test]
fn counters_on_both_lines_of_a_pair() {
    check("adjacent_lines", Plain);
}

#[test]
fn counters_on_lines_of_different_pairs() {
    check("adjacent_lines", Padded);
}

#[test]
fn five_hundred_threads_on_one_line() {
    check("crowd", Plain);
}

#[test]
fn five_hundred_threads_on_two_lines() {
    check("crowd", Padded);
}

#[test]
fn halves_of_a_word_where_the_reader_overwrites_its_pointer() {
    check("half_word", Plain);
}

#[test]
fn halves_of_a_word_on_lines_of_their_own() {
    check("half_word", Padded);
}

#[test]
fn halves_of_a_word_where_the_reader_keeps_its_pointer() {
    check("half_word", Kept);
}

#[test]
fn one_half_of_a_word_for_both_where_the_reader_overwrites_its_pointer() {
    check("half_word", Common);
}

/// A workload nobody runs is an answer nobody hears.
#[test]
fn every_variant_of_every_workload_is_run() {
    let tests = [
        include_str!("live.rs"),
        include_str!("pairs.rs"),
        include_str!("watch.rs"),
        include_str!("heap.rs"),
        include_str!("jit.rs"),
    ];
    for workload in cohtrace_tests::workload::all().expect("the workloads are readable") {
        for answer in &workload.answers {
            let subject = format!("(\"{}\", {:?}", workload.name, answer.variant);
            let calls = [
                format!("check{subject});"),
                format!("check_kernel_spin{subject});"),
                format!("names{subject},"),
            ];
            let is_called = |text: &&str| calls.iter().any(|call| text.contains(call.as_str()));
            assert!(
                tests.iter().any(is_called),
                "no test says {}",
                calls.join(" or ")
            );
        }
    }
}

#[test]
fn two_positions_of_a_queue_on_one_line() {
    check("queue_positions", Plain);
}

#[test]
fn two_positions_of_a_queue_apart() {
    check("queue_positions", Padded);
}

#[test]
fn a_published_position_beside_two_counters_that_main_initialised() {
    check("published_position", Plain);
}

#[test]
fn two_counters_that_main_initialised() {
    check("published_position", Unpaired);
}

#[test]
fn a_published_position_apart_from_two_counters() {
    check("published_position", Padded);
}

#[test]
fn slots_whose_owners_change() {
    check("slot_owners", Plain);
}

#[test]
fn slots_apart_whose_owners_change() {
    check("slot_owners", Padded);
}

#[test]
fn an_element_at_a_constant_index_behind_a_pointer() {
    check("const_index", Plain);
}

#[test]
fn an_element_at_a_constant_index_with_members_apart() {
    check("const_index", Padded);
}

#[test]
fn cells_that_only_a_library_accesses() {
    check("handed_cells", Plain);
}

#[test]
fn cells_that_only_a_library_accesses_on_lines_of_their_own() {
    check("handed_cells", Padded);
}

#[test]
fn a_struct_without_a_name_on_the_heap() {
    check("unnamed_struct", Plain);
}

#[test]
fn a_struct_without_a_name_on_the_heap_with_members_apart() {
    check("unnamed_struct", Padded);
}

#[test]
fn an_array_of_structs_without_a_name() {
    check("unnamed_array", Plain);
}

#[test]
fn an_array_of_structs_without_a_name_with_members_apart() {
    check("unnamed_array", Padded);
}

#[test]
fn the_ends_of_a_rust_ring_behind_an_arc() {
    check("arc_ring", Plain);
}

#[test]
fn the_ends_of_a_rust_ring_behind_an_arc_apart() {
    check("arc_ring", Padded);
}

#[test]
fn words_of_shared_memory_of_which_nothing_else_is_known() {
    check("shared_words", Plain);
}

#[test]
fn words_of_shared_memory_apart() {
    check("shared_words", Padded);
}

#[test]
fn a_ring_whose_slots_take_little_each() {
    check("ring_of_slots", Plain);
}

#[test]
fn a_ring_of_which_each_thread_has_a_half() {
    check("ring_of_slots", Padded);
}

#[test]
fn nodes_of_a_type_that_cost_little_each() {
    check("heap_nodes", Plain);
}

#[test]
fn nodes_with_fields_apart() {
    check("heap_nodes", Padded);
}

#[test]
fn stores_before_a_locked_instruction_on_the_stack() {
    check("fence_store", Plain);
}

#[test]
fn stores_before_mfence() {
    check("fence_store", Mfence);
}

#[test]
fn stores_before_an_exchange_with_private_memory() {
    check("fence_store", Xchg);
}

#[test]
fn exchanges_that_are_the_stores_themselves() {
    check("fence_store", Operand);
}

#[test]
fn barriers_after_private_stores() {
    check("fence_store", Private);
}

#[test]
fn stores_to_lines_of_their_own_before_barriers() {
    check("fence_store", Padded);
}

#[test]
fn volatile_fields_of_two_objects_on_one_line() {
    check("volatile_fields", Plain);
}

#[test]
fn volatile_fields_of_two_objects_apart() {
    check("volatile_fields", Padded);
}

#[test]
fn counters_whose_threads_change_places() {
    check("changing_hands", Plain);
}

#[test]
fn counters_that_two_threads_add_to_at_all_times() {
    check("changing_hands", Common);
}

#[test]
fn counters_whose_threads_change_places_apart() {
    check("changing_hands", Padded);
}

#[test]
fn a_token_that_two_threads_spin_for() {
    check("hand_over", Plain);
}

#[test]
fn a_token_that_two_threads_spin_for_without_a_pause() {
    check("hand_over", Unpaused);
}

#[test]
fn a_token_that_two_threads_poll_while_they_work() {
    check("hand_over", Busy);
}

#[test]
fn a_token_for_each_thread() {
    check("hand_over", Padded);
}

#[test]
fn a_loop_bound_that_nobody_changes_beside_contended_counters() {
    check("loop_bound", Plain);
}

#[test]
fn a_loop_bound_that_nobody_changes_beside_counters_of_one_instruction() {
    check("loop_bound", Unpaired);
}

#[test]
fn a_loop_bound_that_somebody_changes_beside_contended_counters() {
    check("loop_bound", Stored);
}

#[test]
fn a_loop_bound_beside_counters_apart() {
    check("loop_bound", Padded);
}

#[test]
fn memory_that_two_threads_map_makes_them_spin_in_the_kernel() {
    check_kernel_spin("mapper", Plain);
}
