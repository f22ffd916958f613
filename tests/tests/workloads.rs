//! The workloads and their keys, without the tool: they build, run, check themselves, and their code does what the
//! keys say.

use std::{collections::BTreeSet, time::Duration};

use cohtrace_tests::{
    answer::{Answer, ExpectedCode, Variant, tagged_line},
    disassembly::{MemoryInstruction, memory_instructions},
    tool,
    workload::{self, Program, Workload},
};

/// Every variant of every workload, built.
fn for_each_program(mut judge: impl FnMut(&Workload, Variant, &Program)) {
    for workload in workload::all().expect("the workloads are readable") {
        for answer in &workload.answers {
            let program = workload
                .build(answer.variant)
                .unwrap_or_else(|e| panic!("{e:#}"));
            judge(&workload, answer.variant, &program);
        }
    }
}

#[test]
fn every_workload_runs_as_long_as_told_and_finds_its_own_counts_and_layout_right() {
    for_each_program(|workload, variant, program| {
        let mut command = std::process::Command::new(&program.path);
        let ended = tool::run(command.arg("200"), Duration::from_secs(30));
        let who = format!("{} ({})", workload.name, variant.name());
        assert_eq!(
            ended.code(),
            0,
            "{who}: 1 is wrong counts, 2 a wrong layout, 3 a failed call"
        );
        assert!(
            ended.took >= Duration::from_millis(200),
            "{who} took {:?}",
            ended.took
        );
        assert_eq!(ended.stdout, "", "{who} would write into the report");
    });
}

#[test]
fn the_code_of_each_workload_does_what_its_key_says() {
    for_each_program(|workload, variant, program| {
        let answer = workload.answer(variant).expect("it was built from it");
        let code = program.library.as_ref().unwrap_or(&program.with_symbols);
        for field in answer.findings.iter().flat_map(|finding| &finding.fields) {
            let instructions =
                memory_instructions(code, &field.function).unwrap_or_else(|e| panic!("{e:#}"));
            let line = tagged_line(&workload.text, &field.line).expect("read with the key");
            let code = ExpectedCode::from(field);
            assert!(
                instructions
                    .iter()
                    .any(|i| i.op == field.op && is_at(i, &code, workload)),
                "{} ({}): no {} at line {line} in {}:\n{instructions:#?}",
                workload.name,
                variant.name(),
                field.op,
                field.function,
            );
        }
    });
}

/// A compiler that folded a load and a store into one instruction, or took one apart, would make a key wrong.
#[test]
fn the_pairs_of_each_key_are_compiled_to_as_many_instructions_as_it_says() {
    for_each_program(|workload, variant, program| {
        let answer = workload.answer(variant).expect("it was built from it");
        let who = format!("{} ({})", workload.name, variant.name());
        let ops = |code: &ExpectedCode| -> BTreeSet<&str> {
            let instructions = memory_instructions(&program.with_symbols, &code.function)
                .unwrap_or_else(|e| panic!("{e:#}"));
            let there = instructions.iter().filter(|i| is_at(i, code, workload));
            there.map(|i| i.op).collect()
        };
        for pair in &answer.pairs {
            let (load, store) = (ops(&pair.load), ops(&pair.store));
            if pair.same_instruction {
                assert_eq!((&load, &store), (&["rmw"].into(), &["rmw"].into()), "{who}");
                continue;
            }
            assert!(
                load.contains("load") && !load.contains("rmw"),
                "{who}: {load:?} instead of a load at {}",
                pair.load.line
            );
            assert!(
                store.contains(pair.op.as_str()),
                "{who}: {store:?} instead of a {} at {}",
                pair.op,
                pair.store.line
            );
        }
        // That a load that is nowhere begins no pair says nothing.
        for tag in &answer.no_pair {
            let mut fields = answer.findings.iter().flat_map(|finding| &finding.fields);
            assert!(
                fields.any(|field| &field.line == tag && field.op == "load"),
                "{who}: no expected load is at {tag}"
            );
        }
    });
}

#[test]
fn each_hint_has_a_twin_that_is_shared_and_has_none() {
    for workload in workload::all().expect("the workloads are readable") {
        let hints = |answer: &Answer| answer.pairs.iter().any(|pair| pair.hint);
        let is_twin = |answer: &Answer| !answer.findings.is_empty() && !hints(answer);
        assert!(
            !workload.answers.iter().any(hints) || workload.answers.iter().any(is_twin),
            "{} has only variants with hints, or that share nothing",
            workload.name
        );
    }
}

/// Whether an instruction comes from that line of that function.
fn is_at(instruction: &MemoryInstruction, code: &ExpectedCode, workload: &Workload) -> bool {
    let line = tagged_line(&workload.text, &code.line).expect("read with the key");
    let file = workload.source.file_name().and_then(|name| name.to_str());
    let inlined_right = code.inlined.as_ref().is_none_or(|inlined| {
        instruction
            .frames
            .iter()
            .any(|frame| &frame.function == inlined)
    });
    let frame_right = instruction
        .frames
        .iter()
        .any(|frame| Some(frame.file.as_str()) == file && frame.line == line);
    inlined_right && frame_right
}

#[test]
fn each_positive_has_its_padded_twin() {
    for workload in workload::all().expect("the workloads are readable") {
        let variants: BTreeSet<Variant> = workload.answers.iter().map(|a| a.variant).collect();
        assert_eq!(
            variants.len(),
            workload.answers.len(),
            "{} answers twice for a variant",
            workload.name
        );
        let plain = workload
            .answer(Variant::Plain)
            .unwrap_or_else(|e| panic!("{e:#}"));
        assert_eq!(
            variants.contains(&Variant::Padded),
            !plain.findings.is_empty(),
            "{}",
            workload.name
        );
        for answer in &workload.answers {
            let lost = answer
                .findings
                .iter()
                .any(|f| f.kind == "false-sharing" || f.kind == "mixed-sharing");
            assert!(
                answer.variant != Variant::Padded || !lost,
                "{} is padded and still falsely shared",
                workload.name
            );
        }
    }
}

#[test]
fn an_unstripped_copy_of_the_stripped_program_has_the_same_code() {
    let workload = workload::named("stripped").expect("it is there");
    let program = workload
        .build(Variant::Plain)
        .unwrap_or_else(|e| panic!("{e:#}"));
    assert_eq!(
        memory_instructions(&program.path, "count_parsed").expect("binutils read it"),
        [],
        "the stripped program still names its functions"
    );
    assert_ne!(
        memory_instructions(&program.with_symbols, "count_parsed").expect("binutils read it"),
        []
    );
}
